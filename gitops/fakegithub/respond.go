package fakegithub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// object is one JSON object of an answer or a webhook.
type object = map[string]any

// raw is an answer that is not JSON, for example a diff.
type raw struct {
	contentType string
	data        []byte
	location    string // set for a redirect
}

func encode(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		// Only values that this package builds come here; one that cannot be encoded is a mistake in it, and the
		// client sees it as such.
		return fmt.Appendf(nil, `{"message":%q}`, "cannot encode the answer: "+err.Error())
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

func entityTag(data []byte) string {
	sum := sha256.Sum256(data)
	return `W/"` + hex.EncodeToString(sum[:]) + `"`
}

// zeroTime stands for what has not happened.
var zeroTime time.Time

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stampForPeople is how pages show a time.
func stampForPeople(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }

// optionalStamp is null for the zero time, as GitHub has it for what has not happened.
func optionalStamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// paginate cuts the page that the query asks for and announces the others in the Link header. per_page is 30 unless
// given, and at most 100.
func paginate[T any](c *call, items []T) []T {
	query := c.request().URL.Query()
	size := boundedNumber(query.Get("per_page"), 30, 100)
	page := boundedNumber(query.Get("page"), 1, 1<<30)
	last := max(1, (len(items)+size-1)/size)
	var links []string
	link := func(number int, relation string) {
		links = append(links, fmt.Sprintf("<%s>; rel=%q", c.pageURL(number), relation))
	}
	if page > 1 {
		link(min(page-1, last), "prev")
	}
	if page < last {
		link(page+1, "next")
		link(last, "last")
	}
	if page > 1 {
		link(1, "first")
	}
	if len(links) > 0 {
		c.header("Link", strings.Join(links, ", "))
	}
	start := min((page-1)*size, len(items))
	return items[start:min(start+size, len(items))]
}

func (c *call) pageURL(number int) string {
	query := c.request().URL.Query()
	query.Set("page", strconv.Itoa(number))
	return c.server.api("%s", c.path) + "?" + query.Encode()
}

func boundedNumber(text string, fallback, highest int) int {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return fallback
	}
	return min(number, highest)
}

// each renders a list; it is never null.
func each[T any](items []T, render func(T) object) []object {
	list := make([]object, 0, len(items))
	for _, item := range items {
		list = append(list, render(item))
	}
	return list
}

func escapePath(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return text
	}
	return "Unknown"
}
