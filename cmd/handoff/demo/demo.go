// Package demo holds the story that handoff demo plays: a small Go service
// without a login endpoint, the words of the person who asks for one, and the
// tape of a crew that adds it.
//
// The story is data. The repository is one txtar file, the issue another, the
// tape a file of model answers; everything else in a demo is the real program.
// The tape's answers are fixed, but nothing that they lead to is: the files
// are really written, the builds and tests really run, and the Tester's test
// fails because the Implementer's first version really tells a stranger who
// has an account.
//
// The tape also holds what the model was told, normalised. The program does not
// look at that, its test does: see TestTheStory.
package demo

import (
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"

	"golang.org/x/tools/txtar"

	"handoff/agents/llm/tape"
)

var (
	//go:embed repository.txtar
	repository []byte
	//go:embed issue.txtar
	issue []byte
	//go:embed tape.jsonl
	answers []byte
)

// Repository is the name of the story's repository.
const Repository = "shelf"

// Files returns the repository's first commit.
func Files() (fs.FS, error) {
	return txtar.FS(txtar.Parse(repository))
}

// An Issue is what a person writes on GitHub.
type Issue struct {
	Title   string
	Body    string
	Command string
}

// TheIssue returns the issue and the comment that start the story.
func TheIssue() (Issue, error) {
	parts := map[string]string{}
	for _, file := range txtar.Parse(issue).Files {
		parts[file.Name] = string(bytes.TrimSpace(file.Data))
	}
	story := Issue{Title: parts["title"], Body: parts["body"], Command: parts["command"]}
	if story.Title == "" || story.Command == "" {
		return story, fmt.Errorf("the story's issue lacks a title or a command")
	}
	return story, nil
}

// Tape returns the crew's answers.
func Tape() (*tape.Tape, error) {
	return tape.Read(bytes.NewReader(answers))
}
