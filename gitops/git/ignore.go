package git

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// What an untracked file needs to be left out of a commit: a pattern in a
// .gitignore of its directory or one above. go-git has a matcher of its own,
// but it knows no escapes, no "[!…]" and no "**" inside a name, and a file
// wrongly left out is lost work; so this one follows gitignore(5) and is
// compared with git's in the tests.

// maxIgnoreFile bounds a .gitignore; git reads them whole.
const maxIgnoreFile = 1 << 20

// ignoreRules are the patterns of one directory's .gitignore, read when first
// asked for, which in most directories is never.
type ignoreRules struct {
	above    *ignoreRules
	fd       int // open as long as the walk is in or below the directory
	prefix   string
	loaded   bool
	patterns []ignorePattern
}

type ignorePattern struct {
	glob     string
	negated  bool
	dirOnly  bool
	nameOnly bool
}

// match says whether the entry of this directory is ignored. That a directory
// above is ignored is for the caller to know.
func (r *ignoreRules) match(name string, isDir bool) (bool, error) {
	path := r.prefix + name
	for at := r; at != nil; at = at.above {
		if err := at.load(); err != nil {
			return false, err
		}
		if ignored, decided := matchPatterns(at.patterns, path[len(at.prefix):], name, isDir); decided {
			return ignored, nil
		}
	}
	return false, nil
}

// matchPatterns asks the patterns of one file, of which the last that matches
// decides.
func matchPatterns(patterns []ignorePattern, path, name string, isDir bool) (ignored, decided bool) {
	for i := len(patterns) - 1; i >= 0; i-- {
		pattern := &patterns[i]
		if (isDir || !pattern.dirOnly) && pattern.matches(path, name) {
			return !pattern.negated, true
		}
	}
	return false, false
}

// matches compares a pattern without a slash with the name alone. Of others git
// compares the literal beginning apart, so that "a**/b" matches "ab" and "axx/b";
// so do we.
func (p *ignorePattern) matches(path, name string) bool {
	if p.nameOnly {
		return wildmatch(p.glob, name)
	}
	literal := strings.IndexAny(p.glob, `*?[\`)
	if literal < 0 {
		return p.glob == path
	}
	rest, ok := strings.CutPrefix(path, p.glob[:literal])
	return ok && wildmatch(p.glob[literal:], rest)
}

func (r *ignoreRules) load() error {
	if r.loaded {
		return nil
	}
	r.loaded = true
	fd, err := unix.Openat(r.fd, ".gitignore", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // absent, a link, or closed: no rules, as in git
	}
	file := os.NewFile(uintptr(fd), r.prefix+".gitignore")
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if info.Size() > maxIgnoreFile {
		return failf(CodeTooLarge, nil, "%s has more than %d bytes", file.Name(), maxIgnoreFile)
	}
	content, err := readAll(file, maxIgnoreFile)
	if err != nil {
		return errors.Join(err)
	}
	r.patterns = parseIgnore(string(content))
	return nil
}

// parseIgnore reads the lines of a .gitignore.
func parseIgnore(text string) []ignorePattern {
	var patterns []ignorePattern
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSuffix(line, "\n")
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		var pattern ignorePattern
		line, pattern.negated = strings.CutPrefix(line, "!")
		line, pattern.dirOnly = strings.CutSuffix(line, "/")
		pattern.nameOnly = !strings.Contains(line, "/")
		pattern.glob = strings.TrimPrefix(line, "/")
		if pattern.glob != "" {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// trimSpaces removes trailing spaces that are not escaped.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			end = i + 1
		case line[i] != ' ':
			end = i + 1
		}
	}
	return line[:end]
}

// wildmatch matches bytes as git does: "*" and "?" stop at slashes, "**" between
// slashes spans them.
func wildmatch(glob, text string) bool {
	matched, _ := wildmatchSteps(glob, text, true, maxSteps)
	return matched
}

// maxSteps ends a match that a hostile pattern would make exponential; what it
// gives up on is not ignored.
const maxSteps = 100_000

func wildmatchSteps(glob, text string, start bool, steps int) (bool, int) {
	for glob != "" {
		if steps--; steps <= 0 {
			return false, 0
		}
		switch glob[0] {
		case '*':
			return matchStar(glob, text, start, steps)
		case '?':
			if text == "" || text[0] == '/' {
				return false, steps
			}
			glob, text = glob[1:], text[1:]
		case '[':
			if text == "" || text[0] == '/' {
				return false, steps
			}
			rest, ok := matchClass(glob[1:], text[0])
			if !ok {
				return false, steps
			}
			glob, text = rest, text[1:]
		default:
			literal := glob[0]
			if literal == '\\' {
				if glob = glob[1:]; glob == "" {
					return false, steps
				}
				literal = glob[0]
			}
			if text == "" || text[0] != literal {
				return false, steps
			}
			start = literal == '/'
			glob, text = glob[1:], text[1:]
			continue
		}
		start = false
	}
	return text == "", steps
}

// matchStar matches a glob that begins with a star. At the start of a component
// "**" followed by a slash, or at the end, spans directories.
func matchStar(glob, text string, start bool, steps int) (bool, int) {
	rest := strings.TrimLeft(glob, "*")
	if len(glob)-len(rest) >= 2 && start && (rest == "" || rest[0] == '/') {
		if rest == "" {
			return true, steps
		}
		return matchAnywhere(rest[1:], text, steps)
	}
	for i := 0; ; i++ {
		var ok bool
		if ok, steps = wildmatchSteps(rest, text[i:], false, steps); ok || steps <= 0 {
			return ok, steps
		}
		if i == len(text) || text[i] == '/' {
			return false, steps
		}
	}
}

// matchAnywhere matches what follows "**/": here, or after any slash.
func matchAnywhere(rest, text string, steps int) (bool, int) {
	for {
		var ok bool
		if ok, steps = wildmatchSteps(rest, text, true, steps); ok || steps <= 0 {
			return ok, steps
		}
		slash := strings.IndexByte(text, '/')
		if slash < 0 {
			return false, steps
		}
		text = text[slash+1:]
	}
}

// matchClass matches one byte against a bracket expression, given after its
// "[", and returns the glob behind it. An expression that never ends matches
// nothing.
func matchClass(class string, c byte) (rest string, ok bool) {
	negated := class != "" && (class[0] == '!' || class[0] == '^')
	if negated {
		class = class[1:]
	}
	matched := false
	for first := true; class != "" && (first || class[0] != ']'); first = false {
		if name, after, isNamed := namedClass(class); isNamed {
			in, known := inNamedClass(name, c)
			if !known {
				return "", false
			}
			matched = matched || in
			class = after
			continue
		}
		var low, high byte
		if low, class, ok = classByte(class); !ok {
			return "", false
		}
		high = low
		if len(class) >= 2 && class[0] == '-' && class[1] != ']' {
			if high, class, ok = classByte(class[1:]); !ok {
				return "", false
			}
		}
		matched = matched || low <= c && c <= high
	}
	if class == "" {
		return "", false
	}
	return class[1:], matched != negated
}

func classByte(class string) (c byte, rest string, ok bool) {
	if class[0] == '\\' {
		class = class[1:]
	}
	if class == "" {
		return 0, "", false
	}
	return class[0], class[1:], true
}

func namedClass(class string) (name, rest string, ok bool) {
	if !strings.HasPrefix(class, "[:") {
		return "", "", false
	}
	name, rest, ok = strings.Cut(class[2:], ":]")
	return name, rest, ok && !strings.Contains(name, "]")
}

func inNamedClass(name string, c byte) (in, known bool) {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	graphic := '!' <= c && c <= '~'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graphic, true
	case "lower":
		return lower, true
	case "print":
		return graphic || c == ' ', true
	case "punct":
		return graphic && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}
