package session

import (
	"fmt"
	"strings"
	"testing"

	"handoff/gitops/secrets"
	"handoff/runner/store"
)

// shaped looks like a cloud key, and hidden is the same with something unseen
// in the middle of it.
const (
	shaped = "AKIA" + "Z5VYFN7Q2WPLKJ3T"
	hidden = "AKIA" + "\u200bZ5VYFN7Q2WPLKJ3T"
)

// Wherever a secret is put, nobody is asked, and the crew is told file, line and
// rule and not the secret.
func TestASecretAnywhereInAPushStopsIt(t *testing.T) {
	type push = map[string]any
	plain := push{"title": "Greet people", "body": "As asked."}
	for what, c := range map[string]struct {
		path, content string
		push          push
		where         string
	}{
		"nowhere":                          {path: "a.txt", content: "hello\n", push: plain},
		"a file":                           {path: "deep/a.txt", content: "one\ntwo\nkey = " + shaped + "\n", push: plain, where: "deep/a.txt:3: aws-access-token"},
		"a file that is named like images": {path: "a.svg", content: "<svg>" + shaped + "</svg>\n", push: plain, where: "a.svg:1: aws-access-token"},
		"a lock file":                      {path: "package-lock.json", content: "{\"a\": \"" + shaped + "\"}\n", push: plain, where: "package-lock.json:1: aws-access-token"},
		"vendored code":                    {path: "node_modules/a/b.js", content: "x = '" + shaped + "'\n", push: plain, where: "node_modules/a/b.js:1: aws-access-token"},
		"a scanner's own settings":         {path: "my-gitleaks.toml", content: "key = '" + shaped + "' # gitleaks:allow\n", push: plain, where: "my-gitleaks.toml:1: aws-access-token"},
		"a file's name":                    {path: shaped + ".txt", content: "hello\n", push: plain, where: "names of files:1: aws-access-token"},
		"the title":                        {path: "a.txt", content: "x\n", push: push{"title": "Add " + shaped, "body": "b"}, where: "title:1: aws-access-token"},
		"the body":                         {path: "a.txt", content: "x\n", push: push{"title": "t", "body": "one\ntwo " + shaped}, where: "body:2: aws-access-token"},
		"the body, in parts":               {path: "a.txt", content: "x\n", push: push{"title": "t", "body": "one\ntwo " + hidden}, where: "body:2: aws-access-token"},
		"the body, around a comment":       {path: "a.txt", content: "x\n", push: push{"title": "t", "body": "AKIA<!-- -->Z5VYFN7Q2WPLKJ3T"}, where: "body:1: aws-access-token"},
		"the message":                      {path: "a.txt", content: "x\n", push: push{"title": "t", "body": "b", "commit_message": "s\n\n" + shaped}, where: "commit message:3: aws-access-token"},
		"the message, in parts":            {path: "a.txt", content: "x\n", push: push{"title": "t", "body": "b", "commit_message": "s\n\n" + hidden}, where: "commit message:3: aws-access-token"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]string{"README.md": "A shop.\n"})
			w.conductor.Scanner = secrets.New("canary-Kq7vT2mXw9RzB4nYc6Hd8Lp3")
			w.writes(c.path, c.content)
			w.calls("git_push", c.push)
			id := w.asked()
			w.works()
			if c.where == "" {
				w.is(id, store.StateAwaitingApproval)
				return
			}
			w.is(id, store.StateCompleted)
			outputs := w.outputs(id)
			if told := outputs[len(outputs)-1]; !strings.Contains(told, c.where) || strings.Contains(told, shaped[4:]) {
				t.Errorf("the crew is told %q, want %q", told, c.where)
			}
			if rows, err := w.store.ApprovalsOfSession(t.Context(), id); err != nil || len(rows) > 0 {
				t.Errorf("%d people were asked, %v", len(rows), err)
			}
		})
	}
}

// Whom a pushed commit names follows the rules of the repository, by the ids of
// accounts, whatever the crew writes.
func TestWhomPushedCommitsName(t *testing.T) {
	const bot, mona = "crew[bot] <BOT+crew[bot]@users.noreply.localhost>", "mona <MONA+mona@users.noreply.localhost>"
	for rule, want := range map[string][]string{
		"{}":                  {bot, bot, "Co-authored-by: " + mona},
		"{co_author: false}":  {bot, bot},
		"{sign_off: true}":    {bot, bot, "Co-authored-by: " + mona, "Signed-off-by: " + bot},
		"{author: requester}": {mona, bot, "Co-authored-by: " + bot},
		"{author: requester, co_author: false, sign_off: true}": {mona, bot, "Signed-off-by: " + mona},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]string{"README.md": "A shop.\n", ".github/handoff.yml": "commit: " + rule + "\n"})
			w.writes("a.txt", "hello\n")
			w.calls("git_push", map[string]any{"title": "Greet", "body": "b", "commit_message": "Greet\n\nSigned-off-by: Eve <eve@evil>\nCo-authored-by: Eve <eve@evil>\nAuthor: Eve"})
			id := w.asked()
			w.sends(func() { w.works(); w.approves(id) })
			w.sends(func() { w.works() })
			w.is(id, store.StateCompleted)
			commit, err := w.github.CommitDetails(owner+"/"+name, w.question(id).Commit)
			w.ok(err)
			_, trailers, _ := strings.Cut(strings.TrimSpace(commit.Message), "Author: Eve")
			got := append([]string{commit.Author, commit.Committer}, strings.Split(strings.TrimSpace(trailers), "\n")...)
			if all := w.anonymous(strings.TrimSpace(strings.Join(got, "\n"))); all != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", all, strings.Join(want, "\n"))
			}
			if strings.Contains(commit.Message, "evil") {
				t.Errorf("the crew named somebody: %s", commit.Message)
			}
		})
	}
}

// anonymous replaces the ids of accounts, which are the world's.
func (w *world) anonymous(text string) string {
	for _, user := range w.github.State().Users {
		name := map[string]string{"crew[bot]": "BOT", "mona": "MONA"}[user.Login]
		if name != "" {
			text = strings.ReplaceAll(text, fmt.Sprintf("<%d+%s@", user.ID, user.Login), "<"+name+"+"+user.Login+"@")
		}
	}
	return text
}
