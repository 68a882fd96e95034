package pages

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"handoff/runner/store"
)

const (
	// maxStreams bounds the open pages that one process keeps up to date. More
	// readers have to reload.
	maxStreams = 256
	// liveEvery is the shortest time between two updates of a page, pollEvery
	// how often it is looked for changes that nobody told this process of.
	liveEvery = time.Second
	pollEvery = 3 * time.Second
	// quiet is how long a stream is silent at most, so that what lies between
	// keeps it open. writeTime bounds a write to a reader who does not read.
	quiet     = 20 * time.Second
	writeTime = 10 * time.Second
)

// live tells a page, as server-sent events, that its session changed. The
// script then fetches the page again: what is shown is always rendered here. The
// stream ends with the session, and when its link expires or is revoked.
func (p *Pages) live(c echo.Context, _ grant) error {
	if !p.streams.TryAcquire(1) {
		return c.NoContent(http.StatusServiceUnavailable)
	}
	defer p.streams.Release(1)
	s := stream{context: c, out: http.NewResponseController(c.Response())}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	changed, stop := p.Store.Notify(store.TopicJournal, store.TopicSessions, store.TopicApprovals)
	defer stop()
	for {
		if over, err := s.look(p.Store); over || err != nil {
			return nil // the reader has gone, or has all there is
		}
		if !p.pause(c, changed) {
			return nil
		}
		if _, ok, err := p.admit(c); !ok && err == nil {
			return nil
		}
	}
}

// pause lets happen what happens within a moment, then waits for a change. It
// returns false when the stream must end.
func (p *Pages) pause(c echo.Context, changed <-chan struct{}) bool {
	return p.wait(c, time.After(liveEvery), nil) && p.wait(c, time.After(pollEvery), changed)
}

func (p *Pages) wait(c echo.Context, enough <-chan time.Time, changed <-chan struct{}) bool {
	select {
	case <-c.Request().Context().Done():
		return false
	case <-p.Stop:
		return false
	case <-enough:
	case <-changed:
	}
	return true
}

// versionOf names what a page showed, so that one that is as new is not fetched
// again.
func versionOf(session store.Session) string {
	return fmt.Sprintf("%d-%d-%s", session.NextSeq, session.UpdatedAt.UnixMilli(), session.State)
}

// A stream is one open page.
type stream struct {
	context echo.Context
	out     *http.ResponseController
	// last is what the page has seen, wrote when it was last told anything.
	last  string
	wrote time.Time
}

// look tells the page what is new. Over says that nothing will come any more.
func (s *stream) look(sessions Store) (over bool, err error) {
	session, err := sessions.Session(s.context.Request().Context(), s.context.Param("id"))
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		// The database is away for a moment: the page stays as it is.
		return false, s.write(": waiting\n\n")
	}
	switch version := versionOf(session); {
	case version != s.last:
		s.last = version
		err = s.write("data: " + version + "\n\n")
	case time.Since(s.wrote) > quiet:
		err = s.write(": still here\n\n")
	}
	return session.State.Ended(), err
}

func (s *stream) write(text string) error {
	s.wrote = time.Now()
	// A server that cannot bound a write does without.
	_ = s.out.SetWriteDeadline(s.wrote.Add(writeTime))
	if _, err := s.context.Response().Write([]byte(text)); err != nil {
		return err
	}
	return s.out.Flush()
}
