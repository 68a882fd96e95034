package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestJournal checks that an implementation of [Journal] keeps the contract.
// Open makes a fresh session and returns its journal and a function that takes
// the session's lease over, as another node would, and returns that node's
// journal.
func TestJournal(t *testing.T, open func(t *testing.T) (journal Journal, takeOver func(t *testing.T) Journal)) {
	t.Run("numbers are gapless and in the order of the records", func(t *testing.T) {
		journal, _ := open(t)
		start := len(mustLoad(t, journal, 1))
		for i, size := range []int{1, 3, 1, 7} {
			first := mustAppend(t, journal, notes(fmt.Sprint("batch ", i), size)...)
			if want := int64(start + 1); first != want {
				t.Fatalf("batch %d begins at %d, want %d", i, first, want)
			}
			start += size
		}
		for i, record := range mustLoad(t, journal, 1) {
			if record.Seq != int64(i+1) {
				t.Errorf("record %d has the number %d", i+1, record.Seq)
			}
		}
	})
	t.Run("what was appended is loaded as it was", func(t *testing.T) {
		journal, _ := open(t)
		record := Record{RunID: "r1/2/0", ParentRunID: "r1", Version: 1, Kind: RecordNoteAdded, Payload: oddPayload()}
		first := mustAppend(t, journal, record)
		loaded := mustLoad(t, journal, first)
		if len(loaded) != 1 {
			t.Fatalf("loaded %d records, want 1", len(loaded))
		}
		got := loaded[0]
		if got.RunID != record.RunID || got.ParentRunID != record.ParentRunID || got.Version != 1 || got.Kind != record.Kind {
			t.Errorf("loaded %+v, appended %+v", got, record)
		}
		if string(got.Payload) != string(record.Payload) {
			t.Errorf("the payload changed:\n got %.200q\nwant %.200q", got.Payload, record.Payload)
		}
		if got.Time.IsZero() {
			t.Error("the record has no time")
		}
	})
	t.Run("loading begins where it is told", func(t *testing.T) {
		journal, _ := open(t)
		first := mustAppend(t, journal, notes("n", 5)...)
		if got := mustLoad(t, journal, first+3); len(got) != 2 || got[0].Seq != first+3 {
			t.Errorf("loaded %d records, want the last two", len(got))
		}
		if got := mustLoad(t, journal, first+5); len(got) != 0 {
			t.Errorf("loaded %d records past the end", len(got))
		}
	})
	t.Run("concurrent appends keep their records together", testConcurrentAppends(open))
	t.Run("who lost the lease writes nothing", testFencing(open))
}

func testConcurrentAppends(open func(t *testing.T) (Journal, func(t *testing.T) Journal)) func(t *testing.T) {
	return func(t *testing.T) {
		journal, _ := open(t)
		var group sync.WaitGroup
		for writer := range 4 {
			group.Go(func() {
				for range 5 {
					if _, err := journal.Append(t.Context(), Batch{Records: notes(fmt.Sprint("w", writer), 3)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		var texts []string
		for i, record := range mustLoad(t, journal, 1) {
			if record.Seq != int64(i+1) {
				t.Fatalf("record %d has the number %d", i+1, record.Seq)
			}
			if record.Kind == RecordNoteAdded {
				texts = append(texts, string(record.Payload))
			}
		}
		for i := 0; i+3 <= len(texts); i += 3 {
			if texts[i] != texts[i+1] || texts[i] != texts[i+2] {
				t.Fatalf("batches are interleaved: %v", texts[i:i+3])
			}
		}
		if len(texts) != 60 {
			t.Errorf("%d records were kept, want 60", len(texts))
		}
	}
}

func testFencing(open func(t *testing.T) (Journal, func(t *testing.T) Journal)) func(t *testing.T) {
	return func(t *testing.T) {
		old, takeOver := open(t)
		mustAppend(t, old, notes("before", 2)...)
		current := takeOver(t)
		before := mustLoad(t, current, 1)
		if _, err := old.Append(t.Context(), Batch{Records: notes("zombie", 2)}); !errors.Is(err, ErrFenced) {
			t.Errorf("the old node's append gives %v, want ErrFenced", err)
		}
		if got := mustLoad(t, current, 1); len(got) != len(before) {
			t.Errorf("the refused append left %d records", len(got)-len(before))
		}
		first := mustAppend(t, current, notes("after", 1)...)
		if first != int64(len(before)+1) {
			t.Errorf("the new node begins at %d, want %d", first, len(before)+1)
		}
		records := mustLoad(t, current, 1)
		for i := 1; i < len(records); i++ {
			if records[i].Epoch < records[i-1].Epoch {
				t.Errorf("record %d has epoch %d after %d", records[i].Seq, records[i].Epoch, records[i-1].Epoch)
			}
		}
		if oldest, newest := records[0].Epoch, records[len(records)-1].Epoch; oldest >= newest {
			t.Errorf("the epoch went from %d to %d across a take-over", oldest, newest)
		}
	}
}

func notes(text string, n int) []Record {
	payload, _ := json.Marshal(noteAdded{Kind: "test", Text: text}) // strings can always be encoded
	records := make([]Record, n)
	for i := range records {
		records[i] = Record{RunID: "r1", Version: recordVersion, Kind: RecordNoteAdded, Payload: payload}
	}
	return records
}

// oddPayload is JSON that a store which decodes and encodes it would change.
func oddPayload() json.RawMessage {
	return json.RawMessage(`{ "b":1,"a":12345678901234567890, "a":1.0, "n":"\u0000\ud83d\ude00<>&",  "long":"` + strings.Repeat("ä", 1<<17) + `"}`)
}

func mustAppend(t *testing.T, journal Journal, records ...Record) int64 {
	t.Helper()
	first, err := journal.Append(t.Context(), Batch{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return first
}

func mustLoad(t *testing.T, journal Journal, from int64) []Record {
	t.Helper()
	records, err := journal.Load(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return records
}
