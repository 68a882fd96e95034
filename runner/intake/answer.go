package intake

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"

	"handoff/runner/outbox"
	"handoff/runner/report"
	"handoff/runner/store"
)

//go:embed templates/*.md
var templateFiles embed.FS

// answers are the texts of answers, one file each. They are given only what
// report has disarmed.
var answers = template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*.md"))

// answerData is what the texts are filled with.
type answerData struct {
	// Person is @login, or "" for a login that is none.
	Person string
	Reason string
	Verb   string
	// Word is the word that was not understood.
	Word    string
	Needed  string
	Role    string
	Session sessionData
}

// sessionData is a session as answers show it.
type sessionData struct {
	State    string
	Reason   string
	Agent    string
	Duration string
	Tokens   string
	Cost     string
	URL      string
}

func (r *Router) sessionData(session store.Session) sessionData {
	return sessionData{
		State: strings.ReplaceAll(string(session.State), "_", " "), Reason: report.Inline(session.Reason), Agent: report.Inline(session.ActiveAgent),
		Duration: report.Duration(time.Duration(session.ActiveMillis) * time.Millisecond), Tokens: report.Tokens(session.Usage.Total), Cost: report.Cost(session.Usage),
		URL: r.sessionURL(session.ID),
	}
}

// login is what GitHub allows as one.
var login = regexp.MustCompile(`^[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}$`)

// answerKey is the key of the one answer that a command gets.
func answerKey(command store.Command) string { return "intake/" + command.ID + "/answer" }

// reply ends a command that makes sense with a comment.
func (r *Router) reply(command store.Command, text string, data answerData) store.Routing {
	return r.answer(command, store.CommandRouted, outcomeAnswered, answerKey(command), text, data)
}

// answer ends a command with a comment on its issue, under a key that is
// unique for ever: the same key is said once.
func (r *Router) answer(command store.Command, state, outcome, key, text string, data answerData) store.Routing {
	if login.MatchString(command.ActorLogin) {
		data.Person = "@" + command.ActorLogin
	}
	data.Word, data.Role = report.Inline(data.Word), report.Inline(data.Role)
	var body strings.Builder
	if err := answers.ExecuteTemplate(&body, text+".md", data); err != nil {
		// The templates are part of the program and a test renders each.
		r.logger.Error("an answer could not be written", "answer", text, "error", err)
	}
	payload := outbox.CommentCreate{Issue: command.Issue, Body: strings.TrimSpace(body.String()) + "\n"}
	return store.Routing{State: state, Outcome: outcome, Effects: []store.Effect{
		r.effect(command, key, outbox.KindCommentCreate, outbox.PriorityResult, payload),
	}}
}

// seen ends a command with 👀 on its comment.
func (r *Router) seen(command store.Command, outcome string) store.Routing {
	return store.Routing{State: store.CommandRouted, Outcome: outcome, Effects: []store.Effect{r.eyes(command)}}
}

// eyes is the reaction that says that a command was seen.
func (r *Router) eyes(command store.Command) store.Effect {
	return r.effect(command, fmt.Sprintf("intake/%s/seen", command.ID), outbox.KindReaction, outbox.PriorityReaction,
		outbox.Reaction{CommentID: command.CommentID, CommentKind: command.CommentKind, Content: "eyes"})
}

// showSeen puts the 👀 of a command whose routing has to wait. If it cannot,
// the routing will.
func (r *Router) showSeen(ctx context.Context, command store.Command) {
	effect := r.eyes(command)
	effect.CommandID = command.ID
	if _, err := r.store.PutEffect(ctx, effect); err != nil {
		r.logger.WarnContext(ctx, "a command could not be shown as seen", "command", command.ID, "error", err)
	}
}

func (r *Router) effect(command store.Command, key, kind string, priority int, payload any) store.Effect {
	// The payloads are plain structs, which always encode.
	encoded, _ := json.Marshal(payload)
	return store.Effect{
		Key: key, Kind: kind, Priority: priority, Payload: encoded, State: store.EffectPending,
		InstallationID: command.InstallationID, RepositoryID: command.RepositoryID,
		Owner: command.Owner, Repository: command.Repository,
	}
}
