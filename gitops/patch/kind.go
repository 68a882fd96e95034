package patch

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A file is indented by tabs or by spaces, and a diff may use the other kind.
// What the lines of one hunk show of that is its place's indentation; here it
// is held against the rest of the diff and of the file.

// settleIndentation gives the map of tabs and spaces that one hunk shows to the
// hunks whose own context is not indented and so shows nothing: a diff is
// written with one kind of indentation. Then it refuses the hunks whose added
// lines could mean either kind.
func (s *source) settleIndentation(set placements) {
	var shared indentation
	shifted, sure := false, false
	for _, f := range set {
		if f.failure != "" {
			continue
		}
		indent := f.places[0].indent
		if indent.width > 0 {
			shared = indent
		}
		shifted = shifted || indent.shifts()
		sure = sure || indent.same() && s.showsKind(f)
	}
	for i := range set {
		f := &set[i]
		if f.failure != "" {
			continue
		}
		indent := &f.places[0].indent
		switch {
		case shifted && f.weak && indent.same() && !f.alone && !f.atStated():
			f.failure = Ambiguous // brackets at a depth that the rest of the diff shows to be wrong
			continue
		case indent.same() && s.foreignIndentation(*f):
			f.foreign = shared.same() && !sure
			*indent = shared
		}
		f.foreign = f.foreign || indent.width > 0 && s.eitherKind(*f)
		if f.foreign {
			f.failure = NoMatch
		}
	}
}

// A kind counts lines by what they are indented with.
type kind struct {
	tabs, spaces int
	// mixed counts those of the tabs that spaces follow.
	mixed int
}

// count counts a line. A single space is the style of comments and no
// indentation.
func (k *kind) count(text string) {
	switch {
	case strings.HasPrefix(text, "\t"):
		k.tabs++
		if strings.HasPrefix(strings.TrimLeft(text, "\t"), "  ") {
			k.mixed++
		}
	case strings.HasPrefix(text, "  ") && strings.TrimSpace(text) != "":
		k.spaces++
	}
}

// foreignTo says that lines of this kind use nothing but what the file, which
// mostly uses the other, does not.
func (k kind) foreignTo(file kind) bool {
	return k.spaces > 0 && k.tabs == 0 && file.tabs > fewer*file.spaces ||
		k.tabs > 0 && k.spaces == 0 && file.spaces > fewer*file.tabs
}

// kinds are a hunk's old lines, and those it adds, by their indentation: all of
// them, and those that stand outside of literals.
type kinds struct{ old, oldCode, added, addedCode kind }

func (s *source) kindsOf(f finding) kinds {
	var k kinds
	within := s.literals()
	for l, open := range s.follow(f) {
		switch {
		case l.op != add:
			k.old.count(l.text)
			if l.at >= 0 && within[l.at] == noLiteral {
				k.oldCode.count(l.text)
			}
		default:
			k.added.count(l.text)
			if open == noLiteral {
				k.addedCode.count(l.text)
			}
		}
	}
	return k
}

// A placedLine is a line of a hunk and the file's line that it stands on, or
// behind if it is added; -1 when there is none.
type placedLine struct {
	line
	at int
}

// follow yields a hunk's lines where they were placed, with the literal that is
// open where each begins.
func (s *source) follow(f finding) iter.Seq2[placedLine, literal] {
	return func(yield func(placedLine, literal) bool) {
		p := f.places[0]
		at, old, open := -1, -1, noLiteral
		if first := p.first(); len(p.at) > 0 {
			open = s.literals()[first]
		}
		for _, l := range f.hunk.lines {
			if l.op != add {
				old++
				at = p.at[old]
			}
			if !yield(placedLine{l, at}, open) {
				return
			}
			if l.op != remove {
				open = open.after(l.text)
			}
		}
	}
}

// showsKind says that the hunk's old side has a line with the indentation that
// most of the file's lines have.
func (s *source) showsKind(f finding) bool {
	old, file := s.kindsOf(f).oldCode, s.kind()
	return old.tabs > 0 && file.tabs >= file.spaces || old.spaces > 0 && file.spaces >= file.tabs
}

// kind counts the file's lines outside of literals and comments.
func (s *source) kind() kind {
	if s.style != nil {
		return *s.style
	}
	s.style = &kind{}
	for i, open := range s.literals() {
		if open == noLiteral {
			s.style.count(s.lines[i])
		}
	}
	return *s.style
}

// fewer is how many times rarer a kind of indentation must be in a file to be
// foreign to it.
const fewer = 4

// rare is how many times rarer spaces must be where they are to become tabs.
const rare = 20

// foreignIndentation says whether the hunk's added lines are all indented by
// spaces where the file uses tabs, or the other way round, and none of its old
// lines shows that the diff is indented as the file is.
func (s *source) foreignIndentation(f finding) bool {
	k := s.kindsOf(f)
	if k.added == (kind{}) || len(f.places[0].at) == 0 {
		return false
	}
	file := s.kind()
	if k.oldCode == (kind{}) && (k.addedCode.foreignTo(file) || k.added.foreignTo(file) && s.addsUnseen(f)) {
		return true
	}
	return k.old == (kind{}) && (k.added.foreignTo(file) || k.added != k.addedCode && k.added.foreignTo(s.literalAt(f.places[0].first()).kind))
}

// addsUnseen says that within a literal the hunk adds indented lines, and none
// as a line of the literal is.
func (s *source) addsUnseen(f finding) bool {
	unseen := false
	for l, open := range s.follow(f) {
		indent := indentOf(l.text)
		if l.op != add || open == noLiteral || indent == "" {
			continue
		}
		unseen = true
		if s.literalAt(l.at).indents[indent] {
			return false
		}
	}
	return unseen
}

// eitherKind says that a map of tabs and spaces is not certain for the hunk's
// added lines: lines near it use both, or they are within a literal, whose
// white space is content and not indentation, unless all of it is of one kind or
// the whole file is without tabs.
func (s *source) eitherKind(f finding) bool {
	p := f.places[0]
	code, content := false, false
	for l, open := range s.follow(f) {
		if l.op != add {
			continue
		}
		text, _ := p.indent.apply(l.text)
		switch {
		case text == l.text:
		case open == noLiteral:
			code = true
		default:
			content = content || !s.literalAt(l.at).kind.only(p.indent.toTabs)
		}
	}
	if content && (p.indent.toTabs || s.hasTabs()) {
		return true
	}
	if !code {
		return false
	}
	file := s.kind()
	if p.indent.toTabs {
		return file.tabs <= rare*(file.spaces+file.mixed) || s.mixesIndentation(p)
	}
	return file.spaces <= fewer*file.tabs
}

// hasTabs says that a line of the file is indented by a tab, wherever it stands.
func (s *source) hasTabs() bool {
	return slices.ContainsFunc(s.lines, func(text string) bool { return strings.Contains(indentOf(text), "\t") })
}

// only says that all lines that are indented use tabs, or else spaces.
func (k kind) only(tabs bool) bool {
	if tabs {
		return k.tabs > 0 && k.spaces+k.mixed == 0
	}
	return k.spaces > 0 && k.tabs == 0
}

// mixedWindow is how many lines around a place are looked at for spaces.
const mixedWindow = 10

// mixesIndentation says that lines near the place are indented by spaces in a
// file that uses tabs.
func (s *source) mixesIndentation(p place) bool {
	unit := strings.Repeat(" ", p.indent.width)
	within := s.literals()
	for i := max(0, p.first()-mixedWindow); i < min(len(s.lines), p.last()+mixedWindow); i++ {
		text := strings.TrimLeft(s.lines[i], "\t")
		if within[i] == noLiteral && strings.HasPrefix(text, unit) && strings.TrimSpace(text) != "" {
			return true
		}
	}
	return false
}

// explainForeign refuses added lines that could mean tabs or spaces.
func (s *source) explainForeign(b *strings.Builder, e *Error, f finding) {
	p := f.places[0]
	e.Line = p.first() + 1
	if p.indent.width > 0 {
		fmt.Fprintf(b, "It fits at line %d if tabs and spaces are exchanged, and for its added lines that is not certain: the file uses both there, or they are within a literal. Send it with the file's own indentation. The file there:\n", e.Line)
	} else {
		file, yours := "tabs", "spaces"
		if k := s.kind(); k.spaces > k.tabs {
			file, yours = yours, file
		}
		fmt.Fprintf(b, "It fits at line %d, but its added lines are indented with %s and the file uses %s. Send it with the file's indentation; a line of context that is indented would settle it. The file there:\n", e.Line, yours, file)
	}
	s.show(b, p.first()-10, p.last()+10)
}
