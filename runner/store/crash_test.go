package store_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

// What the process that is killed is told: the URL of its database, and where
// it kills itself, if it is to do so at a certain point.
const (
	crashVariable = "HANDOFF_STORE_CRASH"
	pointVariable = "HANDOFF_STORE_CRASH_POINT"
)

// batchSize is how many records the doomed process writes at once.
const batchSize = 3

// TestMain runs the tests, or is one of the processes that they kill. Properties
// are tried less often where nobody waits for a proof.
func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(crashVariable) != "":
		err = writeUntilKilled(context.Background(), os.Getenv(crashVariable))
	case os.Getenv(lifeVariable) != "":
		err = liveOnce(context.Background(), os.Getenv(lifeVariable))
	default:
		if os.Getenv("CI") != "true" {
			err = flag.Set("rapid.checks", "20")
		}
		if err == nil {
			os.Exit(m.Run())
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// writeUntilKilled takes the session over and appends until the end, saying
// which batches were acknowledged.
func writeUntilKilled(ctx context.Context, url string) error {
	s, err := store.Open(ctx, url, store.Options{NowExpression: storetest.NowExpression})
	if err != nil {
		return err
	}
	node, err := s.Register(ctx, "doomed")
	if err != nil {
		return err
	}
	lease, err := s.Acquire(ctx, node, store.Caps{})
	if err != nil {
		return err
	}
	fmt.Println("acquired", lease.Session().Fence)
	dieAt(s, os.Getenv(pointVariable))
	for next := lease.Session().NextSeq; ; next += batchSize {
		first, err := lease.Append(ctx, runner.Batch{
			Records:     []runner.Record{intent("c" + strconv.FormatInt(next, 10)), note("b"), note("c")},
			Effects:     []agents.EffectRequest{request("effect-" + strconv.FormatInt(next, 10))},
			Variables:   agents.Variables{"next": strconv.FormatInt(next+batchSize, 10)},
			ActiveAgent: "tester",
			Usage:       agents.Usage{Requests: 1, Total: 10, Entries: []agents.UsageEntry{{Total: 10}}},
		})
		if err != nil {
			return err
		}
		fmt.Println("acknowledged", first)
	}
}

// dieAt has the process kill itself when it comes to a point for the third time.
func dieAt(s *store.Store, point string) {
	var seen int
	s.SetHook(func(at string) {
		if at != point {
			return
		}
		if seen++; seen == 3 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
}

// doomed starts the process, kills it while it writes, or lets it kill itself at
// a point, and returns its fence and the last batch that it knew to be written.
func doomed(t *testing.T, url, point string) (fence, acknowledged int64) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), crashVariable+"="+url, pointVariable+"="+point)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines, said := bufio.NewScanner(output), []string{}
	for left := 1 + rand.IntN(20); lines.Scan(); {
		word, number, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseInt(number, 10, 64)
		said = append(said, lines.Text())
		switch {
		case err != nil:
			continue
		case word == "acquired":
			fence = value
		case word == "acknowledged":
			acknowledged = value
			if left--; left == 0 && point == "" {
				// It goes on writing, so the kill comes at any point of it. What
				// it still says before it dies counts as well.
				if err := command.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := command.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("the process ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
	return fence, acknowledged
}

func TestKilledWhileWriting(t *testing.T) {
	// At any moment, and at those where the most can go wrong.
	points := []string{"", "guarded", "committing", "committed"}
	rounds := len(points)
	if os.Getenv("CI") == "true" {
		rounds = 20
	}
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			url := storetest.URL(t, engine)
			w := &world{T: t, url: url, clock: storetest.NewClock(t, url)}
			options := w.clock.Options()
			options.Mode = store.ModeShare
			w.store = w.openWith(options)
			id := w.session(1)
			for round := range rounds {
				fence, acknowledged := doomed(t, url, points[round%len(points)])
				w.equal(fence, round+1)
				w.wroteWhole(id, acknowledged)
				w.dies()
				// Each round is a fresh start, not the next of too many attempts.
				w.ok(w.store.Execute(t.Context(), "UPDATE sessions SET attempts = 0"))
			}
		})
	}
}

// wroteWhole checks what a killed process left behind: whole batches, with
// everything that belongs to them, and at least what was acknowledged.
func (w *world) wroteWhole(id string, acknowledged int64) {
	w.Helper()
	records := w.gapless(id)
	written := int64(len(records))
	w.equal(written%batchSize, 0)
	if written < acknowledged+batchSize-1 {
		w.Fatalf("records up to %d were acknowledged, %d are there", acknowledged+batchSize-1, written)
	}
	session := w.load(id)
	w.equal(session.NextSeq, written+1)
	w.equal(session.Variables["next"], written+1)
	w.equal(session.Usage.Requests, written/batchSize)
	effects, err := w.store.EffectsOfSession(w.Context(), id)
	w.ok(err)
	w.equal(len(effects), written/batchSize)
	sum, err := w.store.Usage(w.Context(), store.UsageFilter{SessionID: id})
	w.ok(err)
	w.equal(sum.Total, session.Usage.Total)
}

// A copy is made of a database in use, the original goes on, and the copy takes
// its place again.
func TestBackupIsRestoredMidRun(t *testing.T) {
	w := onSQLite(t)
	node := w.node("a")
	open := w.asks(node, 1, digest, "prompt")
	w.prompted(open)
	id := w.session(2)
	lease := w.acquire(node)
	_, err := lease.Append(w.Context(), notes("before"))
	w.ok(err)
	backup := filepath.Join(t.TempDir(), "backup.db")
	w.ok(w.store.Execute(w.Context(), "VACUUM INTO '"+backup+"'"))

	_, err = lease.Append(w.Context(), notes("after the backup"))
	w.ok(err)
	_, err = w.store.Decide(w.Context(), open, yes())
	w.ok(err)
	_, err = w.store.Consume(w.Context(), open, store.Consumption{EffectKey: "push"})
	w.ok(err)
	w.ok(w.store.Close())

	restored := &world{T: t, url: "sqlite://" + backup}
	restored.store = restored.openWith(store.Options{})
	_, voided, err := restored.store.NewRestoreEpoch(context.Background())
	w.ok(err)
	w.equal(voided, 1)
	// The approval was used after the backup. It cannot be used again.
	_, err = restored.store.Decide(w.Context(), open, yes())
	w.fails(err, store.ErrAlreadyDecided)
	_, err = restored.store.Consume(w.Context(), open, store.Consumption{EffectKey: "push"})
	w.fails(err, store.ErrAlreadyDecided)
	successor := restored.acquire(restored.node("b"))
	w.equal(successor.Session().ID, id)
	w.equal(len(restored.gapless(id)), 1)
}
