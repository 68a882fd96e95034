package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/google/jsonschema-go/jsonschema"

	"handoff/agents"
	"handoff/gitops/patch"
)

type editArgs struct {
	Path       string `json:"path" jsonschema:"file to change, relative to the repository's root"`
	Old        string `json:"old" jsonschema:"text to replace, copied exactly from the file, with enough around it to be there only once"`
	New        string `json:"new" jsonschema:"text to put in its place"`
	Expect     int    `json:"expect,omitempty" jsonschema:"how often old must be in the file; 1 if left out"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence, however many there are"`
}

func editTool(b *Toolbox) (agents.Tool, error) {
	tool, err := agents.MakeTool("edit",
		"Replaces one exact piece of text in a file. Refuses if the piece is not there, or more often than expected.",
		b.edit,
		func(schema *jsonschema.Schema) {
			schema.Properties["old"].MinLength = jsonschema.Ptr(1)
			schema.Properties["expect"].Minimum = jsonschema.Ptr(1.0)
		})
	tool.Effect = agents.EffectWorkspace
	tool.Reconcile = agents.ReconcileHash
	tool.Prepare = b.prepareEdit
	tool.Query = b.queryPatch // an edit is recorded as a patch of one file
	return tool, err
}

// computeEdit works out what the edit makes of the file, changing nothing.
func (b *Toolbox) computeEdit(call agents.Call, args editArgs) (fileChange, error) {
	clean, err := CleanPath(args.Path)
	if err != nil {
		return fileChange{}, &patchRefusal{text: err.Error()}
	}
	if reason := b.mayChange(call, clean); reason != "" {
		return fileChange{}, &patchRefusal{path: clean, text: reason}
	}
	file, err := b.config.Tree.Read(clean)
	if errors.Is(err, fs.ErrNotExist) {
		return fileChange{}, &patchRefusal{path: clean, text: b.missing(clean).Output}
	}
	if err != nil {
		return fileChange{}, &patchRefusal{path: clean, text: err.Error()}
	}
	source := file.Data
	if source == nil {
		source = []byte{}
	}
	result, err := patch.Edit(source, args.Old, args.New, args.Expect, args.ReplaceAll)
	if failure, ok := errors.AsType[*patch.Error](err); ok {
		return fileChange{}, &patchRefusal{path: clean, text: fmt.Sprintf("edit failed (%s) on %s: %s", failure.Code, clean, failure.Text)}
	}
	if err != nil {
		return fileChange{}, err
	}
	if err := leavesOut(clean, source, result.Text); err != nil {
		return fileChange{}, err
	}
	return fileChange{
		Path: clean, Before: file.Hash, After: hashOf(result.Text), Hunks: result.Hunks,
		source: source, result: result.Text,
	}, nil
}

func (b *Toolbox) prepareEdit(_ context.Context, call agents.Call) (agents.Intent, error) {
	args, err := agents.DecodeArgs[editArgs](call)
	if err != nil {
		return agents.Intent{}, err
	}
	change, err := b.computeEdit(call, args)
	if err != nil {
		return agents.Intent{Path: args.Path}, nil // Run says what is wrong
	}
	return patchIntent([]fileChange{change})
}

func (b *Toolbox) edit(_ context.Context, call agents.Call, args editArgs) (agents.Result, error) {
	change, err := b.computeEdit(call, args)
	if failure, ok := errors.AsType[*patchRefusal](err); ok {
		return agents.Result{Output: failure.text, IsError: true, Summary: "edit refused"}, nil
	}
	if err != nil {
		return agents.Result{}, err
	}
	if err := b.writeAll([]fileChange{change}); err != nil {
		return refusal(err)
	}
	b.failed.clear(change.Path)
	return b.patched([]fileChange{change}), nil
}
