package store_test

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"handoff/runner"
	"handoff/runner/store"
)

// idOf is the id that git gives to contents.
func idOf(content []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
}

// TestContentsComeBackAsTheyWere keeps files of every kind, which take up what
// they are worth.
func TestContentsComeBackAsTheyWere(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		w.session(1)
		lease := w.acquire(node)
		noise := make([]byte, 100_000)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		contents := [][]byte{nil, []byte("x"), []byte("line\r\n\x00end"), noise, bytes.Repeat([]byte("all alike\n"), 300_000)}
		checkpoint := &runner.Checkpoint{Base: "b", Tree: "t", Blobs: map[string][]byte{}}
		for i, content := range contents {
			id := idOf(content)
			checkpoint.Blobs[id] = content
			checkpoint.Changes = append(checkpoint.Changes, runner.CheckpointChange{Path: fmt.Sprint(i), Mode: "100644", Blob: id})
		}
		_, err := lease.Append(w.Context(), runner.Batch{Checkpoint: checkpoint})
		w.ok(err)
		for _, content := range contents {
			back, err := lease.Blob(w.Context(), idOf(content))
			w.ok(err)
			w.equal(bytes.Equal(back, content), true)
		}
		// Three megabytes of one line are small.
		w.ok(w.store.Execute(w.Context(), "DELETE FROM blobs WHERE length(content) > 120000"))
		_, err = lease.Blob(w.Context(), idOf(contents[4]))
		w.ok(err)
	})
}

// TestDamagedContentsAreAnError reads what no checkpoint wrote.
func TestDamagedContentsAreAnError(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		w.session(1)
		lease := w.acquire(node)
		content := []byte(strings.Repeat("hello\n", 1000))
		id := idOf(content)
		_, err := lease.Append(w.Context(), runner.Batch{Checkpoint: &runner.Checkpoint{Base: "b", Tree: "t",
			Changes: []runner.CheckpointChange{{Path: "a", Mode: "100644", Blob: id}}, Blobs: map[string][]byte{id: content}}})
		w.ok(err)
		hex := "X'00112233'"
		if w.store.Engine() == "postgres" {
			hex = `'\x00112233'`
		}
		w.ok(w.store.Execute(w.Context(), "UPDATE blobs SET content = "+hex))
		_, err = lease.Blob(w.Context(), id)
		if err == nil || strings.Contains(err.Error(), store.ErrNotFound.Error()) {
			w.Fatalf("damaged contents were read: %v", err)
		}
	})
}
