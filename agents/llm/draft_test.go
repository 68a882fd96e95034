package llm

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"handoff/agents"
)

// TestADraftSaysNothingOfAnotherRequest writes requests of several sessions,
// whose histories grow, are cut short and begin anew, into one draft: whatever
// it said before, the body is the one that fresh memory gives.
func TestADraftSaysNothingOfAnotherRequest(t *testing.T) {
	zai := newClient(t, ProviderZAI, newServer(t, streams(text("ok")...))).main
	vertex := newClient(t, ProviderVertex, newServer(t, streams(text("ok")...))).main
	message := rapid.Custom(func(t *rapid.T) *agents.Message {
		role := rapid.SampledFrom([]agents.Role{agents.RoleSystem, agents.RoleUser, agents.RoleAssistant}).Draw(t, "role")
		return &agents.Message{
			Role: role, Content: rapid.StringN(0, 20, -1).Draw(t, "content"), Model: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "model"),
			Raw: []byte(`{"thought":1}`), Provider: rapid.SampledFrom([]string{ProviderZAI, ProviderVertex}).Draw(t, "provider"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		used := &draft{}
		histories := make([][]*agents.Message, 2)
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			history := &histories[rapid.IntRange(0, 1).Draw(t, "session")]
			*history = (*history)[:rapid.IntRange(0, len(*history)).Draw(t, "kept")]
			*history = append(slices.Clip(*history), rapid.SliceOfN(message, 0, 3).Draw(t, "new")...)
			e := rapid.SampledFrom([]*endpoint{zai, vertex}).Draw(t, "endpoint")
			info := e.model(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"))
			info.SystemNotes = false // so that what stands before a message matters
			head := []byte(`{"model":"` + info.ID + `","messages":[`)

			used.write(e, info, head, *history)
			got := string(newRequestBody(used, rapid.SampledFrom([]string{"]}", strings.Repeat("-", 100)}).Draw(t, "end")).bytes)
			fresh := &draft{}
			fresh.write(e, info, head, *history)
			if !strings.HasPrefix(got, string(fresh.bytes)) || string(used.bytes) != string(fresh.bytes) {
				t.Fatalf("the draft says\n%s, fresh memory\n%s", used.bytes, fresh.bytes)
			}
		}
	})
}

func TestADraftThatGrowsIsNotWrittenAgain(t *testing.T) {
	e := newClient(t, ProviderOpenAI, newServer(t, streams(text("ok")...))).main
	first, second := &agents.Message{Role: agents.RoleUser, Content: "Hi"}, &agents.Message{Role: agents.RoleUser, Content: "Ho"}
	d := &draft{bytes: make([]byte, 0, 1000)}
	d.write(e, ModelInfo{}, []byte("["), []*agents.Message{first})
	d.bytes[1] = '!' // which only who wrote it again would mend
	d.write(e, ModelInfo{}, []byte("["), []*agents.Message{first, second})
	if want := `[!"role":"user","content":"Hi"},{"role":"user","content":"Ho"}`; string(d.bytes) != want {
		t.Errorf("got %s, want %s", d.bytes, want)
	}
}
