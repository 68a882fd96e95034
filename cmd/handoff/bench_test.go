package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"handoff/agents/llm/tape"
	"handoff/cmd/handoff/demo"
	"handoff/gitops/fakegithub"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

const benchRepository = stageOwner + "/shop"

// lines makes a tape on which the crew reads the same file in so many turns,
// each of which takes the model a while, and then says that it is done.
func lines(b *testing.B, turns int, latency time.Duration) *tape.Tape {
	b.Helper()
	var text strings.Builder
	for range turns {
		fmt.Fprintf(&text, `{"agent":"copilot","response":{"tool_calls":[{"name":"read_file","arguments":{"path":"README.md"}}]},"latency_ms":%d}`+"\n", latency.Milliseconds())
	}
	text.WriteString(`{"agent":"copilot","response":{"content":"Nothing is to be done."}}` + "\n")
	read, err := tape.Read(strings.NewReader(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	return read
}

var benchFiles = fstest.MapFS{"README.md": {Data: []byte("# Shop\n\nSells things.\n")}}

// noLimits lets a benchmark ask as fast as it can.
var noLimits = fakegithub.Limits{PerHour: -1, PointsPerMinute: -1, Concurrent: -1, ContentPerMinute: -1, ContentPerHour: -1}

// BenchmarkComment measures, while so many sessions work, how long somebody
// who comments waits for 👀, and how long for the progress comment: medians and
// the slowest of a hundred, of b.N comments. The fake GitHub, the model and the
// bot share the processors.
func BenchmarkComment(b *testing.B) {
	for _, busy := range []int{0, 20} {
		b.Run(fmt.Sprintf("busy=%d", busy), func(b *testing.B) { benchmarkComment(b, busy) })
	}
}

func benchmarkComment(b *testing.B, busy int) {
	s, err := newStage(b.Context(), stageSpec{
		dir: b.TempDir(), repository: "shop", files: benchFiles, limits: noLimits, sandbox: "none",
		player: tape.NewPlayer(lines(b, 1000, time.Second), tape.Options{Speed: 1}),
		adjust: func(settings *serveCommand) {
			settings.Sessions, settings.PerOwner, settings.MaxTurns = busy+b.N+1, busy+b.N+1, 1000
		},
		log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			b.Error(err)
		}
	}()
	for range busy {
		wait(b, s, command(b, s), hasProgress)
	}
	var eyes, progress []time.Duration
	for b.Loop() {
		start := time.Now()
		issue := command(b, s)
		wait(b, s, issue, hasEyes)
		eyes = append(eyes, time.Since(start))
		wait(b, s, issue, hasProgress)
		progress = append(progress, time.Since(start))
		// The session goes away again, so that as many work as before.
		if _, err := s.github.As(stageMaintainer).Comment(benchRepository, issue, "/copilot stop"); err != nil {
			b.Fatal(err)
		}
	}
	reportTimes(b, eyes, "eyes")
	reportTimes(b, progress, "progress")
}

func reportTimes(b *testing.B, times []time.Duration, name string) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "ms-median-"+name)
	b.ReportMetric(float64(times[len(times)*99/100].Milliseconds()), "ms-p99-"+name)
}

// command opens an issue, asks for something in a comment, and returns the
// issue's number.
func command(b *testing.B, s *stage) int {
	b.Helper()
	ada := s.github.As(stageMaintainer)
	issue, err := ada.CreateIssue(benchRepository, "Look", "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ada.Comment(benchRepository, issue.Number, "/copilot look around"); err != nil {
		b.Fatal(err)
	}
	return issue.Number
}

func hasEyes(issue fakegithub.Issue) bool {
	return len(issue.Comments) > 0 && len(issue.Comments[0].Reactions) > 0
}

func hasProgress(issue fakegithub.Issue) bool { return len(issue.Comments) > 1 }

func wait(b *testing.B, s *stage, number int, until func(fakegithub.Issue) bool) {
	b.Helper()
	for range 60_000 {
		repository, _ := s.github.State().Repository(benchRepository)
		if issue, _ := repository.Issue(number); until(issue) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.Fatalf("nothing happens on issue %d: %v", number, s.health())
}

// BenchmarkWaiting measures a bot with a thousand sessions that wait for an
// approval, asked an hour ago: what of it is in memory, and which share of
// one processor it takes to look after them for a minute, in which each prompt
// is read once.
func BenchmarkWaiting(b *testing.B) {
	const sessions = 1000
	dir := b.TempDir()
	database := storetest.URL(b, storetest.SQLite)
	c := &crash{t: b, database: database, cache: b.TempDir(), random: rand.New(rand.NewPCG(0, 0))}
	c.raise(b.Context(), dir)
	defer func() {
		if err := c.world.close(); err != nil {
			b.Error(err)
		}
	}()
	c.letWait(b, sessions)
	for b.Loop() {
		bot := c.start(dir)
		time.Sleep(15 * time.Second) // it starts, and looks at all of them once
		before := cpuOf(b, bot)
		time.Sleep(time.Minute)
		b.ReportMetric(float64(cpuOf(b, bot)-before)/float64(time.Minute)*100, "%cpu")
		b.ReportMetric(residentOf(b, bot), "MB-resident")
		kill(bot)
	}
}

// letWait fills the database with sessions that wait, each with a prompt on
// the fake GitHub.
func (c *crash) letWait(b *testing.B, sessions int) {
	b.Helper()
	s, err := store.Open(b.Context(), c.database, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	node, err := s.Register(ctx, "bench")
	if err != nil {
		b.Fatal(err)
	}
	go node.Keep(ctx)
	state := c.world.github.State()
	repository := state.Repositories[0]
	for range sessions {
		if err := c.letOneWait(ctx, s, node, state.Installations[0].ID, repository); err != nil {
			b.Fatal(err)
		}
	}
}

func (c *crash) letOneWait(ctx context.Context, s *store.Store, node *store.Node, installation int64, repository fakegithub.Repository) error {
	ada := c.world.github.As(stageMaintainer)
	issue, err := ada.CreateIssue(repository.FullName, "Wait", "")
	if err != nil {
		return err
	}
	prompt, err := ada.Comment(repository.FullName, issue.Number, "Push?")
	if err != nil {
		return err
	}
	owner, name, _ := strings.Cut(repository.FullName, "/")
	err = s.CreateSession(ctx, &store.Session{InstallationID: installation, RepositoryID: repository.ID, Owner: owner, Repository: name, Issue: issue.Number})
	if err != nil {
		return err
	}
	lease, err := s.Acquire(ctx, node, store.Caps{})
	if err != nil {
		return err
	}
	approval := store.Approval{
		ID: store.NewID(), CallKey: "call", Kind: "git_push", Digest: store.NewID(), Nonce: "n", Commit: "c0ffee", Tree: "7ree",
		TargetRef: "refs/heads/copilot/x", ExpectedRemote: "0000", Title: "Wait", ExpiresAt: time.Now().Add(24 * time.Hour),
	}
	if err := lease.Suspend(ctx, store.Suspension{State: store.StateAwaitingApproval, Approvals: []store.Approval{approval}}); err != nil {
		return err
	}
	return s.MarkPrompted(ctx, approval.ID, prompt.ID, "hash", time.Now().Add(-time.Hour))
}

// BenchmarkTakeOver measures how long a session stands still after kill -9 of
// the node that works on it, until the other node on the same Postgres does.
func BenchmarkTakeOver(b *testing.B) {
	var still time.Duration
	for b.Loop() {
		still += takeOver(b)
	}
	b.ReportMetric((still / time.Duration(b.N)).Seconds(), "s/take-over")
}

func takeOver(b *testing.B) time.Duration {
	b.Helper()
	dir := b.TempDir()
	c := &crash{t: b, database: storetest.URL(b, storetest.Postgres), cache: b.TempDir(), random: rand.New(rand.NewPCG(0, 0))}
	c.raise(b.Context(), dir)
	defer func() {
		if err := c.world.close(); err != nil {
			b.Error(err)
		}
	}()
	first := c.start(dir)
	defer func() { kill(first) }()
	ada := c.world.github.As(stageMaintainer)
	issue, err := ada.CreateIssue(stageOwner+"/"+demo.Repository, "Login", "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ada.Comment(stageOwner+"/"+demo.Repository, issue.Number, "/copilot add a login"); err != nil {
		b.Fatal(err)
	}
	s, err := store.Open(b.Context(), c.database, store.Options{Mode: store.ModeShare})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	worked := worker(b, s, "")
	c.listen = "127.0.0.1:0"
	second := c.start(filepath.Join(dir, "second"))
	defer func() { kill(second) }()
	time.Sleep(2 * time.Second) // it starts
	killed := time.Now()
	kill(first)
	worker(b, s, worked)
	return time.Since(killed)
}

// worker waits until a node other than that works on the session.
func worker(b *testing.B, s *store.Store, other string) string {
	b.Helper()
	for range 6000 {
		sessions, err := s.Sessions(b.Context(), store.SessionFilter{}, 1)
		if err == nil && len(sessions) == 1 && sessions[0].Node != "" && sessions[0].Node != other {
			return sessions[0].Node
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("no node works on the session")
	return ""
}

// cpuOf is what a process has used.
func cpuOf(b *testing.B, process *exec.Cmd) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process.Process.Pid), "stat"))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // user and system time, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// residentOf is how much of a process is in memory, in megabytes.
func residentOf(b *testing.B, process *exec.Cmd) float64 {
	b.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process.Process.Pid), "status"))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kilobytes float64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		b.Fatal(err)
	}
	return kilobytes / 1000
}
