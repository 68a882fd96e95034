package secrets

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// MinKnown is how many letters and digits a known secret needs at least.
const MinKnown = 8

const (
	// window is how many letters and digits in a row give a secret away: 16 of a
	// random token are 80 bits, far from any coincidence.
	window = 16
	// everyOffset is the length up to which a form is found by a window at any
	// offset; of longer ones (private keys) every eighth window is kept, so that
	// any part of 24 characters is found and memory stays small.
	everyOffset = 256
	stride      = 8
)

// knownSecrets finds secrets by value. Texts and secrets are both reduced to
// lower-case letters and digits, so that line ends, quotes, plus signs and
// escapes in between hide nothing.
type knownSecrets struct {
	forms   []string
	windows map[string]position
	short   []string
}

// A position is where in which form a window begins.
type position struct{ form, offset int }

func newKnownSecrets(secrets []string) *knownSecrets {
	k := &knownSecrets{windows: map[string]position{}}
	for _, secret := range secrets {
		k.learn(secret)
	}
	return k
}

// learn adds a secret in all its forms.
func (k *knownSecrets) learn(secret string) {
	secret = withoutArmour(secret)
	if len(reduce(secret)) < MinKnown {
		return
	}
	for _, form := range formsOf(secret) {
		k.add(reduce(form))
	}
}

func (k *knownSecrets) add(form string) {
	if len(form) < window {
		if !slices.Contains(k.short, form) && len(form) >= MinKnown {
			k.short = append(k.short, form)
		}
		return
	}
	step := 1
	if len(form) > everyOffset {
		step = stride
	}
	k.forms = append(k.forms, form)
	for offset := 0; offset+window <= len(form); offset += step {
		part := form[offset : offset+window]
		if _, taken := k.windows[part]; !taken && isVaried(part) {
			k.windows[part] = position{form: len(k.forms) - 1, offset: offset}
		}
	}
}

// isVaried says whether a window is random enough not to turn up by itself;
// padding and repeated characters are not.
func isVaried(part string) bool {
	var seen [256]bool
	count := 0
	for i := range len(part) {
		if !seen[part[i]] {
			seen[part[i]] = true
			count++
		}
	}
	return count >= 4
}

// withoutArmour drops the lines around a PEM block, which are no secret.
func withoutArmour(secret string) string {
	if !strings.Contains(secret, "-----BEGIN") {
		return secret
	}
	var kept []string
	for line := range strings.Lines(secret) {
		if !strings.HasPrefix(line, "-----") {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept, "")
}

// formsOf returns a secret in every form that is looked for.
func formsOf(secret string) []string {
	reversed := []byte(secret)
	slices.Reverse(reversed)
	forms := []string{
		secret,
		string(reversed),
		hex.EncodeToString([]byte(secret)),
		hex.EncodeToString(reversed),
		url.QueryEscape(secret),
		base32.StdEncoding.EncodeToString([]byte(secret)),
		escaped(secret, `\x%02x`),
		escaped(secret, `\u%04x`),
		escaped(secret, "&#%d;"),
		escaped(secret, "%d,"),
	}
	for _, text := range []string{secret, string(reversed)} {
		forms = append(forms, base64Forms(text)...)
	}
	return forms
}

func escaped(secret, format string) string {
	var out strings.Builder
	for _, c := range []byte(secret) {
		fmt.Fprintf(&out, format, c)
	}
	return out.String()
}

// base64Forms returns what of a text shows in the base64 of anything that
// contains it: three alignments, less the characters that its neighbours share.
func base64Forms(text string) []string {
	var forms []string
	for shift := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := encoding.EncodeToString(append(make([]byte, shift), text...))
			from := []int{0, 2, 3}[shift]
			to := len(encoded)
			if (shift+len(text))%3 != 0 {
				to--
			}
			if from < to {
				forms = append(forms, encoded[from:to])
			}
		}
	}
	return forms
}

// reduce keeps letters and digits, in lower case.
func reduce(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		if c, ok := reduced(text[i]); ok {
			out = append(out, c)
		}
	}
	return string(out)
}

func reduced(c byte) (byte, bool) {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c, true
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A', true
	}
	return 0, false
}

// find returns every place of a known secret.
func (k *knownSecrets) find(text string) []hit {
	if len(k.windows) == 0 && len(k.short) == 0 {
		return nil
	}
	letters := make([]byte, 0, len(text))
	origin := make([]int32, 0, len(text))
	for i := range len(text) {
		if c, ok := reduced(text[i]); ok {
			letters = append(letters, c)
			origin = append(origin, int32(i))
		}
	}
	var hits []hit
	report := func(start, end int) {
		hits = append(hits, hit{start: int(origin[start]), end: int(origin[end-1]) + 1, rule: RuleKnown, description: "a secret of this installation"})
	}
	for i := 0; i+window <= len(letters); i++ {
		at, ok := k.windows[string(letters[i:i+window])]
		if !ok {
			continue
		}
		start, end := k.extend(letters, i, at)
		report(start, end)
		i = end - 1
	}
	for _, form := range k.short {
		for from := 0; ; {
			i := bytes.Index(letters[from:], []byte(form))
			if i < 0 {
				break
			}
			report(from+i, from+i+len(form))
			from += i + len(form)
		}
	}
	return hits
}

// extend grows a window's place to all that is the same in text and form.
func (k *knownSecrets) extend(letters []byte, i int, at position) (start, end int) {
	form := k.forms[at.form]
	start, end = i, i+window
	for offset := at.offset; start > 0 && offset > 0 && letters[start-1] == form[offset-1]; offset-- {
		start--
	}
	for offset := at.offset + window; end < len(letters) && offset < len(form) && letters[end] == form[offset]; offset++ {
		end++
	}
	return start, end
}
