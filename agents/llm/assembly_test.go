package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"handoff/agents"
)

// events reads a stream to its end.
func events(stream io.Reader) ([]string, error) {
	reader := newEventReader(stream)
	var list []string
	for {
		data, err := reader.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
		list = append(list, string(data))
	}
}

func TestEvents(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		want   []string
	}{
		"empty":                    {"", nil},
		"comments only":            {": a\n\n: b\n\n", nil},
		"one":                      {"data: {\"a\":1}\n\n", []string{`{"a":1}`}},
		"no space":                 {"data:{\"a\":1}\n\n", []string{`{"a":1}`}},
		"carriage returns":         {"data: {\"a\":1}\r\n\r\ndata: [DONE]\r\n\r\n", []string{`{"a":1}`, "[DONE]"}},
		"no blank lines":           {"data: {\"a\":1}\ndata: {\"a\":2}\n", []string{`{"a":1}`, `{"a":2}`}},
		"data over several lines":  {"data: {\"a\":\ndata: 1}\n\n", []string{"{\"a\":\n1}"}},
		"other fields":             {"event: x\nid: 3\nretry: 9\ndata: {\"a\":1}\n\n", []string{`{"a":1}`}},
		"no line feed at the end":  {"data: {\"a\":1}", []string{`{"a":1}`}},
		"bare error":               {": x\n\n{\"error\":{}}\n", []string{`{"error":{}}`}},
		"bare error, several rows": {"{\n\"error\": \"x\"\n}\n", []string{"{\n\"error\": \"x\"\n}"}},
		"empty data":               {"data:\n\ndata: \n\n", nil},
	} {
		got, err := events(iotest.OneByteReader(strings.NewReader(test.stream)))
		if err != nil || !cmp.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestEventLinesAreBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), zeros{})
	if _, err := events(endless); !errors.Is(err, errLineTooLong) {
		t.Errorf("got %v", err)
	}
	// JSON that never ends costs no more than its length.
	open := io.LimitReader(&repeated{text: "data: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n"}, 2*maxLine)
	if _, err := events(open); !errors.Is(err, errLineTooLong) {
		t.Errorf("got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}

// assemble merges chunks and returns the response.
func assemble(chunks ...string) (agents.Response, error) {
	var a assembly
	for _, chunk := range chunks {
		if _, err := a.add([]byte(chunk)); err != nil {
			return agents.Response{}, err
		}
	}
	return a.response()
}

// calls makes a chunk of pieces of tool calls.
func calls(pieces ...string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(pieces, ",") + `]}}]}`
}

func TestCallsOfEveryNumbering(t *testing.T) {
	two := []agents.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: `{"y":2}`}}
	minted := []agents.ToolCall{{ID: "call_0", Name: "f", Arguments: `{"x":1}`}, {ID: "call_1", Name: "g", Arguments: `{"y":2}`}}
	for name, test := range map[string]struct {
		chunks []string
		want   []agents.ToolCall
	}{
		"numbered": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`),
			calls(`{"index":0,"function":{"arguments":"{\"x\""}}`),
			calls(`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
			calls(`{"index":0,"function":{"arguments":":1}"}}`),
		}, two},
		"all have number 0": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calls(`{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, two},
		"no numbers": {[]string{
			calls(`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
			calls(`{"function":{"arguments":":1}"}}`, `{"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, two},
		"no numbers, in turns": {[]string{
			calls(`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"id":"b","function":{"name":"g","arguments":"{\"y\""}}`),
			calls(`{"id":"a","function":{"arguments":":1}"}}`, `{"id":"b","function":{"arguments":":2}"}}`),
		}, two},
		"no numbers, an id used twice": {[]string{
			calls(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calls(`{"id":"a","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, []agents.ToolCall{two[0], {ID: "call_1", Name: "g", Arguments: `{"y":2}`}}},
		"id repeated in each piece": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
			calls(`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, two},
		"neither numbers nor ids": {[]string{calls(
			`{"function":{"name":"f","arguments":{"x":1}}}`,
			`{"function":{"name":"g","arguments":{"y":2}}}`)}, minted},
		"number 0 and no ids": {[]string{
			calls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calls(`{"index":0,"function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, minted},
		"said twice": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calls(`{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calls(`{"index":2,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, two},
		"an id used twice": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calls(`{"index":1,"id":"a","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, []agents.ToolCall{two[0], {ID: "call_1", Name: "g", Arguments: `{"y":2}`}}},
		"no arguments": {[]string{calls(`{"index":0,"id":"a","function":{"name":"f"}}`)}, []agents.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}},
	} {
		response, err := assemble(test.chunks...)
		if diff := cmp.Diff(test.want, response.ToolCalls); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
			continue
		}
		// What is replayed names the same calls.
		message := &agents.Message{Role: agents.RoleAssistant, ToolCalls: response.ToolCalls, Raw: response.Raw}
		if raw, ok := replay(message); !ok || string(raw) != string(response.Raw) {
			t.Errorf("%s: the raw message has other calls: %s", name, response.Raw)
		}
	}
}

func TestTooManyCalls(t *testing.T) {
	var pieces []string
	for i := range maxCalls + 1 {
		pieces = append(pieces, fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"f"}}`, i, i))
	}
	if _, err := assemble(calls(pieces...)); !errors.Is(err, errTooManyCalls) {
		t.Errorf("got %v", err)
	}
}

func TestContentParts(t *testing.T) {
	response, err := assemble(`{"choices":[{"index":0,"message":{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}],"refusal":"no"}}]}`)
	if err != nil || response.Text != "ab" || response.Refusal != "no" {
		t.Errorf("%+v, %v", response, err)
	}
}

// TestTextSurvivesAnyCut: however a text is cut into pieces, it is the same.
func TestTextSurvivesAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.String()).Draw(t, "pieces")
		var chunks []string
		for _, piece := range pieces {
			encoded, _ := json.Marshal(piece)
			chunks = append(chunks, `{"choices":[{"index":0,"delta":{"content":`+string(encoded)+`}}]}`)
		}
		response, err := assemble(chunks...)
		if err != nil || response.Text != strings.Join(pieces, "") {
			t.Fatalf("%q, %v", response.Text, err)
		}
	})
}

// FuzzStream: whatever a provider sends, there is an answer or an error.
func FuzzStream(f *testing.F) {
	for _, d := range dialects {
		f.Add(strings.Join(d.call, "\n\n"))
		f.Add(d.line("x"))
	}
	f.Add(`data: {"choices":[{"delta":{"tool_calls":[{"index":9223372036854775807},{"index":-1,"function":null}]}}]}`)
	f.Add(`data: {"choices":[{"delta":{"content":{"a":1},"tool_calls":{}}}]}`)
	f.Add(`data: {"choices":[{"delta":{"reasoning_details":[{"type":"text","index":[1]},{"type":"text","index":[1]}]}}]}`)
	f.Fuzz(func(t *testing.T, stream string) {
		watch := newWatchdog(func(error) {}, Timeouts{}.withDefaults())
		defer watch.stop()
		r := reading{ctx: t.Context(), watch: watch, idle: time.Second, call: call{endpoint: &endpoint{}}}
		if r.stream(strings.NewReader(stream)) != nil {
			return
		}
		response, err := r.response()
		if err == nil && !json.Valid(response.Raw) {
			t.Errorf("the raw message is no JSON: %s", response.Raw)
		}
	})
}

// FuzzFault: whatever a failed answer holds, it can be judged and shown.
func FuzzFault(f *testing.F) {
	f.Add(200, `[[[{"error":null}]]]`)
	f.Add(400, `{"error":{"message":["a"],"code":1.5,"metadata":[]}}`)
	f.Add(500, `{"message":{"a":1},"code":null}`)
	e := &endpoint{credential: key(canary), config: Config{Getenv: environment(nil)}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		failure := e.refused(status, nil, []byte(body))
		if failure.Kind == "" || len(failure.Message) > maxErrorText+8 {
			t.Errorf("%+v", failure)
		}
	})
}
