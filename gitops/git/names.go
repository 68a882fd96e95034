package git

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
)

// BranchPrefix is where every branch that this package creates lives.
const BranchPrefix = "copilot/"

// RefPrefix is [BranchPrefix] as a full ref name.
const RefPrefix = "refs/heads/" + BranchPrefix

const (
	// maxSlug keeps branch names readable in GitHub's interface.
	maxSlug = 40
	// maxRefLength is below what any file system or GitHub takes (255 bytes).
	maxRefLength = 200
)

var (
	// pushable is the allow-list for refs that we create: everything else that
	// git would accept is refused, because names end up in URLs, comments and CI.
	pushable = regexp.MustCompile(`^refs/heads/copilot/[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$`)
	notSlug  = regexp.MustCompile(`[^a-z0-9]+`)
	hexID    = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// BranchName returns the branch for an issue: copilot/<issue>-<slug>-<id>, with
// a slug of at most forty characters from the title's ASCII letters and digits.
// What is empty is left out, as is an issue below 1, unless nothing else is
// there. The result, as refs/heads/…, always passes
// [ValidateRef].
func BranchName(issue int, title, id string) string {
	var parts []string
	if issue > 0 {
		parts = append(parts, strconv.Itoa(issue))
	}
	for _, part := range []string{title, id} {
		if slug := slugOf(part); slug != "" {
			parts = append(parts, slug)
		}
	}
	if len(parts) == 0 {
		parts = []string{"0"}
	}
	return BranchPrefix + strings.Join(parts, "-")
}

// slugOf returns text in lower-case letters, digits and single dashes, cut at a
// word where that keeps at least half.
func slugOf(text string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if len(slug) <= maxSlug {
		return slug
	}
	slug = slug[:maxSlug]
	if cut := strings.LastIndexByte(slug, '-'); cut > maxSlug/2 {
		slug = slug[:cut]
	}
	return strings.Trim(slug, "-")
}

// ValidateRef says whether ref is a full ref name that may be pushed:
// refs/heads/copilot/ and one component of lower-case letters, digits, dots,
// dashes and underscores, at most 200 bytes. The error has [CodeInvalid].
func ValidateRef(ref string) error {
	bad := !pushable.MatchString(ref) || len(ref) > maxRefLength ||
		strings.Contains(ref, "..") || strings.HasSuffix(ref, ".lock")
	if bad {
		return failf(CodeInvalid, nil, "the branch name %q is not of the form %s<issue>-<slug>-<id>", clip(ref, 80), BranchPrefix)
	}
	return nil
}

// ValidateBranch says whether name is a branch name that git accepts, as a base
// to fetch from: any language, but none of git's own syntax.
func ValidateBranch(name string) error {
	if len(name) > 1024 || strings.HasPrefix(name, "-") || !utf8.ValidString(name) ||
		plumbing.NewBranchReferenceName(name).Validate() != nil ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return failf(CodeInvalid, nil, "%q is not a branch name", clip(name, 80))
	}
	return nil
}

// parseID reads a full object id in lower-case hexadecimal.
func parseID(id string) (plumbing.Hash, error) {
	if !hexID.MatchString(id) {
		return plumbing.ZeroHash, failf(CodeInvalid, nil, "%q is not a full object id", clip(id, 80))
	}
	return plumbing.NewHash(id), nil
}

// clip shortens text for a message.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// ignorable are the code points that HFS+ leaves out when it compares names, so
// that a name with one of them inside .git still opens .git on a Mac.
const ignorable = "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"

// isDotGit says whether a path component opens .git on some file system: in any
// case, with HFS+'s ignorable code points, as NTFS's short name, or with the
// trailing dots, spaces and streams that NTFS drops.
func isDotGit(name string) bool {
	if strings.ContainsAny(name, ignorable) {
		name = strings.Map(func(r rune) rune {
			if strings.ContainsRune(ignorable, r) {
				return -1
			}
			return r
		}, name)
	}
	if stream := strings.IndexByte(name, ':'); stream >= 0 {
		name = name[:stream]
	}
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// badComponent returns why a file must not be written under this name at all,
// "" when it may be. Names like this make git itself refuse a checkout.
func badComponent(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "it is not a file name"
	case strings.ContainsAny(name, "/\x00"):
		return "it contains a slash or a zero byte"
	case len(name) > 255:
		return "it is longer than 255 bytes"
	case isDotGit(name):
		return "it stands for .git"
	}
	return ""
}

// badNewName returns why a path must not be pushed by us although git could
// store it, "" when it may be: such names break other people's checkouts, hide
// in reviews, or cannot be written in JSON.
func badNewName(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "its name is not valid UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "its name contains a control character"
	case strings.ContainsRune(name, '\\'):
		return "its name contains a backslash"
	case strings.ContainsFunc(name, isInvisible):
		return "its name contains an invisible character"
	}
	return ""
}

// isInvisible says whether r is a formatting character (zero width, bidi, tag).
func isInvisible(r rune) bool { return unicode.Is(unicode.Cf, r) }

// badPath checks every component of a slash-separated path.
func badPath(name string) string {
	if name == "" || len(name) > 4096 || path.IsAbs(name) {
		return "it is not a relative path"
	}
	for component := range strings.SplitSeq(name, "/") {
		if reason := badComponent(component); reason != "" {
			return reason
		}
	}
	return ""
}
