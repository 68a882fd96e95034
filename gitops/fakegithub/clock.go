package fakegithub

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"sync"
	"time"
)

// clock is the fake's time: a source plus what tests have moved it by.
type clock struct {
	now    func() time.Time
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().Add(c.offset).UTC().Truncate(time.Second)
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
}

func (c *clock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = 0
}

// randomToken makes a credential in GitHub's form: a prefix that says its kind and 36 random characters.
func randomToken(prefix string) string {
	return prefix + (rand.Text() + rand.Text())[:36]
}

// nodeID imitates GraphQL's opaque identifiers; nothing reads them back.
func nodeID(kind string, id int64) string {
	return base64.RawStdEncoding.EncodeToString(fmt.Appendf(nil, "%03d:%s%d", len(kind), kind, id))
}
