package agents

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// InScope says whether an agent with this path scope may change the file at
// name, a clean slash-separated path relative to the repository. An empty
// scope allows everything. A pattern that starts with ! takes files out again
// that an earlier pattern let in.
func InScope(scope []string, name string) bool {
	if len(scope) == 0 {
		return true
	}
	allowed := false
	for _, pattern := range scope {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if MatchGlob(pattern, name) {
			allowed = !negated
		}
	}
	return allowed
}

// MatchGlob matches a clean slash-separated path against a glob: ** stands for
// any number of folders, within a folder the wildcards are those of
// [path.Match]. The whole path must match. A malformed glob matches nothing.
func MatchGlob(pattern, name string) bool {
	return matchFolders(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func matchFolders(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			rest := pattern[1:]
			for len(rest) > 0 && rest[0] == "**" { // "**/**" is "**"; keeps the search small
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return len(name) > 0
			}
			for i := range name {
				if matchFolders(rest, name[i:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return len(name) == 0
}

// maxFolderWildcards bounds the work of one match: each ** multiplies it.
const maxFolderWildcards = 4

// CheckGlob says what is wrong with a glob of [InScope] or [MatchGlob].
func CheckGlob(pattern string) error {
	plain := strings.TrimPrefix(pattern, "!")
	folders := strings.Split(plain, "/")
	switch {
	case plain == "":
		return fmt.Errorf("an empty glob matches nothing")
	case strings.HasPrefix(plain, "/"):
		return fmt.Errorf("glob %q must be relative to the repository, without a leading /", pattern)
	case slices.Contains(folders, "..") || slices.Contains(folders, "."):
		return fmt.Errorf("glob %q must not contain . or .. as a folder", pattern)
	}
	wildcards := 0
	for _, folder := range folders {
		if folder == "**" {
			wildcards++
		}
		if _, err := path.Match(folder, ""); err != nil {
			return fmt.Errorf("glob %q is malformed near %q", pattern, folder)
		}
	}
	if wildcards > maxFolderWildcards {
		return fmt.Errorf("glob %q has more than %d **", pattern, maxFolderWildcards)
	}
	return nil
}
