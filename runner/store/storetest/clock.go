package storetest

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"handoff/runner/store"
)

// NowExpression reads the time that a Clock keeps in its database.
const NowExpression = "(SELECT now FROM test_clock)"

// A Clock is the time of a database and of the processes that use it, which a
// test moves by hand.
type Clock struct {
	t    testing.TB
	pool *sql.DB

	mutex sync.Mutex
	now   time.Time
}

// NewClock puts a clock into a database, starting at a round moment. Stores that
// are opened with its Options live by it.
func NewClock(t testing.TB, url string) *Clock {
	t.Helper()
	driver, source := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		driver, source = "sqlite", "file:"+path+"?_busy_timeout=10000&_journal_mode=WAL"
	}
	pool, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	clock := &Clock{t: t, pool: pool, now: time.UnixMilli(1_800_000_000_000).UTC()}
	clock.exec("CREATE TABLE test_clock (now BIGINT NOT NULL)")
	clock.exec(fmt.Sprintf("INSERT INTO test_clock VALUES (%d)", clock.now.UnixMilli()))
	return clock
}

// Options are for stores that live by the clock.
func (c *Clock) Options() store.Options {
	return store.Options{Clock: c.Now, NowExpression: NowExpression}
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

// Advance moves the time of database and processes.
func (c *Clock) Advance(by time.Duration) {
	c.t.Helper()
	c.AdvanceDatabase(by)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(by)
}

// AdvanceDatabase moves the database's time only: the processes' clocks lag.
func (c *Clock) AdvanceDatabase(by time.Duration) {
	c.t.Helper()
	c.exec(fmt.Sprintf("UPDATE test_clock SET now = now + %d", by.Milliseconds()))
}

func (c *Clock) exec(text string) {
	c.t.Helper()
	if _, err := c.pool.ExecContext(c.t.Context(), text); err != nil {
		c.t.Fatal(err)
	}
}
