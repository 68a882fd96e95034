package secrets

import (
	"slices"
	"sync"
)

// maxLearned is how many secrets are remembered that were learned on the way.
// Those of an App live for an hour; an older half is forgotten for new ones.
const maxLearned = 256

// learned are secrets that came to be known while the program ran, such as
// tokens that were minted. They are kept in memory and nowhere else.
type learned struct {
	mu     sync.RWMutex
	values []string // the oldest first
	known  *knownSecrets
}

// Learn makes the scanner look for one more secret, from now on and in every
// form. The last few hundred are remembered.
func (s *Scanner) Learn(secret string) { s.learned.add(secret) }

func (l *learned) add(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.values, secret) {
		return
	}
	l.values = append(l.values, secret)
	if len(l.values) <= maxLearned && l.known != nil {
		l.known.learn(secret)
		return
	}
	l.values = slices.Clone(l.values[max(0, len(l.values)-maxLearned/2):])
	l.known = newKnownSecrets(l.values)
}

func (l *learned) find(text string) []hit {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.known == nil {
		return nil
	}
	return l.known.find(text)
}
