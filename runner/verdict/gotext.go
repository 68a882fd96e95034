package verdict

import "regexp"

// goText reads the text of go test. Tests are printed before the line that
// names their package, so they wait for it: two packages may have tests of the
// same name.
type goText struct {
	tests batch
	// running says that the tests that a timeout met are being listed.
	running bool
}

var (
	goFail    = regexp.MustCompile(`^\s*--- FAIL: (\S+) \(`)
	goRunning = regexp.MustCompile(`^\t\t(\S+) \(`)
	// goPackage is how a package ends that failed, with the seconds it took or
	// the reason why it never began.
	goPackage = regexp.MustCompile(`^FAIL\t(\S+)(?:\t\d+\.\d+s| \[(build failed|setup failed)\])$`)
	goPassed  = regexp.MustCompile(`^ok  \t\S+\t`)
)

func (g *goText) line(line string, found *names) bool {
	if match := goFail.FindStringSubmatch(line); match != nil {
		g.tests.add(match[1])
		return true
	}
	if match := goPackage.FindStringSubmatch(line); match != nil {
		g.endPackage(match[1], match[2], found)
		return true
	}
	if match := goRunning.FindStringSubmatch(line); g.running && match != nil {
		g.tests.add(match[1])
		return true
	}
	if g.running = line == "\trunning tests:"; g.running {
		return true
	}
	if goPassed.MatchString(line) {
		g.tests = batch{}
		return true
	}
	return false
}

func (g *goText) endPackage(name, reason string, found *names) {
	g.running = false
	if g.tests.flush(found, func(test string) string { return name + "." + test }) {
		return
	}
	if reason != "" {
		name += " [" + reason + "]"
	}
	found.add(name)
}

func (g *goText) end(found *names) {
	g.tests.flush(found, func(test string) string { return test })
}
