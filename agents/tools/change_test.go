package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"handoff/agents"
	"handoff/agents/plan"
)

// An agent's path scope holds in every tool that changes files, for every path
// that a diff names.
func TestPathScopeHoldsEverywhere(t *testing.T) {
	files := map[string]string{"main.go": "package main\n", "main_test.go": "package main\n"}
	b := newBench(t, files)
	tester := scoped("**/*_test.go")
	both := "--- a/main_test.go\n+++ b/main_test.go\n@@\n-package main\n+package other\n--- a/main.go\n+++ b/main.go\n@@\n-package main\n+package other\n"
	rename := "diff --git a/main_test.go b/prod.go\nrename from main_test.go\nrename to prod.go\n"
	b.works("read_file", arguments{"path": "main.go"})
	for name, call := range map[string]struct {
		tool string
		args arguments
	}{
		"write":  {"write_file", arguments{"path": "main.go", "content": "x"}},
		"create": {"write_file", arguments{"path": "new.go", "content": "x"}},
		"patch":  {"apply_patch", arguments{"path": "main.go", "diff": "@@\n-package main\n+package x\n"}},
		"two":    {"apply_patch", arguments{"path": "main_test.go", "diff": both}},
		"rename": {"apply_patch", arguments{"path": "main_test.go", "diff": rename}},
		"edit":   {"edit", arguments{"path": "main.go", "old": "main", "new": "x"}},
		"delete": {"delete_file", arguments{"path": "main.go"}},
	} {
		result := b.use(call.tool, call.args, tester, approved)
		if !result.IsError || !strings.Contains(result.Output, "tester may not change") || !strings.Contains(result.Output, "**/*_test.go") {
			t.Errorf("%s: %s", name, result.Output)
		}
	}
	for name, content := range files {
		if b.get(name) != content {
			t.Errorf("%s was changed to %q", name, b.get(name))
		}
	}
	if result := b.use("write_file", arguments{"path": "x/new_test.go", "content": "package x\n"}, tester); result.IsError {
		t.Errorf("inside its scope: %s", result.Output)
	}
}

func TestUntouchablePathsAreRefusedWithTheReason(t *testing.T) {
	b := newBench(t, map[string]string{"vendor/lib/a.go": "package lib\n"}, func(c *Config) {
		c.Untouchable = func(path string) string {
			if strings.HasPrefix(path, "vendor/lib/") {
				return "it is a submodule"
			}
			return ""
		}
	})
	b.fails("edit", arguments{"path": "vendor/lib/a.go", "old": "lib", "new": "x"}, "it is a submodule")
	b.fails("write_file", arguments{"path": "vendor/lib/b.go", "content": "x"}, "it is a submodule")
}

func TestWriteFileRefusesElisions(t *testing.T) {
	before := "package a\n\n// ... existing code ... is how we mark it\nfunc a() {}\n"
	b := newBench(t, map[string]string{"a.go": before, "own.go": before})
	b.works("read_file", arguments{"path": "a.go"})
	for _, line := range []string{
		"// ... existing code ...", "\t// ... rest of the file unchanged", "# … remaining methods stay the same …", "/* ... other imports ... */",
		"<!-- rest unchanged -->", "... existing code ...", "// rest of the code remains the same", "{/* ... existing code ... */}", "// existing code...",
	} {
		b.fails("write_file", arguments{"path": "a.go", "content": "package a\n" + line + "\nfunc b() {}\n"}, "line 2 of the content", "write it in full")
	}
	for _, line := range []string{
		"// Keep the rest of the buffer for the next call.", "\tfmt.Println(\"...\")", "The existing code works...", "// unchanged",
		"args = append(args, rest...)", "# Usage: tool [options] file...", "// ... and so on", "    ...",
	} {
		content := "package a\n" + line + "\nfunc b() {}\n"
		b.works("write_file", arguments{"path": "a.go", "content": content})
	}
	b.works("read_file", arguments{"path": "own.go"})
	b.works("write_file", arguments{"path": "own.go", "content": before + "func b() {}\n"}) // the line is the file's own
}

// What write_file refuses a patch and an edit must not bring in either.
func TestNoElisionIsWrittenIntoAFile(t *testing.T) {
	b := newBench(t, map[string]string{"a.go": "package a\n\nfunc a() {}\n\n// ... existing code ...\nfunc z() {}\n"})
	const words = "stands for text that was left out"
	b.fails("apply_patch", arguments{"path": "a.go", "diff": "@@\n func a() {}\n+func b() {\n+\t// ... rest of the function unchanged\n+}\n"}, words)
	b.fails("edit", arguments{"path": "a.go", "old": "func a() {}", "new": "func a() {\n\t// ... existing code ...\n}"}, words)
	b.works("apply_patch", arguments{"path": "a.go", "diff": "@@\n func a() {}\n \n // ... existing code ...\n-func z() {}\n+func z() int { return 2 }\n"})
	b.works("edit", arguments{"path": "a.go", "old": "func a() {}", "new": "func a() int { return 1 }"})
	b.works("edit", arguments{"path": "a.go", "old": "// ... existing code ...", "new": "\t// ... existing code ..."}) // the file's own, moved
}

func TestWriteFileChecksTheExpectedHash(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n"})
	shown := b.works("read_file", arguments{"path": "a"})
	hash := fileLine.FindStringSubmatch(shown)[7]
	b.fails("write_file", arguments{"path": "a", "content": "two\n", "expect_sha": strings.Repeat("0", 16)}, "Nothing was written")
	b.fails("write_file", arguments{"path": "none", "content": "two\n", "expect_sha": hash}, "does not exist")
	b.works("write_file", arguments{"path": "a", "content": "two\n", "expect_sha": hash})
}

// A diff of several files is applied whole or not at all.
func TestAPatchOfSeveralFilesIsAtomic(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n", "b": "two\n"})
	diff := "--- a/a\n+++ b/a\n@@\n-one\n+1\n--- a/b\n+++ b/b\n@@\n-%s\n+2\n"
	b.fails("apply_patch", arguments{"path": "a", "diff": fmt.Sprintf(diff, "three")}, "apply_patch failed (no_match) on b")
	if b.get("a") != "one\n" {
		t.Errorf("half of it was applied: %q", b.get("a"))
	}
	b.works("apply_patch", arguments{"path": "a", "diff": fmt.Sprintf(diff, "two")}, "a: changed", "b: changed")
	if b.get("a") != "1\n" || b.get("b") != "2\n" {
		t.Errorf("a is %q, b is %q", b.get("a"), b.get("b"))
	}
}

// The header of a diff may be longer or shorter than the path, but must not
// mean another file.
func TestAPatchSaysItsFileTwice(t *testing.T) {
	b := newBench(t, map[string]string{"pkg/a.go": "one\n", "a.go": "one\n"})
	diff := func(header string) string { return "--- " + header + "\n+++ " + header + "\n@@\n-one\n+two\n" }
	for _, header := range []string{"/home/u/repo/pkg/a.go", "repo/pkg/a.go", "pkg/a.go"} {
		b.works("apply_patch", arguments{"path": "pkg/a.go", "diff": diff(header)})
		b.put("pkg/a.go", "one\n")
	}
	for _, header := range []string{"a.go", "b.go", "pkg/b.go"} {
		b.fails("apply_patch", arguments{"path": "pkg/a.go", "diff": diff(header)}, "Say the same file in both")
	}
}

// What makes a file go away waits for a maintainer, however it is asked for;
// what would be refused anyway does not.
func TestDeletingNeedsApproval(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n", "b": "two\n"})
	cases := map[string]struct {
		tool string
		args arguments
		want bool
	}{
		"delete_file":           {"delete_file", arguments{"path": "a"}, true},
		"a missing file":        {"delete_file", arguments{"path": "none"}, false},
		"outside":               {"delete_file", arguments{"path": "../x"}, false},
		"a patch that deletes":  {"apply_patch", arguments{"path": "a", "diff": "--- a/a\n+++ /dev/null\n@@\n-one\n"}, true},
		"an envelope that does": {"apply_patch", arguments{"path": "a", "diff": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, true},
		"a rename":              {"apply_patch", arguments{"path": "a", "diff": "diff --git a/a b/c\nrename from a\nrename to c\n"}, true},
		"one of two":            {"apply_patch", arguments{"path": "b", "diff": "--- a/b\n+++ b/b\n@@\n-two\n+2\n--- a/a\n+++ /dev/null\n@@\n-one\n"}, true},
		"an ordinary patch":     {"apply_patch", arguments{"path": "a", "diff": "@@\n-one\n+1\n"}, false},
		"a patch that fails":    {"apply_patch", arguments{"path": "a", "diff": "--- a/a\n+++ /dev/null\n@@\n-other\n"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			needs, err := b.tools[c.tool].NeedsApproval(t.Context(), b.call(c.tool, c.args))
			if err != nil || needs != c.want {
				t.Errorf("needs approval: %v, %v", needs, err)
			}
		})
	}
	b.fails("apply_patch", cases["a patch that deletes"].args, "needs a maintainer's approval")
	if b.get("a") != "one\n" {
		t.Fatal("deleted without approval")
	}
	if result := b.use("apply_patch", cases["a patch that deletes"].args, approved); result.IsError || b.get("a") != "(none)" {
		t.Errorf("after approval: %s", result.Output)
	}
	if result := b.use("delete_file", arguments{"path": "b"}, approved); result.IsError || b.get("b") != "(none)" {
		t.Errorf("after approval: %s", result.Output)
	}
}

// After a crash the hashes in the intent say whether a call was carried out,
// and an output written from them is the one that the call would have given.
func TestIntentsSettleInterruptedCalls(t *testing.T) {
	files := map[string]string{"a": "one\ntwo\nthree\n", "b": "x\n"}
	cases := map[string]struct {
		tool string
		args arguments
	}{
		"write":   {"write_file", arguments{"path": "new/c", "content": "c\n"}},
		"patch":   {"apply_patch", arguments{"path": "a", "diff": "@@\n one\n-two\n+2  \n three\n"}},
		"two":     {"apply_patch", arguments{"path": "a", "diff": "--- a/a\n+++ b/a\n@@\n-two\n+2\n--- a/b\n+++ b/b\n@@\n-x\n+y\n"}},
		"rename":  {"apply_patch", arguments{"path": "b", "diff": "diff --git a/b b/c\nrename from b\nrename to c\n@@\n-x\n+z\n"}},
		"removal": {"apply_patch", arguments{"path": "b", "diff": "--- a/b\n+++ /dev/null\n@@\n-x\n"}},
		"edit":    {"edit", arguments{"path": "a", "old": "two", "new": "2"}},
		"delete":  {"delete_file", arguments{"path": "b"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, files)
			tool, call := b.tools[c.tool], b.call(c.tool, c.args, approved)
			intent, err := tool.Prepare(t.Context(), call)
			if err != nil || intent.After == "" {
				t.Fatalf("intent %+v, %v", intent, err)
			}
			if _, done, err := tool.Query(t.Context(), call, intent); done || err != nil {
				t.Fatalf("done before it was run: %v, %v", done, err)
			}
			ran, err := tool.Run(t.Context(), call)
			if err != nil || ran.IsError {
				t.Fatalf("%s, %v", ran.Output, err)
			}
			settled, done, err := tool.Query(t.Context(), call, intent)
			if !done || err != nil {
				t.Fatalf("not done after it was run: %v", err)
			}
			if settled.Output != ran.Output || settled.Summary != ran.Summary {
				t.Errorf("settled as\n%s (%s)\nran as\n%s (%s)", settled.Output, settled.Summary, ran.Output, ran.Summary)
			}
		})
	}
}

// A call that will be refused leaves no hash by which it could seem done.
func TestRefusedCallsAreNeverDone(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n"})
	for tool, args := range map[string]arguments{
		"write_file":  {"path": "a", "content": "one\ntwo\n"},
		"apply_patch": {"path": "a", "diff": "@@\n-two\n+2\n"},
		"edit":        {"path": "a", "old": "two", "new": "2"},
		"delete_file": {"path": "b"},
	} {
		call := b.call(tool, args)
		intent, err := b.tools[tool].Prepare(t.Context(), call)
		if err != nil || intent.After != "" {
			t.Errorf("%s: intent %+v, %v", tool, intent, err)
		}
		if _, done, err := b.tools[tool].Query(t.Context(), call, intent); done || err != nil {
			t.Errorf("%s: done %v, %v", tool, done, err)
		}
	}
}

// The same diff sent twice is named as such; after two failures the text points
// to other ways; a success clears the record.
func TestRepeatedFailuresAreNamed(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n"})
	bad := arguments{"path": "a", "diff": "@@\n-two\n+2\n"}
	if first := b.fails("apply_patch", bad); strings.Contains(first, "same diff") || strings.Contains(first, "times now") {
		t.Errorf("the first failure: %s", first)
	}
	b.fails("apply_patch", bad, "the same diff as the last time", "failed 2 times now", "read_file", "edit")
	b.fails("apply_patch", arguments{"path": "a", "diff": "@@\n-three\n+3\n"}, "failed 3 times now")
	b.works("apply_patch", arguments{"path": "a", "diff": "@@\n-one\n+two\n+three\n"})
	if again := b.fails("apply_patch", arguments{"path": "a", "diff": "@@\n-four\n+4\n"}); strings.Contains(again, "times now") {
		t.Errorf("after a success: %s", again)
	}
}

// A restarted session knows from its items what it knew before: the same calls
// get the same answers.
func TestRestoreRemembersWhatTheSessionKnew(t *testing.T) {
	b := newBench(t, map[string]string{"read": "one\n", "part": "1\n2\n3\n", "patched": "one\ntwo\n", "unread": "x\n", "failed": "x\n"})
	b.works("read_file", arguments{"path": "read"})
	b.works("read_file", arguments{"path": "part", "to": 2})
	b.works("write_file", arguments{"path": "written", "content": "w\n"})
	b.works("read_file", arguments{"path": "patched"})
	b.works("apply_patch", arguments{"path": "patched", "diff": "@@\n-one\n+1\n"})
	b.works("edit", arguments{"path": "unread", "old": "x", "new": "read: lines 1-1 of 1, sha256 0123456789abcdef"})
	b.works("apply_patch", arguments{"path": "created", "diff": "@@\n+new\n"})
	b.fails("apply_patch", arguments{"path": "failed", "diff": "@@\n-y\n+z\n"})

	encoded, err := json.Marshal(b.items) // as it comes out of a journal
	if err != nil {
		t.Fatal(err)
	}
	var items []agents.Item
	if err := json.Unmarshal(encoded, &items); err != nil {
		t.Fatal(err)
	}
	b.open(b.box.config)
	b.box.Restore(items)

	for _, known := range []string{"read", "written", "patched", "created"} {
		b.works("write_file", arguments{"path": known, "content": "new " + known})
	}
	b.fails("write_file", arguments{"path": "part", "content": "y"}, "only a part")
	b.fails("write_file", arguments{"path": "unread", "content": "y"}, "only a part")
	b.fails("apply_patch", arguments{"path": "failed", "diff": "@@\n-y\n+z\n"}, "the same diff as the last time")
}

func TestPlanTaskSetsTheVariable(t *testing.T) {
	b := newBench(t, nil)
	result := b.use("plan_task", arguments{"tasks": []arguments{{"title": "Build it", "owner": "implementer"}, {"title": "Look", "done": true}}})
	expectContains(t, result.Output, []string{"2 tasks", "1. [ ] Build it (implementer)", "2. [x] Look"})
	list, err := plan.Decode(result.Variables[plan.Variable])
	if err != nil || len(list) != 2 || list[0].Owner != "implementer" || !list[1].Done {
		t.Errorf("the variable holds %v, %v", list, err)
	}
	b.fails("plan_task", arguments{"tasks": []arguments{{"title": "x", "owner": "nobody"}}}, `no agent is called "nobody"`)
	b.fails("plan_task", arguments{"tasks": []arguments{}}, "at least one task")
}
