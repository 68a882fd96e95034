package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"handoff/gitops/patch"
)

type versionCommand struct{}

// Run prints the version of the program and of what it was built with.
func (versionCommand) Run(p *process) error {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	fmt.Fprintf(p.stdout, "handoff %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

type applyPatchCommand struct {
	JSONL bool `name:"jsonl" required:"" help:"Read {id, path, source, diff} as JSON lines and write {id, ok, result, …}."`
}

// Run applies the patches that come in until there are no more.
func (applyPatchCommand) Run(p *process) error {
	return patch.ServeJSONL(p.stdin, p.stdout)
}
