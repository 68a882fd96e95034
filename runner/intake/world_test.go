package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"handoff/gitops/github"
	"handoff/runner/approval"
	"handoff/runner/outbox"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

const (
	installation = 99
	repository   = 1296269
)

// A person of the stories.
type person struct {
	id    int64
	login string
	role  string
}

var (
	mona    = person{42, "mona", "write"}
	hubot   = person{43, "hubot", "read"}
	triager = person{44, "triager", "triage"}
	owner   = person{45, "owner", "admin"}
)

// A world is a router with a real store and a GitHub that the test decides
// about.
type world struct {
	t      *testing.T
	clock  *storetest.Clock
	store  *recording
	node   *store.Node
	router *Router

	mu sync.Mutex
	// github answers: people by id, faults by the name of the call.
	people map[int64]person
	faults map[string]error
	facts  github.Repository
	pulls  map[int]github.PullRequest
	calls  []string

	// breaks makes every call a fault of the program.
	breaks bool

	// decided are the answers that reached the decisions.
	decided   []string
	voided    []string
	asked     store.Approval
	decision  error
	forgotten []int64
	sent      int
}

// recording is the store, with an eye on what is routed.
type recording struct {
	*store.Store
	mu      sync.Mutex
	effects []store.Effect
	// before, when set, runs before a routing is written.
	before func(store.Routing) error
}

func (r *recording) RouteCommand(ctx context.Context, node *store.Node, id string, routing store.Routing) error {
	if r.before != nil {
		if err := r.before(routing); err != nil {
			return err
		}
	}
	err := r.Store.RouteCommand(ctx, node, id, routing)
	if err == nil {
		r.mu.Lock()
		r.effects = append(r.effects, routing.Effects...)
		r.mu.Unlock()
	}
	return err
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	url := storetest.URL(t, storetest.SQLite)
	clock := storetest.NewClock(t, url)
	w := &world{
		t: t, clock: clock, store: &recording{Store: storetest.OpenURL(t, url, clock.Options())},
		people: map[int64]person{}, faults: map[string]error{}, pulls: map[int]github.PullRequest{},
		facts: github.Repository{ID: repository, Owner: "octo", Name: "login", OwnerID: 7, DefaultBranch: "main"},
	}
	for _, p := range []person{mona, hubot, triager, owner} {
		w.people[p.id] = p
	}
	w.register()
	options := Options{
		Store: w.store, Decisions: w, Forget: func(id int64) { w.forgotten = append(w.forgotten, id) },
		Repository: func(i, r int64) Repository {
			if i != installation || r != repository {
				return elsewhere{w}
			}
			return w
		},
		SessionURL: func(id string) string { return "https://handoff.example/sessions/" + id },
	}
	for _, c := range change {
		c(&options)
	}
	w.router = NewRouter(options)
	w.router.now = clock.Now
	return w
}

func (w *world) register() {
	w.t.Helper()
	node, err := w.store.Register(w.t.Context(), "test")
	if err != nil {
		w.t.Fatal(err)
	}
	w.node = node
}

// pass moves time without losing the node.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.clock.Advance(d)
	if w.node.Beat(w.t.Context()) != nil {
		w.register()
	}
}

// elsewhere is a repository that the installation does not cover.
type elsewhere struct{ *world }

func (elsewhere) Repository(context.Context) (github.Repository, error) {
	return github.Repository{}, &github.Error{Code: github.CodeNotInstalled, Message: "The App's installation does not cover this repository."}
}

func (w *world) Repository(context.Context) (github.Repository, error) {
	return w.facts, w.call("repository")
}

func (w *world) call(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, name)
	if w.breaks {
		panic("index out of range")
	}
	return w.faults[name]
}

func (w *world) Permission(_ context.Context, id int64, login string) (github.Permission, error) {
	if err := w.call("permission"); err != nil {
		return github.Permission{}, err
	}
	p, ok := w.people[id]
	switch {
	case !ok:
		return github.Permission{}, &github.Error{Code: github.CodeNotFound, Message: "No such person."}
	case p.login != login:
		return github.Permission{}, &github.Error{Code: github.CodeConflict, Message: "Somebody else's login."}
	}
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	base := map[string]string{"triage": "read", "maintain": "write", "release-manager": "write"}
	permission := github.Permission{User: github.User{ID: p.id, Login: p.login, Type: kind}, Role: p.role, Base: p.role}
	if b, ok := base[p.role]; ok {
		permission.Base = b
	}
	return permission, nil
}

func (w *world) PullRequest(_ context.Context, number int) (github.PullRequest, error) {
	if err := w.call("pull"); err != nil {
		return github.PullRequest{}, err
	}
	pull, ok := w.pulls[number]
	if !ok {
		return pull, &github.Error{Code: github.CodeNotFound, Message: "No such pull request."}
	}
	return pull, nil
}

func (w *world) DecideByComment(_ context.Context, repositoryID int64, issue int, digest string, answer approval.Answer) (store.Approval, error) {
	w.decided = append(w.decided, fmt.Sprintf("%s %v %s by %d on #%d: %s", answer.Via, answer.Verdict, digest, answer.ByID, issue, answer.Reason))
	return w.asked, w.decision
}

func (w *world) DecideByCheckRun(_ context.Context, repositoryID int64, click approval.Click, answer approval.Answer) (store.Approval, error) {
	w.decided = append(w.decided, fmt.Sprintf("%s %s of %s on check run %d by %d", answer.Via, click.Identifier, click.ApprovalID, click.CheckRunID, answer.ByID))
	return w.asked, w.decision
}

func (w *world) VoidPrompt(_ context.Context, repositoryID, commentID int64, reason string) error {
	w.voided = append(w.voided, fmt.Sprintf("%d: %s", commentID, reason))
	return w.decision
}

// put stores a command as the webhook does.
func (w *world) put(command store.Command, detail any) store.Command {
	w.t.Helper()
	w.sent++
	encoded, err := json.Marshal(detail)
	if err != nil {
		w.t.Fatal(err)
	}
	command.ID = fmt.Sprintf("command-%d", w.sent)
	command.Detail = encoded
	if command.Key == "" {
		command.Key = fmt.Sprint("key-", w.sent)
	}
	command.DeliveryGUID = fmt.Sprint("guid-", w.sent)
	command.InstallationID = max(command.InstallationID, 0)
	if command.InstallationID == 0 {
		command.InstallationID = installation
	}
	if command.RepositoryID == 0 {
		command.RepositoryID = repository
	}
	if command.Owner == "" {
		command.Owner, command.Repository = "octo", "login"
	}
	delivery := store.Delivery{GUID: command.DeliveryGUID, Event: "issue_comment", Action: "created", InstallationID: command.InstallationID, Body: []byte("{}"), Source: "webhook"}
	if stored, err := w.store.PutDelivery(w.t.Context(), delivery, []store.Command{command}); err != nil || !stored {
		w.t.Fatalf("PutDelivery: %v, %v", stored, err)
	}
	return command
}

// says puts a comment on issue 12.
func (w *world) says(who person, verb, text string, change ...func(*store.Command, *store.CommentDetail)) store.Command {
	w.t.Helper()
	command := store.Command{
		Kind: store.CommandComment, Issue: 12, CommentID: int64(500 + w.sent), CommentKind: "issue",
		ActorID: who.id, ActorLogin: who.login, Verb: verb, Text: text,
	}
	detail := store.CommentDetail{IssueTitle: "Add a login", IssueBody: "We need one.", IssueState: "open"}
	for _, c := range change {
		c(&command, &detail)
	}
	return w.put(command, detail)
}

// route routes everything that can be routed now.
func (w *world) route() {
	w.t.Helper()
	for {
		command, err := w.store.ClaimCommand(w.t.Context(), w.node)
		if errors.Is(err, store.ErrNone) {
			return
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.router.take(w.t.Context(), w.node, command)
	}
}

// became returns the command as it is now.
func (w *world) became(command store.Command) store.Command {
	w.t.Helper()
	now, err := w.store.Command(w.t.Context(), command.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return now
}

// mustBecome fails the test unless the command is in the state.
func (w *world) mustBecome(command store.Command, state string) store.Command {
	w.t.Helper()
	now := w.became(command)
	if now.State != state {
		w.t.Errorf("command %s %q is %s (%s), want %s", command.ID, command.Verb, now.State, now.Outcome, state)
	}
	return now
}

func (w *world) sessions() []store.Session {
	w.t.Helper()
	sessions, err := w.store.Sessions(w.t.Context(), store.SessionFilter{RepositoryID: repository}, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(sessions)
	return sessions
}

// comments returns the answers so far, each with its issue.
func (w *world) comments() []string {
	w.t.Helper()
	var all []string
	for _, effect := range w.store.effects {
		if effect.Kind != outbox.KindCommentCreate {
			continue
		}
		var payload outbox.CommentCreate
		if err := json.Unmarshal(effect.Payload, &payload); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("#%d %s", payload.Issue, payload.Body))
	}
	return all
}

// seen says whether a command has its 👀 in the outbox.
func (w *world) seen(command store.Command) bool {
	w.t.Helper()
	effect, err := w.store.EffectByKey(w.t.Context(), "intake/"+command.ID+"/seen")
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var reaction outbox.Reaction
	if err := json.Unmarshal(effect.Payload, &reaction); err != nil {
		w.t.Fatal(err)
	}
	return effect.Priority == outbox.PriorityReaction && reaction == outbox.Reaction{CommentID: command.CommentID, CommentKind: command.CommentKind, Content: "eyes"}
}

// mustSay fails the test unless exactly one comment was made, with the words.
func (w *world) mustSay(words ...string) {
	w.t.Helper()
	comments := w.comments()
	if len(comments) != 1 {
		w.t.Fatalf("%d comments, want one: %q", len(comments), comments)
	}
	for _, word := range words {
		if !strings.Contains(comments[0], word) {
			w.t.Errorf("the answer lacks %q: %s", word, comments[0])
		}
	}
}
