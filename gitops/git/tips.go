package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Tips are commits that were fetched whole. Each is a ref refs/handoff/<id>, so
// that git's own tools see a proper repository; the file appears last, so a
// fetch that was cut off is done again.

func tipPath(dir string, id plumbing.Hash) string {
	return filepath.Join(dir, "refs", "handoff", id.String())
}

// hasTip says whether a commit is here whole, and notes that it is in use.
func hasTip(dir string, id plumbing.Hash) bool {
	now := time.Now()
	return os.Chtimes(tipPath(dir, id), now, now) == nil
}

// addTip notes that a commit is here whole, once its packs are on the disk for
// good: a tip whose objects a power failure has eaten would never be fetched again.
func addTip(dir string, id plumbing.Hash) error {
	name := tipPath(dir, id)
	if err := syncPacks(dir); err != nil {
		return ioError(err, "the cache cannot be written")
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return ioError(err, "the cache cannot be written")
	}
	return ioError(writeFile(name, []byte(id.String()+"\n")), "the cache cannot be written")
}

func syncPacks(dir string) error {
	packs := filepath.Join(dir, "objects", "pack")
	entries, err := os.ReadDir(packs)
	if err != nil {
		return err
	}
	names := []string{packs}
	for _, entry := range entries {
		names = append(names, filepath.Join(packs, entry.Name()))
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

func listTips(dir string) ([]plumbing.Hash, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "refs", "handoff"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ioError(err, "the cache cannot be read")
	}
	var ids []plumbing.Hash
	for _, entry := range entries {
		if hexID.MatchString(entry.Name()) {
			ids = append(ids, plumbing.NewHash(entry.Name()))
		}
	}
	return ids, nil
}

// keepTips is how long a commit that nobody asked for is kept when a cached
// repository is built anew. A session that waits longer fetches its base again.
const keepTips = 7 * 24 * time.Hour

// tipsInUse returns the tips that were asked for lately.
func tipsInUse(dir string) ([]plumbing.Hash, error) {
	tips, err := listTips(dir)
	if err != nil {
		return nil, err
	}
	var used []plumbing.Hash
	for _, id := range tips {
		info, err := os.Stat(tipPath(dir, id))
		if err == nil && time.Since(info.ModTime()) < keepTips {
			used = append(used, id)
		}
	}
	return used, nil
}

// renew builds a repository that has grown too big anew beside the old one, from
// the commits in use, and puts it in its place by rename. When one of them is
// not to be had any more the old one stays: it holds what nobody else does.
func (c *Cache) renew(ctx context.Context, dir string, session transport.UploadPackSession, advertised *packp.AdvRefs) error {
	packs, size, err := packedSize(dir)
	if err != nil || packs < c.limits.CachePacks && size < c.limits.CacheBytes {
		return ioError(err, "the cache cannot be read")
	}
	used, err := tipsInUse(dir)
	if err != nil {
		return err
	}
	fresh, old := dir+".fresh", dir+".old"
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(old), initBare(fresh)); err != nil {
		return ioError(err, "the cache cannot be built anew")
	}
	for i, id := range used {
		err := c.receiveWhole(ctx, fresh, session, advertised, ask{id, used[:i], 1})
		if err == nil {
			err = addTip(fresh, id)
		}
		if err != nil {
			c.log.WarnContext(ctx, "the cached repository stays as large as it is", "packs", packs, "bytes", size, "commit", id.String(), "error", err)
			return ioError(os.RemoveAll(fresh), "the cache cannot be built anew")
		}
	}
	c.log.InfoContext(ctx, "cached repository built anew", "packs", packs, "bytes", size, "commits", len(used))
	return c.exchange(dir, fresh, old)
}

// exchange puts fresh in dir's place. Objects move, the lock file that is held
// stays, and readers find the new packs when they miss an old one.
func (c *Cache) exchange(dir, fresh, old string) error {
	if err := os.MkdirAll(old, 0o700); err != nil {
		return ioError(err, "the cache cannot be built anew")
	}
	for _, part := range []string{"refs", "objects", "shallow"} {
		err := os.Rename(filepath.Join(dir, part), filepath.Join(old, part))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = os.Rename(filepath.Join(fresh, part), filepath.Join(dir, part))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ioError(err, "the cache cannot be built anew")
		}
	}
	c.mu.Lock()
	if repo, ok := c.repos[dir]; ok {
		repo.objects.close()
	}
	c.mu.Unlock()
	return ioError(errors.Join(os.RemoveAll(old), os.RemoveAll(fresh)), "the old cache cannot be removed")
}

// packedSize returns how many packs a repository has, and their bytes.
func packedSize(dir string) (packs int, size int64, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, "objects", "pack"))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		if strings.HasSuffix(entry.Name(), ".pack") {
			packs++
		}
	}
	return packs, size, err
}
