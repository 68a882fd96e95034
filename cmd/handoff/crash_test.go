package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"handoff/agents/llm/tape"
	"handoff/cmd/handoff/demo"
	"handoff/gitops/fakegithub"
	"handoff/runner/store/storetest"
)

// childArguments, in the environment, makes the test binary be the program
// itself, so that a test can kill a real process.
const childArguments = "HANDOFF_TEST_CHILD"

func runChild() {
	if arguments := os.Getenv(childArguments); arguments != "" {
		os.Exit(run(strings.Split(arguments, "\x1f"), os.Stdin, os.Stdout, os.Stderr))
	}
}

// The crash test kills the bot this often, spread over so many stories; in CI
// on each engine, elsewhere a sample.
const (
	killsPerStory = 4
	storiesInCI   = 13
)

// TestKilledAtAnyMoment plays the demo's story while the bot is killed with
// kill -9 at random moments and started again. However often that happens,
// GitHub ends up the same: one progress comment, one prompt, one branch with
// one commit, one pull request.
func TestKilledAtAnyMoment(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		lacking(t, "no go command on PATH: the crashes were not tried")
	}
	stories := 1
	if os.Getenv("CI") == "true" {
		stories = storiesInCI
	}
	cache := warmCache(t)
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			for number := range stories {
				seed := rand.Uint64()
				t.Logf("story %d, seed %d", number, seed)
				c := &crash{t: t, database: storetest.URL(t, engine), cache: cache, random: rand.New(rand.NewPCG(seed, 0))}
				c.play()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestAShutdownLosesNothing ends the bot politely in the middle of the story:
// it exits well and in time, and the next one goes on.
func TestAShutdownLosesNothing(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		lacking(t, "no go command on PATH: the shutdown was not tried")
	}
	c := &crash{t: t, database: storetest.URL(t, storetest.SQLite), cache: warmCache(t), politely: true, random: rand.New(rand.NewPCG(1, 1))}
	c.play()
	if !strings.Contains(c.log.String(), "holding the session") {
		t.Error("the log does not tell of the session")
	}
}

// warm is a directory that all crashes of a run of the tests share.
var warm struct {
	sync.Once
	dir string
}

// warmCache returns the caches of the story's setup. The first time one story
// without a crash fills them, so that the kills fall upon all of the others and
// not upon their first build.
func warmCache(t *testing.T) string {
	t.Helper()
	warm.Do(func() {
		dir, err := os.MkdirTemp("", "handoff-warm-")
		if err != nil {
			t.Fatal(err)
		}
		warm.dir = dir
		(&crash{t: t, database: storetest.URL(t, storetest.SQLite), cache: dir, random: rand.New(rand.NewPCG(0, 0)), spared: true}).play()
	})
	return warm.dir
}

// A crash is one story that is interrupted.
type crash struct {
	t        testing.TB
	database string
	cache    string
	random   *rand.Rand
	// spared means that nobody is killed.
	spared bool
	// politely means that the bot is asked to end, and has to do so well.
	politely bool

	world  *stage
	app    fakegithub.App
	listen string
	log    bytes.Buffer
	said   int // length of the log when the bot was last started
}

func (c *crash) play() {
	ctx, cancel := context.WithTimeout(c.t.Context(), 8*time.Minute)
	defer cancel()
	dir := c.t.TempDir()
	c.raise(ctx, dir)
	defer func() {
		if err := c.world.close(); err != nil {
			c.t.Error(err)
		}
	}()
	bot := c.start(dir)
	defer func() { kill(bot) }()
	issue, err := demo.TheIssue()
	if err != nil {
		c.t.Fatal(err)
	}
	ada := c.world.github.As(stageMaintainer)
	if _, err := ada.CreateIssue(stageOwner+"/"+demo.Repository, issue.Title, issue.Body); err != nil {
		c.t.Fatal(err)
	}
	if _, err := ada.Comment(stageOwner+"/"+demo.Repository, 1, issue.Command); err != nil {
		c.t.Fatal(err)
	}
	for range killsPerStory {
		wait := time.Duration(c.random.Int64N(int64(5 * time.Second)))
		if c.spared || c.finished(ctx, wait) {
			break
		}
		if c.politely {
			c.shutDown(bot)
		} else {
			kill(bot)
		}
		bot = c.start(dir)
	}
	if !c.finished(ctx, 6*time.Minute) {
		c.t.Fatalf("the story did not end:\n%s", c.tail())
	}
	c.check()
}

// raise starts the fake and the tape in this process, without a bot.
func (c *crash) raise(ctx context.Context, dir string) {
	answers, err := demo.Tape()
	if err != nil {
		c.t.Fatal(err)
	}
	files, err := demo.Files()
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	c.world = &stage{stop: stop, ended: make(chan struct{})}
	if c.world.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		c.t.Fatal(err)
	}
	// The bot listens there each time it is started.
	c.listen = c.world.listener.Addr().String()
	if c.world.model, err = tape.Serve(tape.NewPlayer(answers, tape.Options{Speed: 2})); err != nil {
		c.t.Fatal(err)
	}
	c.app, err = c.world.raiseGitHub(ctx, stageSpec{
		dir: dir, repository: demo.Repository, files: files, log: slog.New(slog.DiscardHandler),
		limits: fakegithub.Limits{PerHour: -1, PointsPerMinute: -1, Concurrent: -1, ContentPerMinute: -1, ContentPerHour: -1},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.world.listener.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// start runs the bot as a process of its own, as an operator would.
func (c *crash) start(dir string) *exec.Cmd {
	bot := exec.Command(os.Args[0])
	bot.Env = []string{
		childArguments + "=serve", "HOME=" + c.cache, "PATH=" + os.Getenv("PATH"),
		"DATABASE_URL=" + c.database, "GITHUB_URL=" + c.world.github.URL(),
		fmt.Sprintf("GITHUB_APP_ID=%d", c.app.ID), "GITHUB_PRIVATE_KEY=" + c.app.PrivateKey,
		"GITHUB_WEBHOOK_SECRET=" + c.app.WebhookSecret, "PROVIDER=tape", "TAPE_URL=" + c.world.model.URL,
		"LISTEN=" + c.listen, "DATA_DIR=" + filepath.Join(dir, "data"), "SETUP_DIR=" + filepath.Join(c.cache, "setup"),
		"LOG_LEVEL=info",
	}
	bot.Stdout, bot.Stderr = &c.log, &c.log
	c.said = c.log.Len()
	bot.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := bot.Start(); err != nil {
		c.t.Fatal(err)
	}
	return bot
}

// kill ends a process the way that a power cut does.
func kill(bot *exec.Cmd) {
	_ = bot.Process.Kill() // it may have ended by itself; Wait tells nothing new
	_ = bot.Wait()
}

// shutDown asks a process to end and wants it to do so in order.
func (c *crash) shutDown(bot *exec.Cmd) {
	c.t.Helper()
	if err := bot.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bot.Wait() }()
	select {
	case err := <-ended:
		status, _ := bot.ProcessState.Sys().(syscall.WaitStatus)
		unborn := status.Signaled() && c.log.Len() == c.said // it was not even listening to signals
		if err != nil && !unborn {
			c.t.Errorf("the bot did not end well: %v\n%s", err, c.tail())
		}
	case <-time.After(2 * time.Minute):
		c.t.Fatalf("the bot does not end:\n%s", c.tail())
	}
}

// finished plays the maintainer until the story is over or the time is up.
func (c *crash) finished(ctx context.Context, patience time.Duration) bool {
	deadline := time.After(patience)
	for {
		repository, _ := c.world.github.State().Repository(stageOwner + "/" + demo.Repository)
		issue, _ := repository.Issue(1)
		for _, comment := range issue.Comments {
			if strings.HasPrefix(comment.Body, "@"+stageMaintainer+": ") {
				return true
			}
			if strings.HasPrefix(comment.Body, "### Push to") && !reacted(comment) {
				if err := c.world.github.As(stageMaintainer).React(stageOwner+"/"+demo.Repository, comment.ID, "+1"); err != nil {
					c.t.Fatal(err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-deadline:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func reacted(comment fakegithub.Comment) bool {
	for _, reaction := range comment.Reactions {
		if reaction.User == stageMaintainer {
			return true
		}
	}
	return false
}

// check compares what GitHub shows with what it shows without any crash.
func (c *crash) check() {
	c.t.Helper()
	// Edits of what is there already may still be on their way.
	deadline := time.Now().Add(time.Minute)
	for {
		repository, _ := c.world.github.State().Repository(stageOwner + "/" + demo.Repository)
		var out bytes.Buffer
		writeRepository(&out, repository)
		if out.String() == storyEnd {
			break
		}
		if time.Now().After(deadline) {
			c.t.Errorf("GitHub shows\n%s\nwant\n%s\nlog:\n%s", &out, storyEnd, c.tail())
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	repository, _ := c.world.github.State().Repository(stageOwner + "/" + demo.Repository)
	if pull, _ := repository.Issue(2); len(pull.Pull.Commits) != 1 {
		c.t.Errorf("the pull request has %d commits, want one", len(pull.Pull.Commits))
	}
}

// storyEnd is what GitHub shows at the end of the story.
const storyEnd = `issue #1 by ada, open: Add a login endpoint
  ada: /copilot Add a login endpoint as described. Keep it small, test it well, and mention it in the README. [handoff-crew[bot] eyes]
  handoff-crew[bot]: ### Done
  handoff-crew[bot]: ✅ **Approved by ada (by reaction)** [ada +1, handoff-crew[bot] +1, handoff-crew[bot] -1]
  handoff-crew[bot]: @ada: the pull request is ready for review: URL/acme/shelf/pull/2
pull request #2 by handoff-crew[bot], open: Add a login endpoint
  copilot/1-add-a-login-endpoint-ID into main: README.md architecture/LOGIN_DESIGN.md server/login.go server/login_test.go server/server.go tokens/tokens.go tokens/tokens_test.go
check run copilot push #1 DIGEST: success, 0 buttons
branch copilot/1-add-a-login-endpoint-ID
branch main
`

// tail is the end of what the bot said in all its lives.
func (c *crash) tail() string {
	lines := strings.Split(c.log.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
