package tape_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"handoff/agents"
	"handoff/agents/llm"
	"handoff/agents/llm/tape"
)

// TestMain looks for goroutines that outlive their call.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play starts a player and a client that asks it.
func play(t *testing.T, text string, options tape.Options) (*tape.Player, *llm.Client) {
	t.Helper()
	player := tape.NewPlayer(read(t, text), options)
	return player, clientOf(t, player)
}

func read(t *testing.T, text string) *tape.Tape {
	t.Helper()
	tape, err := tape.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tape
}

func clientOf(t *testing.T, player *tape.Player) *llm.Client {
	t.Helper()
	server, err := tape.Serve(player)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := llm.New(llm.Config{
		Provider: llm.ProviderTape,
		Retry:    llm.Retry{Base: time.Millisecond, Cap: time.Millisecond},
		Getenv: func(name string) string {
			if name == "TAPE_URL" {
				return server.URL
			}
			return ""
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func ask(session, agent string, turn int, texts ...string) agents.Request {
	request := agents.Request{
		Session: session, Agent: agent, Turn: turn,
		Messages: []*agents.Message{{Role: agents.RoleSystem, Content: "You work."}},
	}
	for _, text := range texts {
		request.Messages = append(request.Messages, &agents.Message{Role: agents.RoleUser, Content: text})
	}
	return request
}

// answer asks and returns the text, or the error's sentence.
func answer(t *testing.T, client *llm.Client, request agents.Request) string {
	t.Helper()
	response, err := client.Respond(t.Context(), request)
	if err != nil {
		if failure, ok := errors.AsType[*agents.Error](err); ok {
			return failure.Message
		}
		t.Fatal(err)
	}
	return response.Text
}

func TestTapeWrittenByHand(t *testing.T) {
	_, client := play(t, `
# A person wrote this.
{"agent":"copilot","response":{"content":"I read.","tool_calls":[{"name":"read_file","arguments":{"path":"main.go", "n": 1}},{"name":"list_files"}]}}

{"agent":"copilot","response":{"content":"Done."},"usage":{"input":100,"output":10,"cost_micros":250}}
`, tape.Options{Strict: true})
	first, err := client.Respond(t.Context(), ask("s", "copilot", 1, "Do it."))
	if err != nil {
		t.Fatal(err)
	}
	want := []agents.ToolCall{
		{ID: "call_0_copilot_1_1", Name: "read_file", Arguments: `{"path":"main.go","n":1}`},
		{ID: "call_0_copilot_1_2", Name: "list_files", Arguments: "{}"},
	}
	if diff := cmp.Diff(want, first.ToolCalls); diff != "" || first.FinishReason != "tool_calls" || first.Text != "I read." {
		t.Errorf("%+v\n%s", first, diff)
	}
	if !first.Usage.Entries[0].Estimated || first.Usage.Input == 0 || first.Usage.CostUnknown {
		t.Errorf("usage of a line without one: %+v", first.Usage)
	}
	second, err := client.Respond(t.Context(), ask("s", "copilot", 2, "Do it."))
	if err != nil || second.Text != "Done." || second.FinishReason != "stop" || second.Usage.CostMicros != 250 || second.Usage.Input != 100 {
		t.Errorf("%+v, %v", second, err)
	}
}

// TestAskedAgainIsAnsweredAlike is what a session needs that crashed between
// its request and its journal.
func TestAskedAgainIsAnsweredAlike(t *testing.T) {
	lines := `
{"session":1,"agent":"a","response":{"content":"one"}}
{"session":2,"agent":"a","response":{"content":"two"}}
{"session":2,"agent":"a","response":{"tool_calls":[{"name":"x"}]}}
`
	_, client := play(t, lines, tape.Options{})
	for range 3 {
		if got := answer(t, client, ask("first", "a", 1, "")) + answer(t, client, ask("second", "a", 1, "")); got != "onetwo" {
			t.Errorf("got %s", got)
		}
		response, err := client.Respond(t.Context(), ask("second", "a", 2, ""))
		if err != nil || response.ToolCalls[0].ID != "call_2_a_2_1" {
			t.Errorf("%+v, %v", response, err)
		}
	}
}

func TestSessionsAreFoundByTheirTask(t *testing.T) {
	lines := `
{"session":1,"agent":"a","task":"login","response":{"content":"login 1"}}
{"session":1,"agent":"a","response":{"content":"login 2"}}
{"session":2,"agent":"a","task":"logout","response":{"content":"logout 1"}}
{"session":2,"agent":"a","response":{"content":"logout 2"}}
`
	_, client := play(t, lines, tape.Options{})
	if got := answer(t, client, ask("x", "a", 1, "Build logout")); got != "logout 1" {
		t.Errorf("x: %s", got)
	}
	// A player that was started again sees the sessions in the middle.
	_, client = play(t, lines, tape.Options{})
	if got := answer(t, client, ask("x", "a", 2, "Build logout", "more")); got != "logout 2" {
		t.Errorf("x again: %s", got)
	}
	if got := answer(t, client, ask("y", "a", 2, "Build login")); got != "login 2" {
		t.Errorf("y: %s", got)
	}
}

func TestWhenChoosesTheWay(t *testing.T) {
	_, client := play(t, `
{"agent":"tester","turn":3,"when":"FAIL","response":{"content":"mend it"}}
{"agent":"tester","turn":3,"response":{"content":"all well"}}
`, tape.Options{})
	if got := answer(t, client, ask("s", "tester", 3, "go", "--- FAIL: TestX")); got != "mend it" {
		t.Errorf("got %s", got)
	}
	if got := answer(t, client, ask("s", "tester", 3, "--- FAIL: TestX", "ok")); got != "all well" {
		t.Errorf("an older message decided: %s", got)
	}
}

// TestTurnsThatAreCountedAnew: a session that is tried again begins with turn
// 1 again, and its recording can be played, from the middle as well.
func TestTurnsThatAreCountedAnew(t *testing.T) {
	first, second := ask("s", "a", 1, "go"), ask("s", "a", 1, "go", "retry")
	recorded := record(t, `
{"agent":"a","turn":1,"when":"retry","response":{"content":"the second time"}}
{"agent":"a","turn":1,"response":{"content":"the first time"}}
`, nil, first, second)
	for _, options := range []tape.Options{{Strict: true}, {}} {
		_, client := play(t, recorded, options)
		for range 2 {
			if got := answer(t, client, first) + ", " + answer(t, client, second); got != "the first time, the second time" {
				t.Errorf("got %s", got)
			}
		}
		_, client = play(t, recorded, options)
		if got := answer(t, client, second); got != "the second time" {
			t.Errorf("after a restart: %s", got)
		}
	}
	// Requests that are new to the tape get the lines in order.
	_, client := play(t, recorded, tape.Options{})
	if got := answer(t, client, ask("s", "a", 1, "x")) + ", " + answer(t, client, ask("s", "a", 1, "y")); got != "the first time, the second time" {
		t.Errorf("got %s", got)
	}
}

func TestNoLineSaysWhatThereIs(t *testing.T) {
	_, client := play(t, `{"agent":"a","response":{"content":"x"}}`, tape.Options{})
	got := answer(t, client, ask("s", "b", 7, ""))
	if !strings.Contains(got, "no line for agent b, turn 7 in session 0; it has: a 1") {
		t.Errorf("got %s", got)
	}
}

func TestFailures(t *testing.T) {
	_, client := play(t, `
{"agent":"a","error":{"status":503,"message":"tired","times":2},"response":{"content":"awake"}}
{"agent":"a","error":{"status":400,"message":"never"}}
{"agent":"a","error":{"status":429,"message":"slow","retry_after":9}}
`, tape.Options{})
	response, err := client.Respond(t.Context(), ask("s", "a", 1, ""))
	if err != nil || response.Text != "awake" || response.Usage.Requests != 3 {
		t.Errorf("%+v, %v", response, err)
	}
	if got := answer(t, client, ask("s", "a", 2, "")); !strings.Contains(got, "never") {
		t.Errorf("got %s", got)
	}
	_, err = client.Respond(t.Context(), ask("s", "a", 3, ""))
	if failure, ok := errors.AsType[*agents.Error](err); !ok || failure.RetryAfter != 9*time.Second {
		t.Errorf("got %v", err)
	}
}

// record plays a tape and records what happens.
func record(t *testing.T, lines string, redact func(string) string, requests ...agents.Request) string {
	t.Helper()
	server, err := tape.Serve(tape.NewPlayer(read(t, lines), tape.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var target bytes.Buffer
	client, err := llm.New(llm.Config{
		Provider: llm.ProviderTape, BaseURL: server.URL, Recorder: tape.NewRecorder(&target, redact),
		Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if _, err := client.Respond(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	return target.String()
}

// story is a short session: a call, its output, an answer. Times, paths, ports
// and ids differ with n.
func story(n int) []agents.Request {
	first := ask(fmt.Sprint("session", n), "copilot", 1, "Fix /tmp/work-"+fmt.Sprint(n*77)+"/main.go please")
	second := first
	second.Turn = 2
	id := fmt.Sprint("id", n)
	second.Messages = append(second.Messages[:len(second.Messages):len(second.Messages)],
		&agents.Message{Role: agents.RoleAssistant, ToolCalls: []agents.ToolCall{{ID: id, Name: "run_tests", Arguments: fmt.Sprintf(`{"dir":"/tmp/x%d/y", "b":1}`, n)}}},
		&agents.Message{Role: agents.RoleTool, ToolCallID: id, Content: fmt.Sprintf("ok  \tpkg\t0.%d3s at 2026-01-0%dT10:00:00Z on 127.0.0.1:4%d000, commit %07x1abcdef", n, n, n, n*1234567)})
	return []agents.Request{first, second}
}

const storyLines = `
{"agent":"copilot","response":{"tool_calls":[{"name":"run_tests","arguments":{"dir":"."}}]},"usage":{"input":50,"output":5}}
{"agent":"copilot","response":{"content":"Fixed.","raw":{"reasoning_details":[{"type":"reasoning.encrypted","data":"E"}]}},"latency_ms":5}
`

func TestRecordedSessionPlaysStrictly(t *testing.T) {
	recorded := record(t, storyLines, nil, story(1)...)
	if strings.Count(recorded, "\n") != 2 || strings.Count(recorded, "You work.") != 1 {
		t.Errorf("the second line repeats what the first says:\n%s", recorded)
	}
	_, client := play(t, recorded, tape.Options{Strict: true})
	for _, n := range []int{1, 2} {
		// The second session differs in what always differs, and in nothing
		// else; the tape has one session only, so its player begins anew.
		if n == 2 {
			_, client = play(t, recorded, tape.Options{Strict: true})
		}
		requests := story(n)
		response, err := client.Respond(t.Context(), requests[0])
		if err != nil || response.ToolCalls[0].Name != "run_tests" || response.Usage.Input != 50 {
			t.Errorf("%+v, %v", response, err)
		}
		response, err = client.Respond(t.Context(), requests[1])
		if err != nil || response.Text != "Fixed." || !strings.Contains(string(response.Raw), `"data":"E"`) {
			t.Errorf("%+v, %v", response, err)
		}
	}
}

func TestStrictDifferenceIsReadable(t *testing.T) {
	recorded := record(t, storyLines, nil, story(1)...)
	change := func(f func(*agents.Request)) string {
		_, client := play(t, recorded, tape.Options{Strict: true})
		request := story(1)[1]
		f(&request)
		return answer(t, client, request)
	}
	for want, f := range map[string]func(*agents.Request){
		"agent copilot, turn 2: message 1 of 3 differs: the text of the user\nline 1\n- Fix <tmp>/main.go please\n+ Fix <tmp>/other.go please": func(r *agents.Request) {
			r.Messages[1] = &agents.Message{Role: agents.RoleUser, Content: "Fix /tmp/w/other.go please"}
		},
		"the system prompt differs:\nline 1\n- You work.\n+ You rest.": func(r *agents.Request) {
			r.Messages[0] = &agents.Message{Role: agents.RoleSystem, Content: "You rest."}
		},
		"the tool jump is new": func(r *agents.Request) { r.Tools = []agents.ToolSpec{{Name: "jump"}} },
		"the request ends early; the tape goes on with\n- tool: ok": func(r *agents.Request) {
			r.Messages = r.Messages[:3]
		},
		"the request goes on where the tape's ends:\n+ user: more": func(r *agents.Request) {
			r.Messages = append(r.Messages, &agents.Message{Role: agents.RoleUser, Content: "more"})
		},
		"the calls\n- assistant: run_tests{\"b\":1,\"dir\":\"<tmp>/y\"}\n+ assistant: run_tests{\"b\":2}": func(r *agents.Request) {
			r.Messages[2] = &agents.Message{Role: agents.RoleAssistant, ToolCalls: []agents.ToolCall{{ID: "id1", Name: "run_tests", Arguments: `{"b":2}`}}}
		},
	} {
		if got := change(f); !strings.Contains(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestUpdateFillsATape(t *testing.T) {
	player, client := play(t, storyLines, tape.Options{Update: true})
	for _, request := range story(1) {
		answer(t, client, request)
	}
	var updated bytes.Buffer
	if _, err := player.Tape().WriteTo(&updated); err != nil {
		t.Fatal(err)
	}
	if strings.Count(updated.String(), "request_hash") != 2 {
		t.Errorf("the updated tape lacks hashes:\n%s", updated.String())
	}
	// It fits now, says what it said, and writing it again changes nothing.
	_, client = play(t, updated.String(), tape.Options{Strict: true})
	if got := answer(t, client, story(3)[1]); got != "Fixed." {
		t.Errorf("got %s", got)
	}
	var again bytes.Buffer
	if _, err := read(t, updated.String()).WriteTo(&again); err != nil || again.String() != updated.String() {
		t.Errorf("%v\n%s", err, cmp.Diff(updated.String(), again.String()))
	}
}

func TestUnusedLines(t *testing.T) {
	player, client := play(t, storyLines, tape.Options{})
	answer(t, client, story(1)[0])
	if unused := player.Unused(); len(unused) != 1 || unused[0].Turn != 2 {
		t.Errorf("%+v", unused)
	}
}

func TestNoSecretOnTape(t *testing.T) {
	// The quote and the line feed are escaped on the wire, once and twice.
	const secret = "ghs_\"canary\nsecret"
	encoded, _ := json.Marshal(secret)
	arguments, _ := json.Marshal(map[string]string{"token": secret})
	lines := fmt.Sprintf(`{"agent":"copilot","response":{"content":%[1]s,"reasoning":%[1]s,"refusal":%[1]s,"tool_calls":[{"name":"x","arguments":%[2]s}],"raw":{"thoughts":[{"deep":%[1]s}]}}}`, encoded, arguments)
	request := ask("s", "copilot", 1, "the token is "+secret)
	request.Messages[0] = &agents.Message{Role: agents.RoleSystem, Content: secret}
	request.Messages = append(request.Messages,
		&agents.Message{Role: agents.RoleAssistant, ToolCalls: []agents.ToolCall{{ID: "1", Name: "x", Arguments: string(arguments)}}},
		&agents.Message{Role: agents.RoleTool, ToolCallID: "1", Content: secret})
	recorded := record(t, lines, func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") }, request)
	if strings.Contains(recorded, "canary") || strings.Count(recorded, "[redacted]") != 9 {
		t.Errorf("recorded %s", recorded)
	}
}

func TestPlayerRefusesWhatIsNoCall(t *testing.T) {
	server, err := tape.Serve(tape.NewPlayer(read(t, storyLines), tape.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, test := range []struct {
		path, body string
		status     int
	}{
		{"/models", "{}", http.StatusNotFound},
		{"/chat/completions", "{}", http.StatusBadRequest},
		{"/v1/chat/completions", "no json", http.StatusBadRequest},
	} {
		response, err := http.Post(server.URL+test.path, "application/json", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != test.status {
			t.Errorf("%s %s: %s", test.path, test.body, response.Status)
		}
	}
}

// TestWholeAnswer: a client that does not stream is answered at once.
func TestWholeAnswer(t *testing.T) {
	server, err := tape.Serve(tape.NewPlayer(read(t, storyLines), tape.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Handoff-Agent", "copilot")
	request.Header.Set("X-Handoff-Turn", "1")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct {
		Model   string
		Choices []struct {
			Message      struct{ ToolCalls []any }
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || body.Model != "m" || body.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("%+v, %v", body, err)
	}
}

// TestSpeed: a line's time passes at the speed that was asked for. The clock
// is not measured; the client's patience is shorter than the line.
func TestSpeed(t *testing.T) {
	const line = `{"agent":"a","response":{"content":"late"},"latency_ms":3600000}`
	_, client := play(t, line, tape.Options{})
	if got := answer(t, client, ask("s", "a", 1, "")); got != "late" {
		t.Errorf("at once: %s", got)
	}
	server, err := tape.Serve(tape.NewPlayer(read(t, line), tape.Options{Speed: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err = llm.New(llm.Config{
		Provider: llm.ProviderTape, BaseURL: server.URL, Getenv: func(string) string { return "" },
		Retry: llm.Retry{Attempts: 1}, Timeouts: llm.Timeouts{FirstByte: 30 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer(t, client, ask("s", "a", 1, "")); !strings.Contains(got, "no answer began in time") {
		t.Errorf("as recorded: %s", got)
	}
}
