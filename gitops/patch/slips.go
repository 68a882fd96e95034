package patch

import "math/bits"

// maxSlips is the most edits by which a context line may differ (rule 7).
const maxSlips = 2

// letterSet is the set of bytes in a text, folded into 64 bits.
func letterSet(text string) uint64 {
	var set uint64
	for i := range len(text) {
		set |= 1 << (text[i] & 63)
	}
	return set
}

// mayResemble is a quick test that most pairs of lines fail: each edit changes
// the length by at most one and the set of letters by at most two.
func mayResemble(a, b string, setA, setB uint64, allowed int) bool {
	return abs(len(a)-len(b)) <= 3*allowed && bits.OnesCount64(setA^setB) <= 8*allowed
}

// distance is the number of single characters to insert, delete, replace or
// swap with a neighbour to turn a into b, or limit+1 if it is larger.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	if abs(len(x)-len(y)) > limit {
		return limit + 1
	}
	before := make([]int, len(y)+1) // two rows up, for swaps
	above := make([]int, len(y)+1)
	row := make([]int, len(y)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		lowest := row[0]
		for j := 1; j <= len(y); j++ {
			same := 1
			if x[i-1] == y[j-1] {
				same = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+same)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			lowest = min(lowest, row[j])
		}
		if lowest > limit {
			return limit + 1
		}
		before, above, row = above, row, before
	}
	return above[len(y)]
}
