package session

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"handoff/gitops/secrets"
)

// plantCanary puts a secret of the session's own beside its files, where no
// command can look unless the sandbox leaks. It opens nothing; but it is looked
// for like the host's other secrets, so that a leak shows in what it carries out.
func (h *hold) plantCanary() error {
	name := filepath.Join(h.workspaceDir(h.session.ID), "canary")
	planted, err := os.ReadFile(name)
	// A crash may have left it empty.
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(planted) == 0 {
		planted = []byte("handoff-canary-" + rand.Text())
		err = os.WriteFile(name, planted, 0o600)
	}
	h.Scanner.Learn(string(planted))
	return err
}

// alarm tells the operator that what was to leave holds a secret that only the
// host knows: nothing in a sandbox should ever have seen one.
func (h *hold) alarm(findings []secrets.Finding) {
	for _, finding := range findings {
		if finding.Rule == secrets.RuleKnown {
			h.log.Error("a secret of the host was about to be pushed; look how it got there", "file", finding.File, "line", finding.Line)
		}
	}
}
