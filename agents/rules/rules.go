// Package rules keeps an index of a repository's rule files: conventions and
// instructions that people wrote for whoever changes the code.
//
// The idea is that an agent cannot read every rule for every task. So each
// rule file is read once by a model, which says in a sentence and a few tags
// what it is about, and agents choose by that. The parts:
//
//   - [Find] lists the rule files of a repository.
//   - [Summarise] asks a model about one file and checks the answer.
//   - [Update] brings the index up to date: files whose content did not change
//     are not asked about again, and the index is replaced as a whole or not
//     at all.
//
// A model's answer is never trusted: what does not have the form of a
// [Summary] is an LLM_ERROR, and nothing is written then.
package rules

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"handoff/agents"
)

// The limits of a summary (rule R32).
const (
	// MaxDescription is in characters; longer ones are cut.
	MaxDescription = 160
	MaxTags        = 5
)

// temperature is low: the same file should get the same summary.
const temperature = 0.2

// maxFile is how much of a rule file the model is shown, in bytes.
const maxFile = 64 << 10

// A Summary says what a rule file is about.
type Summary struct {
	// Description is one line of at most [MaxDescription] characters.
	Description string `json:"description"`
	// Tags are one to [MaxTags] words in lower case.
	Tags []string `json:"tags"`
}

// A Generator asks a model one question. The client of package agents/llm is
// one. Errors are [*agents.Error] with code LLM_ERROR or CANCELLED.
type Generator interface {
	GenerateText(ctx context.Context, messages []*agents.Message, options agents.GenerateOptions) (agents.Response, error)
}

//go:embed prompts/summarise.txt
var instructions string

// Summarise asks the model what a rule file is about. It fails with an
// [*agents.Error] with code LLM_ERROR when the model cannot be asked or its
// answer is no summary. The usage of the call is returned in any case where it
// is known.
func Summarise(ctx context.Context, model Generator, path, text string) (Summary, agents.Usage, error) {
	low := temperature
	response, err := model.GenerateText(ctx, question(path, text), agents.GenerateOptions{Name: "rule-summarizer", Temperature: &low})
	if err != nil {
		return Summary{}, agents.Usage{}, err
	}
	summary, err := parse(response.Text)
	if err != nil {
		return Summary{}, response.Usage, &agents.Error{
			Code: agents.CodeLLM, Kind: agents.KindMalformed, Err: err, Usage: response.Usage,
			Message: fmt.Sprintf("The model's summary of %s cannot be used: %v. Try again or use another model.", path, err),
		}
	}
	return summary, response.Usage, nil
}

// question frames the file by a random boundary, so that nothing in it can
// pretend to stand outside.
func question(path, text string) []*agents.Message {
	boundary := "B0" + rand.Text() // the digit lets tapes tell it from a word
	text = strings.ToValidUTF8(text[:min(len(text), maxFile)], "")
	return []*agents.Message{
		{Role: agents.RoleSystem, Content: instructions},
		{Role: agents.RoleUser, Content: fmt.Sprintf("The file %q:\n[begin %s]\n%s\n[end %s]", path, boundary, text, boundary)},
	}
}

// parse reads a model's answer and cleans it.
func parse(answer string) (Summary, error) {
	var raw struct {
		Description string   `json:"description"`
		Tags        []string `json:"tags"`
	}
	if err := json.Unmarshal([]byte(agents.Unfence(answer)), &raw); err != nil {
		return Summary{}, fmt.Errorf("it is not the JSON that was asked for: %w", err)
	}
	summary := Summary{Description: agents.OneLine(raw.Description)}
	if summary.Description == "" {
		return Summary{}, fmt.Errorf("the description is empty")
	}
	if utf8.RuneCountInString(summary.Description) > MaxDescription {
		summary.Description = string([]rune(summary.Description)[:MaxDescription])
	}
	for _, tag := range raw.Tags {
		if tag = strings.ToLower(agents.OneLine(tag)); tag != "" && !slices.Contains(summary.Tags, tag) {
			summary.Tags = append(summary.Tags, tag)
		}
	}
	if n := len(summary.Tags); n == 0 || n > MaxTags {
		return Summary{}, fmt.Errorf("it has %d tags, not 1 to %d", n, MaxTags)
	}
	return summary, nil
}
