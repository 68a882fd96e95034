package verdict

import "regexp"

// cargo reads cargo test. Its lines name a test within one test binary, and the
// binary in a line above.
type cargo struct{ binary string }

var (
	// cargoRunning names the binary with a hash that changes from build to
	// build.
	cargoRunning = regexp.MustCompile(`^\s+Running (?:unittests )?\S+ \((?:\S*[/\\])?([^/\\\s]+?)(?:-[0-9a-f]{16})?(?:\.exe)?\)$`)
	cargoDoc     = regexp.MustCompile(`^\s+Doc-tests (\S+)$`)
	cargoFailed  = regexp.MustCompile(`^test (.+) \.\.\. FAILED$`)
)

func (c *cargo) line(line string, found *names) bool {
	for _, pattern := range []*regexp.Regexp{cargoRunning, cargoDoc} {
		if match := pattern.FindStringSubmatch(line); match != nil {
			c.binary = match[1]
			return true
		}
	}
	match := cargoFailed.FindStringSubmatch(line)
	if match == nil {
		return false
	}
	if c.binary != "" {
		match[1] = c.binary + "::" + match[1]
	}
	found.add(match[1])
	return true
}

func (*cargo) end(*names) {}
