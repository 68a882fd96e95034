package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"handoff/agents"
)

type writeFileArgs struct {
	Path      string `json:"path" jsonschema:"file to write, relative to the repository's root; folders are made as needed"`
	Content   string `json:"content" jsonschema:"the complete new content of the file"`
	ExpectSHA string `json:"expect_sha,omitempty" jsonschema:"refuse unless the file still has this sha256, as read_file showed it"`
}

// maxWrite is the largest content in bytes that a model may write at once.
const maxWrite = 1 << 20

func writeFileTool(b *Toolbox) (agents.Tool, error) {
	tool, err := agents.MakeTool("write_file",
		"Writes a whole file, new or existing. An existing file must have been read in this session. Write the complete content: what is left out is gone. For small changes of existing files patches are better.",
		b.writeFile)
	tool.Effect = agents.EffectWorkspace
	tool.Reconcile = agents.ReconcileHash
	tool.Prepare = b.prepareWrite
	tool.Query = b.queryWrite
	return tool, err
}

// prepareWrite records the hashes that settle the call. A call that Run will
// refuse has no hash after, so nothing in the files can be taken for its end.
func (b *Toolbox) prepareWrite(_ context.Context, call agents.Call) (agents.Intent, error) {
	args, err := agents.DecodeArgs[writeFileArgs](call)
	if err != nil {
		return agents.Intent{}, err
	}
	intent := agents.Intent{Path: args.Path}
	if before, reason := b.checkWrite(call, args); reason == "" {
		intent.Before, intent.After = before, hashOf([]byte(args.Content))
	}
	return intent, nil
}

func (b *Toolbox) queryWrite(_ context.Context, call agents.Call, intent agents.Intent) (agents.Result, bool, error) {
	args, err := agents.DecodeArgs[writeFileArgs](call)
	if err != nil || intent.After == "" {
		return agents.Result{}, false, err
	}
	now, err := b.config.Tree.HashFile(intent.Path)
	if err != nil || now != intent.After {
		return agents.Result{}, false, nil
	}
	return b.written(args), true, nil
}

func (b *Toolbox) writeFile(_ context.Context, call agents.Call, args writeFileArgs) (agents.Result, error) {
	if _, reason := b.checkWrite(call, args); reason != "" {
		return refused("%s", reason), nil
	}
	if err := b.config.Tree.Write(args.Path, []byte(args.Content)); err != nil {
		return refusal(err)
	}
	return b.written(args), nil
}

// checkWrite returns the file's hash before, "" for a new file, or the reason
// why the call is refused.
func (b *Toolbox) checkWrite(call agents.Call, args writeFileArgs) (before, reason string) {
	clean, err := CleanPath(args.Path)
	if err != nil {
		return "", err.Error()
	}
	if reason := b.mayChange(call, clean); reason != "" {
		return "", reason
	}
	if len(args.Content) > maxWrite {
		return "", fmt.Sprintf("%s: %d bytes are too much for one call; at most %d. Split the file, or make it by a command.", clean, len(args.Content), maxWrite)
	}
	file, err := b.config.Tree.Read(clean)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err.Error()
	}
	switch expected := strings.ToLower(strings.TrimSpace(args.ExpectSHA)); {
	case expected == "":
	case !exists:
		return "", fmt.Sprintf("%s does not exist, but expect_sha was given. Nothing was written.", clean)
	case len(expected) < 8 || !strings.HasPrefix(file.Hash, expected):
		return "", fmt.Sprintf("%s has sha256 %s now, not %s. Nothing was written. Read it again.", clean, shortHash(file.Hash), args.ExpectSHA)
	}
	if exists && string(file.Data) != args.Content {
		if reason := b.read.mayOverwrite(clean, file.Hash); reason != "" {
			return "", fmt.Sprintf("%s was not written: %s.", clean, reason)
		}
	}
	if line, found := elided(args.Content, file.Data); found > 0 {
		return "", fmt.Sprintf("%s was not written: line %d of the content, %q, stands for text that was left out. write_file replaces the whole file, so write it in full, or use apply_patch or edit for a part.", clean, found, line)
	}
	return file.Hash, ""
}

func (b *Toolbox) written(args writeFileArgs) agents.Result {
	clean, err := CleanPath(args.Path)
	if err != nil {
		return refused("%v", err)
	}
	hash := hashOf([]byte(args.Content))
	b.read.wrote(clean, hash)
	lines := len(splitLines([]byte(args.Content)))
	return agents.Result{
		Output:  writtenLine(clean, lines, hash),
		Summary: fmt.Sprintf("%s, %s", clean, plural(lines, "line")),
	}
}

// elision matches a line, comment marks aside, by which models stand for code
// that they leave out: "// ... existing code ...", "# … rest unchanged",
// "/* remaining methods stay the same */".
var elision = regexp.MustCompile(`(?i)^\s*(//|#|--|/\*|<!--|;|%|\*|\{/\*)?\s*(` +
	`(\.{3}|…).*\b(existing|rest|remaining|remainder|unchanged|previous|other|same|omitted|keep|as before)\b.*` +
	`|[\[(<]?\s*(the\s+)?(rest|remainder|remaining \w+) (of (the|this) \w+ )?(is |are |stays? |remains? )*(the )?(same|unchanged|as before)\s*[\])>]?` +
	`|\[?\s*existing (code|content)( here| goes here| unchanged)?\s*\]?(\.{3}|…)?` +
	`|.*\b(existing|rest|remaining|unchanged)\b.*(\.{3}|…)` +
	`)\s*(\*/|-->|\*/\})?\s*$`)

// elided finds the first line of the content that stands for omitted text and
// that the file does not have, as often and at whatever depth. Prose is left
// alone: a line without a comment mark must consist of the elision.
func elided(content string, before []byte) (line string, number int) {
	var own map[string]int
	for i, text := range splitLines([]byte(content)) {
		if !looksElided(text) {
			continue
		}
		if own == nil {
			own = map[string]int{}
			for _, known := range splitLines(before) {
				own[strings.TrimSpace(known)]++
			}
		}
		trimmed := strings.TrimSpace(text)
		if own[trimmed]--; own[trimmed] < 0 {
			return trimmed, i + 1
		}
	}
	return "", 0
}

// leavesOut refuses a change that writes an elision into the file, where it would
// stand for nothing.
func leavesOut(name string, before, after []byte) error {
	line, found := elided(string(after), before)
	if found == 0 {
		return nil
	}
	return &patchRefusal{path: name, counts: true, text: fmt.Sprintf("%s was not changed: an added line, %q, stands for text that was left out, and would be written as it is. Add the text itself; what is to stay needs no line.", name, line)}
}

// maxElision is the longest line that is taken for an elision; longer ones are
// sentences that happen to use the words.
const maxElision = 80

func looksElided(text string) bool {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || len(trimmed) > maxElision {
		return false
	}
	begins := strings.ContainsAny(trimmed[:1], "/#-<;%*{[(") || strings.HasPrefix(trimmed, "...") || strings.HasPrefix(trimmed, "…")
	return begins && elision.MatchString(text)
}
