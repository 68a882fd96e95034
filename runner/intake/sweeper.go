package intake

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"handoff/gitops/github"
)

// The sweeper's times. docs/github.md gives the reasons.
const (
	// SweepEvery is how often the log is read beside a webhook.
	SweepEvery = 5 * time.Minute
	// SweepOverlap is how far before the last mark reading starts: deliveries
	// appear in the log late and not in order.
	SweepOverlap = 10 * time.Minute
	// knownAtOnce is how many GUIDs the database is asked about at a time.
	knownAtOnce = 200
)

// Log is GitHub's log of deliveries; *github.App implements it.
type Log interface {
	Deliveries(ctx context.Context, since time.Time) iter.Seq2[github.Delivery, error]
	Delivery(ctx context.Context, id int64) (github.DeliveredRequest, error)
}

// Marks is what sweeping needs of the database; *store.Store implements it.
type Marks interface {
	KnownDeliveries(ctx context.Context, guids []string) (map[string]bool, error)
	SweepMark(ctx context.Context) (time.Time, error)
	SetSweepMark(ctx context.Context, mark time.Time) error
}

// A Missed is a delivery that was fetched from the log.
type Missed struct {
	GUID   string
	Event  string
	HookID int64
	// Body is the payload, which GitHub's API vouches for.
	Body []byte
	At   time.Time
}

// SweeperOptions configure [NewSweeper].
type SweeperOptions struct {
	Log   Log
	Marks Marks
	// Matters says whether an event can become a command at all, so that the
	// payloads of others are not fetched.
	Matters func(event, action string) bool
	// Deliver takes a missed delivery the same way as the webhook does. An
	// error means that it was not stored and must be tried again; what can
	// never be stored returns nil.
	Deliver func(ctx context.Context, missed Missed) error
	// Every is the time between two sweeps; 0 means [SweepEvery].
	Every time.Duration
	// Polling says that the log is read instead of a webhook, so that an entry
	// which something else acknowledged is not taken for stored.
	Polling bool
	Logger  *slog.Logger
}

// A Sweeper finds the deliveries that never arrived. GitHub sends each once;
// what was not acknowledged is lost unless it is fetched from the log, which
// reaches back three days.
type Sweeper struct {
	options SweeperOptions
	// examined are the GUIDs that were fetched before and were no commands.
	examined map[string]time.Time
	now      func() time.Time
}

// NewSweeper returns a sweeper. It must be used by one goroutine at a time.
func NewSweeper(options SweeperOptions) *Sweeper {
	if options.Every == 0 {
		options.Every = SweepEvery
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sweeper{options: options, examined: make(map[string]time.Time), now: time.Now}
}

// Run sweeps at once and then again and again until ctx ends.
func (s *Sweeper) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if found, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.WarnContext(ctx, "could not look for missed deliveries; tried again later", "error", err)
		} else if found > 0 {
			s.options.Logger.InfoContext(ctx, "fetched missed deliveries", "count", found)
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.options.Every):
		}
	}
}

// Sweep reads the log since the last mark and takes in what is missing, oldest
// first. It returns how many deliveries it fetched. The mark moves only when
// all were taken in, so a failed sweep is repeated in full.
func (s *Sweeper) Sweep(ctx context.Context) (fetched int, err error) {
	mark, err := s.options.Marks.SweepMark(ctx)
	if err != nil {
		return 0, err
	}
	if mark.IsZero() {
		// A new installation owes nobody the time before it existed.
		mark = s.now()
	}
	since := mark.Add(-SweepOverlap)
	s.forget(since)
	missing, newest, err := s.missing(ctx, since)
	if err != nil {
		return 0, err
	}
	for _, entry := range missing {
		if err := s.fetch(ctx, entry); err != nil {
			return fetched, err
		}
		fetched++
	}
	if newest.After(mark) {
		mark = newest
	}
	return fetched, s.options.Marks.SetSweepMark(ctx, mark)
}

// forget drops what is too old to appear in the log's part that is read.
func (s *Sweeper) forget(since time.Time) {
	for guid, at := range s.examined {
		if at.Before(since) {
			delete(s.examined, guid)
		}
	}
}

// missing returns the log's entries that must be fetched, oldest first, and
// the time of the newest entry of all.
func (s *Sweeper) missing(ctx context.Context, since time.Time) (missing []github.Delivery, newest time.Time, err error) {
	candidates := map[string]github.Delivery{}
	acknowledged := map[string]bool{}
	var order []string
	for entry, err := range s.options.Log.Deliveries(ctx, since) {
		if err != nil {
			return nil, time.Time{}, err
		}
		if entry.DeliveredAt.After(newest) {
			newest = entry.DeliveredAt
		}
		if !s.options.Polling && entry.StatusCode >= 200 && entry.StatusCode < 300 {
			// Our own promise: it was stored or did not matter.
			acknowledged[entry.GUID] = true
		}
		if _, seen := candidates[entry.GUID]; seen || !s.options.Matters(entry.Event, entry.Action) {
			continue
		}
		candidates[entry.GUID] = entry
		order = append(order, entry.GUID)
	}
	order = slices.DeleteFunc(order, func(guid string) bool {
		_, examined := s.examined[guid]
		return examined || acknowledged[guid]
	})
	slices.Reverse(order)
	for some := range slices.Chunk(order, knownAtOnce) {
		known, err := s.options.Marks.KnownDeliveries(ctx, some)
		if err != nil {
			return nil, time.Time{}, err
		}
		for _, guid := range some {
			if !known[guid] {
				missing = append(missing, candidates[guid])
			}
		}
	}
	return missing, newest, nil
}

// fetch takes one missing delivery in.
func (s *Sweeper) fetch(ctx context.Context, entry github.Delivery) error {
	request, err := s.options.Log.Delivery(ctx, entry.ID)
	switch code := github.CodeOf(err); {
	case code == github.CodeNotFound || code == github.CodeGone:
		s.examined[entry.GUID] = entry.DeliveredAt
		return nil
	case err != nil:
		return err
	}
	hook, _ := strconv.ParseInt(request.Headers["X-GitHub-Hook-ID"], 10, 64)
	err = s.options.Deliver(ctx, Missed{GUID: entry.GUID, Event: entry.Event, HookID: hook, Body: request.Payload, At: s.now()})
	if err == nil {
		s.examined[entry.GUID] = entry.DeliveredAt
	}
	return err
}
