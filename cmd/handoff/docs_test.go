package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"handoff/webhook"
)

// root is where the README is, seen from here.
const root = "../.."

// allPages returns the README and everything in docs, by path from the root.
func allPages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages were found: %v", err)
	}
	texts := map[string]string{}
	for _, name := range append(names, filepath.Join(root, "README.md")) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.ToSlash(relative)] = string(content)
	}
	return texts
}

// sourceFiles calls visit with every Go file below the root.
func sourceFiles(t *testing.T, visit func(name, content string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		content, err := os.ReadFile(name)
		relative, _ := filepath.Rel(root, name)
		visit(filepath.ToSlash(relative), string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheReadmeNamesTheTwoCommands(t *testing.T) {
	readme := allPages(t)["README.md"]
	for _, command := range []string{"go test ./...", "go run ./cmd/handoff demo"} {
		if got := regexp.MustCompile(`(?m)^    `+regexp.QuoteMeta(command)+`$`).FindAllString(readme, -1); len(got) != 1 {
			t.Errorf("the README has %d lines with the command %q, want one", len(got), command)
		}
	}
	// Whatever checks the project runs the first line that looks like this.
	if got := regexp.MustCompile(`(?m)^ *go test .*$`).FindString(readme); got != "    go test ./..." {
		t.Errorf("the README's first test command is %q", got)
	}
}

// TestEveryTestThatThePagesNameExists keeps the pages honest: a promise is
// worth what the test named beside it is.
func TestEveryTestThatThePagesNameExists(t *testing.T) {
	existing := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	sourceFiles(t, func(_, content string) {
		for _, found := range declared.FindAllStringSubmatch(content, -1) {
			existing[found[1]] = true
		}
	})
	named := regexp.MustCompile("`(?:\\w+\\.)?((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	count := 0
	for name, text := range allPages(t) {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			count++
			if !existing[found[1]] {
				t.Errorf("%s names %s, which does not exist", name, found[1])
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d names of tests were found; the test looks for the wrong thing", count)
	}
}

// TestEveryConversationThatThePagesNameExists does the same for conversations.
func TestEveryConversationThatThePagesNameExists(t *testing.T) {
	named := regexp.MustCompile(`conversations? ((?:\w+(?:, | and )?)+)`)
	for name, text := range allPages(t) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "| ") {
				continue
			}
			for _, found := range named.FindAllStringSubmatch(line, -1) {
				for conversation := range strings.FieldsFuncSeq(strings.ReplaceAll(found[1], " and ", ","), func(r rune) bool { return r == ',' || r == ' ' }) {
					file := filepath.Join("testdata", "conversations", conversation+".txtar")
					if _, err := os.Stat(file); err != nil {
						t.Errorf("%s names the conversation %q, which does not exist", name, conversation)
					}
				}
			}
		}
	}
}

// TestLinksLeadSomewhere follows the links between files of the project, and
// to the headings in them.
func TestLinksLeadSomewhere(t *testing.T) {
	texts := allPages(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for name, text := range texts {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, found[1])
			}
			if anchor != "" && !slices.Contains(anchors(texts[file]), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", name, found[1])
			}
		}
	}
}

// anchors returns the names that GitHub gives to a page's headings.
func anchors(text string) []string {
	var names []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(heading[1])
		name = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(name, "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

func TestTheArchitectureListsEveryPackage(t *testing.T) {
	text := page(allPages(t)["docs/architecture.md"])
	var listed []string
	for _, row := range text.section(t, "## The house").rows() {
		listed = append(listed, plainText(row[0]))
	}
	packages := map[string]bool{}
	sourceFiles(t, func(name, _ string) {
		if folder := filepath.ToSlash(filepath.Dir(name)); folder != "." && !strings.HasSuffix(name, "_test.go") {
			packages[folder] = true
		}
	})
	for _, name := range listed {
		if !packages[name] {
			t.Errorf("the page lists the package %s, which does not exist", name)
		}
		delete(packages, name)
	}
	for name := range packages {
		t.Errorf("the page does not list the package %s", name)
	}
}

func TestTheArchitectureGivesAReasonForEveryDependency(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	importers := map[string][]string{}
	for _, found := range regexp.MustCompile(`(?m)^(?:require )?\t?([\w./-]+\.[\w./-]+) v\S+$`).FindAllStringSubmatch(string(content), -1) {
		importers[found[1]] = nil
	}
	sourceFiles(t, func(name, content string) {
		for module, folders := range importers {
			folder := filepath.ToSlash(filepath.Dir(name))
			imports := strings.Contains(content, `"`+module+`"`) || strings.Contains(content, `"`+module+`/`)
			if imports && !strings.HasSuffix(name, "_test.go") && folder != "." && !slices.Contains(folders, folder) {
				importers[module] = append(folders, folder)
			}
		}
	})
	for _, row := range page(allPages(t)["docs/architecture.md"]).section(t, "## Dependencies").rows() {
		if len(row) != 3 || len(row[2]) < 8 {
			t.Fatalf("the row %q does not say module, packages and reason", row)
		}
		folders, known := importers[row[0]]
		if !known {
			t.Errorf("the page lists the dependency %s, which go.mod does not require", row[0])
		}
		slices.Sort(folders)
		delete(importers, row[0])
		listed := usedIn(row[1])
		if diff := cmp.Diff(folders, listed); diff != "" {
			t.Errorf("%s: the packages that import it (-) and those on the page (+) differ:\n%s", row[0], diff)
		}
	}
	for module := range importers {
		t.Errorf("the page does not say what %s is for", module)
	}
}

// usedIn returns the packages of a cell such as "gitops/git, runner; tests".
func usedIn(cell string) []string {
	cell, _, _ = strings.Cut(cell, ";")
	if strings.HasPrefix(cell, "tests") {
		return nil
	}
	listed := strings.Split(cell, ", ")
	slices.Sort(listed)
	return listed
}

// TestTheManifestAsksForWhatTheFrontDoorReads compares the events of the App's
// manifest with those that can become a command, by GitHub's own list of all.
func TestTheManifestAsksForWhatTheFrontDoorReads(t *testing.T) {
	var manifest struct {
		Events      []string          `json:"default_events"`
		Permissions map[string]string `json:"default_permissions"`
	}
	decode(t, filepath.Join(root, "deploy", "app-manifest.json"), &manifest)
	var description struct {
		Webhooks map[string]struct {
			Post struct {
				Parameters []struct {
					Name    string `json:"name"`
					Example string `json:"example"`
				} `json:"parameters"`
				OperationID string `json:"operationId"`
			} `json:"post"`
		} `json:"webhooks"`
	}
	decode(t, filepath.Join(root, "gitops", "fakegithub", "testdata", "github-webhooks-openapi.json"), &description)
	var read []string
	for _, hook := range description.Webhooks {
		event, action, _ := strings.Cut(hook.Post.OperationID, "/")
		event, action = strings.ReplaceAll(event, "-", "_"), strings.ReplaceAll(action, "-", "_")
		// GitHub sends these two to every App and lets nobody subscribe to them.
		if event == "installation" || event == "installation_repositories" {
			continue
		}
		if webhook.Matters(event, action) && !slices.Contains(read, event) {
			read = append(read, event)
		}
	}
	slices.Sort(read)
	slices.Sort(manifest.Events)
	if diff := cmp.Diff(read, manifest.Events); diff != "" {
		t.Errorf("the events that are read (-) and those of the manifest (+) differ:\n%s", diff)
	}
	want := map[string]string{
		"metadata": "read", "issues": "write", "pull_requests": "write", "contents": "write", "checks": "write", "actions": "read",
	}
	if diff := cmp.Diff(want, manifest.Permissions); diff != "" {
		t.Errorf("the manifest's permissions: %s", diff)
	}
}

func decode(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
