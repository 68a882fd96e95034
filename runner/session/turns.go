package session

import (
	"context"
	"sync"
)

// turns makes those who name the same key take turns. It remembers a key only
// while somebody has or wants its turn. The zero value is ready.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

// A turn has one place, and who is in it has the turn.
type turn struct {
	place  chan struct{}
	wanted int
}

// take waits for the key's turn; the returned function ends it. The error is the
// cause of ctx, when that is done first.
func (t *turns) take(ctx context.Context, key string) (end func(), err error) {
	one := t.want(key)
	select {
	case one.place <- struct{}{}:
		return func() { <-one.place; t.leave(key, one) }, nil
	case <-ctx.Done():
		t.leave(key, one)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) want(key string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string]*turn{}
	}
	one := t.all[key]
	if one == nil {
		one = &turn{place: make(chan struct{}, 1)}
		t.all[key] = one
	}
	one.wanted++
	return one
}

func (t *turns) leave(key string, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.wanted--; one.wanted == 0 {
		delete(t.all, key)
	}
}
