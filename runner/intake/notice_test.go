package intake

import (
	"slices"
	"testing"
	"time"

	"handoff/runner/store"
)

func (w *world) notices(detail store.NoticeDetail, change ...func(*store.Command)) store.Command {
	command := store.Command{Kind: store.CommandNotice, ActorID: hubot.id, ActorLogin: hubot.login}
	for _, c := range change {
		c(&command)
	}
	return w.put(command, detail)
}

func TestAChangedPromptIsVoid(t *testing.T) {
	w := newWorld(t)
	edited := w.notices(store.NoticeDetail{Event: "issue_comment", Action: "edited", CommentAuthorID: 777}, func(c *store.Command) { c.CommentID, c.Issue = 600, 12 })
	w.route()
	w.mustBecome(edited, store.CommandRouted)
	if want := []string{"600: the prompt was edited by hubot"}; !slices.Equal(w.voided, want) {
		t.Errorf("voided %q", w.voided)
	}
	// The database is away for a moment: the notice is not lost.
	w.decision = errCrash
	deleted := w.notices(store.NoticeDetail{Event: "issue_comment", Action: "deleted"}, func(c *store.Command) { c.CommentID, c.Issue = 601, 12 })
	w.route()
	w.mustBecome(deleted, store.CommandNew)
	w.decision = nil
	w.pass(5 * time.Second)
	w.route()
	w.mustBecome(deleted, store.CommandRouted)
	if len(w.comments()) != 0 {
		t.Errorf("comments %q", w.comments())
	}
}

// When the ground goes, sessions end and say why; a rename is no reason.
func TestSessionsEndWithWhatTheyStandOn(t *testing.T) {
	for _, c := range []struct {
		event, action string
		ends, forgets bool
	}{
		{"issues", "closed", true, false}, {"issues", "locked", true, false}, {"issues", "deleted", true, false}, {"issues", "transferred", true, false},
		{"repository", "archived", true, true}, {"repository", "transferred", true, true}, {"repository", "deleted", true, true},
		{"repository", "renamed", false, true},
		{"installation", "deleted", true, true}, {"installation", "suspend", true, true}, {"installation", "unsuspend", false, true},
		{"installation_repositories", "removed", true, false},
		{"pull_request", "closed", false, false},
	} {
		t.Run(c.event+" "+c.action, func(t *testing.T) {
			w := newWorld(t)
			w.says(mona, "task", "add a login")
			w.route()
			detail := store.NoticeDetail{Event: c.event, Action: c.action, Repositories: []int64{repository}, Head: "copilot/12-login"}
			notice := w.notices(detail, func(command *store.Command) { command.Issue = 12 })
			w.route()
			w.mustBecome(notice, store.CommandRouted)
			s := w.sessions()[0]
			if s.State.Ended() != c.ends || (c.ends && s.CancelBy == "") {
				t.Errorf("the session is %s by %q", s.State, s.CancelBy)
			}
			if (len(w.forgotten) == 1) != c.forgets {
				t.Errorf("forgotten: %v", w.forgotten)
			}
		})
	}
}

func TestAnotherIssueIsNotTouched(t *testing.T) {
	w := newWorld(t)
	w.says(mona, "task", "add a login")
	w.notices(store.NoticeDetail{Event: "issues", Action: "closed"}, func(c *store.Command) { c.Issue = 13 })
	w.route()
	if s := w.sessions()[0]; s.State.Ended() {
		t.Errorf("the session is %s", s.State)
	}
}
