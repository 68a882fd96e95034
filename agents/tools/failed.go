package tools

import (
	"strings"
	"sync"

	"handoff/agents"
)

// failedPatches remembers patches that were refused, so that a model that
// sends the same one again is told so.
type failedPatches struct {
	mu     sync.Mutex
	byPath map[string]*patchFailures
}

type patchFailures struct {
	count int
	last  string // the diff's hash
}

// note counts a failure and says how often patches of the file failed and
// whether this very diff did.
func (f *failedPatches) note(path, diff string) (count int, same bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byPath == nil {
		f.byPath = map[string]*patchFailures{}
	}
	failures := f.byPath[path]
	if failures == nil {
		failures = &patchFailures{}
		f.byPath[path] = failures
	}
	hash := hashOf([]byte(diff))
	same = failures.last == hash
	failures.last = hash
	failures.count++
	return failures.count, same
}

// clear forgets the failures of a file after a success.
func (f *failedPatches) clear(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byPath, path)
}

// restore repeats what an earlier call did to the memory.
func (f *failedPatches) restore(item agents.Item) {
	if item.Call.Name != "apply_patch" {
		return
	}
	args, err := agents.DecodeArgs[applyPatchArgs](agents.Call{ToolCall: *item.Call})
	if err != nil {
		return
	}
	path, err := CleanPath(args.Path)
	if err != nil {
		return
	}
	switch {
	case !item.IsError:
		f.clear(path)
	case strings.HasPrefix(item.Text, patchFailed):
		f.note(path, args.Diff)
	}
}
