// Package secrets looks for secrets in whatever is about to leave: diffs, commit
// messages, pull request texts, comments, logs.
//
// Two things are looked for. The rules of gitleaks find what has the shape of a
// secret (a cloud key, a private key, a token). And the secrets that the host
// itself knows (its keys, its tokens as they are minted, the canaries of a
// session) are found in any of the forms in which a program or a model might
// carry them out: plain, reversed, in hexadecimal, base64, percent or numeric
// escapes, with the beginning cut off, or split up by line ends, quotes and plus
// signs. [Scanner.Learn] adds those that come to be known on the way.
//
// A [Finding] names file, line and rule and never holds the secret; [Scanner.Redact]
// returns a text without it. Comments such as "gitleaks:allow" are not obeyed:
// whoever wrote the text could have written them.
//
// The rules are built once in a process, when first needed, and shared by all
// scanners; that takes some fifteen milliseconds (BenchmarkBuildRules).
package secrets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"
	"github.com/zricethezav/gitleaks/v8/report"
)

// RuleKnown is the rule of a finding of a secret that the host knows.
const RuleKnown = "known-secret"

// A Finding is a place where a secret was found.
type Finding struct {
	// File is the path as it was given, "" for a text.
	File string `json:"file,omitempty"`
	// Line counts from 1, in the file after the change.
	Line int `json:"line"`
	// Rule is gitleaks' rule id, or [RuleKnown].
	Rule string `json:"rule"`
	// Description says in words what the rule looks for.
	Description string `json:"description"`
}

// String returns "file:line: rule" for people.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s", cmp.Or(f.File, "text"), f.Line, f.Rule)
}

// A Scanner looks for secrets. It is safe for concurrent use.
type Scanner struct {
	known   *knownSecrets
	learned learned
}

// New returns a scanner that also looks for the given secrets. One with fewer
// than [MinKnown] letters and digits is left out: it would be found everywhere.
func New(known ...string) *Scanner {
	return &Scanner{known: newKnownSecrets(known)}
}

// detector builds gitleaks' default rules once. Its log is a global that would
// write findings to standard error, so it is switched off first.
var detector = sync.OnceValues(func() (*detect.Detector, error) {
	logging.Logger = logging.Logger.Level(zerolog.Disabled)
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, fmt.Errorf("the rules to find secrets by cannot be built: %w", err)
	}
	d.IgnoreGitleaksAllow = true
	d.MaxDecodeDepth = decodeDepth
	return d, nil
})

// decodeDepth is how often encoded parts of a text are decoded and looked at
// again: base64 within base64 is caught, and the time stays bounded.
const decodeDepth = 2

// Scan returns what is found in a text.
func (s *Scanner) Scan(text string) ([]Finding, error) {
	return s.ScanFile("", text)
}

// ScanText returns what is found in a text that is no file. The findings say
// which by its name, such as "commit message".
func (s *Scanner) ScanText(name, text string) ([]Finding, error) {
	findings, err := s.Scan(text)
	for i := range findings {
		findings[i].File = name
	}
	return findings, err
}

// ScanFile returns what is found in a file's content. gitleaks leaves some paths
// out (lock files, images, vendored code); there the rule that guesses by
// randomness is left out, and all that know a secret's shape hold.
func (s *Scanner) ScanFile(path, content string) ([]Finding, error) {
	hits, err := s.hits(path, content)
	if err != nil {
		return nil, err
	}
	findings := make([]Finding, len(hits))
	for i, hit := range hits {
		findings[i] = Finding{File: path, Line: 1 + strings.Count(content[:hit.start], "\n"), Rule: hit.rule, Description: hit.description}
	}
	return tidy(findings), nil
}

// Redact returns the text with every secret replaced by "[redacted]".
func (s *Scanner) Redact(text string) (string, error) {
	hits, err := s.hits("", text)
	if err != nil {
		return text, err
	}
	return without(text, hits), nil
}

// RedactKnown returns the text with every secret that the host knows replaced,
// and what only looks like one left alone.
func (s *Scanner) RedactKnown(text string) string { return without(text, s.findKnown(text)) }

// findKnown returns every place of a secret that the host knows.
func (s *Scanner) findKnown(text string) []hit {
	return append(s.known.find(text), s.learned.find(text)...)
}

// without returns the text with every hit replaced by "[redacted]".
func without(text string, hits []hit) string {
	if len(hits) == 0 {
		return text
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.start, b.start) })
	var out strings.Builder
	end := 0
	for _, hit := range hits {
		if hit.start >= end {
			out.WriteString(text[end:hit.start])
			out.WriteString(redacted)
		}
		end = max(end, hit.end)
	}
	out.WriteString(text[end:])
	return out.String()
}

const redacted = "[redacted]"

// A hit is a secret's place in a text, in bytes.
type hit struct {
	start, end  int
	rule        string
	description string
}

func (s *Scanner) hits(path, text string) ([]hit, error) {
	hits := s.findKnown(text)
	d, err := detector()
	if err != nil {
		return nil, err
	}
	for _, found := range detectIn(d, path, text) {
		for _, place := range places(text, found.Secret, found.Line) {
			place.rule, place.description = found.RuleID, found.Description
			hits = append(hits, place)
		}
	}
	return hits, nil
}

// guess is the rule that takes any random text after a telling word for a secret.
const guess = "generic-api-key"

// detectIn applies gitleaks' rules. That a file is named like an image or a lock
// file makes nothing in it harmless: whoever wrote it also named it.
func detectIn(d *detect.Detector, path, text string) []report.Finding {
	passed := path != "" && slices.ContainsFunc(d.Config.Allowlists, func(list *config.Allowlist) bool { return list.PathAllowed(path) })
	if passed {
		path = ""
	}
	//lint:ignore SA1019 in version 8 Detect takes nothing else
	found := d.Detect(detect.Fragment{Raw: text, FilePath: path})
	if passed {
		found = slices.DeleteFunc(found, func(one report.Finding) bool { return one.RuleID == guess })
	}
	return found
}

// places finds a secret's places in the text. One that was found by decoding is
// not in the text as such; then it is the line that gives it away.
func places(text, secret, line string) []hit {
	for _, part := range []string{secret, strings.TrimPrefix(line, "\n")} {
		var found []hit
		for from := 0; part != ""; {
			i := strings.Index(text[from:], part)
			if i < 0 {
				break
			}
			found = append(found, hit{start: from + i, end: from + i + len(part)})
			from += i + len(part)
		}
		if len(found) > 0 {
			return found
		}
	}
	return []hit{{start: 0, end: len(text)}} // it is somewhere: nothing may pass
}

// tidy sorts findings and leaves each one in once.
func tidy(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(findings)
}
