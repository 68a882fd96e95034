package report

import (
	"testing"
	"unicode/utf8"
)

func TestOnlyWhatPeopleSeeIsVisible(t *testing.T) {
	for hostile, want := range map[string]string{
		"plain *words* with a [link](https://example.com)":   "plain *words* with a [link](https://example.com)",
		"a<!-- hidden -->b <!-- never closed hidden":         "ab",
		"a![hidden](https://example.com/x.png)b":             "a![](https://example.com/x.png)b",
		"![hidden [hidden] **hidden** `hidden`](x.png)":      "![](x.png)",
		"![hidden][ref]\n\n[ref]: x.png":                     "![][ref]\n\n[ref]: x.png",
		`[seen](https://example.com "hidden")`:               "[seen](https://example.com)",
		`[seen](https://example.com 'hidden')`:               "[seen](https://example.com)",
		"[//]: # (hidden)":                                   "[//]: #",
		"[ref]: https://example.com \"hidden\"":              "[ref]: https://example.com",
		`see <img alt="hidden" src="x"> here`:                "see  here",
		`<img alt="a > hidden">`:                             "",
		"<div data-note='hidden'>\nseen\n</div>":             "seen",
		"a <picture aria-label=\"hidden\"\nx>seen</picture>": "a seen",
		"<!-<b>- hidden -->":                                 "",
		"<div\nhidden":                                       "",
		"`<img alt=\"shown\">`":                              "`<img alt=\"shown\">`",
		"```html\n<div title=\"shown\">\n```":                "```html\n<div title=\"shown\">\n```",
		"List<String> and a < b":                             "List and a < b",
		"i\u200bn\u2060v\U000E0041\u202e":                    "inv",
		"- item\n  - <b title='hidden'>seen</b>\n":           "- item\n  - seen",
		"> <i class=\"hidden\">seen</i>":                     "> seen",
		"":                                                   "",
	} {
		if got := Visible(hostile); got != want {
			t.Errorf("%q is visible as %q, want %q", hostile, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"![a](b \"c\")", "<!-- <!-- -->", "<div\n\n<p title=x>", "[//]: # (x)\n", "> <a b='\n> '>", "```\n<x>\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, markdown string) {
		seen := Visible(markdown)
		if !utf8.ValidString(seen) || HasHidden(seen) || htmlComment.MatchString(seen) {
			t.Fatalf("%q is visible as %q", markdown, seen)
		}
	})
}
