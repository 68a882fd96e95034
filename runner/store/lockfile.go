package store

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A fileLock is an exclusive lock on a file beside the database. The kernel
// gives it back when the process ends, however it ends.
type fileLock struct{ file *os.File }

// lockFileNow takes the lock or says who has it.
func lockFileNow(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &Error{Code: CodeUnreachable, Err: err, Message: "The lock file " + path +
			" cannot be opened; check the directory's permissions."}
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		writeHolder(file)
		return &fileLock{file}, nil
	}
	defer file.Close()
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &Error{Code: CodeUnreachable, Err: err, Message: "The lock file " + path +
			" cannot be locked; put the database on a local file system."}
	}
	return nil, &Error{Code: CodeLocked, Err: err, Message: "Another handoff process" + holder(file) +
		" serves this database; stop it first, or use Postgres for several nodes."}
}

// waitForFileLock takes the lock once nobody else has it.
func waitForFileLock(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if err == nil {
			return &fileLock{file}, nil
		}
		if !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, err
		}
	}
}

// writeHolder leaves the process's number for the words of a refusal. It does
// not matter if it fails.
func writeHolder(file *os.File) {
	if file.Truncate(0) == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
}

func holder(file *os.File) string {
	content, err := io.ReadAll(io.LimitReader(file, 20))
	number, parseErr := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || parseErr != nil {
		return ""
	}
	return " (number " + strconv.Itoa(number) + ")"
}

// release gives the lock back. The file stays: to remove it would let two
// processes lock two files of the same name.
func (l *fileLock) release() {
	if l != nil {
		l.file.Close()
	}
}
