package store_test

import (
	"bytes"
	"sync"
	"testing"

	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

func TestServerKeyIsMadeOnce(t *testing.T) {
	inEachWorld(t, func(w *world) {
		stores := []*store.Store{w.store, w.another(), w.another()}
		keys := make([][]byte, 12)
		var wait sync.WaitGroup
		for i := range keys {
			wait.Go(func() {
				key, err := stores[i%len(stores)].ServerKey(t.Context(), "pages")
				if err != nil {
					w.Error(err)
				}
				keys[i] = key
			})
		}
		wait.Wait()
		for _, key := range keys {
			if len(key) != 32 || !bytes.Equal(key, keys[0]) {
				w.Fatalf("asked at once, two got different keys or one of %d bytes", len(key))
			}
		}
		other, err := w.store.ServerKey(w.Context(), "markers")
		w.ok(err)
		if bytes.Equal(other, keys[0]) {
			w.Error("two purposes share a key")
		}
	})
}

func TestRenewedServerKeyIsAnotherOneForEverybody(t *testing.T) {
	inEachWorld(t, func(w *world) {
		elsewhere := w.another()
		before, err := w.store.ServerKey(w.Context(), "pages")
		w.ok(err)
		w.ok(w.store.RenewServerKey(w.Context(), "pages", "ann"))
		after, err := elsewhere.ServerKey(w.Context(), "pages")
		w.ok(err)
		if bytes.Equal(before, after) {
			w.Error("the key is the same after it was renewed")
		}
		log, err := w.store.AuditLog(w.Context(), 1, 10)
		w.ok(err)
		if len(log) != 1 || log[0].Action != "server_key.renewed" || log[0].Actor != "ann" || bytes.Contains(log[0].Detail, after) {
			w.Errorf("the audit log says %+v", log)
		}
	})
}

func TestReaderFindsTheServerKeyAndMakesNone(t *testing.T) {
	inEachWorld(t, func(w *world) {
		reader := storetest.OpenURL(w.T, w.url, store.Options{Mode: store.ModeRead})
		_, err := reader.ServerKey(w.Context(), "pages")
		w.fails(err, store.ErrReadOnly)
		made, err := w.store.ServerKey(w.Context(), "pages")
		w.ok(err)
		found, err := reader.ServerKey(w.Context(), "pages")
		w.ok(err)
		w.equal(found, made)
	})
}
