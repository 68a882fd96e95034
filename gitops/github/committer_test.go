package github_test

import (
	"strings"
	"testing"

	"handoff/gitops/fakegithub"
	"handoff/gitops/github"
)

// A commit that is made object by object is GitHub's own, and the branch moves
// only forward.
func TestACommitterMakesSignedCommits(t *testing.T) {
	s := newStage(t)
	c, ctx := s.installation.Committer(s.repository.ID), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	base, ref := s.repository.Branches["main"], "refs/heads/copilot/1"
	made := func(content, parent string) github.GitCommit {
		t.Helper()
		blob, err := c.CreateBlob(ctx, []byte(content))
		must(err)
		tree, err := c.CreateTree(ctx, []github.GitEntry{{Name: "a.bin", Mode: "100755", Kind: "blob", ID: blob}})
		must(err)
		commit, err := c.CreateCommit(ctx, "Add it\n\nCo-authored-by: mona <mona@example.com>\n", tree, parent)
		must(err)
		if commit.Tree != tree || len(commit.Parents) != 1 || commit.Parents[0] != parent || !commit.Verified || commit.Reason != "valid" || !strings.Contains(commit.Message, "Co-authored-by") {
			t.Errorf("made was %+v", commit)
		}
		return commit
	}
	first := made("a\x00b\xff", base)
	if at, err := c.Branch(ctx, ref); err != nil || at != "" {
		t.Errorf("before it is made the branch is at %q, %v", at, err)
	}
	must(c.CreateBranch(ctx, ref, first.ID))
	err := c.CreateBranch(ctx, ref, first.ID)
	if failed, ok := err.(*github.Error); !ok || failed.Code != github.CodeValidation || failed.Said != "Reference already exists" {
		t.Errorf("made twice: %v", err)
	}
	second, beside := made("c", first.ID), made("d", base)
	must(c.MoveBranch(ctx, ref, second.ID))
	err = c.MoveBranch(ctx, ref, beside.ID)
	if failed, ok := err.(*github.Error); !ok || failed.Code != github.CodeValidation || failed.Said != "Update is not a fast forward" {
		t.Errorf("moved aside: %v", err)
	}
	if at, err := c.Branch(ctx, ref); err != nil || at != second.ID {
		t.Errorf("the branch is at %q, %v", at, err)
	}
	if found, err := c.Commit(ctx, second.ID); err != nil || found.Tree != second.Tree || !found.Verified {
		t.Errorf("found %+v, %v", found, err)
	}
	files, err := s.CommitFiles("octo/login", first.ID)
	must(err)
	if files["a.bin"] != "a\x00b\xff" {
		t.Errorf("the files are %q", files)
	}
}

// A branch that may have been made is said to be unknown; an object may simply
// be made again.
func TestWhatALostAnswerOfTheGitDataAPIMeans(t *testing.T) {
	s := newStage(t)
	c, ctx := s.installation.Committer(s.repository.ID), t.Context()
	base := s.repository.Branches["main"]
	lose := func(path string) {
		s.AddFault(fakegithub.Fault{Kind: fakegithub.FaultLostAnswer, Method: "POST", Path: "/repos/octo/login/git/" + path})
	}
	lose("blobs")
	if _, err := c.CreateBlob(ctx, []byte("x")); github.CodeOf(err) != github.CodeUnavailable {
		t.Errorf("a file: %v", err)
	}
	lose("refs")
	if err := c.CreateBranch(ctx, "refs/heads/copilot/1", base); github.CodeOf(err) != github.CodeUnknownOutcome {
		t.Errorf("a branch: %v", err)
	}
	if at, err := c.Branch(ctx, "refs/heads/copilot/1"); err != nil || at != base {
		t.Errorf("the branch is at %q, %v", at, err)
	}
}
