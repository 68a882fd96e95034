package patch

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"strings"
)

// unescapeWhole undoes the escaping of a diff that was sent as the inside of a
// JSON string: one long line with \n in it, perhaps within a fence.
func unescapeWhole(diff string) string {
	lines := strings.Split(strings.TrimSpace(diff), "\n")
	if len(lines) > 4 {
		return diff
	}
	changed := false
	for i, text := range lines {
		text = strings.TrimSpace(text)
		if strings.Count(text, `\n`) < 2 || !startsDiff.MatchString(text) {
			continue
		}
		if plain, ok := unquoteJSON(strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)); ok {
			lines[i], changed = plain, true
		}
	}
	if !changed {
		return diff
	}
	return strings.Join(lines, "\n")
}

// startsDiff is how a diff on a single line begins.
var startsDiff = regexp.MustCompile(`^"?(diff |--- |\+\+\+ |@@|\*\*\* |Index: |` + "```" + `|[-+ ])`)

func unquoteJSON(text string) (string, bool) {
	var plain string
	if json.Unmarshal([]byte(`"`+text+`"`), &plain) != nil {
		return "", false
	}
	return plain, true
}

// mapLines returns the hunks with every line's text changed; ok is false when
// one cannot be, or none is.
func mapLines(hunks []hunk, change func(string) (string, bool)) (mapped []hunk, ok bool) {
	changed := false
	mapped = make([]hunk, len(hunks))
	for i, h := range hunks {
		lines := make([]line, len(h.lines))
		for j, l := range h.lines {
			text, ok := change(l.text)
			if !ok {
				return nil, false
			}
			changed = changed || text != l.text
			l.text = text
			lines[j] = l
		}
		h.lines = lines
		headings := make([]string, len(h.headings))
		for j, heading := range h.headings {
			if text, ok := change(heading); ok {
				heading = text
			}
			headings[j] = heading
		}
		h.headings = headings
		mapped[i] = h
	}
	return mapped, changed
}

// escapable matches what escaping for HTML produces; special what it leaves
// none of.
var (
	escapable = regexp.MustCompile(`&(lt|gt|amp|quot|apos|#34|#39|#x27|#x22);`)
	special   = regexp.MustCompile(`[<>]`)
)

// unescapeHTML returns the hunks without HTML's escaping if all their lines are
// written with it: no bare bracket or ampersand anywhere, and quotes as one
// program escapes them.
func unescapeHTML(hunks []hunk) ([]hunk, bool) {
	bare, ok := bareQuotes(hunks)
	if !ok {
		return nil, false
	}
	return mapLines(hunks, func(text string) (string, bool) {
		if special.MatchString(text) || strings.Contains(escapable.ReplaceAllString(text, ""), "&") || strings.ContainsAny(text, bare) {
			return "", false
		}
		return html.UnescapeString(text), true
	})
}

// bareQuotes are the quotes that a program leaves nowhere as they are if it
// escapes as these hunks show: the double ones are escaped first, the single
// ones never without them. ok is false where a quote is escaped in two ways.
func bareQuotes(hunks []hunk) (quotes string, ok bool) {
	double, single := map[string]bool{}, map[string]bool{}
	for _, h := range hunks {
		for _, l := range h.lines {
			for _, escape := range escapedQuote.FindAllString(l.text, -1) {
				if html.UnescapeString(escape) == "'" {
					single[escape] = true
				} else {
					double[escape] = true
				}
			}
		}
	}
	switch ok = len(double) < 2 && len(single) < 2; {
	case len(single) > 0:
		return "\"'", ok
	case len(double) > 0:
		return "\"", ok
	}
	return "", ok
}

// unescapeJSON returns the hunks without JSON's escaping, line by line. A line
// that would become several was not escaped by itself.
func unescapeJSON(hunks []hunk) ([]hunk, bool) {
	return mapLines(hunks, func(text string) (string, bool) {
		plain, ok := unquoteJSON(text)
		return plain, ok && !strings.Contains(plain, "\n")
	})
}

// settleEscapes decides whether the diff as a whole was escaped (rule 18). An
// escaped reading needs every hunk to fit at levels 0 and 1. Where the plain
// one fits as well, only added lines carry escapes: then it takes several of
// them, or quotes as a program escapes them, in a file that has no such escapes.
// Where less shows it the diff is refused, since either reading could be the
// wrong one.
func (s *source) settleEscapes(hunks []hunk, plain placements) placements {
	fits := plain.within(3)
	if unescaped, ok := unescapeHTML(hunks); ok && (!fits || anyAdded(hunks, escapable.MatchString)) {
		set, placed := s.placeEscaped(unescaped, "HTML escapes were undone")
		suspect := s.addsForeignEscapes(hunks)
		if placed && (!plain.within(2) || suspect && showsProgram(hunks)) {
			return set
		}
		if fits && (placed || suspect) {
			plain[0].failure, plain[0].escaped = NoMatch, true
			return plain
		}
	}
	if plain.within(2) {
		return plain
	}
	if unescaped, ok := unescapeJSON(hunks); ok {
		if set, placed := s.placeEscaped(unescaped, "JSON escapes were undone"); placed {
			return set
		}
	}
	return plain
}

// showsProgram says that the added lines were escaped by a program: two of them
// have escapes, or one has a quote's number, which nobody writes by hand.
func showsProgram(hunks []hunk) bool {
	escaped := map[string]bool{}
	return anyAdded(hunks, func(text string) bool {
		if escapable.MatchString(text) {
			escaped[text] = true
		}
		return len(escaped) > 1 || numericQuote.MatchString(text)
	})
}

// placeEscaped places hunks whose escapes were undone, at levels 0 and 1 only.
func (s *source) placeEscaped(hunks []hunk, note string) (placements, bool) {
	set := s.placeAll(hunks)
	if !set.within(1) {
		return nil, false
	}
	for i := range set {
		set[i].reading = note
	}
	return set, true
}

// within says whether every hunk has its place at one of the levels up to limit.
func (set placements) within(limit int) bool {
	for _, f := range set {
		if f.failure != "" || f.places[0].level > limit {
			return false
		}
	}
	return true
}

// How quotes are escaped, and how programs do it.
var (
	escapedQuote = regexp.MustCompile(`&(quot|#34|#x22|apos|#39|#x27);`)
	numericQuote = regexp.MustCompile(`&(#34|#x22|#39|#x27);`)
)

// addsEscapedQuotes says whether an added line has a quote escaped in a way that
// the file does not use.
func (s *source) addsEscapedQuotes(hunks []hunk) bool {
	return anyAdded(hunks, func(text string) bool {
		for _, escape := range escapedQuote.FindAllString(text, -1) {
			if !bytes.Contains(s.text, []byte(escape)) {
				return true
			}
		}
		return false
	})
}

// addsForeignEscapes says whether an added line has an escape that the file does
// not use: a quote's, one that was escaped twice, or any in a file that has
// none and is no markup.
func (s *source) addsForeignEscapes(hunks []hunk) bool {
	foreign := !escapable.Match(s.text) && !bytes.Contains(s.text, []byte("</")) && anyAdded(hunks, escapable.MatchString)
	double := !doubleEscape.Match(s.text) && anyAdded(hunks, doubleEscape.MatchString)
	return foreign || double || s.addsEscapedQuotes(hunks)
}

// doubleEscape is an escape that was escaped.
var doubleEscape = regexp.MustCompile(`&amp;(lt|gt|amp|quot|apos|#x?[0-9a-fA-F]+);`)

func anyAdded(hunks []hunk, holds func(string) bool) bool {
	for _, h := range hunks {
		for _, l := range h.lines {
			if l.op == add && holds(l.text) {
				return true
			}
		}
	}
	return false
}
