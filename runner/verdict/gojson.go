package verdict

import (
	"encoding/json"
	"strings"
)

// goJSON reads the events of go test -json.
type goJSON struct {
	// failed are the packages of which a test failed; the event of the package
	// itself then says nothing new.
	failed names
}

// A goEvent is the part of a test2json event that matters here.
type goEvent struct {
	Action      string
	Package     string
	Test        string
	FailedBuild string
}

func (g *goJSON) line(line string, found *names) bool {
	if !strings.HasPrefix(line, "{") {
		return false
	}
	var event goEvent
	if json.Unmarshal([]byte(line), &event) != nil || event.Action == "" {
		return false
	}
	switch {
	case event.Action != "fail" || event.Package == "":
	case event.Test != "":
		g.failed.add(event.Package)
		found.add(event.Package + "." + event.Test)
	case event.FailedBuild != "":
		found.add(event.Package + " [build failed]")
	case !g.failed.seen[event.Package]:
		found.add(event.Package)
	}
	return true
}

func (*goJSON) end(*names) {}
