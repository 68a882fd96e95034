package approval

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"handoff/runner/report"
)

// A File is one file of a diff, as the prompt shows it and the risks see it.
type File struct {
	Path string
	// Status is added, modified, deleted, mode or type.
	Status    string
	Additions int
	Deletions int
	Binary    bool
	// Mode and OldMode are git's modes in octal, "" where the file is not.
	Mode    string
	OldMode string
	// AddedLines and RemovedLines are the changed lines of a text file.
	AddedLines   []string
	RemovedLines []string
}

// A Risk is something about a diff that a reviewer must not overlook.
type Risk struct {
	// What says it in a few words; Paths are the files concerned.
	What  string
	Paths []string
}

// maxRiskPaths bounds how many files one risk names.
const maxRiskPaths = 10

// A detector looks at one file.
type detector struct {
	what  string
	finds func(File) bool
}

var detectors = []detector{
	{"changes what CI runs with the repository's secrets", func(f File) bool {
		return strings.HasPrefix(f.Path, ".github/workflows/") || strings.HasPrefix(f.Path, ".github/actions/") ||
			named(f, ".gitlab-ci.yml", "Jenkinsfile", "azure-pipelines.yml", "action.yml", "action.yaml")
	}},
	{"changes the rules: who approves, what agents are told", func(f File) bool {
		return f.Path == ".github/handoff.yml" || strings.HasPrefix(f.Path, ".github/agents/") || named(f, "CODEOWNERS")
	}},
	{"changes instructions that agents read", func(f File) bool {
		return named(f, "AGENTS.md", "CLAUDE.md", "GEMINI.md", "copilot-instructions.md") || strings.HasPrefix(f.Path, ".cursor/")
	}},
	{"changes scripts that CI or a build is likely to run", func(f File) bool {
		return named(f, "Makefile", "GNUmakefile", "package.json", "build.gradle", "build.rs", "setup.py", "conftest.py", "Dockerfile", "Rakefile", "Justfile") ||
			strings.HasSuffix(f.Path, ".sh")
	}},
	{"changes dependencies", func(f File) bool {
		return named(f, "go.mod", "requirements.txt", "pyproject.toml", "Cargo.toml", "pom.xml", "Gemfile", "composer.json")
	}},
	{"changes a lock file", func(f File) bool {
		return named(f, "go.sum", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock", "poetry.lock", "uv.lock", "Gemfile.lock", "composer.lock")
	}},
	{"makes a file executable", func(f File) bool { return f.Mode == "100755" && f.OldMode != "100755" }},
	{"adds or changes a symbolic link", func(f File) bool { return f.Mode == "120000" }},
	{"adds or changes a submodule", func(f File) bool { return f.Mode == "160000" || named(f, ".gitmodules") }},
	{"adds or changes a binary file, which the diff does not show", func(f File) bool { return f.Binary && f.Status != "deleted" }},
	{"adds characters that cannot be seen", func(f File) bool { return slices.ContainsFunc(f.AddedLines, report.HasHidden) }},
	{"deletes tests", func(f File) bool { return f.Status == "deleted" && isTest(f.Path) }},
	{"takes more out of a test than it adds", func(f File) bool {
		return f.Status == "modified" && isTest(f.Path) && f.Deletions > f.Additions
	}},
	{"skips tests", func(f File) bool { return isTest(f.Path) && slices.ContainsFunc(f.AddedLines, skipsTest) }},
	{"deletes files", func(f File) bool { return f.Status == "deleted" && !isTest(f.Path) }},
}

// Risks lists what is risky about a diff, the gravest first.
func Risks(files []File) []Risk {
	var risks []Risk
	for _, detector := range detectors {
		var paths []string
		for _, file := range files {
			if detector.finds(file) {
				paths = append(paths, file.Path)
			}
		}
		if extra := len(paths) - maxRiskPaths; extra > 0 {
			paths = append(paths[:maxRiskPaths], fmt.Sprintf("and %d more", extra))
		}
		if len(paths) > 0 {
			risks = append(risks, Risk{What: detector.what, Paths: paths})
		}
	}
	return risks
}

func named(file File, names ...string) bool {
	base := path.Base(file.Path)
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, base) })
}

func isTest(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "test_") ||
		strings.Contains(base, ".test.") || strings.Contains(base, ".spec.") ||
		slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(folder string) bool {
			return folder == "test" || folder == "tests" || folder == "__tests__" || folder == "spec"
		})
}

// skipMarks are how tests are skipped in the languages that people use most.
var skipMarks = []string{"t.Skip(", "t.Skipf(", "t.SkipNow(", "@pytest.mark.skip", "@unittest.skip", "it.skip(", "test.skip(", "describe.skip(", "xit(", "xdescribe(", "@Disabled", "@Ignore", "#[ignore"}

func skipsTest(line string) bool {
	return slices.ContainsFunc(skipMarks, func(mark string) bool { return strings.Contains(line, mark) })
}
