package tools

import (
	"context"
	"fmt"
	"strings"

	"handoff/agents"
	"handoff/gitops/git"
)

type gitBlameArgs struct {
	Path string `json:"path" jsonschema:"file, relative to the repository's root"`
	From int    `json:"from,omitempty" jsonschema:"first line to show, counted from 1; the start of the file if left out"`
	To   int    `json:"to,omitempty" jsonschema:"last line to show; as far as fits if left out"`
}

// maxBlamed is how many lines one blame shows.
const maxBlamed = 200

// maxBlamedLine is how many bytes of one line it shows.
const maxBlamedLine = 200

func gitBlameTool(b *Toolbox) (agents.Tool, error) {
	return agents.MakeTool("git_blame",
		"Shows for each line of a file which commit brought it, when, and by whom. The file and its line numbers are those before this session, without what the crew has changed; git_log tells more about a commit.",
		b.gitBlame)
}

func (b *Toolbox) gitBlame(ctx context.Context, _ agents.Call, args gitBlameArgs) (agents.Result, error) {
	path, err := CleanPath(args.Path)
	if err != nil {
		return refusal(err)
	}
	lines, complete, err := b.config.History.Blame(ctx, path)
	if git.CodeOf(err) == git.CodeNotFound {
		return refused("There was no file %s before this session. list_files shows what exists; what is new has no history yet.", path), nil
	}
	if err != nil {
		return noHistory(err)
	}
	if len(lines) == 0 {
		return agents.Result{Output: path + " was empty before this session.", Summary: path}, nil
	}
	first, last := max(args.From, 1), len(lines)
	if args.To > 0 {
		last = min(args.To, last)
	}
	if first > last {
		return refused("%s had %s; there is nothing from line %d to line %d.", path, plural(len(lines), "line"), first, last), nil
	}
	return blamed(path, lines, first, last, complete), nil
}

// blamed renders the lines from first to last, as far as they fit.
func blamed(path string, lines []git.BlamedLine, first, last int, complete bool) agents.Result {
	var body strings.Builder
	end := first - 1
	for end < last && end-first+1 < maxBlamed && body.Len() < maxHistoryBytes {
		line := lines[end]
		end++
		text, _ := showLine(strings.TrimSuffix(line.Text, "\r"), maxBlamedLine)
		fmt.Fprintf(&body, "%6d\t%s\t%s\n", end, commitHead(line.Commit, line.When.UTC().Format("2006-01-02"), line.Author), text)
	}
	output := fmt.Sprintf("%s before this session, lines %d to %d of %d. %s\n%s", path, first, end, len(lines), historyNote, body.String())
	if end < last {
		output += fmt.Sprintf("(more: call git_blame with from=%d)\n", end+1)
	}
	if !complete {
		output += "(older commits are not kept here: lines may be older than this says)\n"
	}
	return agents.Result{Output: output, Summary: fmt.Sprintf("%s, lines %d to %d", path, first, end)}
}
