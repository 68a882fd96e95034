package runner

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// A Panic is a panic that [Contain] turned into an error. Its text is for the
// log, not for people: it may hold a part of what was worked on.
type Panic struct {
	Cause any
	// Stack is where it happened.
	Stack []byte
}

// Error says what the panic said.
func (p *Panic) Error() string { return fmt.Sprintf("a fault of the program: %v", p.Cause) }

// LogValue shows a log the place as well.
func (p *Panic) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("panic", p.Cause), slog.String("stack", string(p.Stack)))
}

// Contain does work and returns its error, or a *[Panic] where it panicked, so
// that one session's fault does not end the process and with it all others. It
// sees only the goroutine that it is called in. What the runtime itself gives up
// on, such as a want of memory or maps that are written at the same time, ends
// the process still.
func Contain(work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &Panic{Cause: cause, Stack: debug.Stack()}
		}
	}()
	return work()
}
