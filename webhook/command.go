package webhook

import (
	"slices"
	"strings"
	"unicode"
)

// The verbs of commands, as [store.Command.Verb] holds them.
const (
	VerbTask    = "task"
	VerbPlan    = "plan"
	VerbGo      = "go"
	VerbApprove = "approve"
	VerbReject  = "reject"
	VerbRenew   = "renew"
	VerbStop    = "stop"
	VerbRetry   = "retry"
	VerbStatus  = "status"
	VerbCheck   = "check"
	VerbFix     = "fix"
	VerbHelp    = "help"
)

// prefix is what a command starts with.
const prefix = "/copilot"

// An Invocation is a comment that is a command.
type Invocation struct {
	// Verb is one of the Verb constants.
	Verb string
	// Text is what follows: the task with the lines below it, or what stands
	// behind the verb on the first line. For help it is the word that was not
	// understood, "" when help was asked for.
	Text string
}

// Parse reads a comment. It is a command only if its very first line begins
// with /copilot, in plain ASCII letters, after three spaces at most; four make
// it code in Markdown. A command inside a quote, a code fence, an HTML comment
// or a folded section is none, and neither is one with invisible characters or
// look-alike letters in its first two words: it is ignored, not guessed at.
func Parse(body string) (Invocation, bool) {
	first, below, _ := strings.Cut(body, "\n")
	first = strings.TrimRight(first, "\r \t")
	indented := strings.TrimLeft(first, " ")
	if len(first)-len(indented) > 3 || len(indented) < len(prefix) || !equalASCII(indented[:len(prefix)], prefix) {
		return Invocation{}, false
	}
	rest := indented[len(prefix):]
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return Invocation{}, false
	}
	rest = strings.Trim(rest, " \t")
	word, behind, _ := strings.Cut(strings.ReplaceAll(rest, "\t", " "), " ")
	if disguised(word) {
		return Invocation{}, false
	}
	behind = strings.Trim(behind, " ")
	return interpret(word, behind, rest, strings.TrimRight(below, "\r\n \t")), true
}

// equalASCII compares without regard to case, for ASCII letters alone: to
// Unicode a Kelvin sign is a k.
func equalASCII(a, b string) bool {
	for i := range len(a) {
		c := a[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != b[i] {
			return false
		}
	}
	return true
}

// interpret decides between a verb and a task that begins with the same word.
func interpret(word, behind, rest, below string) Invocation {
	verb := strings.ToLower(strings.TrimRight(word, ".!,:;"))
	switch verb {
	case "":
		if strings.TrimSpace(below) != "" && rest == "" {
			return Invocation{Verb: VerbTask, Text: below}
		}
		return Invocation{Verb: VerbHelp}
	case VerbApprove, VerbReject:
		return Invocation{Verb: verb, Text: behind}
	case VerbPlan:
		return Invocation{Verb: VerbPlan, Text: joined(behind, below)}
	case VerbGo, VerbRenew, VerbStop, VerbRetry, VerbStatus, VerbCheck, VerbFix, VerbHelp:
		// "fix the login page" is a task, "fix" and "fix it please" are verbs.
		if onlyPolite(behind) && (below == "" || verb == VerbStop) {
			return Invocation{Verb: verb}
		}
	}
	if behind == "" && below == "" && looksLikeSubcommand(word) {
		return Invocation{Verb: VerbHelp, Text: word}
	}
	return Invocation{Verb: VerbTask, Text: joined(rest, below)}
}

func joined(first, below string) string {
	if below == "" {
		return first
	}
	return first + "\n" + below
}

// polite are the words that may follow a verb without making it a task.
var polite = []string{"please", "now", "it", "this", "that", "immediately", "again", "everything", "session", "the", "work", "thanks", "thank", "you"}

func onlyPolite(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if !slices.Contains(polite, strings.ToLower(strings.Trim(word, ".!,:;"))) {
			return false
		}
	}
	return true
}

// looksLikeSubcommand says whether a single word is meant as a verb that does
// not exist ("--help", "statsu"), and not as a task in a language that writes
// without spaces.
func looksLikeSubcommand(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r > unicode.MaxASCII })
}

// disguised says whether a word contains what people cannot see, or mixes
// alphabets as somebody does who wants a word to look like another.
func disguised(word string) bool {
	latin, other := false, false
	for _, r := range word {
		switch {
		case invisible(r), r == unicode.ReplacementChar, r >= 0xFF00 && r <= 0xFFEF, r >= 0x1D400 && r <= 0x1D7FF:
			return true
		case unicode.In(r, unicode.Latin):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu):
			other = true
		}
	}
	return latin && other
}
