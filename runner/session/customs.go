package session

import (
	"context"
	"fmt"
	"strings"

	"handoff/gitops/git"
)

// maxCustoms bounds what one instruction file may say, in bytes.
const maxCustoms = 16 << 10

// customs reads the repository's instruction files from its default branch. A
// file that is missing, a symlink or too long is left out, and the last is
// said.
func (h *hold) customs(ctx context.Context) string {
	var b strings.Builder
	for _, name := range h.config.Instructions {
		content, err := h.base.repository.ReadFile(ctx, h.base.rules, name, maxCustoms)
		switch git.CodeOf(err) {
		case git.CodeNotFound:
			continue
		case git.CodeTooLarge:
			h.notices = append(h.notices, fmt.Sprintf("%s is longer than %d bytes and was not read", name, maxCustoms))
			continue
		}
		if err != nil {
			h.log.Warn("an instruction file could not be read", "file", name, "error", err)
			continue
		}
		fmt.Fprintf(&b, "%s:\n%s\n", name, quoteLines(string(content)))
	}
	return strings.TrimRight(b.String(), "\n")
}

// redact takes secrets out of text. Where the scanner itself fails the text is
// withheld: nothing that was not looked at may be kept.
func (h *hold) redact(text string) string {
	clean, err := h.Scanner.Redact(text)
	if err != nil {
		h.log.Error("a text could not be searched for secrets", "error", err)
		return "[withheld: the search for secrets failed]"
	}
	return clean
}
