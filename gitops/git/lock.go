package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a lock held by another process is tried again. flock
// has no waiting that a context could end.
const lockPoll = 50 * time.Millisecond

// exclusively runs work on a repository's directory, which exists then, while
// nobody else in this or another process of the machine does.
func (c *Cache) exclusively(ctx context.Context, remote Remote, work func(dir string) error) error {
	dir, err := c.path(remote)
	if err != nil {
		return err
	}
	c.mu.Lock()
	lock, ok := c.locks[dir]
	if !ok {
		lock = &sync.Mutex{}
		c.locks[dir] = lock
	}
	c.mu.Unlock()
	if err := waitFor(ctx, func() (bool, error) { return lock.TryLock(), nil }); err != nil {
		return err
	}
	defer lock.Unlock()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ioError(err, "the cache cannot be written")
	}
	file, err := os.OpenFile(filepath.Join(dir, "handoff.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return ioError(err, "the cache cannot be locked")
	}
	defer file.Close() // which also gives the lock up
	if err := waitFor(ctx, func() (bool, error) { return flock(file) }); err != nil {
		return ioError(err, "the cache cannot be locked")
	}
	if err := initBare(dir); err != nil {
		return ioError(err, "the cache cannot be written")
	}
	return work(dir)
}

func flock(file *os.File) (bool, error) {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

func waitFor(ctx context.Context, try func() (bool, error)) error {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		done, err := try()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// initBare makes dir a bare repository that git's own tools can read as well. One
// whose objects are gone was being built anew when the machine stopped; what it
// says it has is forgotten then, and fetched again.
func initBare(dir string) error {
	_, noHead := os.Lstat(filepath.Join(dir, "HEAD"))
	_, noObjects := os.Lstat(filepath.Join(dir, "objects"))
	if noHead == nil && noObjects == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "refs")), os.RemoveAll(filepath.Join(dir, "shallow"))); err != nil {
		return err
	}
	for _, sub := range []string{"objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if err := writeFile(filepath.Join(dir, "config"), []byte(config)); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"))
}
