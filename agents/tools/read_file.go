package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"handoff/agents"
)

type readFileArgs struct {
	Path string `json:"path" jsonschema:"file to read, relative to the repository's root"`
	From int    `json:"from,omitempty" jsonschema:"first line to show, counted from 1; the start of the file if left out"`
	To   int    `json:"to,omitempty" jsonschema:"last line to show; as far as fits if left out"`
}

// The most that one read shows. The runner's own cap keeps head and tail of an
// output, which would tear a hole into a file; so a read stays below it and
// says how to go on.
const (
	maxReadLines = 600
	maxReadBytes = 40 << 10
)

func readFileTool(b *Toolbox) (agents.Tool, error) {
	return agents.MakeTool("read_file",
		"Shows a text file with line numbers, whole or from one line to another. The number and the tab after it are not part of the line. Read a file before you change it.",
		b.readFile)
}

func (b *Toolbox) readFile(_ context.Context, _ agents.Call, args readFileArgs) (agents.Result, error) {
	file, err := b.config.Tree.Read(args.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return b.missing(args.Path), nil
	}
	if err != nil {
		return refusal(err)
	}
	if isBinary(file.Data) {
		return refused("%s is a binary file of %d bytes and is not shown.", file.Path, len(file.Data)), nil
	}
	lines := splitLines(file.Data)
	first, last := max(args.From, 1), len(lines)
	if args.To > 0 {
		last = min(args.To, last)
	}
	if len(lines) == 0 {
		b.read.saw(file.Path, file.Hash, 1, 0, 0)
		return agents.Result{Output: shownLine(file.Path, 1, 0, 0, false, file.Hash) + "\n(the file is empty)", Summary: file.Path}, nil
	}
	if first > last {
		return refused("%s has %s; there is nothing from line %d to line %d.", file.Path, plural(len(lines), "line"), first, last), nil
	}
	return b.showFile(file, lines, first, last), nil
}

// showFile renders the lines from first to last, as far as they fit.
func (b *Toolbox) showFile(file File, lines []string, first, last int) agents.Result {
	var body strings.Builder
	cut := false
	end := first - 1
	for end < last && end-first+1 < maxReadLines && body.Len() < maxReadBytes {
		cut = numbered(&body, end+1, lines[end]) || cut
		end++
	}
	if !cut {
		b.read.saw(file.Path, file.Hash, first, end, len(lines))
	}
	output := shownLine(file.Path, first, end, len(lines), cut, file.Hash) + "\n" + body.String()
	if end < last {
		output += fmt.Sprintf("(more: call read_file with from=%d)\n", end+1)
	}
	return agents.Result{Output: output, Summary: fmt.Sprintf("%s, lines %d to %d", file.Path, first, end)}
}

// missing says that a file is not there, and which have its name elsewhere:
// models often know the name and guess the folder.
func (b *Toolbox) missing(name string) agents.Result {
	text := fmt.Sprintf("There is no file %s.", name)
	if similar := b.sameName(name); len(similar) > 0 {
		text += " Files of that name: " + strings.Join(similar, ", ") + "."
	} else {
		text += " list_files shows what exists."
	}
	return refused("%s", text)
}

// maxSimilar bounds the suggestions for a missing file.
const maxSimilar = 5
