package verdict

import (
	"regexp"
	"strings"
)

// javaScript reads jest and vitest, and whatever else says FAIL and a name, such
// as cargo nextest.
// Jest names a file, and its tests in the lines below; vitest says both in one
// line.
type javaScript struct {
	// file is what failed last; named says that tests of it were named.
	file  string
	named bool
}

var (
	// failLine has no tab and no colon behind FAIL: go test and unittest have.
	failLine = regexp.MustCompile(`^\s*FAIL +(\S.*)$`)
	// took is how long a file needed, where jest thinks that it matters.
	took = regexp.MustCompile(` \(\d+(?:\.\d+)? m?s\)$`)
	// nextest is how cargo nextest begins what it says behind FAIL.
	nextest  = regexp.MustCompile(`^\[ *[\d.]+s\] (?:\( *\d+/\d+\) )?`)
	jestTest = regexp.MustCompile(`^  ● (\S.*)$`)
)

// notTests are headings of jest's that look like tests.
var notTests = []string{"Console", "Test suite failed to run", "Cannot log after tests are done"}

func (j *javaScript) line(line string, found *names) bool {
	if match := failLine.FindStringSubmatch(line); match != nil {
		file := nextest.ReplaceAllString(took.ReplaceAllString(match[1], ""), "")
		// Jest's summary names the file again; its tests follow again as well.
		j.endFile(found)
		j.file, j.named = file, false
		return true
	}
	match := jestTest.FindStringSubmatch(line)
	if match == nil || j.file == "" {
		return false
	}
	for _, heading := range notTests {
		if strings.HasPrefix(match[1], heading) {
			return true
		}
	}
	found.add(j.file + " › " + match[1])
	j.named = true
	return true
}

// endFile names a file of which no test was named.
func (j *javaScript) endFile(found *names) {
	if !j.named {
		found.add(j.file)
	}
}

func (j *javaScript) end(found *names) { j.endFile(found) }
