package main

import (
	"fmt"
	"io"
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
	if file, ok := out.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		s.colour = term.IsTerminal(int(file.Fd()))
	}
	return s
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
	s.write(s.paint(bold, pad(who, 15)) + s.paint(plain, what))
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
		s.write(s.paint(faint, pad(what.who, 15)+what.what))
		return
	}
	s.event(what.event)
}

// event shows one thing that happened in a session, if people care.
func (s *screen) event(event runner.Event) {
	agent := s.paint(agentColours[event.Agent], pad(event.Agent, 15))
	switch event.Kind {
	case runner.EventToolCalled:
		s.called[event.CallKey] = event
	case runner.EventToolOutput:
		s.toolOutput(agent, event)
	case runner.EventHandoffOccurred:
		s.write(s.paint(agentColours[event.From], pad(event.From, 15)) + s.paint(bold, "→ "+event.To) + s.paint(faint, "  "+shorten(event.Text, 90)))
	case runner.EventMessageOutput:
		s.write(agent + s.paint(plain, shorten(event.Text, 110)))
	case runner.EventCompaction, runner.EventNote:
		if unseen := report.Unseen(event); unseen != "" {
			s.write(agent + s.paint(yellow, "… "+unseen))
		}
	case runner.EventDecision:
		s.write(s.paint(bold, pad(event.From, 15)) + s.paint(plain, event.Text+" "+event.Tool))
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
		summary = "  " + shorten(event.Text, 80)
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
