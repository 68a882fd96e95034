package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"handoff/agents"
)

type searchFilesArgs struct {
	Pattern    string `json:"pattern" jsonschema:"what to look for: a regular expression (RE2 syntax), or plain text if literal is true"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"take the pattern as plain text"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"treat upper and lower case alike"`
	Path       string `json:"path,omitempty" jsonschema:"folder or file to search; the whole repository if left out"`
	Glob       string `json:"glob,omitempty" jsonschema:"search only files that match, such as *.go or docs/**"`
	Context    int    `json:"context,omitempty" jsonschema:"lines to show before and after each match, 0 to 10"`
	Limit      int    `json:"limit,omitempty" jsonschema:"most matching lines to show, 1 to 500; 100 if left out"`
}

// The limits of a search.
const (
	defaultMatches = 100
	maxMatches     = 500
	maxContext     = 10
	// maxSearchOutput is in bytes, below the runner's own cap.
	maxSearchOutput = 32 << 10
	maxShownMatch   = 300
)

func searchFilesTool(b *Toolbox) (agents.Tool, error) {
	return agents.MakeTool("search_files",
		"Searches the text files of the repository, line by line, without what .gitignore leaves out, and shows the matching lines with their numbers.",
		b.searchFiles,
		func(schema *jsonschema.Schema) {
			schema.Properties["pattern"].MinLength = jsonschema.Ptr(1)
			schema.Properties["context"].Minimum = jsonschema.Ptr(0.0)
			schema.Properties["context"].Maximum = jsonschema.Ptr(float64(maxContext))
			schema.Properties["limit"].Minimum = jsonschema.Ptr(1.0)
			schema.Properties["limit"].Maximum = jsonschema.Ptr(float64(maxMatches))
		})
}

func (b *Toolbox) searchFiles(ctx context.Context, _ agents.Call, args searchFilesArgs) (agents.Result, error) {
	pattern, err := searchPattern(args)
	if err != nil {
		return refused("%v", err), nil
	}
	match, err := globFilter(args.Glob)
	if err != nil {
		return refused("%v", err), nil
	}
	search := &search{pattern: pattern, context: min(max(args.Context, 0), maxContext), limit: defaultMatches}
	if args.Limit > 0 {
		search.limit = min(args.Limit, maxMatches)
	}
	err = b.config.Tree.walk(ctx, args.Path, b.config.Ignored, func(root *os.Root, name string, entry fs.DirEntry) error {
		if !match(name) || !entry.Type().IsRegular() {
			return nil
		}
		return search.file(root, name)
	})
	if err != nil && !errors.Is(err, errTooMany) {
		return refusal(err)
	}
	return search.result(), nil
}

func searchPattern(args searchFilesArgs) (*regexp.Regexp, error) {
	text := args.Pattern
	if args.Literal {
		text = regexp.QuoteMeta(text)
	}
	if args.IgnoreCase {
		text = "(?i)" + text
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("the pattern is no valid regular expression (%w); escape special characters with \\ or set literal to true", err)
	}
	return pattern, nil
}

// A search collects matches.
type search struct {
	pattern *regexp.Regexp
	context int
	limit   int

	out     strings.Builder
	matches int
	files   int
	full    bool
}

// file searches one file. What cannot be read or is no text has no matches.
func (s *search) file(root *os.Root, name string) error {
	file, err := readIn(root, name)
	if err != nil || isBinary(file.Data) || !s.pattern.Match(file.Data) && !s.anchored() {
		return nil
	}
	lines := splitLines(file.Data)
	shown := 0 // lines up to here have been shown
	for i, line := range lines {
		if !s.pattern.MatchString(line) {
			continue
		}
		if s.matches == s.limit || s.out.Len() > maxSearchOutput {
			s.full = true
			return fs.SkipAll
		}
		if shown == 0 {
			s.files++
			fmt.Fprintf(&s.out, "%s\n", name)
		}
		shown = s.show(lines, i, shown)
		s.matches++
	}
	return nil
}

// anchored says that the pattern may match a line and not the file as a whole.
func (s *search) anchored() bool { return strings.ContainsAny(s.pattern.String(), "^$\\") }

// show writes match i with its context, without repeating lines.
func (s *search) show(lines []string, i, shown int) int {
	from := max(shown, i-s.context)
	if shown > 0 && from > shown && s.context > 0 {
		s.out.WriteString("   ...\n")
	}
	to := min(len(lines), i+s.context+1)
	for at := from; at < to; at++ {
		mark := ":"
		if at != i && !s.pattern.MatchString(lines[at]) {
			mark = "-"
		}
		text, _ := showLine(lines[at], maxShownMatch)
		fmt.Fprintf(&s.out, "%6d%s\t%s\n", at+1, mark, text)
	}
	return to
}

func (s *search) result() agents.Result {
	if s.matches == 0 {
		return agents.Result{Output: "Nothing matches. Try a shorter pattern, ignore_case, or another folder.", Summary: "no match"}
	}
	summary := "1 match in 1 file"
	if s.matches > 1 {
		summary = fmt.Sprintf("%d matches in %s", s.matches, plural(s.files, "file"))
	}
	output := summary + ":\n" + s.out.String()
	if s.full {
		output += "(there are more; narrow the pattern, the folder or the glob)\n"
	}
	return agents.Result{Output: output, Summary: summary}
}
