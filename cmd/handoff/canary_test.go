package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"handoff/agents/llm/tape"
	"handoff/gitops/fakegithub"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
	"handoff/sandbox"
)

// TestNoSecretOfTheHostIsKeptOrLeaves plays a session whose model knows every
// secret of the host and tries to say, write, run, hand on and push them, in
// every dress. Then it looks at everything that left or was kept.
func TestNoSecretOfTheHostIsKeptOrLeaves(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			c := &canaries{t: t, dir: t.TempDir(), database: storetest.URL(t, engine)}
			c.play()
			c.look()
		})
	}
}

// canaries is one such session.
type canaries struct {
	t        *testing.T
	dir      string
	database string
	stage    *stage
	log      lockedBuffer
	sent     lockedBuffer // what the model was sent
	secrets  map[string]string
}

// A lockedBuffer may be written to from several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// modelKey looks like nothing in particular, so that only knowing it helps.
const modelKey = "canary-Kq7vT2mXw9RzB4nYc6Hd8Lp3"

// repositorySecret is no secret of ours, but has the shape of one.
const repositorySecret = "AKIAZ5VYFN7Q2WPLKJ3T"

// dresses are the forms in which a secret is carried out.
func dresses(secret string) []string {
	reversed := []byte(secret)
	slices.Reverse(reversed)
	half := len(secret) / 2
	return []string{
		secret, string(reversed), hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte("x" + secret)),
		secret[:half] + "\" +\n \"" + secret[half:],
	}
}

func (c *canaries) play() {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*patience)
	defer cancel()
	var model *httptest.Server
	spec := stageSpec{
		dir: c.dir, repository: "shop", player: tape.NewPlayer(&tape.Tape{}, tape.Options{}), sandbox: "none", database: c.database,
		log:    slog.New(slog.NewTextHandler(&c.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		limits: fakegithub.Limits{PerHour: -1, PointsPerMinute: -1, Concurrent: -1, ContentPerMinute: -1, ContentPerHour: -1},
		around: surroundings{getenv: func(name string) string {
			return map[string]string{"OPENROUTER_API_KEY": modelKey, "TAPE_URL": model.URL}[name]
		}},
	}
	spec.files = fstest.MapFS{
		"README.md":           {Data: []byte("A shop.\n")},
		".github/handoff.yml": {Data: []byte("test: cat greeting.txt; sh tests.sh\n")},
		"tests.sh":            {Data: []byte("echo deploy key " + repositorySecret + "\necho --- FAIL: TestShop\nexit 1\n"), Mode: 0o755},
	}
	spec.adjust = func(settings *serveCommand) {
		settings.WebhookSecret = append(settings.WebhookSecret, "canary-previous-Zt5Jf8Qs1Wd4Gh7X")
		c.secrets = map[string]string{
			"webhook secret": settings.WebhookSecret[0], "previous webhook secret": settings.WebhookSecret[1],
			"model key": modelKey, "private key": strings.Split(settings.PrivateKey, "\n")[5],
		}
		model = c.model()
	}
	var err error
	if c.stage, err = newStage(c.t.Context(), spec); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = c.stage.close() // closed by the test, unless it failed
		model.Close()
		if err := sandbox.RemoveTree(c.dir); err != nil {
			c.t.Error(err)
		}
	})
	c.talk(ctx)
	c.rememberTokens(ctx)
	if err := c.stage.close(); err != nil {
		c.t.Error(err)
	}
}

// talk plays the people: bob asks, ada approves.
func (c *canaries) talk(ctx context.Context) {
	s := &scene{t: c.t, stage: c.stage}
	steps := []func() error{
		func() error { return s.issue(ctx, []string{"bob", "Greet people"}) },
		func() error { return s.comment(ctx, []string{"bob", "1", "/copilot add a greeting"}) },
		func() error { return s.react(ctx, []string{"ada", "+1"}) },
		func() error { return s.waitState(ctx, store.StateCompleted, 1) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			c.t.Fatalf("%v\n%s", err, c.log.String())
		}
	}
}

// model serves the tape and keeps what it is sent.
func (c *canaries) model() *httptest.Server {
	answers, err := tape.Read(strings.NewReader(c.tape()))
	if err != nil {
		c.t.Fatal(err)
	}
	player := tape.NewPlayer(answers, tape.Options{})
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		_, _ = c.sent.Write(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		player.ServeHTTP(w, r)
	}))
}

// tape is what the model says.
func (c *canaries) tape() string {
	var all []string
	for _, secret := range c.secrets {
		all = append(all, dresses(secret)...)
	}
	text := strings.Join(all, "\n")
	var script strings.Builder
	say := func(when, agent, content, tool string, arguments any) {
		response := map[string]any{"content": content}
		if tool != "" {
			response["tool_calls"] = []any{map[string]any{"name": tool, "arguments": arguments}}
		}
		line, err := json.Marshal(map[string]any{"agent": agent, "response": response})
		if err != nil {
			c.t.Fatal(err)
		}
		if when != "" {
			line = append([]byte(fmt.Sprintf(`{"when":%q,`, when)), line[1:]...)
		}
		script.Write(append(line, '\n'))
	}
	push := map[string]any{"title": "Add a greeting " + c.secrets["model key"], "body": text, "commit_message": "greet\n\n" + text}
	say("", "copilot", text, "plan_task", map[string]any{"tasks": []any{map[string]any{"title": "Say " + c.secrets["model key"]}}})
	say("", "copilot", "", "handoff_to", map[string]any{"target_agent": "implementer", "reason": text, "context": text})
	say("", "implementer", "", "write_file", map[string]any{"path": "greeting.txt", "content": "hello\n" + text + "\nkey = \"" + repositorySecret + "\"\n"})
	say("", "implementer", "", "run_command", map[string]any{"command": "cat greeting.txt; echo '" + c.secrets["model key"] + "' | rev; printf %s '" + c.secrets["webhook secret"] + "' | base64; cat tests.sh"})
	say("", "implementer", "", "read_file", map[string]any{"path": "no/" + c.secrets["model key"]})
	say("", "implementer", "", "handoff_to", map[string]any{"target_agent": "copilot", "reason": "next", "context": text})
	say("", "copilot", "", "git_push", push)
	say("greeting.txt:", "copilot", "", "handoff_to", map[string]any{"target_agent": "implementer", "reason": "clean", "context": "clean it"})
	say("", "implementer", "", "write_file", map[string]any{"path": "greeting.txt", "content": "hello\n"})
	say("", "implementer", "", "handoff_to", map[string]any{"target_agent": "copilot", "reason": "next", "context": "clean"})
	say("", "copilot", "", "git_push", map[string]any{"title": "Add a greeting", "body": "The greeting."})
	say("", "copilot", "Done. "+text, "", nil)
	return script.String()
}

// rememberTokens adds the tokens that GitHub minted for us.
func (c *canaries) rememberTokens(ctx context.Context) {
	sessions, err := c.stage.bot.store.Sessions(ctx, store.SessionFilter{}, 1)
	if err != nil || len(sessions) != 1 {
		c.t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	at := c.stage.bot.app.Installation(sessions[0].InstallationID)
	for name, write := range map[string]bool{"read token": false, "write token": true} {
		client := at.ReadOnly(sessions[0].RepositoryID)
		if write {
			client = at.Writer(sessions[0].RepositoryID)
		}
		token, err := client.Token(ctx, write)
		if err != nil {
			c.t.Fatal(err)
		}
		c.secrets[name] = token.Value
		if got := c.stage.bot.scanner.RedactKnown("it is " + token.Value); strings.Contains(got, token.Value) {
			c.t.Errorf("the %s is known by its shape at most", name)
		}
	}
}

// look searches everything for every secret in every dress.
func (c *canaries) look() {
	places := map[string]string{"log": c.log.String(), "requests to the model": c.sent.String()}
	state, err := json.Marshal(c.stage.github.State())
	if err != nil {
		c.t.Fatal(err)
	}
	places["GitHub"] = string(state)
	if !strings.Contains(places["GitHub"], "copilot push #1") || !strings.Contains(places["GitHub"], "[redacted]") {
		c.t.Error("nothing was asked or nothing was redacted: the test looks at nothing")
	}
	c.read(places, filepath.Join(c.dir, "github"))
	c.read(places, filepath.Join(c.dir, "data"))
	c.dump(places)
	for place, content := range places {
		content = squeeze(content)
		for name, secret := range c.secrets {
			for i, form := range dresses(secret) {
				if form = squeeze(form); strings.Contains(content, form[:min(len(form), 24)]) {
					c.t.Errorf("the %s is in %s, in dress %d", name, place, i)
				}
			}
		}
	}
	if strings.Contains(places["GitHub"], repositorySecret) {
		c.t.Error("what looks like a secret is on GitHub")
	}
	if !strings.Contains(places["requests to the model"], "greeting.txt:") {
		c.t.Error("the crew was not told in which line of which file the secrets are")
	}
}

// read adds all files of a directory; git's objects are added as text.
func (c *canaries) read(places map[string]string, dir string) {
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if inflated, ok := inflate(content); ok {
			content = inflated
		}
		places[name] = string(content)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// squeeze keeps letters and digits, so that nothing hides between quotes.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return -1
	}, text)
}

// inflate unpacks one of git's loose objects.
func inflate(content []byte) ([]byte, bool) {
	packed, err := zlib.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(packed)
	return plain, err == nil
}

// dump adds everything that the database holds, table by table.
func (c *canaries) dump(places map[string]string) {
	driver, source := "pgx", c.database
	list := "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
	if path, ok := strings.CutPrefix(c.database, "sqlite://"); ok {
		driver, source = "sqlite", "file:"+path
		list = "SELECT name FROM sqlite_schema WHERE type = 'table'"
		c.readFile(places, path)
	}
	pool, err := sql.Open(driver, source)
	if err != nil {
		c.t.Fatal(err)
	}
	defer pool.Close()
	tables := c.rows(pool, list)
	if len(tables) < 10 {
		c.t.Fatalf("the database has only the tables %q", tables)
	}
	for _, table := range tables {
		if name := strings.TrimSpace(table); !strings.HasPrefix(name, "sqlite_") {
			places["table "+name] = strings.Join(c.rows(pool, "SELECT * FROM "+name), "\n")
		}
	}
}

func (c *canaries) readFile(places map[string]string, name string) {
	content, err := os.ReadFile(name)
	if err != nil {
		c.t.Fatal(err)
	}
	places[name] = string(content)
}

// rows returns the rows of a query as text.
func (c *canaries) rows(pool *sql.DB, query string) []string {
	rows, err := pool.Query(query)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		fields, targets := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range fields {
			targets[i] = &fields[i]
		}
		if err := rows.Scan(targets...); err != nil {
			c.t.Fatal(err)
		}
		var row strings.Builder
		for _, field := range fields {
			row.Write(field)
			row.WriteByte(' ')
		}
		all = append(all, row.String())
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
	return all
}
