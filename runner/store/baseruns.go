package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

var (
	baseRun        = named("base_run")
	claimBaseRun   = named("claim_base_run")
	keepBaseRun    = named("keep_base_run")
	forgetBaseRuns = named("forget_base_runs")
)

// A BaseRun is what is known of the tests on a base commit. At most one of its
// fields is set. If none is, another session runs them at this moment: ask again
// later.
type BaseRun struct {
	// Result is what was kept.
	Result json.RawMessage
	// Mine says that the session that asked has to run the tests now. Nobody
	// else does so while its lease lasts, or until it keeps a result.
	Mine bool
}

// BaseRun returns what is kept about a commit of the session's repository,
// without a claim to anything: nil where nothing is. The recipe names whatever
// decides the result besides the commit.
func (l *Lease) BaseRun(ctx context.Context, commit, recipe string) (json.RawMessage, error) {
	known, err := l.findBaseRun(ctx, l.store.reader(), commit, recipe)
	return known.Result, err
}

// ClaimBaseRun returns the result that is kept for a commit and a recipe, or
// lets exactly one session make it. The claim of a session that was given back
// or taken over, or whose node died, is worth nothing.
func (l *Lease) ClaimBaseRun(ctx context.Context, commit, recipe string) (BaseRun, error) {
	known, err := l.findBaseRun(ctx, l.store.reader(), commit, recipe)
	if err != nil || known.held || known.Result != nil {
		return known.BaseRun, err
	}
	err = l.write(ctx, 0, false, func(g *guarded) error {
		s := g.session
		claimed, err := g.exec(ctx, claimBaseRun, s.InstallationID, s.RepositoryID, commit, recipe, s.ID, s.Fence)
		if err != nil {
			return err
		}
		if known = (foundBaseRun{BaseRun: BaseRun{Mine: claimed == 1}}); known.Mine {
			return nil
		}
		// Somebody was faster: with the claim, or with the result already.
		known, err = l.findBaseRun(ctx, g.conn, commit, recipe)
		return err
	})
	return known.BaseRun, err
}

// KeepBaseRun keeps a result for all sessions of the installation, which must
// not be empty. It replaces what was kept before.
func (l *Lease) KeepBaseRun(ctx context.Context, commit, recipe string, result json.RawMessage) error {
	return l.write(ctx, 0, false, func(g *guarded) error {
		s := g.session
		_, err := g.exec(ctx, keepBaseRun, s.InstallationID, s.RepositoryID, commit, recipe, s.ID, s.Fence, result)
		return err
	})
}

// ForgetBaseRuns removes results that are older than the given age, and returns
// how many it removed.
func (s *Store) ForgetBaseRuns(ctx context.Context, age time.Duration) (removed int64, err error) {
	err = s.transact(ctx, func(t *tx) error {
		removed, err = t.exec(ctx, forgetBaseRuns, age.Milliseconds())
		return err
	})
	return removed, err
}

// A foundBaseRun is a row as it is: held says that another session has a claim
// that counts.
type foundBaseRun struct {
	BaseRun
	held bool
}

func (l *Lease) findBaseRun(ctx context.Context, c conn, commit, recipe string) (foundBaseRun, error) {
	session := l.Session()
	found, err := one(ctx, c, func(row scanner) (foundBaseRun, error) {
		var f foundBaseRun
		return f, row.Scan(text(&f.Result), &f.held)
	}, baseRun, session.InstallationID, session.RepositoryID, commit, recipe, session.ID)
	if errors.Is(err, ErrNotFound) {
		return foundBaseRun{}, nil
	}
	return found, err
}
