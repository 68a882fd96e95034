package tape

import (
	"os"
	"regexp"
	"strings"
	"unicode"
)

// A placeholder replaces what differs from run to run. Too much replaced makes
// a tape a little blind, too little makes it useless, so the patterns are
// wide. They are applied in order.
type placeholder struct {
	pattern *regexp.Regexp
	name    string
	// only, when set, decides about each match.
	only func(string) bool
}

var placeholderList = []placeholder{
	{pattern: regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), name: "<uuid>"},
	// 2026-01-02T15:04:05.678Z, 2026/01/02 15:04:05, with or without a zone.
	{pattern: regexp.MustCompile(`\b\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?`), name: "<time>"},
	// Mon, 02 Jan 2006 15:04:05 GMT and Mon Jan 2 15:04:05 2006.
	{pattern: regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Za-z0-9 :+]{15,24}(GMT|UTC|[+-]\d{4}|\d{4})`), name: "<time>"},
	{pattern: regexp.MustCompile(`\b\d{2}:\d{2}:\d{2}([.,]\d+)?\b`), name: "<time>"},
	// The first part of a temporary path; what is below it has a meaning.
	{pattern: regexp.MustCompile(`(/private)?(/var/folders/[^/\s"']+/[^/\s"']+/T|/var/tmp|/dev/shm|/tmp)/[^/\s"'` + "`" + `:,;)\]}<>]+`), name: "<tmp>"},
	{pattern: regexp.MustCompile(`(127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0|\[::\]):\d{2,5}\b`), name: "<loopback>"},
	// The end of the name of a session's branch.
	{pattern: regexp.MustCompile(`\b(copilot/[a-z0-9][a-z0-9._-]*-)[0-9a-z]{6}\b`), name: "${1}<id>"},
	// Commit ids, digests, nonces, long or short.
	{pattern: regexp.MustCompile(`\b[0-9a-f]{7,}\b`), name: "<hash>", only: lettersAndDigits},
	// Random boundaries.
	{pattern: regexp.MustCompile(`\b[0-9A-Za-z]{16,}\b`), name: "<random>", only: lettersAndDigits},
	{pattern: regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h))+\b`), name: "<duration>"},
	// What go test writes in place of the time that it saved.
	{pattern: regexp.MustCompile(`\t\(cached\)`), name: "\t<duration>"},
	{pattern: regexp.MustCompile(`\b\d+(\.\d+)? (milliseconds?|seconds?|minutes?)\b`), name: "<duration>"},
}

func lettersAndDigits(text string) bool {
	return strings.ContainsFunc(text, unicode.IsDigit) && strings.ContainsFunc(text, unicode.IsLetter)
}

// placeholders replaces times, durations, commit ids, temporary paths, ports,
// random boundaries and the random ends of branches.
func placeholders(text string) string {
	if temporary := strings.TrimSuffix(os.TempDir(), "/"); temporary != "" && temporary != "/tmp" {
		text = strings.ReplaceAll(text, temporary+"/", "/tmp/")
	}
	for _, p := range placeholderList {
		if p.only == nil {
			text = p.pattern.ReplaceAllString(text, p.name)
			continue
		}
		text = p.pattern.ReplaceAllStringFunc(text, func(match string) string {
			if p.only(match) {
				return p.name
			}
			return match
		})
	}
	return text
}
