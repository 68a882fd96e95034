package verdict

import (
	"regexp"
	"strings"
)

// others reads runners of which one line is all that there is to know: TAP,
// node, Gradle, Maven, RSpec, GoogleTest, CTest, and lines like JUnit's.
type others struct{}

// otherLines have the name of a test that failed in their first group.
var otherLines = []*regexp.Regexp{
	regexp.MustCompile(`^\s*not ok \d+ *-? *(.*)$`),
	regexp.MustCompile(`^\s*✖ (.+) \(\d+(?:\.\d+)?ms\)$`),
	// Gradle.
	regexp.MustCompile(`^(\S.* > .+) FAILED$`),
	// Maven's Surefire, older and newer.
	regexp.MustCompile(`^(?:\[ERROR\] +)?(\S+(?:\(\S+\))?) +(?:-- )?Time elapsed: \S+ s +<<< (?:FAILURE|ERROR)!`),
	// RSpec; the number of the line moves, the words stay.
	regexp.MustCompile(`^rspec \S+ # (.+)$`),
	regexp.MustCompile(`^\[  FAILED  \] ([^\s,]+\.[^\s,]+)(?:,| \(|$)`),
	// CTest.
	regexp.MustCompile(`^\s+\d+ - (.+) \((?:Failed|Timeout|SEGFAULT|Not Run|Child aborted|ILLEGAL|BUS_ERROR|NUMERICAL|OTHER_FAULT)\)$`),
	// Automake and many scripts.
	regexp.MustCompile(`^FAIL: (.+)$`),
	regexp.MustCompile(`^FAILED:? ([^\s(]\S*)$`),
}

// tapDirective marks a test that may fail.
var tapDirective = regexp.MustCompile(`(?i) # (?:todo|skip)\b`)

func (others) line(line string, found *names) bool {
	for _, pattern := range otherLines {
		match := pattern.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if !tapDirective.MatchString(line) {
			found.add(strings.TrimSpace(match[1]))
		}
		return true
	}
	return false
}

func (others) end(*names) {}
