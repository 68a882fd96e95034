package patch

import (
	"math/bits"
	"unicode/utf8"
)

// maxSlips is the most edits by which a context line may differ (rule 7).
const maxSlips = 2

// letters is what a text is made of: its bytes folded into a set of 64, and
// whether there are any beyond ASCII.
type letters struct {
	set  uint64
	wide bool
}

func lettersOf(text string) letters {
	var l letters
	for i := range len(text) {
		l.set |= 1 << (text[i] & 63)
		l.wide = l.wide || text[i] >= utf8.RuneSelf
	}
	return l
}

// mayResemble is a quick test that most pairs of lines fail: an edit changes
// the length by one character and the set by two, of up to four bytes each.
func mayResemble(a, b string, ofA, ofB letters, allowed int) bool {
	if ofA.wide || ofB.wide {
		allowed *= utf8.UTFMax
	}
	return abs(len(a)-len(b)) <= allowed && bits.OnesCount64(ofA.set^ofB.set) <= 2*allowed
}

// distance is the number of single characters to insert, delete, replace or
// swap with a neighbour to turn a into b, or limit+1 if it is larger. The limit
// is small: at each difference every kind of edit is tried.
func distance(a, b string, limit int) int {
	a, b = withoutCommonStart(a, b)
	if a == "" && b == "" {
		return 0
	}
	if limit == 0 {
		return 1
	}
	best := limit
	try := func(a, b string) { best = min(best, distance(a, b, best-1)) }
	first, second := width(a), width(b)
	if best > 0 && a != "" {
		try(a[first:], b)
	}
	if best > 0 && b != "" {
		try(a, b[second:])
	}
	if best > 0 && a != "" && b != "" {
		try(a[first:], b[second:])
		if rest, other, swapped := withoutSwap(a, b); swapped && best > 0 {
			try(rest, other)
		}
	}
	return best + 1
}

// width is the length of a text's first character in bytes.
func width(text string) int {
	_, size := utf8.DecodeRuneInString(text)
	return size
}

// withoutCommonStart removes the characters that both texts start with.
func withoutCommonStart(a, b string) (string, string) {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	for same > 0 && (same < len(a) && !utf8.RuneStart(a[same]) || same < len(b) && !utf8.RuneStart(b[same])) {
		same--
	}
	return a[same:], b[same:]
}

// withoutSwap removes two characters that stand the other way round in b.
func withoutSwap(a, b string) (string, string, bool) {
	x, n := utf8.DecodeRuneInString(a)
	y, m := utf8.DecodeRuneInString(a[n:])
	u, k := utf8.DecodeRuneInString(b)
	v, l := utf8.DecodeRuneInString(b[k:])
	if m == 0 || l == 0 || x != v || y != u {
		return "", "", false
	}
	return a[n+m:], b[k+l:], true
}
