package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"handoff/agents/llm/tape"
	"handoff/gitops/fakegithub"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
	"handoff/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	runChild()
	testscript.Main(wide{m}, map[string]func(){"handoff": main})
}

// wide runs more tests at once than there are processors: conversations mostly
// wait, for the five seconds in which nobody can approve.
type wide struct{ *testing.M }

func (w wide) Run() int {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := w.M.Run()
	if err := sandbox.RemoveTree(warm.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// update writes what GitHub looked like into the scripts, where it differs.
var update = flag.Bool("update", false, "write the end states of the conversations and the tape of the demo anew")

// TestConversations plays every file of testdata/conversations: a repository,
// a tape for a model, what people do on GitHub, and what GitHub must look like
// at the end. The commands are described in testdata/conversations/README.md.
func TestConversations(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Dir:                 "testdata/conversations",
				RequireExplicitExec: true,
				UpdateScripts:       *update,
				Setup: func(env *testscript.Env) error {
					env.Values[sceneKey{}] = &scene{t: t, database: storetest.URL(t, engine)}
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"stage":    onScene((*scene).raise),
					"issue":    onScene((*scene).issue),
					"comment":  onScene((*scene).comment),
					"edit":     onScene((*scene).edit),
					"react":    onScene((*scene).react),
					"click":    onScene((*scene).click),
					"approve":  onScene((*scene).approve),
					"until":    onScene((*scene).await),
					"github":   onScene((*scene).show),
					"reject":   onScene((*scene).reject),
					"never":    onScene((*scene).never),
					"role":     onScene((*scene).role),
					"protect":  onScene((*scene).protect),
					"ruleset":  onScene((*scene).ruleset),
					"commit":   onScene((*scene).commit),
					"patch":    onScene((*scene).patch),
					"restored": onScene((*scene).restored),
				},
			})
		})
	}
}

type sceneKey struct{}

// A scene is the stage of one conversation.
type scene struct {
	t        *testing.T
	database string
	stage    *stage
	script   *testscript.TestScript
}

// patience bounds every wait of a conversation; it is no measure of speed.
const patience = time.Minute

func onScene(do func(*scene, context.Context, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(script *testscript.TestScript, negated bool, args []string) {
		if negated {
			script.Fatalf("this command cannot be negated")
		}
		s := script.Value(sceneKey{}).(*scene)
		s.script = script
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		script.Check(do(s, ctx, args))
	}
}

// raise builds the stage from the script's repo/ and tape.jsonl. Arguments are
// name=value: turns, handoffs, tokens, cost, time, role, expires, sandbox, git,
// workflows.
func (s *scene) raise(_ context.Context, args []string) error {
	source, err := os.Open(s.script.MkAbs("tape.jsonl"))
	if err != nil {
		return err
	}
	defer source.Close()
	answers, err := tape.Read(source)
	if err != nil {
		return err
	}
	spec := stageSpec{
		dir: s.script.MkAbs("world"), repository: "shop", files: os.DirFS(s.script.MkAbs("repo")),
		player: tape.NewPlayer(answers, tape.Options{}), sandbox: "none", database: s.database,
		log:    slog.New(slog.NewTextHandler(logWriter{s.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		limits: fakegithub.Limits{PerHour: -1, PointsPerMinute: -1, Concurrent: -1, ContentPerMinute: -1, ContentPerHour: -1},
	}
	settings := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		settings[name] = value
	}
	if value := settings["sandbox"]; value != "" {
		spec.sandbox = value
	}
	spec.git = fakegithub.GitBackend(settings["git"])
	spec.adjust = func(serve *serveCommand) { adjust(serve, settings) }
	if s.stage, err = newStage(context.Background(), spec); err != nil {
		return err
	}
	s.script.Defer(func() {
		if err := s.stage.close(); err != nil {
			s.t.Error(err)
		}
		if err := sandbox.RemoveTree(spec.dir); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

func adjust(serve *serveCommand, settings map[string]string) {
	number := func(name string, into *int) {
		if value, err := strconv.Atoi(settings[name]); err == nil {
			*into = value
		}
	}
	number("turns", &serve.MaxTurns)
	number("handoffs", &serve.MaxHandoffs)
	tokens := int(serve.MaxTokens)
	number("tokens", &tokens)
	serve.MaxTokens = int64(tokens)
	if cost, err := strconv.ParseFloat(settings["cost"], 64); err == nil {
		serve.MaxCost = cost
	}
	if limit, err := time.ParseDuration(settings["time"]); err == nil {
		serve.MaxTime = limit
	}
	if expires, err := time.ParseDuration(settings["expires"]); err == nil {
		serve.Expires = expires
	}
	serve.Workflows = settings["workflows"] == "true"
	if role := settings["role"]; role != "" {
		serve.Role = role
	}
}

const sceneRepository = stageOwner + "/shop"

// issue LOGIN TITLE… opens an issue.
func (s *scene) issue(_ context.Context, args []string) error {
	_, err := s.stage.github.As(args[0]).CreateIssue(sceneRepository, strings.Join(args[1:], " "), "")
	return err
}

// comment LOGIN ISSUE TEXT… comments on an issue.
func (s *scene) comment(_ context.Context, args []string) error {
	number, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	_, err = s.stage.github.As(args[0]).Comment(sceneRepository, number, strings.Join(args[2:], " "))
	return err
}

// edit LOGIN TEXT… changes the newest prompt.
func (s *scene) edit(ctx context.Context, args []string) error {
	prompt, err := s.prompt(ctx)
	if err != nil {
		return err
	}
	return s.stage.github.As(args[0]).EditComment(sceneRepository, prompt.ID, strings.Join(args[1:], " "))
}

// react LOGIN CONTENT reacts to the newest prompt.
func (s *scene) react(ctx context.Context, args []string) error {
	prompt, err := s.prompt(ctx)
	if err != nil {
		return err
	}
	return s.stage.github.As(args[0]).React(sceneRepository, prompt.ID, args[1])
}

// click LOGIN IDENTIFIER presses a button of the newest check run that has any.
func (s *scene) click(ctx context.Context, args []string) error {
	return s.poll(ctx, "a check run with buttons", func(repository fakegithub.Repository) (bool, error) {
		for i := len(repository.CheckRuns) - 1; i >= 0; i-- {
			if run := repository.CheckRuns[i]; len(run.Actions) > 0 {
				return true, s.stage.github.As(args[0]).ClickCheckAction(sceneRepository, run.ID, args[1])
			}
		}
		return false, nil
	})
}

// digestShown finds the digest that a prompt asks people to type.
var digestShown = regexp.MustCompile("/copilot approve ([0-9a-f]{8})")

// approve LOGIN approves the newest prompt by a comment.
func (s *scene) approve(ctx context.Context, args []string) error {
	prompt, err := s.prompt(ctx)
	if err != nil {
		return err
	}
	digest := digestShown.FindStringSubmatch(prompt.Body)
	_, err = s.stage.github.As(args[0]).Comment(sceneRepository, 1, "/copilot approve "+digest[1])
	return err
}

// reject LOGIN REASON… rejects the newest prompt by a comment.
func (s *scene) reject(ctx context.Context, args []string) error {
	prompt, err := s.prompt(ctx)
	if err != nil {
		return err
	}
	digest := digestShown.FindStringSubmatch(prompt.Body)
	_, err = s.stage.github.As(args[0]).Comment(sceneRepository, 1, "/copilot reject "+digest[1]+" "+strings.Join(args[1:], " "))
	return err
}

// role LOGIN ROLE changes what somebody may do.
func (s *scene) role(_ context.Context, args []string) error {
	return s.stage.github.SetRole(sceneRepository, args[0], fakegithub.Role(args[1]))
}

// protect PATTERN protects branches.
func (s *scene) protect(_ context.Context, args []string) error {
	return s.stage.github.Protect(sceneRepository, fakegithub.Protection{Pattern: args[0], RequirePullRequest: true})
}

// ruleset PATTERN lets nobody create or update branches.
func (s *scene) ruleset(_ context.Context, args []string) error {
	return s.stage.github.Protect(sceneRepository, fakegithub.Protection{Pattern: args[0], Ruleset: true})
}

// commit prints the commit that the crew's branch is at.
func (s *scene) commit(context.Context, []string) error {
	repository, _ := s.stage.github.State().Repository(sceneRepository)
	for branch := range repository.Branches {
		if !strings.HasPrefix(branch, "copilot/") {
			continue
		}
		commit, err := s.stage.github.CommitDetails(sceneRepository, branch)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.script.Stdout(), "author %s\ncommitter %s\nverified %v\n\n%s", commit.Author, commit.Committer, commit.Verified,
			steady(commit.Message))
		return nil
	}
	return errors.New("there is no branch of the crew's")
}

// prompt waits for a prompt that has not been closed.
func (s *scene) prompt(ctx context.Context) (prompt fakegithub.Comment, err error) {
	err = s.poll(ctx, "a prompt", func(repository fakegithub.Repository) (bool, error) {
		for _, issue := range repository.Issues {
			for _, comment := range issue.Comments {
				if digestShown.MatchString(comment.Body) && strings.HasPrefix(comment.Body, "###") {
					prompt = comment
				}
			}
		}
		return prompt.ID != 0, nil
	})
	return prompt, err
}

// restored says that the database comes from a backup.
func (s *scene) restored(ctx context.Context, _ []string) error {
	if _, err := s.prompt(ctx); err != nil {
		return err
	}
	_, voided, err := s.stage.bot.store.NewRestoreEpoch(ctx)
	if err == nil && voided != 1 {
		err = fmt.Errorf("%d approvals were voided, want 1", voided)
	}
	return err
}

// until STATE [N] waits until the N-th session (the first is 1) is in a state;
// until comment PATTERN waits until a comment matches.
func (s *scene) await(ctx context.Context, args []string) error {
	if args[0] == "comment" {
		pattern, err := regexp.Compile(strings.Join(args[1:], " "))
		if err != nil {
			return err
		}
		return s.poll(ctx, "a comment that matches "+pattern.String(), func(repository fakegithub.Repository) (bool, error) {
			for _, issue := range repository.Issues {
				for _, comment := range issue.Comments {
					if pattern.MatchString(comment.Body) {
						return true, nil
					}
				}
			}
			return false, nil
		})
	}
	number := 1
	if len(args) > 1 {
		var err error
		if number, err = strconv.Atoi(args[1]); err != nil {
			return err
		}
	}
	return s.waitState(ctx, store.SessionState(args[0]), number)
}

// never PATTERN fails if a comment matches.
func (s *scene) never(_ context.Context, args []string) error {
	pattern, err := regexp.Compile(strings.Join(args, " "))
	if err != nil {
		return err
	}
	repository, _ := s.stage.github.State().Repository(sceneRepository)
	for _, issue := range repository.Issues {
		for _, comment := range issue.Comments {
			if found := pattern.FindString(comment.Body); found != "" {
				return fmt.Errorf("a comment on #%d says %q", issue.Number, found)
			}
		}
	}
	return nil
}

func (s *scene) waitState(ctx context.Context, want store.SessionState, number int) error {
	last := "no session"
	for {
		sessions, err := s.stage.bot.store.Sessions(ctx, store.SessionFilter{}, 100)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if n := len(sessions); n >= number {
			session := sessions[n-number] // newest first
			last = fmt.Sprintf("%s (%s)", session.State, session.Reason)
			if session.State == want {
				return s.settle(ctx, session)
			}
			if session.State.Ended() {
				return fmt.Errorf("session %d ended as %s, not %s", number, last, want)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("session %d is %s, not %s", number, last, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// settle waits until GitHub has seen all that the session wanted it to see.
func (s *scene) settle(ctx context.Context, session store.Session) error {
	for {
		effects, err := s.stage.bot.store.EffectsOfSession(ctx, session.ID)
		if err != nil {
			return err
		}
		open := 0
		for _, effect := range effects {
			if effect.State == store.EffectPending || effect.State == store.EffectSending {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d effects of the session were never sent", open)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// poll polls the fake's state.
func (s *scene) poll(ctx context.Context, what string, done func(fakegithub.Repository) (bool, error)) error {
	for {
		repository, ok := s.stage.github.State().Repository(sceneRepository)
		if !ok {
			return fmt.Errorf("the repository is gone")
		}
		if ok, err := done(repository); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("there was never %s; there is\n%s", what, comments(repository))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// comments is everything that was commented, for whoever has to find out why a
// comment never came.
func comments(repository fakegithub.Repository) string {
	var text strings.Builder
	for _, issue := range repository.Issues {
		for _, comment := range issue.Comments {
			fmt.Fprintf(&text, "#%d %s\n", issue.Number, comment.Body)
		}
	}
	return text.String()
}

// patch N prints the work that the N-th session kept, from the link that was
// posted at its end.
func (s *scene) patch(ctx context.Context, args []string) error {
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	sessions, err := s.stage.bot.store.Sessions(ctx, store.SessionFilter{}, 100)
	if err != nil {
		return err
	}
	patch, err := s.postedPatch(ctx, sessions[len(sessions)-number].ID)
	fmt.Fprint(s.script.Stdout(), patch)
	return err
}

// show prints what GitHub looks like, in a form that is the same every time.
func (s *scene) show(context.Context, []string) error {
	repository, _ := s.stage.github.State().Repository(sceneRepository)
	writeRepository(s.script.Stdout(), repository)
	return nil
}

// A logWriter sends the bot's log to the test's.
type logWriter struct{ t *testing.T }

func (w logWriter) Write(line []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(line), "\n"))
	return len(line), nil
}
