package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"handoff/runner/approval"
	"handoff/runner/report"
	"handoff/runner/verdict"
)

// An openQuestion is one that waits for an answer in the terminal.
type openQuestion struct {
	id     string // of the approval
	prompt approval.Prompt
}

// A reply is what somebody typed to a question.
type reply struct {
	yes    bool
	reason string
}

// readReply understands y, yes, n, no, and no with a reason.
func readReply(line string) (answer reply, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(strings.TrimRight(word, ",:")) {
	case "y", "yes":
		return reply{yes: true}, rest == ""
	case "n", "no":
		return reply{reason: strings.TrimSpace(rest)}, true
	}
	return reply{}, false
}

// A keyboard gives the lines that somebody types. It reads until the program
// ends: reading from a terminal cannot be interrupted.
type keyboard struct {
	lines    <-chan string
	terminal bool
}

func newKeyboard(from io.Reader) *keyboard {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(from)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	file, ok := from.(*os.File)
	return &keyboard{lines: lines, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// silence is how long nothing must come for what was typed ahead to be over.
const silence = 50 * time.Millisecond

// forget drops what was typed so far, so that nobody answers a question before
// it is on the screen. What comes through a pipe was written for the questions
// to come and stays.
func (k *keyboard) forget() {
	for k.terminal {
		select {
		case _, more := <-k.lines:
			if !more {
				return
			}
		case <-time.After(silence):
			return
		}
	}
}

// ask shows everything that a decision is about.
func (s *screen) ask(prompt approval.Prompt) {
	s.line("")
	if prompt.Path != "" {
		s.question(fmt.Sprintf("%s asks to delete %s (%d bytes).", prompt.Agent, oneLine(prompt.Path), prompt.Size))
		if prompt.Reason != "" {
			s.fact("why", oneLine(prompt.Reason))
		}
		return
	}
	s.diff(prompt.Diff)
	s.line("")
	s.question(fmt.Sprintf("The crew asks to make the branch %s.", prompt.Branch()))
	s.fact("title", oneLine(prompt.Title))
	s.quote(plain, prompt.Body)
	s.fact("commit", fmt.Sprintf("%s on top of %s", approval.Short(prompt.Commit), approval.Short(prompt.Base)))
	s.fact("changes", prompt.Totals())
	s.tests(prompt.Verification)
	for _, risk := range prompt.Risks {
		s.warn("Look closely, " + risk.What + ": " + oneLine(strings.Join(risk.Paths, ", ")))
	}
}

// quote shows somebody else's text line by line, so that no line of it can pass
// for one of ours.
func (s *screen) quote(colour, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		s.write("  " + s.paint(faint, "│ ") + s.paint(colour, report.Reveal(strings.TrimRight(line, "\n"))))
	}
}

// oneLine shows somebody else's text on one line, with what is hidden in it.
func oneLine(text string) string { return report.Reveal(strings.Join(strings.Fields(text), " ")) }

// tests shows what the host's own run of the tests came to.
func (s *screen) tests(run approval.Verification) {
	commands := oneLine(strings.Join(run.Commands, " && "))
	summary := run.Verdict.Summary()
	switch {
	case len(run.Commands) == 0:
		s.warn("No test command is configured in .github/handoff.yml, so nothing was tested.")
	case run.NotRun != "":
		s.warn("The tests were not run: " + oneLine(run.NotRun))
	case run.Verdict.Outcome == verdict.Passed:
		s.fact("tests", fmt.Sprintf("%s in %s: %s", summary, report.Duration(run.Duration), commands))
	default:
		s.quote(faint, run.Output)
		s.alarm(fmt.Sprintf("The tests %s: %s.", oneLine(summary), commands))
		s.failedTests(run.Verdict)
	}
}

// shownTests is how many failures of a kind are named.
const shownTests = 50

func (s *screen) failedTests(v verdict.Verdict) {
	for _, group := range v.Groups() {
		names := oneLine(strings.Join(group.Tests[:min(len(group.Tests), shownTests)], ", "))
		if more := len(group.Tests) - shownTests; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		s.line(fmt.Sprintf("  %s (%d): %s", group.Title, len(group.Tests), names))
	}
	if method := v.Method(); method != "" {
		s.line("  " + method)
	}
}

// diff shows a diff in colour. Nothing in it reaches the terminal but
// characters that can be seen.
func (s *screen) diff(diff string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\n")
		s.write(s.paint(diffColour(line), report.Reveal(line)))
	}
}

func diffColour(line string) string {
	switch {
	case strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		return bold
	case strings.HasPrefix(line, "@@"):
		return cyan
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return plain
}
