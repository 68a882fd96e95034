package verdict

import "regexp"

// python reads the short summary of pytest and the headings of unittest.
type python struct{}

var (
	// pytestFailed is a test, or a file that could not be read for its tests,
	// with the reason behind a dash.
	pytestFailed = regexp.MustCompile(`^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$`)
	unittestFail = regexp.MustCompile(`^(?:FAIL|ERROR): (\S+ \([\w.]+\))`)
)

func (python) line(line string, found *names) bool {
	for _, pattern := range []*regexp.Regexp{pytestFailed, unittestFail} {
		if match := pattern.FindStringSubmatch(line); match != nil {
			found.add(match[1])
			return true
		}
	}
	return false
}

func (python) end(*names) {}
