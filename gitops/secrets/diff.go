package secrets

import (
	"strconv"
	"strings"
)

// ScanDiff returns what is found in the lines that a unified diff in git's
// format adds, with file and line as they are after the change. What is only
// context, or removed, was there before and is not looked at. File names are
// looked at as well.
func (s *Scanner) ScanDiff(diff string) ([]Finding, error) {
	var findings []Finding
	for _, file := range addedLines(diff) {
		found, err := s.ScanFile(file.path, strings.Join(file.lines, "\n"))
		if err != nil {
			return nil, err
		}
		for _, finding := range found {
			if i := finding.Line - 1; i < len(file.numbers) {
				finding.Line = file.numbers[i]
			}
			findings = append(findings, finding)
		}
		for range s.findKnown(file.path) {
			findings = append(findings, Finding{File: redacted, Line: 1, Rule: RuleKnown, Description: "a secret of this installation, in a file name"})
		}
	}
	return tidy(findings), nil
}

// An addition is what a diff adds to one file.
type addition struct {
	path    string
	lines   []string
	numbers []int
}

// addedLines reads a unified diff. A hunk's counts say where it ends, so that an
// added line "++ x" is not mistaken for a header.
func addedLines(diff string) []*addition {
	var files []*addition
	var current *addition
	old, added, number := 0, 0, 0
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case old > 0 || added > 0:
			switch {
			case strings.HasPrefix(line, "+"):
				current.lines = append(current.lines, line[1:])
				current.numbers = append(current.numbers, number)
				added--
				number++
			case strings.HasPrefix(line, "-"):
				old--
			case strings.HasPrefix(line, `\`):
			default:
				old--
				added--
				number++
			}
		case strings.HasPrefix(line, "diff --git "):
			current = &addition{path: pathOf(line)}
			files = append(files, current)
		case strings.HasPrefix(line, "+++ "):
			if path := strings.TrimSuffix(line[4:], "\t"); path != "/dev/null" && current != nil {
				current.path = unquote(path)
			}
		case strings.HasPrefix(line, "@@ ") && current != nil:
			old, added, number = hunkCounts(line)
		}
	}
	return files
}

// pathOf takes the second name from a "diff --git" line; it stands for files
// that have no "+++" line.
func pathOf(line string) string {
	if i := strings.LastIndex(line, " b/"); i >= 0 {
		return line[i+3:]
	}
	if i := strings.LastIndex(line, ` "b/`); i >= 0 {
		return unquote(line[i+1:])
	}
	return ""
}

func unquote(name string) string {
	if strings.HasPrefix(name, `"`) {
		if plain, err := strconv.Unquote(name); err == nil {
			name = plain
		}
	}
	return strings.TrimPrefix(name, "b/")
}

// hunkCounts reads "@@ -a,b +c,d @@".
func hunkCounts(line string) (old, added, start int) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, 0, 0
	}
	_, old = hunkRange(fields[1])
	start, added = hunkRange(fields[2])
	return old, added, start
}

func hunkRange(text string) (start, count int) {
	first, second, ok := strings.Cut(strings.TrimLeft(text, "+-"), ",")
	start, _ = strconv.Atoi(first)
	count = 1
	if ok {
		count, _ = strconv.Atoi(second)
	}
	return start, count
}
