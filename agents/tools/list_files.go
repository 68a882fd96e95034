package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"handoff/agents"
)

type listFilesArgs struct {
	Path string `json:"path,omitempty" jsonschema:"folder to list; the whole repository if left out"`
	Glob string `json:"glob,omitempty" jsonschema:"show only files that match, such as **/*.go or cmd/**; a pattern without / matches names in every folder"`
}

// maxListed is how many lines a listing has at most.
const maxListed = 300

func listFilesTool(b *Toolbox) (agents.Tool, error) {
	return agents.MakeTool("list_files",
		"Lists the files below a folder, without what .gitignore leaves out. Large folders are shown as one line with the number of their files; list them by themselves.",
		b.listFiles)
}

func (b *Toolbox) listFiles(ctx context.Context, _ agents.Call, args listFilesArgs) (agents.Result, error) {
	match, err := globFilter(args.Glob)
	if err != nil {
		return refused("%v", err), nil
	}
	var names []string
	err = b.config.Tree.walk(ctx, args.Path, b.config.Ignored, func(_ *os.Root, name string, entry fs.DirEntry) error {
		if match(name) {
			if entry.Type()&fs.ModeSymlink != 0 {
				name += " (symbolic link)"
			}
			names = append(names, name)
		}
		return nil
	})
	tooMany := errors.Is(err, errTooMany)
	if err != nil && !tooMany {
		return refusal(err)
	}
	if len(names) == 0 {
		return agents.Result{Output: "No files match.", Summary: "no files"}, nil
	}
	output := plural(len(names), "file") + ":\n" + strings.Join(collapse(names, maxListed), "\n")
	if tooMany {
		output += "\n(there are more; name a folder)"
	}
	return agents.Result{Output: output, Summary: plural(len(names), "file")}, nil
}

// collapse shortens a listing to at most limit lines by showing deep folders
// as one line with a count, the deepest ones first.
func collapse(names []string, limit int) []string {
	for depth := maxDepth(names); len(names) > limit && depth > 1; depth-- {
		if shorter := collapseTo(names, depth-1); len(shorter) <= limit || depth == 2 {
			names = shorter
			break
		}
	}
	if len(names) > limit {
		rest := len(names) - limit
		names = append(slices.Clone(names[:limit]), fmt.Sprintf("(%d more; name a folder or a glob)", rest))
	}
	return names
}

func maxDepth(names []string) int {
	depth := 0
	for _, name := range names {
		depth = max(depth, strings.Count(name, "/")+1)
	}
	return depth
}

// collapseTo shows everything deeper than depth folders as its folder.
func collapseTo(names []string, depth int) []string {
	var lines []string
	folder, files := "", 0
	flush := func() {
		if files > 0 {
			lines = append(lines, fmt.Sprintf("%s/ (%s)", folder, plural(files, "file")))
		}
		folder, files = "", 0
	}
	for _, name := range names {
		components := strings.Split(name, "/")
		if len(components) <= depth {
			flush()
			lines = append(lines, name)
			continue
		}
		if parent := strings.Join(components[:depth], "/"); parent != folder {
			flush()
			folder = parent
		}
		files++
	}
	flush()
	return lines
}

// globFilter turns a glob argument into a test; "" lets everything through.
func globFilter(glob string) (func(string) bool, error) {
	if glob == "" {
		return func(string) bool { return true }, nil
	}
	glob = strings.TrimPrefix(glob, "./")
	if err := agents.CheckGlob(glob); err != nil {
		return nil, err
	}
	if !strings.Contains(glob, "/") {
		glob = "**/" + glob
	}
	return func(name string) bool { return agents.MatchGlob(glob, name) }, nil
}

// sameName finds files that have the wanted file's name in other folders.
func (b *Toolbox) sameName(name string) []string {
	var found []string
	base := path.Base(name)
	// Suggestions are a courtesy: what cannot be walked gives none.
	_ = b.config.Tree.walk(context.Background(), ".", b.config.Ignored, func(_ *os.Root, other string, _ fs.DirEntry) error {
		if strings.EqualFold(path.Base(other), base) {
			found = append(found, other)
		}
		if len(found) == maxSimilar {
			return fs.SkipAll
		}
		return nil
	})
	return found
}
