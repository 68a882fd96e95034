package pages_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"handoff/runner/store"
)

// watch opens the stream of a session's page and returns what it tells. The
// channel is closed when the stream ends.
func (w *world) watch(page string) <-chan string {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.server.URL+attributeOf(w.T, page, "body", "data-live"), nil)
	w.ok(err)
	response, err := w.server.Client().Do(request)
	w.ok(err)
	w.Cleanup(func() { response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		w.Fatalf("the stream is %d, %s", response.StatusCode, kind)
	}
	told := make(chan string, 100)
	go func() {
		defer close(told)
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if version, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				told <- version
			}
		}
	}()
	return told
}

// attributeOf returns an attribute of the first element of a name.
func attributeOf(t *testing.T, page, element, attribute string) string {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for node := range document.Descendants() {
		for _, found := range node.Attr {
			if node.Data == element && found.Key == attribute {
				return found.Val
			}
		}
	}
	t.Fatalf("no %s on a %s", attribute, element)
	return ""
}

// next waits for what the stream tells; ok is false at its end.
func (w *world) next(told <-chan string) (version string, ok bool) {
	w.Helper()
	// This bounds a test that has failed; it is no measure of speed.
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	select {
	case version, ok = <-told:
		return version, ok
	case <-ctx.Done():
		w.Fatal("the stream tells nothing and does not end")
		return "", false
	}
}

func TestAPageHearsOfWhatHappensUntilTheEnd(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("say hello")
	page := w.get(w.link(lease)).body
	told := w.watch(page)
	if first, _ := w.next(told); first != attributeOf(t, page, "main", "data-version") {
		t.Errorf("the stream begins with %q, the page is %q", first, attributeOf(t, page, "main", "data-version"))
	}
	w.play(lease, says("Hello."))
	if changed, ok := w.next(told); !ok {
		t.Error("the stream ended while the session worked")
	} else if now := attributeOf(t, w.get(w.link(lease)).body, "main", "data-version"); changed != now {
		t.Errorf("told of %q, the page is %q", changed, now)
	}
	w.ok(lease.Finish(t.Context(), store.Ending{State: store.StateCompleted, Reason: "done"}))
	last := ""
	for version, ok := w.next(told); ok; version, ok = w.next(told) {
		last = version
	}
	if !strings.HasSuffix(last, string(store.StateCompleted)) {
		t.Errorf("the last that the page hears is %q", last)
	}
}

func TestAStreamEndsWithItsLinkAndWithTheServer(t *testing.T) {
	for why, end := range map[string]func(w *world){
		"expired": func(w *world) { w.clock.Advance(2 * time.Hour) },
		"revoked": func(w *world) { w.ok(w.links.Revoke(w.Context(), "ann")) },
		"stopped": func(w *world) { close(w.stop) },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			told := w.watch(w.get(w.link(w.session("say hello"))).body)
			w.next(told)
			end(w)
			if _, ok := w.next(told); ok {
				t.Error("the stream goes on")
			}
		})
	}
}
