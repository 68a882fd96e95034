package main

import (
	"path/filepath"
	"strings"

	"handoff/sandbox"
)

// A toolchain is what commands in the sandbox need beyond /usr.
type toolchain struct {
	mounts []sandbox.Mount
	env    map[string]string
}

// defaultPath are the directories that every sandbox has.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// findToolchain finds the machine's own Go, wherever it is installed, so that
// commands can build and test Go without a network. A machine without Go has
// other work to do. The user's module cache is left out: it may hold modules
// that not everybody who uses this server may see.
func findToolchain() toolchain {
	found := toolchain{env: map[string]string{"PATH": defaultPath}}
	installed, err := sandbox.GoToolchain()
	if err != nil {
		return found
	}
	found.env["PATH"] = filepath.Join(installed.Root, "bin") + ":" + defaultPath
	found.env["GOROOT"] = installed.Root
	if !strings.HasPrefix(installed.Root, "/usr/") {
		found.mounts = append(found.mounts, sandbox.Mount{Source: installed.Root})
	}
	return found
}
