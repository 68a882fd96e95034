package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"handoff/gitops/github"
	"handoff/runner/store/storetest"
)

// TestServeSaysWhatIsWrong starts the server with one fault at a time. Each is
// told in a sentence that names the setting, before anything is listened to.
func TestServeSaysWhatIsWrong(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	dir, used := t.TempDir(), t.TempDir()
	lock, err := lockDataDir(used)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	good := map[string]string{
		"GITHUB_APP_ID": "7",
		"GITHUB_PRIVATE_KEY": string(pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
		})),
		"GITHUB_WEBHOOK_SECRET": rand.Text(),
		"GITHUB_URL":            "http://127.0.0.1:1",
		"ALLOWED_OWNERS":        "acme",
		"DATABASE_URL":          "sqlite://" + filepath.Join(dir, "handoff.db"),
		"DATA_DIR":              filepath.Join(dir, "data"),
		"LISTEN":                "127.0.0.1:0",
		"PROVIDER":              "tape",
		"TAPE_URL":              "http://127.0.0.1:1/v1",
		"LOG_LEVEL":             "error",
	}
	for _, test := range []struct {
		what    string
		changes map[string]string
		want    []string
	}{
		{"nothing is set", map[string]string{"GITHUB_APP_ID": "", "GITHUB_PRIVATE_KEY": "", "GITHUB_WEBHOOK_SECRET": ""},
			[]string{"GITHUB_APP_ID is missing", "GITHUB_PRIVATE_KEY is missing", "GITHUB_WEBHOOK_SECRET is missing"}},
		{"the key is none", map[string]string{"GITHUB_PRIVATE_KEY": "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"}, []string{"GITHUB_PRIVATE_KEY"}},
		{"the key file is missing", map[string]string{"GITHUB_PRIVATE_KEY": "/nowhere/key.pem"}, []string{"GITHUB_PRIVATE_KEY"}},
		{"the secret is short", map[string]string{"GITHUB_WEBHOOK_SECRET": "short"}, []string{"GITHUB_WEBHOOK_SECRET is shorter"}},
		{"three secrets", map[string]string{"GITHUB_WEBHOOK_SECRET": "aaaaaaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbbbbbb,cccccccccccccccccccc"}, []string{"more than two"}},
		{"a tape for the real GitHub", map[string]string{"GITHUB_URL": ""}, []string{"PROVIDER is tape", "loopback"}},
		{"a tape in another writing", map[string]string{"GITHUB_URL": "", "PROVIDER": " Tape"}, []string{"PROVIDER is tape", "loopback"}},
		{"no sandbox for the real GitHub", map[string]string{"GITHUB_URL": "", "PROVIDER": "openai", "SANDBOX": "none"}, []string{"SANDBOX is none"}},
		{"a database that is no database", map[string]string{"DATABASE_URL": "mysql://x"}, []string{"sqlite://", "postgres://"}},
		{"a database that is not there", map[string]string{"DATABASE_URL": "postgres://nobody:hunter2secret@127.0.0.1:1/x"}, []string{"reach"}},
		{"a folder that is not there", map[string]string{"DATABASE_URL": "sqlite:///nowhere/at/all/handoff.db"}, []string{"/nowhere/at/all"}},
		{"an address that is none", map[string]string{"LISTEN": "nowhere:http:x"}, []string{"LISTEN"}},
		{"a public address that is none", map[string]string{"PUBLIC_URL": "example"}, []string{"PUBLIC_URL"}},
		{"limits that let nothing work", map[string]string{
			"MAX_TURNS": "0", "MAX_HANDOFFS": "-1", "MAX_TOKENS": "0", "MAX_COST": "NaN", "MAX_TIME": "0s", "COMMAND_TIMEOUT": "-1m",
			"APPROVAL_EXPIRES": "1s", "MAX_SESSIONS": "0", "SHUTDOWN_GRACE": "-1s",
		}, []string{
			"MAX_TURNS is 0", "MAX_HANDOFFS is -1", "MAX_TOKENS is 0", "MAX_COST is NaN", "MAX_TIME is 0s", "COMMAND_TIMEOUT is -1m0s",
			"APPROVAL_EXPIRES is 1s", "MAX_SESSIONS is 0", "SHUTDOWN_GRACE is -1s",
		}},
		{"a cost that no number holds", map[string]string{"MAX_COST": "1e300"}, []string{"MAX_COST", "a million at most"}},
		{"no key for the model", map[string]string{"PROVIDER": "openrouter", "OPENROUTER_API_KEY": "", "GITHUB_PRIVATE_KEY": "/nowhere/key.pem"},
			[]string{"OPENROUTER_API_KEY", "GITHUB_PRIVATE_KEY"}},
		{"a data directory that is in use", map[string]string{"DATA_DIR": used}, []string{"DATA_DIR is " + used, "another handoff process"}},
		{"GitHub does not answer", nil, []string{"GitHub cannot be asked about this App"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			settings := maps.Clone(good)
			maps.Copy(settings, test.changes)
			for name, value := range settings {
				t.Setenv(name, value)
			}
			var output bytes.Buffer
			if code := run([]string{"serve"}, strings.NewReader(""), &output, &output); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			for _, want := range test.want {
				if !strings.Contains(strings.ToLower(output.String()), strings.ToLower(want)) {
					t.Errorf("it does not say %q:\n%s", want, &output)
				}
			}
			for _, secret := range []string{"hunter2secret", settings["GITHUB_WEBHOOK_SECRET"]} {
				if len(secret) > 5 && strings.Contains(output.String(), secret) {
					t.Errorf("it tells a secret:\n%s", &output)
				}
			}
		})
	}
}

// TestWhoIsServed: strangers can install a public App, but not spend on it
// unless the operator says so.
func TestWhoIsServed(t *testing.T) {
	app := github.Identity{Owner: github.User{Login: "acme"}}
	for _, test := range []struct {
		named []string
		app   github.Identity
		want  []string
	}{
		{nil, app, []string{"acme"}},
		{[]string{"", " "}, app, []string{"acme"}},
		{[]string{"octo", " hub "}, app, []string{"octo", "hub"}},
		{[]string{"octo", "*"}, app, nil},
	} {
		if got, err := allowedOwners(test.named, test.app); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, %v; want %q", test.named, got, err, test.want)
		}
	}
	if _, err := allowedOwners(nil, github.Identity{}); err == nil || !strings.Contains(err.Error(), "ALLOWED_OWNERS") {
		t.Errorf("an App of nobody serves everybody: %v", err)
	}
}

// TestServeMayBeStoppedWhileItStarts: whoever changes their mind is not told of
// a fault, whatever the start was just doing.
func TestServeMayBeStoppedWhileItStarts(t *testing.T) {
	world := &crash{t: t, cache: t.TempDir(), database: storetest.URL(t, storetest.SQLite)}
	dir := t.TempDir()
	world.raise(t.Context(), dir)
	defer func() {
		if err := world.world.close(); err != nil {
			t.Error(err)
		}
	}()
	settings := world.world.settings(stageSpec{dir: dir, database: world.database, sandbox: "none"}, world.app)
	settings.Listen = "127.0.0.1:0"
	t.Setenv("TAPE_URL", world.world.model.URL)
	for patience := time.Duration(0); patience < 300*time.Millisecond; patience += 15 * time.Millisecond {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(patience, stop)
		if patience == 0 {
			stop()
		}
		if err := settings.Run(&process{ctx: ctx, stdout: io.Discard, stderr: io.Discard}); err != nil {
			t.Errorf("stopped after %v: %v", patience, err)
		}
	}
}
