package session

import "sync"

// turns makes those who name the same key take turns. It remembers a key only
// while somebody has or wants its turn. The zero value is ready.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

type turn struct {
	sync.Mutex
	wanted int
}

// take waits for the key's turn; the returned function ends it.
func (t *turns) take(key string) (end func()) {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[string]*turn{}
	}
	one := t.all[key]
	if one == nil {
		one = &turn{}
		t.all[key] = one
	}
	one.wanted++
	t.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.wanted--; one.wanted == 0 {
			delete(t.all, key)
		}
	}
}
