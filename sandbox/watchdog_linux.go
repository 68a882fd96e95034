package sandbox

import (
	"fmt"
	"time"
)

// How often the watchdog looks. Memory and processes grow fast and are cheap to
// look at. Disk is walked at most for a twentieth of the time.
const (
	watchInterval    = 100 * time.Millisecond
	walkInterval     = time.Second
	walkShareInverse = 20
)

// A watchdog bounds what the kernel cannot: what all processes of a command use
// together. It runs in the parent, where commands cannot reach it.
type watchdog struct {
	pid    int // of the init process; what is below it is watched
	limits Limits
	trees  []string
	base   extent // when the sandbox was created
	start  extent // when the command was started
	free   int64  // bytes free on the disk, when the command was started
	end    func(Reason, string)
}

// watch returns when done is closed.
func (w *watchdog) watch(done <-chan struct{}) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	nextWalk := time.Now().Add(walkInterval)
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		w.lookAtProcesses()
		if time.Now().Before(nextWalk) {
			continue
		}
		began := time.Now()
		w.lookAtDisk(func() bool { return isClosed(done) })
		nextWalk = time.Now().Add(max(walkInterval, walkShareInverse*time.Since(began)))
	}
}

func (w *watchdog) lookAtProcesses() {
	pids := descendants(w.pid)
	if len(pids) > w.limits.Processes {
		w.end(ReasonPids, fmt.Sprintf("More than %d processes ran at the same time.", w.limits.Processes))
		return
	}
	var resident int64
	for _, pid := range pids {
		resident += residentOf(pid)
	}
	disk, memory := deletedFiles(pids)
	if resident+memory > w.limits.Memory {
		w.end(ReasonMemory, fmt.Sprintf("The processes used more than %s of memory.", size(w.limits.Memory)))
	}
	if disk > w.limits.Disk {
		w.end(ReasonDisk, fmt.Sprintf("Deleted files that are still open take up more than %s.", size(w.limits.Disk)))
	}
}

// lookAtDisk walks the writable trees and ends the command if they have grown
// beyond the limits. A command that makes them smaller is left alone: it may be
// clearing up after one that did not stop in time.
func (w *watchdog) lookAtDisk(stop func() bool) {
	found := measure(w.trees, stop)
	grown, now := found.extent.minus(w.base), found.extent.minus(w.start)
	switch {
	case found.tooDeep:
		w.end(ReasonFiles, fmt.Sprintf("Directories are nested more than %d deep.", deepest))
	case grown.bytes > w.limits.Disk && now.bytes > 0:
		w.end(ReasonDisk, fmt.Sprintf("The session's commands wrote more than %s.", size(w.limits.Disk)))
	case found.closed && w.free-freeSpace(w.trees[0]) > w.limits.Disk:
		// Directories of somebody else, where we are root without root's
		// powers. Who writes there is seen by what is missing elsewhere; others
		// write to the same disk, so this is a guess, and the last resort.
		w.end(ReasonDisk, fmt.Sprintf("There is %s less on the disk, and directories that cannot be looked into.", size(w.limits.Disk)))
	case grown.files > w.limits.Files && now.files > 0:
		w.end(ReasonFiles, fmt.Sprintf("The session's commands made more than %d files.", w.limits.Files))
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// size writes a number of bytes for a person.
func size(bytes int64) string {
	units := []string{"bytes", "KB", "MB", "GB", "TB"}
	unit := 0
	for bytes >= 10<<10 && unit < len(units)-1 || bytes >= 1<<10 && bytes%(1<<10) == 0 && unit < len(units)-1 {
		bytes >>= 10
		unit++
	}
	return fmt.Sprintf("%d %s", bytes, units[unit])
}
