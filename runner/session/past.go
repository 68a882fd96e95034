package session

import (
	"context"
	"sync"

	"handoff/gitops/git"
)

// historyDepth is how many commits back agents can look.
const historyDepth = 300

// A past is the history of the session's base commit, which the host reads for
// agents: it implements [tools.History]. Sessions begin with the base commit
// alone, so older ones are fetched when somebody first asks for more.
type past struct {
	*hold
	mu      sync.Mutex
	fetched bool
}

// Log implements [tools.History].
func (p *past) Log(ctx context.Context, path string, limit int) (commits []git.Commit, complete bool, err error) {
	err = p.look(ctx, func() (bool, error) {
		commits, complete, err = p.base.repository.Log(ctx, p.base.commit, path, limit)
		return complete || len(commits) == limit, err
	})
	return commits, complete, err
}

// Blame implements [tools.History].
func (p *past) Blame(ctx context.Context, path string) (lines []git.BlamedLine, complete bool, err error) {
	err = p.look(ctx, func() (bool, error) {
		lines, complete, err = p.base.repository.Blame(ctx, p.base.commit, path)
		return complete, err
	})
	return lines, complete, err
}

// look looks at what is here, and again at what could be fetched unless that was
// enough.
func (p *past) look(ctx context.Context, at func() (enough bool, err error)) error {
	enough, err := at()
	if enough || err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fetched {
		if err := p.Cache.FetchHistory(ctx, p.base.remote, p.base.commit, historyDepth); err != nil {
			return err
		}
		p.fetched = true
	}
	_, err = at()
	return err
}
