package tools

import (
	"context"

	"handoff/agents"
)

type deleteFileArgs struct {
	Path string `json:"path" jsonschema:"file to delete, relative to the repository's root"`
}

// absent is the hash of no file, in an intent.
const absent = "absent"

func deleteFileTool(b *Toolbox) (agents.Tool, error) {
	tool, err := agents.MakeTool("delete_file",
		"Deletes a file. The session waits until a maintainer has approved it, so use it only when the task needs it.",
		b.deleteFile)
	tool.Effect = agents.EffectWorkspace
	tool.Reconcile = agents.ReconcileHash
	tool.NeedsApproval = approvalIf(func(call agents.Call) bool {
		args, err := agents.DecodeArgs[deleteFileArgs](call)
		if err != nil {
			return false
		}
		_, reason := b.checkDelete(call, args)
		return reason == ""
	})
	tool.Prepare = b.prepareDelete
	tool.Query = b.queryDelete
	return tool, err
}

// checkDelete returns the file, or the reason why it cannot be deleted.
func (b *Toolbox) checkDelete(call agents.Call, args deleteFileArgs) (file File, reason string) {
	clean, err := CleanPath(args.Path)
	if err != nil {
		return File{}, err.Error()
	}
	if reason := b.mayChange(call, clean); reason != "" {
		return File{}, reason
	}
	hash, err := b.config.Tree.HashFile(clean)
	switch {
	case err != nil:
		return File{}, err.Error()
	case hash == "":
		return File{}, b.missing(clean).Output
	}
	return File{Path: clean, Hash: hash}, ""
}

func (b *Toolbox) prepareDelete(_ context.Context, call agents.Call) (agents.Intent, error) {
	args, err := agents.DecodeArgs[deleteFileArgs](call)
	if err != nil {
		return agents.Intent{}, err
	}
	file, reason := b.checkDelete(call, args)
	if reason != "" {
		return agents.Intent{Path: args.Path}, nil // Run says what is wrong
	}
	return agents.Intent{Path: file.Path, Before: file.Hash, After: absent}, nil
}

func (b *Toolbox) queryDelete(_ context.Context, _ agents.Call, intent agents.Intent) (agents.Result, bool, error) {
	if intent.After != absent {
		return agents.Result{}, false, nil
	}
	if hash, err := b.config.Tree.HashFile(intent.Path); err != nil || hash != "" {
		return agents.Result{}, false, nil
	}
	return deleted(intent.Path), true, nil
}

func (b *Toolbox) deleteFile(_ context.Context, call agents.Call, args deleteFileArgs) (agents.Result, error) {
	file, reason := b.checkDelete(call, args)
	if reason != "" {
		return refused("%s", reason), nil
	}
	if err := b.config.Tree.Remove(file.Path); err != nil {
		return refusal(err)
	}
	return deleted(file.Path), nil
}

func deleted(path string) agents.Result {
	return agents.Result{Output: path + ": deleted", Summary: path}
}
