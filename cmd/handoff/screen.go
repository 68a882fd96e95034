package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"handoff/runner"
	"handoff/runner/report"
)

// A screen shows what happens, one line for each thing, in colour where the
// terminal has it. It is safe for concurrent use.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	width  func() int // of a line, in characters; nil where nothing limits it
	called map[string]runner.Event
}

// The colours, as SGR codes of terminals.
const (
	plain  = ""
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	purple = "35"
	cyan   = "36"
)

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, called: map[string]runner.Event{}}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	s.width = func() int {
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 0
		}
		return width
	}
	return s
}

// Texts beside a name begin in this column; however narrow a terminal is, they
// get so many characters.
const (
	textColumn = 15
	leastRoom  = 12
)

// room returns how many characters fit on a line of which some are used: those
// that are wished for, or what the terminal has left.
func (s *screen) room(wish, used int) int {
	if s.width == nil {
		return wish
	}
	width := s.width()
	if width <= 0 {
		return wish
	}
	return min(wish, max(leastRoom, width-used))
}

// beside writes a text next to a name, on as many lines as it takes. Words, and
// with them addresses, stay whole.
func (s *screen) beside(nameColour, name, textColour, text string) {
	head := s.paint(nameColour, pad(name, textColumn))
	for _, line := range fold(text, s.room(math.MaxInt, textColumn)) {
		s.write(head + s.paint(textColour, line))
		head = strings.Repeat(" ", textColumn)
	}
}

// fold breaks a text between words into lines of at most so many characters; a
// longer word has a line of its own. There is always a line.
func fold(text string, room int) []string {
	if utf8.RuneCountInString(text) <= room {
		return []string{text}
	}
	lines, length := []string{}, 0
	for _, word := range strings.Fields(text) {
		size := utf8.RuneCountInString(word)
		if len(lines) > 0 && length+1+size <= room {
			lines[len(lines)-1] += " " + word
			length += 1 + size
			continue
		}
		lines, length = append(lines, word), size
	}
	return lines
}

// paint wraps text in a colour. Control characters of the text itself never
// reach the terminal.
func (s *screen) paint(code, text string) string {
	text = report.Clean(text)
	if !s.colour || code == plain {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, text)
}

func (s *screen) line(text string)     { s.write(s.paint(plain, text)) }
func (s *screen) warn(text string)     { s.write(s.paint(yellow, "! "+text)) }
func (s *screen) alarm(text string)    { s.write(s.paint(red, "! "+text)) }
func (s *screen) done(text string)     { s.write(s.paint(green, "✔ "+text)) }
func (s *screen) question(text string) { s.write(s.paint(yellow, "? "+text)) }

func (s *screen) fact(name, value string) {
	s.write("  " + s.paint(faint, pad(name, 12)) + s.paint(plain, value))
}

func (s *screen) said(who, what string) {
	s.beside(bold, who, plain, what)
}

// pad fills text with spaces to a width in characters.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(text)))
}

// agentColours tell the crew apart.
var agentColours = map[string]string{
	"copilot": cyan, "architect": purple, "implementer": blue, "tester": yellow, "documentation": green,
}

// told shows an event of a session, or what the host does for it.
func (s *screen) told(what told) {
	if what.who != "" {
		s.beside(faint, what.who, faint, what.what)
		return
	}
	s.event(what.event)
}

// event shows one thing that happened in a session, if people care.
func (s *screen) event(event runner.Event) {
	agent := s.paint(agentColours[event.Agent], pad(event.Agent, textColumn))
	switch event.Kind {
	case runner.EventToolCalled:
		s.called[event.CallKey] = event
	case runner.EventToolOutput:
		s.toolOutput(agent, event)
	case runner.EventHandoffOccurred:
		about := shorten(event.Text, s.room(90, textColumn+len("> ")+len(event.To)+len("  ")))
		s.write(s.paint(agentColours[event.From], pad(event.From, textColumn)) + s.paint(bold, "→ "+event.To) + s.paint(faint, "  "+about))
	case runner.EventMessageOutput:
		s.write(agent + s.paint(plain, shorten(event.Text, s.room(110, textColumn))))
	case runner.EventCompaction, runner.EventNote:
		if unseen := report.Unseen(event); unseen != "" {
			s.write(agent + s.paint(yellow, "… "+unseen))
		}
	case runner.EventDecision:
		s.said(event.From, event.Text+" "+event.Tool)
	case runner.EventRunEnded:
		if event.Code != "" {
			s.write(agent + s.paint(red, string(event.Code)+": "+event.Text))
		}
	}
}

func (s *screen) toolOutput(agent string, event runner.Event) {
	call, ok := s.called[event.CallKey]
	if !ok {
		call = event // it was called before this program was started
	}
	mark, colour := "✔", green
	if report.CallFailed(call.Tool, event.Text, event.IsError) {
		mark, colour = "✘", red
	}
	about := report.DescribeCall(call.Tool, call.Arguments)
	summary := ""
	if event.Text != "" {
		used := textColumn + len("v ") + utf8.RuneCountInString(about) + len("  ")
		summary = "  " + shorten(event.Text, s.room(80, used))
	}
	if unseen := report.Unseen(event); unseen != "" {
		summary += "  (" + unseen + ")"
	}
	s.write(agent + s.paint(colour, mark) + " " + s.paint(plain, about) + s.paint(faint, summary))
}

// shorten makes one line of a text, of at most so many characters.
func shorten(text string, limit int) string {
	line := strings.Join(strings.Fields(text), " ")
	if runes := []rune(line); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return line
}
