package tools

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An accessError says in words for a model why a path cannot be used.
type accessError struct {
	path   string
	reason string
}

func (e *accessError) Error() string { return e.path + ": " + e.reason }

func denied(path, format string, args ...any) error {
	return &accessError{path: path, reason: fmt.Sprintf(format, args...)}
}

// The limits of names, those of common file systems.
const (
	maxPath      = 4096
	maxComponent = 255
)

// CleanPath turns a path as a model writes it into a clean slash-separated
// path relative to the repository, "." for its root. It refuses what could
// mean a file outside, or git's own files in any spelling that a file system
// may take for ".git" (as git itself does).
func CleanPath(name string) (string, error) {
	switch {
	case !utf8.ValidString(name):
		return "", denied(strings.ToValidUTF8(name, "?"), "the path is not valid UTF-8")
	case len(name) > maxPath:
		return "", denied(name[:40]+"…", "the path is too long")
	case strings.ContainsFunc(name, func(c rune) bool { return unicode.IsControl(c) || hidden(c) }):
		return "", denied(fmt.Sprintf("%q", name), "the path contains control or invisible characters")
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, "~"):
		return "", denied(name, "paths are relative to the repository's root, such as \"cmd/main.go\"; nothing outside can be reached")
	case strings.Contains(name, `\`):
		return "", denied(name, "use / between folders")
	}
	clean := path.Clean("./" + name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", denied(name, "the path leaves the repository")
	}
	for component := range strings.SplitSeq(clean, "/") {
		if len(component) > maxComponent {
			return "", denied(name, "a name in the path is too long")
		}
		if isGit(component) {
			return "", denied(name, "git's own files are not part of the workspace; the history is kept by the host")
		}
	}
	return clean, nil
}

// isGit recognises .git as HFS+ (invisible characters are gone by then),
// NTFS (trailing dots and spaces, streams, short names) and case-insensitive
// file systems read it.
func isGit(component string) bool {
	name, _, _ := strings.Cut(component, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}

// hidden says that a character shows nothing, or changes the order of what is
// shown: what a reader sees is then not what is there.
func hidden(c rune) bool {
	switch {
	case c == '\u200d' || c == '\ufe0f': // parts of ordinary emoji
		return false
	case c >= 0xE0000 && c <= 0xE007F:
		return true
	}
	return unicode.Is(unicode.Cf, c)
}
