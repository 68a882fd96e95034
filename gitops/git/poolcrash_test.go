package git

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// killRounds is how often the process dies; more of them in CI.
func killRounds() int {
	if os.Getenv("CI") == "true" {
		return 40
	}
	return 8
}

// A process that prepares, advances and takes trees without end is killed again
// and again, each time at another moment. What it leaves is always one of three
// things: a finished tree, which the next process may hand out; a workspace that
// a session got; or nothing that anybody takes for either.
func TestPoolSurvivesKill(t *testing.T) {
	server := servePlain(t)
	files := map[string]string{"link": "->f0"}
	for i := range 80 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = fmt.Sprint(i)
	}
	commits := []string{server.commit(t, "main", files)}
	root := t.TempDir()
	cache, err := NewCache(Options{Dir: filepath.Join(root, "cache")})
	must(t, err)
	fetch(t, cache, server)
	for i := range 80 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = fmt.Sprint("changed ", i)
	}
	files["link"] = "now a file"
	commits = append(commits, server.commit(t, "main", files))
	fetch(t, cache, server)
	must(t, cache.Close())

	for round := range killRounds() {
		victim := exec.Command(os.Args[0], "-test.run=^TestPoolVictim$")
		victim.Env = append(os.Environ(), "HANDOFF_POOL_ROOT="+root, "HANDOFF_POOL_COMMITS="+commits[0]+commits[1])
		out, err := victim.StdoutPipe()
		must(t, err)
		must(t, victim.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
			t.Fatal(line, err)
		}
		time.Sleep(time.Duration(round*7919%293) * time.Millisecond)
		must(t, victim.Process.Kill())
		_ = victim.Wait() // it was killed

		surviving(t, root, server, commits)
	}
}

// surviving is the next process: it looks at each session's workspace, and at
// what it gets from the pool itself.
func surviving(t *testing.T, root string, server *plainServer, commits []string) {
	t.Helper()
	cache, err := NewCache(Options{Dir: filepath.Join(root, "cache")})
	must(t, err)
	defer cache.Close()
	repo, err := cache.Repository(server.remote())
	must(t, err)
	sessions, err := filepath.Glob(filepath.Join(root, "ws", "*"))
	must(t, err)
	for _, dir := range sessions {
		w, err := repo.Open(dir)
		if CodeOf(err) != CodeNotFound {
			must(t, err)
			expectChanges(t, w)
		}
		must(t, os.RemoveAll(dir))
	}
	pool, err := cache.NewPool(PoolOptions{Dir: filepath.Join(root, "pool"), PerRepository: 2})
	must(t, err)
	defer pool.Close()
	pool.Sweep(t.Context(), time.Hour)
	ready, _ := pool.Usage()
	if found := trees(t, pool); len(found) != ready {
		t.Errorf("%d trees were adopted of %q", ready, found)
	}
	for i := range ready {
		w, err := pool.Take(t.Context(), server.remote(), commits[i%2], filepath.Join(t.TempDir(), "ws"))
		must(t, err)
		expectChanges(t, w)
	}
	if left := trees(t, pool); len(left) != 0 {
		t.Errorf("these belong to nobody: %q", left)
	}
}

// TestPoolVictim is the process that is killed.
func TestPoolVictim(t *testing.T) {
	root, commits := os.Getenv("HANDOFF_POOL_ROOT"), os.Getenv("HANDOFF_POOL_COMMITS")
	if root == "" {
		t.SkipNow() // a part of TestPoolSurvivesKill
	}
	cache, err := NewCache(Options{Dir: filepath.Join(root, "cache")})
	must(t, err)
	pool, err := cache.NewPool(PoolOptions{Dir: filepath.Join(root, "pool"), PerRepository: 2})
	must(t, err)
	remote := (&plainServer{Server: &httptest.Server{}}).remote()
	for i := 0; ; i++ {
		commit := commits[:40]
		if i%2 > 0 {
			commit = commits[40:]
		}
		must(t, pool.Prepare(t.Context(), remote, commit))
		if i == 0 {
			fmt.Println("begun")
		}
		if i%3 > 0 {
			dir := filepath.Join(root, "ws", fmt.Sprint(i%3))
			must(t, removeAll(dir))
			_, err := pool.Take(t.Context(), remote, commit, dir)
			must(t, err)
		}
	}
}
