package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockWait is how often a lock that another process holds is tried again.
const lockWait = 100 * time.Millisecond

// lockSetup makes whoever uses the caches of one setup take turns, in this
// process and in others on the machine: commands of each run under a user of
// their own, to whom the caches are given meanwhile.
func lockSetup(ctx context.Context, shared string) (unlock func(), err error) {
	end, err := setups.take(ctx, shared)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	if err := os.MkdirAll(filepath.Dir(shared), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(shared+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			// The kernel ends the lock with the descriptor, also of a dead process.
			return func() { _ = file.Close(); end() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(err, file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		case <-time.After(lockWait):
		}
	}
}
