package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"handoff/agents"
	"handoff/gitops/patch"
)

type applyPatchArgs struct {
	Path string `json:"path" jsonschema:"file to change, relative to the repository's root; for a diff of several files the first of them"`
	Diff string `json:"diff" jsonschema:"a unified diff: a line @@ before each hunk, kept lines with a leading space, removed lines with -, added lines with +; line numbers may be left out"`
}

// patchFailed opens the output of a patch that was refused.
const patchFailed = "apply_patch failed"

func applyPatchTool(b *Toolbox) (agents.Tool, error) {
	tool, err := agents.MakeTool("apply_patch",
		"Applies a unified diff to a file (or to several, each with its --- and +++ lines): all of it or nothing. Copy context and removed lines exactly from read_file. To create a file send added lines only.",
		b.applyPatch)
	tool.Effect = agents.EffectWorkspace
	tool.Reconcile = agents.ReconcileHash
	tool.NeedsApproval = b.patchNeedsApproval
	tool.Prepare = b.preparePatch
	tool.Query = b.queryPatch
	return tool, err
}

// A fileChange is what a patch makes of one file. The exported fields are the
// intent's detail, from which an interrupted call's output is written again.
type fileChange struct {
	Path    string         `json:"path"`
	NewPath string         `json:"new_path,omitempty"`
	Before  string         `json:"before,omitempty"`
	After   string         `json:"after,omitempty"`
	Deleted bool           `json:"deleted,omitempty"`
	Hunks   []patch.Placed `json:"hunks,omitempty"`

	source []byte
	result []byte
}

// target is where the file's content is afterwards.
func (c fileChange) target() string {
	if c.NewPath != "" {
		return c.NewPath
	}
	return c.Path
}

// patchRefusal is a patch that cannot be applied, with its text for the model.
type patchRefusal struct {
	path string
	text string
	// counts says that the failure is the diff's own and counts as an attempt.
	counts bool
}

func (r *patchRefusal) Error() string { return r.text }

// computePatch works out what the diff makes of the files, changing nothing.
func (b *Toolbox) computePatch(call agents.Call, args applyPatchArgs) ([]fileChange, error) {
	wanted, err := CleanPath(args.Path)
	if err != nil {
		return nil, &patchRefusal{text: err.Error()}
	}
	files, err := patch.Split(args.Diff)
	if err != nil {
		return nil, b.patchError(wanted, err)
	}
	changes := make([]fileChange, 0, len(files))
	for _, file := range files {
		change, err := b.computeFile(call, wanted, file, len(files) == 1)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// computeFile works out one file. Every path that the diff names must be one
// that the agent may change.
func (b *Toolbox) computeFile(call agents.Call, wanted string, file patch.FileDiff, alone bool) (fileChange, error) {
	name, err := b.patchedPath(wanted, file, alone)
	if err != nil {
		return fileChange{}, err
	}
	change := fileChange{Path: name}
	if reason := b.mayChange(call, name); reason != "" {
		return change, &patchRefusal{path: name, text: reason}
	}
	source, err := b.config.Tree.Read(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return change, &patchRefusal{path: name, text: err.Error()}
	}
	change.Before, change.source = source.Hash, source.Data
	if err == nil && change.source == nil {
		change.source = []byte{} // empty is not absent
	}
	result, err := file.Apply(change.source)
	if err != nil {
		return change, b.patchError(name, err)
	}
	if err := leavesOut(name, change.source, result.Text); err != nil {
		return change, err
	}
	change.Hunks, change.Deleted, change.result = result.Hunks, result.Deleted, result.Text
	if !change.Deleted {
		change.After = hashOf(result.Text)
	}
	if result.NewPath != "" && result.NewPath != name {
		return change, b.checkRename(call, &change, result.NewPath)
	}
	return change, nil
}

// checkRename sets where a renamed file goes.
func (b *Toolbox) checkRename(call agents.Call, change *fileChange, to string) error {
	clean, err := CleanPath(to)
	if err != nil {
		return &patchRefusal{text: err.Error()}
	}
	if reason := b.mayChange(call, clean); reason != "" {
		return &patchRefusal{path: clean, text: reason}
	}
	if _, err := b.config.Tree.Read(clean); !errors.Is(err, fs.ErrNotExist) {
		return &patchRefusal{path: clean, text: fmt.Sprintf("%s cannot become %s, which exists. Nothing was changed.", change.Path, clean)}
	}
	change.NewPath = clean
	return nil
}

// patchedPath decides which file a part of the diff is about. The argument
// names it; a header that clearly names another is a contradiction that only
// the model can resolve. Headers are often longer (absolute) or shorter (no
// folder) than the path; that is no contradiction unless the other file exists.
func (b *Toolbox) patchedPath(wanted string, file patch.FileDiff, alone bool) (string, error) {
	header := file.Path()
	if header == "" || header == wanted {
		return wanted, nil
	}
	clean, err := CleanPath(header)
	if !alone {
		if err != nil {
			return "", &patchRefusal{text: err.Error()}
		}
		return clean, nil
	}
	rooted := path.Clean("/" + header)
	if strings.HasSuffix(rooted, "/"+wanted) || strings.HasSuffix("/"+wanted, rooted) {
		if err != nil || clean == wanted {
			return wanted, nil
		}
		if hash, err := b.config.Tree.HashFile(clean); err == nil && hash == "" {
			return wanted, nil
		}
	}
	return "", &patchRefusal{path: wanted, text: fmt.Sprintf("path is %s, but the diff's header names %s. Nothing was changed. Say the same file in both.", wanted, header)}
}

// patchError adds to a refusal of the patch what the session knows about it.
func (b *Toolbox) patchError(name string, err error) error {
	failure, ok := errors.AsType[*patch.Error](err)
	if !ok {
		return err
	}
	return &patchRefusal{path: name, counts: true, text: fmt.Sprintf("%s (%s) on %s: %s", patchFailed, failure.Code, name, failure.Text)}
}

// patchNeedsApproval is true for a patch that makes a file go away: deleting
// is a maintainer's decision however it is asked for.
func (b *Toolbox) patchNeedsApproval(_ context.Context, call agents.Call) (bool, error) {
	args, err := agents.DecodeArgs[applyPatchArgs](call)
	if err != nil {
		return false, nil // Run says what is wrong
	}
	changes, err := b.computePatch(call, args)
	if err != nil {
		return false, nil
	}
	for _, change := range changes {
		if change.Deleted || change.NewPath != "" {
			return true, nil
		}
	}
	return false, nil
}

func (b *Toolbox) preparePatch(_ context.Context, call agents.Call) (agents.Intent, error) {
	args, err := agents.DecodeArgs[applyPatchArgs](call)
	if err != nil {
		return agents.Intent{}, err
	}
	changes, err := b.computePatch(call, args)
	if err != nil {
		return agents.Intent{Path: args.Path}, nil // Run says what is wrong
	}
	return patchIntent(changes)
}

// patchIntent records a patch. Before and After are hashes over all files.
func patchIntent(changes []fileChange) (agents.Intent, error) {
	detail, err := json.Marshal(changes)
	if err != nil {
		return agents.Intent{}, fmt.Errorf("recording a patch: %w", err)
	}
	var before, after strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&before, "%s %s\n", c.Path, c.Before)
		fmt.Fprintf(&after, "%s %s\n", c.target(), c.After)
	}
	return agents.Intent{
		Path:   changes[0].Path,
		Before: hashOf([]byte(before.String())),
		After:  hashOf([]byte(after.String())),
		Detail: string(detail),
	}, nil
}

// queryPatch settles an interrupted patch: it is done when every file has the
// content that was recorded. Anything else is not done; the runner resets the
// files and runs the call again.
func (b *Toolbox) queryPatch(_ context.Context, _ agents.Call, intent agents.Intent) (agents.Result, bool, error) {
	var changes []fileChange
	if intent.After == "" || json.Unmarshal([]byte(intent.Detail), &changes) != nil {
		return agents.Result{}, false, nil
	}
	for i, c := range changes {
		file, err := b.config.Tree.Read(c.target())
		switch {
		case errors.Is(err, fs.ErrNotExist) && c.Deleted:
		case err != nil || file.Hash != c.After:
			return agents.Result{}, false, nil
		}
		if c.NewPath != "" {
			if old, err := b.config.Tree.HashFile(c.Path); err != nil || old != "" {
				return agents.Result{}, false, nil
			}
		}
		changes[i].result = file.Data
	}
	return b.patched(changes), true, nil
}

func (b *Toolbox) applyPatch(_ context.Context, call agents.Call, args applyPatchArgs) (agents.Result, error) {
	changes, err := b.computePatch(call, args)
	if failure, ok := errors.AsType[*patchRefusal](err); ok {
		return b.patchRefused(args, failure), nil
	}
	if err != nil {
		return agents.Result{}, err
	}
	for _, c := range changes {
		if (c.Deleted || c.NewPath != "") && call.Approval == "" {
			return refused("%s: the patch deletes or renames the file, which needs a maintainer's approval, and there is none. Nothing was changed.", c.Path), nil
		}
	}
	if err := b.writeAll(changes); err != nil {
		return refusal(err)
	}
	b.failed.clear(changes[0].Path)
	return b.patched(changes), nil
}

// afterFailures is how many failed patches of a file make the text point to
// other ways.
const afterFailures = 2

func (b *Toolbox) patchRefused(args applyPatchArgs, failure *patchRefusal) agents.Result {
	text := failure.text
	if failure.counts {
		wanted, err := CleanPath(args.Path)
		if err != nil {
			wanted = failure.path
		}
		count, same := b.failed.note(wanted, args.Diff)
		if same {
			text += "\nThis is the same diff as the last time, word for word; it fails for the same reason. Change it."
		}
		if count >= afterFailures {
			text += fmt.Sprintf("\nPatches of %s have failed %d times now. Read the place again with read_file, then make one small change with edit.", failure.path, count)
		}
	}
	return agents.Result{Output: text, IsError: true, Summary: "patch refused"}
}

// writeAll writes every file or, if one cannot be written, puts back those
// that were.
func (b *Toolbox) writeAll(changes []fileChange) error {
	for i, c := range changes {
		err := b.writeChange(c)
		if err == nil {
			continue
		}
		for _, done := range changes[:i+1] {
			b.undo(done)
		}
		return err
	}
	return nil
}

func (b *Toolbox) writeChange(c fileChange) error {
	if c.Deleted {
		return b.config.Tree.Remove(c.Path)
	}
	if err := b.config.Tree.Write(c.target(), c.result); err != nil {
		return err
	}
	if c.NewPath != "" {
		return b.config.Tree.Remove(c.Path)
	}
	return nil
}

// undo puts a file back as it was. It is best effort: the disk that refused a
// write may refuse this one; the workspace is reset from its checkpoint then.
func (b *Toolbox) undo(c fileChange) {
	if c.NewPath != "" {
		_ = b.config.Tree.Remove(c.NewPath)
	}
	if c.source == nil {
		_ = b.config.Tree.Remove(c.Path)
		return
	}
	_ = b.config.Tree.Write(c.Path, c.source)
}

// patched is the output of a patch that was applied.
func (b *Toolbox) patched(changes []fileChange) agents.Result {
	var out strings.Builder
	added, removed := 0, 0
	for _, c := range changes {
		for _, h := range c.Hunks {
			added, removed = added+h.Added, removed+h.Removed
		}
		if c.Deleted {
			fmt.Fprintf(&out, "%s: deleted\n", c.Path)
			continue
		}
		if c.NewPath != "" {
			fmt.Fprintf(&out, "%s: renamed to %s\n", c.Path, c.NewPath)
		}
		b.read.patchedOrCreated(c)
		renderChange(&out, c)
	}
	return agents.Result{
		Output:  strings.TrimRight(out.String(), "\n"),
		Summary: fmt.Sprintf("%s +%d −%d", changes[0].target(), added, removed),
	}
}

// patchedOrCreated notes what the session knows of a patched file: all of it
// when the patch created it.
func (r *readSet) patchedOrCreated(c fileChange) {
	if c.Before == "" {
		r.wrote(c.target(), c.After)
		return
	}
	r.patched(c.target(), c.Before, c.After)
}

// The most that a success shows of what was changed.
const (
	aroundChange    = 3
	maxShownChanges = 120
)

// renderChange shows the changed ranges with a few lines around them.
func renderChange(out *strings.Builder, c fileChange) {
	lines := splitLines(c.result)
	fmt.Fprintln(out, changedLine(c.target(), len(lines), c.After, c.Before))
	shown, budget := 0, maxShownChanges
	for i, h := range c.Hunks {
		for _, note := range h.Notes {
			fmt.Fprintf(out, "(hunk %d: %s)\n", i+1, note)
		}
		from := max(shown+1, h.Line-aroundChange)
		to := min(len(lines), h.Line+h.Added-1+aroundChange)
		for at := from; at <= to && budget > 0; at++ {
			numbered(out, at, lines[at-1])
			shown = at
			budget--
		}
	}
	if budget == 0 {
		out.WriteString("(more was changed; read the file to see all of it)\n")
	}
}
