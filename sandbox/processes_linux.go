package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// descendants returns the processes below pid, which is not one of them. They
// come and go meanwhile; a caller who needs all of them asks again.
func descendants(pid int) []int {
	var found []int
	queue := []int{pid}
	for len(queue) > 0 {
		next := childrenOf(queue[0])
		queue = append(queue[1:], next...)
		found = append(found, next...)
	}
	return found
}

// childrenOf reads the lists that the kernel keeps per thread. Kernels built
// without them are answered from the table of all processes.
func childrenOf(pid int) []int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var children []int
	for _, task := range tasks {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if os.IsNotExist(err) && task.Name() == strconv.Itoa(pid) && !hasChildrenFiles() {
			return childrenByScan(pid)
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

func hasChildrenFiles() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
}

func childrenByScan(parent int) []int {
	var children []int
	for pid := range allProcesses() {
		if stat, ok := statOf(pid); ok && stat.parent == parent {
			children = append(children, pid)
		}
	}
	return children
}

func allProcesses() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, entry := range entries {
			if pid, err := strconv.Atoi(entry.Name()); err == nil && !yield(pid) {
				return
			}
		}
	}
}

// A processStat is what a watch needs to know about a process.
type processStat struct {
	parent, threads int
	zombie          bool
}

// statOf reads /proc/PID/stat. The name in it is in parentheses and may hold
// anything, parentheses too.
func statOf(pid int) (processStat, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, false
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 18 {
		return processStat{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	threads, _ := strconv.Atoi(fields[17])
	return processStat{parent: parent, threads: threads, zombie: fields[0] == "Z"}, true
}

// threadsOf counts the threads of all processes of a user.
func threadsOf(uid int) int {
	threads := 0
	for pid := range allProcesses() {
		info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != uid {
			continue
		}
		if stat, ok := statOf(pid); ok {
			threads += stat.threads
		}
	}
	return threads
}

// residentOf returns the bytes of memory that a process alone is answerable
// for: anonymous pages and shared memory, not the pages of files.
func residentOf(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var total int64
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		kilobytes, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		if n, err := strconv.ParseInt(kilobytes, 10, 64); err == nil {
			total += n << 10
		}
	}
	return total
}
