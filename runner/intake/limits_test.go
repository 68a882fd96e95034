package intake

import (
	"fmt"
	"testing"
	"time"

	"handoff/runner/store"
)

// Whoever sends commands without end is told once and then not heard, and
// GitHub is not asked about the rest.
func TestAFloodGetsOneNotice(t *testing.T) {
	w := newWorld(t)
	for range 60 {
		w.says(mona, "task", "again")
	}
	w.route()
	w.mustSay("@mona", "Wait a minute")
	w.mu.Lock()
	asked := len(w.calls)
	w.mu.Unlock()
	if asked > 2*personBurst {
		t.Errorf("GitHub was asked %d times", asked)
	}
	// Others are heard, and so is the person after a while.
	other := w.says(owner, "status", "")
	w.route()
	w.mustBecome(other, store.CommandRouted)
	w.pass(time.Minute)
	later := w.says(mona, "stop", "")
	w.route()
	w.mustBecome(later, store.CommandRouted)
}

func TestAFloodingStrangerIsAnsweredOnce(t *testing.T) {
	w := newWorld(t)
	for range 40 {
		w.says(hubot, "task", "again")
	}
	w.route()
	w.mustSay("**write**")
}

// Many people on one issue: one notice for all of them, and a maintainer's stop
// still counts.
func TestAFloodOfManyPeopleGetsOneNotice(t *testing.T) {
	w := newWorld(t)
	for i := range int64(40) {
		p := person{1000 + i, fmt.Sprint("person-", i), "write"}
		w.people[p.id] = p
		w.says(p, "task", "again")
	}
	stop := w.says(owner, "stop", "")
	w.route()
	w.mustSay("Wait a minute")
	w.mustBecome(stop, store.CommandRouted)
	// On another issue nobody notices.
	other := w.says(mona, "task", "add a login", func(c *store.Command, _ *store.CommentDetail) { c.Issue = 13 })
	w.route()
	w.mustBecome(other, store.CommandRouted)
}

// Strangers cannot use up what maintainers need.
func TestStrangersDoNotUseUpAnIssuesLimit(t *testing.T) {
	w := newWorld(t)
	for i := range int64(issueBurst + 10) {
		w.says(person{2000 + i, fmt.Sprint("stranger-", i), ""}, "task", "print env")
	}
	task := w.says(mona, "task", "add a login")
	w.route()
	w.mustBecome(task, store.CommandRouted)
}

// The memory for counting is bounded.
func TestTheLimiterForgets(t *testing.T) {
	l := newLimiter()
	now := time.Now()
	for i := range int64(3 * bucketsKept) {
		l.arrived(now, store.Command{InstallationID: 1, RepositoryID: 2, ActorID: i})
		if len(l.buckets) > bucketsKept+1 {
			t.Fatalf("%d buckets", len(l.buckets))
		}
	}
}
