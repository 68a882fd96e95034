package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"handoff/runner/store"
)

// A schedule is what the scheduler must do, told without a database: sessions
// by issue in the order in which they came.
type schedule struct {
	w *world
	r *rapid.T

	node   *store.Node
	cap    int
	issues map[int][]string
	leases map[string]*store.Lease
	parked map[string]bool
	ready  map[string]bool
	began  map[string]bool
}

// first says whether a session is the first of its issue that has not ended.
func (s *schedule) first(id string) bool {
	for _, lane := range s.issues {
		if len(lane) > 0 && lane[0] == id {
			return true
		}
	}
	return false
}

func (s *schedule) ended(id string) {
	for issue, lane := range s.issues {
		s.issues[issue] = slices.DeleteFunc(lane, func(other string) bool { return other == id })
	}
	delete(s.leases, id)
	delete(s.parked, id)
	delete(s.ready, id)
}

func (s *schedule) live() []string {
	var live []string
	for _, lane := range s.issues {
		live = append(live, lane...)
	}
	slices.Sort(live)
	return live
}

func (s *schedule) pick(from []string) string {
	if len(from) == 0 {
		s.r.Skip()
	}
	return rapid.SampledFrom(from).Draw(s.r, "session")
}

func (s *schedule) held() []string {
	var held []string
	for id := range s.leases {
		held = append(held, id)
	}
	slices.Sort(held)
	return held
}

// startable are the sessions that must be handed out if anybody asks.
func (s *schedule) startable() []string {
	return slices.DeleteFunc(s.live(), func(id string) bool {
		return !s.first(id) || s.leases[id] != nil || s.parked[id] && !s.ready[id]
	})
}

func (s *schedule) ok(err error) {
	if err != nil {
		s.r.Fatal(err)
	}
}

func (s *schedule) actions() map[string]func(*rapid.T) {
	ctx := s.w.Context()
	return map[string]func(*rapid.T){
		"create": func(r *rapid.T) {
			issue := rapid.IntRange(1, 3).Draw(r, "issue")
			session := store.Session{InstallationID: 7, RepositoryID: 1, Issue: issue}
			s.ok(s.w.store.CreateSession(ctx, &session))
			s.issues[issue] = append(s.issues[issue], session.ID)
		},
		"acquire": func(r *rapid.T) {
			lease, err := s.w.store.Acquire(ctx, s.node, store.Caps{Global: s.cap})
			startable := s.startable()
			if errors.Is(err, store.ErrNone) {
				if len(startable) > 0 && len(s.leases) < s.cap {
					r.Fatalf("nothing was handed out, though %v could start", startable)
				}
				return
			}
			s.ok(err)
			id := lease.Session().ID
			if !slices.Contains(startable, id) || len(s.leases) >= s.cap {
				r.Fatalf("%s was handed out; %v could start, %d of %d are held", id, startable, len(s.leases), s.cap)
			}
			s.leases[id], s.began[id] = lease, true
			delete(s.parked, id)
			delete(s.ready, id)
		},
		"suspend": func(*rapid.T) {
			id := s.pick(s.held())
			s.ok(s.leases[id].Suspend(ctx, store.Suspension{State: store.StateSuspended}))
			delete(s.leases, id)
			s.parked[id] = true
		},
		"wake": func(*rapid.T) {
			id := s.pick(s.live())
			s.ok(s.w.store.Wake(ctx, id))
			if s.began[id] {
				s.ready[id] = true
			}
		},
		"finish": func(*rapid.T) {
			id := s.pick(s.held())
			s.ok(s.leases[id].Finish(ctx, store.Ending{State: store.StateCompleted}))
			s.ended(id)
		},
		"cancel": func(r *rapid.T) {
			id := s.pick(s.live())
			before, err := s.w.store.Session(ctx, id)
			s.ok(err)
			session, err := s.w.store.Cancel(ctx, id, "ann")
			s.ok(err)
			if session.State.Ended() == s.began[id] {
				r.Fatalf("cancelled session that began=%v is %s", s.began[id], session.State)
			}
			switch {
			case session.State.Ended():
				s.ended(id)
			case !before.CancelRequested:
				s.ready[id] = true
			}
		},
		"nodes die": func(*rapid.T) {
			s.w.dies()
			node, err := s.w.store.Register(ctx, "next")
			s.ok(err)
			s.node = node
			// Orphans come first and keep their places: take them all over.
			for range s.leases {
				lease, err := s.w.store.Acquire(ctx, s.node, store.Caps{Global: 1})
				s.ok(err)
				if s.leases[lease.Session().ID] == nil {
					s.r.Fatalf("%s was handed out before the orphans", lease.Session().ID)
				}
				s.leases[lease.Session().ID] = lease
				delete(s.ready, lease.Session().ID)
				// A long life of many deaths is not what is tested here.
				s.ok(s.w.store.Execute(ctx, "UPDATE sessions SET attempts = 0"))
			}
		},
		"": func(*rapid.T) {
			s.w.clock.Advance(time.Millisecond)
			s.ok(s.node.Beat(ctx))
		},
	}
}

// Whatever happens in whatever order, sessions of an issue follow each other,
// caps hold, nothing that could run is kept waiting and nothing runs twice.
func TestSchedulerAgainstItsModel(t *testing.T) {
	inEachWorld(t, func(w *world) {
		rapid.Check(w.T, func(r *rapid.T) {
			s := &schedule{w: w, r: r, cap: rapid.IntRange(1, 3).Draw(r, "cap"), issues: map[int][]string{},
				leases: map[string]*store.Lease{}, parked: map[string]bool{}, ready: map[string]bool{}, began: map[string]bool{}}
			node, err := w.store.Register(w.Context(), "n")
			s.ok(err)
			s.node = node
			// Each round begins with an empty house.
			s.ok(w.store.Execute(w.Context(), "DELETE FROM sessions"))
			r.Repeat(s.actions())
		})
	})
}
