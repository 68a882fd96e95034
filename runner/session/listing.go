package session

import (
	"context"
	"path"
	"sync"
	"time"

	"handoff/gitops/git"
)

// listingAge is how long a listing of the workspace is good for: long enough
// for one walk over the tree, short enough for the next call to see new files.
const listingAge = time.Second

// A listing knows which paths of the workspace git would see, so that tools
// leave out what .gitignore does. It is safe for concurrent use.
type listing struct {
	workspace *git.Workspace

	mu    sync.Mutex
	made  time.Time
	known map[string]bool
}

// ignored says whether a path is left out. When the workspace cannot be listed
// nothing is.
func (l *listing) ignored(name string, _ bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.made) > listingAge {
		files, err := l.workspace.Files(context.Background())
		if err != nil {
			return false
		}
		l.known = make(map[string]bool, 2*len(files))
		for _, file := range files {
			for ; file != "." && !l.known[file]; file = path.Dir(file) {
				l.known[file] = true
			}
		}
		l.made = time.Now()
	}
	return !l.known[name]
}
