package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path under which our own packages are imported.
const module = "handoff/"

// A room says which of our packages a package may import. Patterns end in
// "/..." for a package and everything below it.
type room struct {
	pattern string
	mayUse  []string
	reason  string
}

// rooms is the plan of the house, the first pattern that fits a package holds.
var rooms = []room{
	{"migrations/...", nil, "migrations are SQL files; whoever runs them imports them"},
	{"sandbox/...", nil, "the sandbox must be understandable and testable on its own: it holds back code that nobody trusts"},
	{"gitops/git", []string{"gitops/patch"}, "the git layer knows repositories and files, not sessions, agents or GitHub's API"},
	{"gitops/...", nil, "gitops packages are libraries about repositories and their host; what a session is must not leak into them"},
	{"agents", nil, "agents holds the words that everybody shares; whatever it imported, everybody would"},
	{"agents/llm/...", []string{"agents", "agents/llm/..."}, "models are asked through agents.Model; a provider must not know who asks"},
	{"agents/tools", []string{"agents", "agents/plan", "agents/rules", "sandbox", "gitops/git", "gitops/patch"}, "tools work on files and commands; what reaches GitHub goes through the outbox"},
	{"agents/...", []string{"agents"}, "helpers of agents stay usable without a session"},
	{"runner", []string{"agents"}, "the loop must run against any journal, any model and any tools"},
	{"runner/store/...", []string{"runner", "agents", "migrations", "runner/store/..."}, "the database knows records, not what is done with them"},
	{"runner/report", []string{"runner", "agents"}, "rendering is pure: it is given everything"},
	{"runner/repoconfig", []string{"runner", "agents"}, "reading configuration is pure: it is given bytes"},
	{"runner/verdict", nil, "judging test runs is pure: it is given what they printed and how they ended"},
	{"runner/outbox", []string{"runner", "agents", "runner/store", "runner/report", "gitops/..."}, "effects need records and GitHub, not the crew"},
	{"runner/approval", []string{"runner", "agents", "runner/store", "runner/outbox", "runner/report", "runner/repoconfig", "runner/verdict", "gitops/..."}, "approvals serve the conductor and must not know it"},
	{"runner/intake", []string{"runner", "agents", "runner/store", "runner/outbox", "runner/approval", "runner/report", "runner/repoconfig", "gitops/...", "webhook"}, "intake turns commands into sessions and never runs one"},
	{"runner/session", []string{"runner/...", "runner", "agents", "agents/...", "gitops/...", "sandbox"}, "the conductor calls the others; it must not know the web server"},
	{"webhook/pages", []string{"runner", "agents", "runner/store", "runner/report", "gitops/github"}, "pages show what is recorded and change nothing"},
	{"webhook", []string{"runner/store", "gitops/github"}, "the front door verifies and stores; whatever else it did would delay the answer"},
	{"cmd/...", []string{"..."}, "cmd wires everything"},
}

// A specialist says who alone may import a library.
type specialist struct {
	library string
	users   []string
	reason  string
}

var specialists = []specialist{
	{"github.com/sashabaranov/go-openai", []string{"agents/llm/..."}, "one package knows the wire format of language models"},
	{"github.com/google/go-github", []string{"gitops/github", "webhook"}, "GitHub's client library must be replaceable in one place"},
	{"github.com/bradleyfalzon/ghinstallation", []string{"gitops/github"}, "tokens are made in one place"},
	{"github.com/go-git/go-git", []string{"gitops/git", "gitops/fakegithub"}, "only the git layer knows how objects are kept"},
	{"modernc.org/sqlite", []string{"runner/store/..."}, "database drivers belong to the store"},
	{"github.com/jackc/pgx", []string{"runner/store/..."}, "database drivers belong to the store"},
	{"database/sql", []string{"runner/store/..."}, "queries belong to the store"},
	{"github.com/labstack/echo", []string{"webhook/...", "gitops/fakegithub"}, "the web framework belongs to the front door"},
	{"os/exec", []string{"sandbox/...", "gitops/fakegithub", "runner/store/storetest"}, "processes are started in the sandbox, for nobody else can hold them; the fake's git backend and the test database are the exceptions"},
}

// TestEveryRoomKeepsToThePlan reads the imports of all files but tests and
// fails with the reason of the rule that one breaks.
func TestEveryRoomKeepsToThePlan(t *testing.T) {
	seen := 0
	for file, imports := range sources(t) {
		folder := path.Dir(file)
		seen++
		for _, imported := range imports {
			if own, ok := strings.CutPrefix(imported, module); ok {
				checkRoom(t, file, folder, own)
			}
			for _, s := range specialists {
				if under(imported, s.library) && !fits(folder, s.users) {
					t.Errorf("%s imports %s: only %s may, because %s", file, imported, strings.Join(s.users, " and "), s.reason)
				}
			}
		}
	}
	if seen < 20 {
		t.Fatalf("only %d files were read; the test looks in the wrong place", seen)
	}
}

func checkRoom(t *testing.T, file, folder, own string) {
	t.Helper()
	for _, room := range rooms {
		if !fits(folder, []string{room.pattern}) {
			continue
		}
		if own != folder && !fits(own, room.mayUse) {
			t.Errorf("%s imports %s: %s may not, because %s", file, own, folder, room.reason)
		}
		return
	}
	t.Errorf("%s is in the folder %s, which has no place in the plan of the house; see docs/architecture.md", file, folder)
}

// TestEveryPackageOpensWithAComment wants the essay that a newcomer reads.
func TestEveryPackageOpensWithAComment(t *testing.T) {
	documented := map[string]bool{}
	for file := range sources(t) {
		folder := path.Dir(file)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		documented[folder] = documented[folder] || len(parsed.Doc.Text()) > 80
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("no file of %s opens with a comment that says what the package is about", folder)
		}
	}
}

// TestNoRoomIsCalledAfterNothing refuses names that say nothing.
func TestNoRoomIsCalledAfterNothing(t *testing.T) {
	for file := range sources(t) {
		for _, name := range strings.Split(path.Dir(file), "/") {
			if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "models", "internal", "pkg", "misc"}, name) {
				t.Errorf("%s lies in a folder named %s: a type lives where its meaning lives", file, name)
			}
		}
	}
}

// sources returns the imports of every Go file but tests, by slash path.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || name != "." && strings.HasPrefix(entry.Name(), ".")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, imported)
		}
		files[filepath.ToSlash(name)] = imports
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("go.mod"); err != nil {
		t.Fatal("this test runs in the root of the module")
	}
	return files
}

func fits(folder string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "..." {
			return true
		}
		if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
			return under(folder, parent)
		}
		return folder == pattern
	})
}

func under(name, parent string) bool {
	return name == parent || strings.HasPrefix(name, parent+"/")
}
