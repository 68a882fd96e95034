package repoconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAFileTightensTheOperatorsRules(t *testing.T) {
	file, faults := Parse([]byte(`
setup: go build ./...
test:
  - go vet ./...
  - go test ./...
timeout: 5m
limits: {turns: 20, cost_usd: 0.5, minutes: 15}
approval:
  role: maintain
  require_other: true
  expires: 24h
  check_run: never
models:
  tester: openai/gpt-4o-mini
instructions: [docs/CUSTOMS.md]
git: synthetic
commit: {author: requester, co_author: false, sign_off: true}
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got, faults := DefaultOperator().Resolve(file)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := Config{
		Setup:   []string{"go build ./..."},
		Test:    []string{"go vet ./...", "go test ./..."},
		Timeout: 5 * time.Minute,
		Limits: Limits{
			Turns: 20, Handoffs: 12, Tokens: 2_000_000, CostMicros: 500_000, ActiveTime: 15 * time.Minute,
		},
		Approval:     Approval{Role: RoleMaintain, RequireOther: true, Expires: 24 * time.Hour, CheckRun: "never"},
		Models:       map[string]string{"tester": "openai/gpt-4o-mini"},
		Instructions: []string{"docs/CUSTOMS.md"},
		Git:          GitSynthetic,
		Commit:       Commit{Author: AuthorRequester, SignOff: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyLoosensTheRulesFromBelow(t *testing.T) {
	operator := DefaultOperator()
	operator.Role = RoleMaintain
	file, faults := Parse([]byte("limits:\n  turns: 41\n  tokens: 3000000\napproval:\n  role: write\n  expires: 100h\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	config, faults := operator.Resolve(file)
	if config.Limits != operator.Limits || config.Approval.Role != RoleMaintain || config.Approval.Expires != operator.Expires {
		t.Errorf("a repository loosened the rules: %+v", config)
	}
	var lines []int
	for _, fault := range faults {
		lines = append(lines, fault.Line)
	}
	if diff := cmp.Diff([]int{2, 3, 6, 5}, lines); diff != "" {
		t.Errorf("the faults' lines: %s\n%v", diff, faults)
	}
}

func TestFaultsNameTheLineAndTheReason(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"setup: [go build", "line 1: is not YAML"},
		{"- a\n- b", "line 1: must be a mapping"},
		{"test: go test\ntests: go test", "line 2: `tests` is no setting"},
		{"test: a\ntest: b", "line 2: `test` is there twice"},
		{"test: {a: b}", "line 1: `test` must be a text"},
		{"limits:\n  turns: many", "line 2: `limits.turns` must be a number"},
		{"limits:\n  turns: -3", "line 2: `limits.turns` must be a number"},
		{"limits:\n  turns: .nan", "line 2: `limits.turns` must be a number"},
		{"limits: 5", "line 1: `limits` must be a mapping"},
		{"approval:\n  role: read", "line 2: `approval.role` must be one of write, maintain, admin"},
		{"approval:\n  require_other: maybe", "line 2: `approval.require_other` must be one of"},
		{"approval:\n  expires: soon", "line 2: `approval.expires` must be a time"},
		{"timeout: [1, 2]", "line 1: `timeout` must be a time"},
		{"instructions: ../secrets", "line 1: `instructions` names"},
		{"instructions: /etc/passwd", "line 1: `instructions` names"},
		{"test: a\n---\ntest: b", "more than one YAML document"},
		{strings.Repeat("#", 65<<10), "65536 are allowed"},
	} {
		file, faults := Parse([]byte(test.file))
		if file != nil || len(faults) == 0 || !strings.Contains(faults[0].String(), test.want) {
			t.Errorf("%.40q: %v, want a fault with %q", test.file, faults, test.want)
		}
	}
}

func TestAnEmptyFileSaysNothing(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "limits:\n"} {
		file, faults := Parse([]byte(text))
		if len(faults) > 0 {
			t.Fatalf("%q: %v", text, faults)
		}
		got, _ := DefaultOperator().Resolve(file)
		want, _ := DefaultOperator().Resolve(nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestEqualRulesHaveEqualHashes(t *testing.T) {
	first, _ := DefaultOperator().Resolve(nil)
	second, _ := DefaultOperator().Resolve(nil)
	if first.Hash() != second.Hash() {
		t.Error("the same rules have different hashes")
	}
	second.Approval.Role = RoleAdmin
	if first.Hash() == second.Hash() {
		t.Error("different rules have the same hash")
	}
}

func TestRolesAreOrdered(t *testing.T) {
	if !RoleAdmin.AtLeast(RoleWrite) || RoleWrite.AtLeast(RoleMaintain) || Role("owner?").AtLeast(RoleWrite) || Role("").AtLeast("none") {
		t.Error("the order of roles is wrong")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("setup: a\nlimits: {turns: 3}\napproval: {role: admin, expires: 4h}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, faults := Parse(data)
		if (file == nil) == (len(faults) == 0) {
			t.Fatalf("file %v with faults %v", file, faults)
		}
		DefaultOperator().Resolve(file)
	})
}

// Whom commits name follows the file as far as the operator and GitHub allow.
func TestWhomCommitsName(t *testing.T) {
	for _, c := range []struct {
		name, file string
		verified   bool
		want       Commit
		fault      string
	}{
		{"nothing said", "", false, Commit{Author: AuthorBot, CoAuthor: true}, ""},
		{"nobody beside the bot", "commit: {co_author: false}", false, Commit{Author: AuthorBot}, ""},
		{"signed off", "commit: {sign_off: true}", false, Commit{Author: AuthorBot, CoAuthor: true, SignOff: true}, ""},
		{"the requester's", "commit: {author: requester}", false, Commit{Author: AuthorRequester, CoAuthor: true}, ""},
		{"signed by GitHub", "commit: {verified: true}", false, Commit{Author: AuthorBot, CoAuthor: true, Verified: true}, ""},
		{"the operator's signature", "", true, Commit{Author: AuthorBot, CoAuthor: true, Verified: true}, ""},
		{"no way round the operator", "commit: {verified: false}", true, Commit{Author: AuthorBot, CoAuthor: true, Verified: true}, "commit.verified"},
		{"signed for somebody else", "commit: {verified: true, author: requester}", false, Commit{Author: AuthorBot, CoAuthor: true, Verified: true}, "commit.author"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, faults := Parse([]byte(c.file))
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			operator := DefaultOperator()
			operator.Verified = c.verified
			config, faults := operator.Resolve(file)
			if config.Commit != c.want {
				t.Errorf("%+v, want %+v", config.Commit, c.want)
			}
			if got := len(faults); got > 0 != (c.fault != "") || got > 0 && (faults[0].Field != c.fault || faults[0].Line != 1) {
				t.Errorf("faults %v, want one of %q", faults, c.fault)
			}
		})
	}
}
