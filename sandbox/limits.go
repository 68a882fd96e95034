package sandbox

import (
	"cmp"
	"time"
)

// Limits bounds what a command may use. A zero field means "not set".
type Limits struct {
	// Wall is the time by the clock, CPU the processor time of one process.
	Wall, CPU time.Duration
	// Memory is the resident memory of all processes together, in bytes.
	Memory int64
	// Processes is how many processes may exist at a time; threads are
	// bounded at threadsPerProcess times that.
	Processes int
	// FileSize is the size of the largest file, in bytes.
	FileSize int64
	// Disk and Files bound what all commands of a sandbox add to the
	// workspace, the temporary directory and the writable mounts: bytes
	// allocated and files.
	Disk  int64
	Files int64
	// Output is how many bytes a command may print before it is stopped.
	Output int64
	// Shown is how many bytes of output a Result holds, half of them from the
	// beginning and half from the end.
	Shown int
}

// threadsPerProcess relates RLIMIT_NPROC, which counts threads, to
// Limits.Processes. A compiler on a large machine starts a thread or more per
// core, so a bound on threads near the bound on processes would break builds.
const threadsPerProcess = 8

// DefaultLimits are what a command may use where nobody has said otherwise:
// generous for a build, small for a machine. An operator lowers or raises them
// by configuration.
func DefaultLimits() Limits {
	return Limits{
		Wall:      10 * time.Minute,
		CPU:       10 * time.Minute,
		Memory:    2 << 30,
		Processes: 512,
		FileSize:  1 << 30,
		Disk:      4 << 30,
		Files:     200_000,
		Output:    8 << 20,
		Shown:     16 << 10,
	}
}

// orDefault fills the fields that are not set.
func (l Limits) orDefault(d Limits) Limits {
	return Limits{
		Wall: cmp.Or(l.Wall, d.Wall), CPU: cmp.Or(l.CPU, d.CPU),
		Memory: cmp.Or(l.Memory, d.Memory), Processes: cmp.Or(l.Processes, d.Processes),
		FileSize: cmp.Or(l.FileSize, d.FileSize), Disk: cmp.Or(l.Disk, d.Disk), Files: cmp.Or(l.Files, d.Files),
		Output: cmp.Or(l.Output, d.Output), Shown: cmp.Or(l.Shown, d.Shown),
	}
}

// tighten returns l with every field of t that is set and smaller.
func (l Limits) tighten(t Limits) Limits {
	t = t.orDefault(l)
	return Limits{
		Wall: min(l.Wall, t.Wall), CPU: min(l.CPU, t.CPU),
		Memory: min(l.Memory, t.Memory), Processes: min(l.Processes, t.Processes),
		FileSize: min(l.FileSize, t.FileSize), Disk: min(l.Disk, t.Disk), Files: min(l.Files, t.Files),
		Output: min(l.Output, t.Output), Shown: min(l.Shown, t.Shown),
	}
}

// negative names a field that is below zero, or returns "".
func (l Limits) negative() string {
	for name, value := range map[string]int64{
		"Wall": int64(l.Wall), "CPU": int64(l.CPU), "Memory": l.Memory, "Processes": int64(l.Processes),
		"FileSize": l.FileSize, "Disk": l.Disk, "Files": l.Files, "Output": l.Output, "Shown": int64(l.Shown),
	} {
		if value < 0 {
			return name
		}
	}
	return ""
}
