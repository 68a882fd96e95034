package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"handoff/gitops/fakegithub"
	"handoff/gitops/github"
	"handoff/runner/outbox"
	"handoff/runner/store"
)

// aSignedShop wants commits that GitHub signs, and has a little of everything.
func aSignedShop() map[string]string {
	files := aShop()
	files[".github/handoff.yml"] = rules + "commit: {verified: true}\n"
	files["old/deep/gone.txt"] = "nobody needs this\n"
	files["kind"] = "a file that becomes a folder\n"
	files["tools/run.sh"] = "#!/bin/sh\n"
	return files
}

// changesOfAllKinds is what the crew does: binary content, modes, links, a
// deletion, a file in the place of which a folder comes, a large file.
const changesOfAllKinds = `printf 'a\000b\377' > logo.png; chmod +x tools/run.sh; ln -s ../logo.png old/link; rm -r old/deep
rm kind; mkdir kind; echo inside > kind/a.txt; mkdir -p deep/er/still; echo x > deep/er/still/x; cp logo.png copy.png
head -c 3000000 /dev/zero | tr '\000' 'x' > large.txt; echo grüße > 'ünï cöde.txt'`

// readySigned makes a session whose push is approved.
func readySigned(t *testing.T) (*world, string) {
	w := newWorld(t, aSignedShop())
	w.calls("run_command", map[string]any{"command": changesOfAllKinds})
	w.pushes()
	id := w.asked()
	w.sends(func() { w.works(); w.approves(id) })
	return w, id
}

// tip is where the branch of an approval is, with the commit as GitHub has it.
func (w *world) tip(row store.Approval) github.GitCommit {
	w.Helper()
	api := w.app.Installation(w.installation).Committer(w.repository)
	id, err := api.Branch(w.Context(), row.TargetRef)
	w.ok(err)
	if id == "" {
		return github.GitCommit{}
	}
	commit, err := api.Commit(w.Context(), id)
	w.ok(err)
	return commit
}

// Whatever was approved, GitHub makes a commit of exactly that, and signs it.
func TestGitHubSignsExactlyWhatWasApproved(t *testing.T) {
	w, id := readySigned(t)
	row := w.question(id)
	if prompt := w.prompt(id); !strings.Contains(prompt, "GitHub makes and signs") || !strings.Contains(prompt, "Co-authored-by: mona") {
		t.Errorf("nobody was told:\n%s", prompt)
	}
	conductor := w.newConductor() // a node that has not seen the session
	w.outbox.Publisher = conductor
	w.sends(func() { w.works(conductor) })
	session := w.is(id, store.StateCompleted)
	made := w.tip(row)
	if made.Tree != row.Tree || made.ID == row.Commit || len(made.Parents) != 1 || made.Parents[0] != row.Base || !made.Verified {
		t.Errorf("made was %+v, approved %s with the tree %s on %s", made, row.Commit, row.Tree, row.Base)
	}
	if !strings.Contains(made.Message, "Co-authored-by: mona <") {
		t.Errorf("its message is %q", made.Message)
	}
	if session.Variables[varPushedCommit] != made.ID {
		t.Errorf("the session remembers %s", session.Variables[varPushedCommit])
	}
	repository, _ := w.github.State().Repository(owner + "/" + name)
	pull, _ := repository.Issue(2)
	if pull.Pull == nil || pull.Pull.HeadSHA != made.ID || !strings.Contains(pull.Body, row.Tree) {
		t.Errorf("the pull request is %+v", pull)
	}
	files, err := w.github.CommitFiles(owner+"/"+name, made.ID)
	w.ok(err)
	if files["logo.png"] != "a\x00b\xff" || files["kind/a.txt"] != "inside\n" || files["old/link"] != "../logo.png" || files["old/deep/gone.txt"] != "" || len(files["large.txt"]) != 3_000_000 {
		t.Errorf("the files are %.200q", fmt.Sprint(files))
	}
}

// A second push goes on from the commit that GitHub made.
func TestASecondSignedPushGoesOnTopOfTheFirst(t *testing.T) {
	w := newWorld(t, aSignedShop())
	id := w.askedForTwoPushes()
	w.sends(func() { w.works(); w.approves(id) })
	w.sends(func() { w.works(); w.approves(id) })
	first := w.tip(w.question(id))
	second := w.question(id)
	if second.ExpectedRemote != first.ID {
		t.Errorf("the second expects %s, the first is %s", second.ExpectedRemote, first.ID)
	}
	w.outbox.Publisher = w.newConductor()
	w.sends(func() { w.works() })
	w.is(id, store.StateCompleted)
	if made := w.tip(second); made.Tree != second.Tree || made.Parents[0] != first.ID || !made.Verified {
		t.Errorf("made was %+v", made)
	}
}

// Whichever request fails, loses its answer, or is the last one of a process,
// the next attempt ends with one commit on the branch.
func TestASignedPushIsDoneOnceWhateverGoesWrong(t *testing.T) {
	for _, request := range []string{"GET ref/**", "POST blobs", "POST trees", "POST commits", "POST refs"} {
		for _, kind := range []string{fakegithub.FaultBadGateway, fakegithub.FaultLostRequest, fakegithub.FaultLostAnswer} {
			t.Run(request+" "+kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, aSignedShop())
				w.writes("a/greeting.txt", "hello\n")
				w.pushes()
				id := w.asked()
				w.sends(func() { w.works(); w.approves(id) })
				method, path, _ := strings.Cut(request, " ")
				w.github.AddFault(fakegithub.Fault{Kind: kind, Method: method, Path: "/repos/" + owner + "/" + name + "/git/" + path, Count: 20})
				effect := store.Effect{Key: "push", SessionID: id}
				_, err := w.conductor.Publish(t.Context(), effect, w.question(id))
				if _, refused := errors.AsType[*outbox.Refusal](err); refused {
					t.Fatalf("given up: %v", err)
				}
				// Only a branch that turns out to have been made is no failure.
				if found := path == "refs" && kind == fakegithub.FaultLostAnswer; (err == nil) != found {
					t.Errorf("the first attempt: %v", err)
				}
				w.github.ClearFaults()
				again := w.newConductor()
				result, err := again.Publish(t.Context(), effect, w.question(id))
				w.ok(err)
				if made := w.tip(w.question(id)); made.ID != result.Commit || made.Tree != w.question(id).Tree {
					t.Errorf("the branch is at %+v, the result is %+v", made, result)
				}
				w.ok(w.github.SetRole(owner+"/"+name, "mona", fakegithub.RoleRead))
				third, err := again.Publish(t.Context(), effect, w.question(id))
				w.ok(err)
				if third.Commit != result.Commit {
					t.Errorf("pushed %s, then %s", result.Commit, third.Commit)
				}
			})
		}
	}
}

// A meddler is a signer that goes wrong in one place.
type meddler struct {
	Signer
	blob   func() error
	tree   func(id string) string
	commit func(github.GitCommit) github.GitCommit
}

func (m meddler) CreateBlob(ctx context.Context, content []byte) (string, error) {
	if m.blob != nil {
		if err := m.blob(); err != nil {
			return "", err
		}
	}
	return m.Signer.CreateBlob(ctx, content)
}

func (m meddler) CreateTree(ctx context.Context, entries []github.GitEntry) (string, error) {
	id, err := m.Signer.CreateTree(ctx, entries)
	if m.tree != nil {
		id = m.tree(id)
	}
	return id, err
}

func (m meddler) CreateCommit(ctx context.Context, message, tree, parent string) (github.GitCommit, error) {
	commit, err := m.Signer.CreateCommit(ctx, message, tree, parent)
	if m.commit != nil {
		commit = m.commit(commit)
	}
	return commit, err
}

// What is not what was approved, or is not signed, never moves a branch.
func TestNothingMovesUnlessItIsWhatWasApproved(t *testing.T) {
	other := strings.Repeat("1", 40)
	for what, c := range map[string]struct {
		meddler meddler
		prepare func(w *world)
		want    string
	}{
		"another tree":             {meddler: meddler{tree: func(string) string { return other }}, want: "would not be the one that was approved"},
		"a commit of another tree": {meddler: meddler{commit: func(c github.GitCommit) github.GitCommit { c.Tree = other; return c }}, want: "not the approved"},
		"another parent":           {meddler: meddler{commit: func(c github.GitCommit) github.GitCommit { c.Parents = append(c.Parents, other); return c }}, want: "not the approved"},
		"no signature":             {prepare: func(w *world) { w.github.LeaveUnsigned(true) }, want: "did not sign the commit (unsigned)"},
		"a protected branch": {prepare: func(w *world) {
			w.ok(w.github.Protect(owner+"/"+name, fakegithub.Protection{Pattern: "copilot/*", RequirePullRequest: true}))
		}, want: "the branch is protected; exclude copilot/* from the protection"},
		"a ruleset": {prepare: func(w *world) {
			w.ok(w.github.Protect(owner+"/"+name, fakegithub.Protection{Pattern: "copilot/*", Ruleset: true}))
		}, want: "a ruleset of the repository forbids it; let the App bypass it"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, aSignedShop())
			w.writes("greeting.txt", "hello\n")
			w.pushes()
			id := w.asked()
			w.sends(func() { w.works(); w.approves(id) })
			if c.prepare != nil {
				c.prepare(w)
			}
			w.conductor.Signer = func(i, r int64) Signer {
				c.meddler.Signer = w.app.Installation(i).Committer(r)
				return c.meddler
			}
			_, err := w.conductor.Publish(t.Context(), store.Effect{Key: "push", SessionID: id}, w.question(id))
			refused, ok := errors.AsType[*outbox.Refusal](err)
			if !ok || !strings.Contains(refused.Reason, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if made := w.tip(w.question(id)); made.ID != "" {
				t.Errorf("the branch is at %+v", made)
			}
		})
	}
}

// GitHub's signing service being unwell is no reason to give up.
func TestASignatureThatMayComeLaterIsWaitedFor(t *testing.T) {
	w := newWorld(t, aSignedShop())
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	id := w.asked()
	w.sends(func() { w.works(); w.approves(id) })
	w.conductor.Signer = func(i, r int64) Signer {
		return meddler{Signer: w.app.Installation(i).Committer(r), commit: func(c github.GitCommit) github.GitCommit {
			c.Verified, c.Reason = false, "gpgverify_unavailable"
			return c
		}}
	}
	_, err := w.conductor.Publish(t.Context(), store.Effect{Key: "push", SessionID: id}, w.question(id))
	if _, refused := errors.AsType[*outbox.Refusal](err); refused || err == nil {
		t.Errorf("got %v", err)
	}
	if made := w.tip(w.question(id)); made.ID != "" {
		t.Errorf("the branch is at %+v", made)
	}
}

// Somebody else's commit on the branch is never lost, whenever it comes.
func TestASignedPushNeverOverwrites(t *testing.T) {
	for when, early := range map[string]bool{"before": true, "meanwhile": false} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t, aSignedShop())
			id := w.askedForTwoPushes()
			w.sends(func() { w.works(); w.approves(id) })
			w.sends(func() { w.works(); w.approves(id) })
			row := w.question(id)
			theirs := ""
			meddle := func() {
				var err error
				theirs, err = w.github.Commit(fakegithub.CommitSpec{
					Repository: owner + "/" + name, Branch: strings.TrimPrefix(row.TargetRef, "refs/heads/"), Author: "mona", Message: "mine",
					Files: map[string]string{"mine.txt": "mine\n"},
				})
				w.ok(err)
			}
			if early {
				meddle()
			}
			w.conductor.Signer = func(i, r int64) Signer {
				return meddler{Signer: w.app.Installation(i).Committer(r), commit: func(c github.GitCommit) github.GitCommit {
					meddle()
					return c
				}}
			}
			_, err := w.conductor.Publish(t.Context(), store.Effect{Key: "again", SessionID: id}, row)
			if refused, ok := errors.AsType[*outbox.Refusal](err); !ok || !strings.Contains(refused.Reason, "somebody else has pushed to copilot/") {
				t.Errorf("got %v", err)
			}
			if made := w.tip(row); made.ID != theirs {
				t.Errorf("the branch is at %s, theirs is %s", made.ID, theirs)
			}
		})
	}
}

// A push of more files than GitHub takes at a time goes on where the limit cut it
// off: no attempt begins again from the first file.
func TestASignedPushOutlastsALimit(t *testing.T) {
	const atATime, files = 5, 12
	w := newWorld(t, aSignedShop())
	w.calls("run_command", map[string]any{"command": fmt.Sprintf("for i in $(seq %d); do echo $i > file$i; done", files)})
	w.pushes()
	id := w.asked()
	w.sends(func() { w.works(); w.approves(id) })
	sent, left := 0, 0
	limit := &github.Error{Code: github.CodeRateLimited, RetryAt: time.Now().Add(time.Minute)}
	w.conductor.Signer = func(i, r int64) Signer {
		return meddler{Signer: w.app.Installation(i).Committer(r), blob: func() error {
			if left == 0 {
				return limit
			}
			left--
			sent++
			return nil
		}}
	}
	effect := store.Effect{Key: "push", SessionID: id}
	for attempt := 1; ; attempt++ {
		left = atATime
		_, err := w.conductor.Publish(t.Context(), effect, w.question(id))
		if err == nil {
			break
		}
		if !errors.Is(err, limit) || attempt > files/atATime {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
	}
	if made := w.tip(w.question(id)); made.Tree != w.question(id).Tree || sent != files {
		t.Errorf("%d files were sent for %+v", sent, made)
	}
}
