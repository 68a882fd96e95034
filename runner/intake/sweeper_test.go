package intake

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"handoff/gitops/github"
)

// A hookLog is GitHub's log of deliveries, newest first.
type hookLog struct {
	entries []github.Delivery
	fetched []int64
	fault   error
	gone    map[int64]bool
}

func (l *hookLog) Deliveries(_ context.Context, since time.Time) iter.Seq2[github.Delivery, error] {
	return func(yield func(github.Delivery, error) bool) {
		if l.fault != nil {
			yield(github.Delivery{}, l.fault)
			return
		}
		for _, entry := range l.entries {
			if entry.DeliveredAt.Before(since) || !yield(entry, nil) {
				return
			}
		}
	}
}

func (l *hookLog) Delivery(_ context.Context, id int64) (github.DeliveredRequest, error) {
	l.fetched = append(l.fetched, id)
	if l.gone[id] {
		return github.DeliveredRequest{}, &github.Error{Code: github.CodeNotFound, Message: "Gone."}
	}
	return github.DeliveredRequest{Headers: map[string]string{"X-GitHub-Hook-ID": "7"}, Payload: fmt.Appendf(nil, `{"id":%d}`, id)}, nil
}

// marks is what the database remembers.
type marks struct {
	mark  time.Time
	known map[string]bool
}

func (m *marks) SweepMark(context.Context) (time.Time, error) { return m.mark, nil }
func (m *marks) SetSweepMark(_ context.Context, mark time.Time) error {
	m.mark = mark
	return nil
}
func (m *marks) KnownDeliveries(_ context.Context, guids []string) (map[string]bool, error) {
	found := map[string]bool{}
	for _, guid := range guids {
		if m.known[guid] {
			found[guid] = true
		}
	}
	return found, nil
}

type sweep struct {
	*Sweeper
	log       *hookLog
	marks     *marks
	delivered []string
	fault     error
	now       time.Time
}

func newSweep(polling bool) *sweep {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s := &sweep{log: &hookLog{gone: map[int64]bool{}}, marks: &marks{mark: now.Add(-time.Hour), known: map[string]bool{}}, now: now}
	s.Sweeper = NewSweeper(SweeperOptions{
		Log: s.log, Marks: s.marks, Polling: polling,
		Matters: func(event, action string) bool { return event == "issue_comment" && action == "created" },
		Deliver: func(_ context.Context, missed Missed) error {
			if s.fault != nil {
				return s.fault
			}
			s.delivered = append(s.delivered, missed.GUID)
			s.marks.known[missed.GUID] = true
			return nil
		},
	})
	s.Sweeper.now = func() time.Time { return s.now }
	return s
}

// entry puts a delivery into the log, minutes before now.
func (s *sweep) entry(id int64, guid string, minutes, status int) {
	s.log.entries = append(s.log.entries, github.Delivery{
		ID: id, GUID: guid, DeliveredAt: s.now.Add(-time.Duration(minutes) * time.Minute), Event: "issue_comment", Action: "created", StatusCode: status,
	})
	slices.SortStableFunc(s.log.entries, func(a, b github.Delivery) int { return b.DeliveredAt.Compare(a.DeliveredAt) })
}

func (s *sweep) mustDeliver(t *testing.T, want string) {
	t.Helper()
	s.delivered = nil
	if _, err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.delivered, " "); got != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
}

// The bot was down: what GitHub could not deliver is fetched, in order, once.
func TestTheSweeperFetchesWhatWasMissed(t *testing.T) {
	s := newSweep(false)
	s.entry(1, "acknowledged", 50, 202)
	s.entry(2, "refused", 40, 503)
	s.entry(3, "unreachable", 30, 0)
	s.entry(4, "stored", 20, 502) // GitHub did not see our answer.
	s.marks.known["stored"] = true
	s.entry(5, "before-the-mark", 65, 502)
	s.entry(6, "long-ago", 75, 502)
	s.entry(7, "other", 10, 502)
	s.log.entries[0].Event = "push"
	s.mustDeliver(t, "before-the-mark refused unreachable")
	if want := s.now.Add(-10 * time.Minute); !s.marks.mark.Equal(want) {
		t.Errorf("the mark is %v, want the newest entry's %v", s.marks.mark, want)
	}
	s.mustDeliver(t, "")
	if len(s.log.fetched) != 3 {
		t.Errorf("payloads were fetched for %v", s.log.fetched)
	}
}

// GitHub tried again by somebody's click, and that was acknowledged.
func TestARedeliveryThatArrivedIsNotFetched(t *testing.T) {
	s := newSweep(false)
	s.entry(1, "guid", 40, 502)
	s.entry(2, "guid", 30, 202)
	s.mustDeliver(t, "")
	s.entry(3, "twice", 20, 502)
	s.entry(4, "twice", 10, 502)
	s.mustDeliver(t, "twice")
}

// Without a webhook of ours somebody else's 200 means nothing, and what is no
// command is not fetched again and again.
func TestPollingTrustsNobodysAcknowledgement(t *testing.T) {
	s := newSweep(true)
	s.entry(1, "first", 40, 200)
	s.mustDeliver(t, "first")
	delete(s.marks.known, "first") // It was no command, so nothing was stored.
	s.mustDeliver(t, "")
}

// The database goes away in the middle: nothing is skipped afterwards.
func TestAFailedSweepIsRepeated(t *testing.T) {
	s := newSweep(false)
	s.entry(1, "a", 40, 502)
	s.entry(2, "b", 30, 502)
	mark := s.marks.mark
	s.fault = errors.New("database away")
	if _, err := s.Sweep(t.Context()); err == nil || !s.marks.mark.Equal(mark) {
		t.Errorf("err %v, mark %v", err, s.marks.mark)
	}
	s.fault = nil
	s.log.fault = errors.New("GitHub away")
	if _, err := s.Sweep(t.Context()); err == nil || !s.marks.mark.Equal(mark) {
		t.Errorf("err %v, mark %v", err, s.marks.mark)
	}
	s.log.fault = nil
	s.mustDeliver(t, "a b")
}

// An entry that GitHub no longer has does not stop the others.
func TestAPayloadThatIsGoneIsLeftOut(t *testing.T) {
	s := newSweep(false)
	s.entry(1, "gone", 40, 502)
	s.entry(2, "there", 30, 502)
	s.log.gone[1] = true
	s.mustDeliver(t, "there")
}

// A first start does not answer what was said before there was a bot.
func TestTheFirstSweepLooksBackTenMinutes(t *testing.T) {
	s := newSweep(false)
	s.marks.mark = time.Time{}
	s.entry(1, "yesterday", 60*24, 502)
	s.entry(2, "just-now", 5, 502)
	s.mustDeliver(t, "just-now")
}
