package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// A place is a host path, the path under which commands see it, and the fixed
// path that texts are normalised to.
type place struct {
	host, inside, fixed string
}

// places translates paths between host and sandbox, longest prefix first.
type places []place

func newPlaces(list ...place) places {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b place) int { return cmp.Compare(len(b.host), len(a.host)) })
	return sorted
}

func (p places) toInside(host string) string {
	for _, place := range p {
		if rest, ok := below(place.host, host); ok {
			return filepath.Join(place.inside, rest)
		}
	}
	return host
}

// normalize replaces every host path that stands at a path boundary.
func (p places) normalize(text string) string {
	for _, place := range p {
		if place.host != place.fixed {
			text = replacePath(text, place.host, place.fixed)
		}
	}
	return text
}

// replacePath replaces old by new wherever it is not part of a longer name.
func replacePath(text, old, new string) string {
	var out strings.Builder
	for {
		at := strings.Index(text, old)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		end := at + len(old)
		out.WriteString(text[:at])
		if end < len(text) && isNameByte(text[end]) {
			out.WriteString(old)
		} else {
			out.WriteString(new)
		}
		text = text[end:]
	}
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b >= 0x80
}

// below reports whether path is dir or lies in it, and where. Both are clean.
func below(dir, path string) (rest string, ok bool) {
	if path == dir {
		return "", true
	}
	return strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
