package store

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Queries are files of named statements:
//
//	-- name: insert_thing
//	INSERT INTO things (id, made_at) VALUES ($1, @now)
//
// They are written for Postgres. What the engines spell differently is a word
// that begins with @ and is translated when a store opens: @now, @least,
// @greatest, @lock (FOR UPDATE), @skip (FOR UPDATE SKIP LOCKED). @{name} stands
// for the text of another entry, such as a list of columns.
//
//go:embed queries/*.sql
var queryFiles embed.FS

// A query is the name of an entry in queries/.
type query string

var queryTexts = readQueries(queryFiles)

// named returns the query with that name. It is called while the program
// starts, so that a name without a query cannot reach production.
func named(name string) query {
	if _, ok := queryTexts[query(name)]; !ok {
		panic("runner/store: no query is named " + name)
	}
	return query(name)
}

// readQueries reads all entries of the embedded files, which are part of the
// program: a fault in them is a fault in the program.
func readQueries(files fs.FS) map[query]string {
	names, err := fs.Glob(files, "queries/*.sql")
	if err != nil {
		panic(err)
	}
	texts := map[query]string{}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		addQueries(texts, name, string(content))
	}
	return texts
}

func addQueries(texts map[query]string, file, content string) {
	for entry := range strings.SplitSeq("\n"+content, "\n-- name: ") {
		name, text, found := strings.Cut(entry, "\n")
		if !found || strings.TrimSpace(entry) == "" {
			continue
		}
		key := query(strings.TrimSpace(name))
		if _, double := texts[key]; double {
			panic(fmt.Sprintf("runner/store: %s names %s again", file, key))
		}
		texts[key] = strings.TrimSpace(text)
	}
}

var (
	includePattern     = regexp.MustCompile(`@\{(\w+)\}`)
	placeholderPattern = regexp.MustCompile(`\$(\d+)`)
)

// translate returns all queries in an engine's words.
func (e engine) translate(now string) map[query]string {
	words := strings.NewReplacer(
		"@now", now,
		"@least", e.least,
		"@greatest", e.greatest,
		"@lock", e.lock,
		"@skip", e.skip,
	)
	translated := make(map[query]string, len(queryTexts))
	for name, text := range queryTexts {
		text = includePattern.ReplaceAllStringFunc(text, func(include string) string {
			return queryTexts[named(include[2:len(include)-1])]
		})
		text = words.Replace(text)
		if e.numbered != "" {
			// $N is a NAMED parameter in SQLite, which would bind by order of
			// appearance; ?N is a numbered one.
			text = placeholderPattern.ReplaceAllString(text, e.numbered+"${1}")
		}
		translated[name] = text
	}
	return translated
}

// tuples returns n tuples of width placeholders for a multi-row VALUES.
func (e engine) tuples(n, width int) string {
	mark := "$"
	if e.numbered != "" {
		mark = e.numbered
	}
	var b strings.Builder
	for i := range n * width {
		switch {
		case i == 0:
			b.WriteByte('(')
		case i%width == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s%d", mark, i+1)
	}
	b.WriteByte(')')
	return b.String()
}
