package runner_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"handoff/agents"
	"handoff/agents/llm"
	"handoff/runner"
)

// BenchmarkTurn measures what the loop costs in a session of so many turns,
// each with one call whose output has 200 bytes: CPU time of this process per
// turn. "loop" has a model without a wire; "wire" asks an instant endpoint on
// loopback, in another process, through the real client; "go-openai" is a loop
// without journal, limits and checks, as one writes it with that client; "post"
// is what net/http takes to send bodies of the same length there, made before,
// and to read the answers: nothing that asks a model can take less. All three
// keep their connection from session to session, as a bot does.
func BenchmarkTurn(b *testing.B) {
	endpoint := startEndpoint(b)
	for _, turns := range []int{50, 200, 400} {
		b.Run(fmt.Sprintf("loop/%d", turns), func(b *testing.B) {
			benchmarkTurns(b, turns, &turningModel{turns: turns})
		})
		b.Run(fmt.Sprintf("wire/%d", turns), func(b *testing.B) {
			benchmarkTurns(b, turns, wireModel(b, endpoint, turns))
		})
		b.Run(fmt.Sprintf("go-openai/%d", turns), func(b *testing.B) {
			benchmarkPeer(b, turns, func() error { return plainLoop(b.Context(), plainAddress(endpoint, turns), turns) })
		})
		b.Run(fmt.Sprintf("post/%d", turns), func(b *testing.B) {
			benchmarkPeer(b, turns, func() error { return post(plainAddress(endpoint, turns), turns) })
		})
	}
}

func benchmarkTurns(b *testing.B, turns int, model agents.Model) {
	output := strings.Repeat("x", 200)
	tool := agents.Tool{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Run: func(context.Context, agents.Call) (agents.Result, error) { return agents.Result{Output: output}, nil }}
	registry, err := agents.NewRegistry(tool)
	if err != nil {
		b.Fatal(err)
	}
	request := runner.RunRequest{
		Session: "bench", Start: "one", Model: model, Tools: registry, Input: runner.Input{Text: "Look."},
		Crew:   map[string]agents.Agent{"one": {ID: "one", Instructions: "You look.", Tools: []string{"look"}}},
		Config: runner.RunConfig{MaxTurns: -1, MaxTotalTokens: -1, LoopAfter: -1, CompactAt: -1},
	}
	b.ReportAllocs()
	var spent time.Duration
	for range b.N {
		request.Journal = &countingJournal{}
		before := cpuTime(b)
		outcome, err := runner.Run(b.Context(), request)
		spent += cpuTime(b) - before
		if err != nil || outcome.Turns != turns+1 {
			b.Fatalf("%d turns: %v, %v", outcome.Turns, err, outcome.Err)
		}
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N*turns), "µs-cpu/turn")
}

// A countingJournal numbers records and keeps none: what a journal costs is
// measured where it is, in package store.
type countingJournal struct{ records int64 }

func (j *countingJournal) Append(_ context.Context, batch runner.Batch) (int64, error) {
	first := j.records + 1
	j.records += int64(len(batch.Records))
	return first, nil
}

func (j *countingJournal) Load(context.Context, int64) ([]runner.Record, error) { return nil, nil }

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A turningModel calls look so many times and then answers.
type turningModel struct{ turns int }

func (m *turningModel) Respond(_ context.Context, request agents.Request) (agents.Response, error) {
	if request.Turn > m.turns {
		return agents.Response{Text: "done", FinishReason: "stop", Usage: cost(20, 5)}, nil
	}
	return agents.Response{FinishReason: "tool_calls", Usage: cost(20, 5), ToolCalls: []agents.ToolCall{
		{ID: fmt.Sprintf("c%d", request.Turn), Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, request.Turn)},
	}}, nil
}

// wireModel is the real client on the endpoint of another process, so that
// only the client's work is counted.
func wireModel(b *testing.B, endpoint string, turns int) agents.Model {
	client, err := llm.New(llm.Config{BaseURL: plainAddress(endpoint, turns), Getenv: func(string) string { return "key" }})
	if err != nil {
		b.Fatal(err)
	}
	return client
}

// endpointVariable makes the test's program an endpoint instead.
const endpointVariable = "RUNNER_BENCH_ENDPOINT"

// startEndpoint starts this program as an endpoint and returns its address.
func startEndpoint(b *testing.B) string {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), endpointVariable+"=1")
	stdin, err := command.StdinPipe() // the endpoint ends with it
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// serveEndpoint answers /RUN/TURNS/chat/completions at once: so many calls of
// look, then an answer, and all over again.
func serveEndpoint() {
	var served sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		counter, _ := served.LoadOrStore(r.URL.Path, &atomic.Int64{})
		n := counter.(*atomic.Int64).Add(1)
		turns, _ := strconv.ParseInt(strings.Split(r.URL.Path, "/")[2], 10, 64)
		delta, finish := fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"look","arguments":"{\"n\":%d}"}}]}`, n, n), "tool_calls"
		if n > turns {
			delta, finish = `{"content":"done"}`, "stop"
			served.Delete(r.URL.Path)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":5,\"total_tokens\":25}}\n\ndata: [DONE]\n\n", delta, finish)
	}))
	defer server.Close()
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
