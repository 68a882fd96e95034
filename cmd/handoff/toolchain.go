package main

import (
	"os"
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
// other work to do.
func findToolchain() toolchain {
	found := toolchain{env: map[string]string{"PATH": defaultPath}}
	root := goRoot(filepath.SplitList(os.Getenv("PATH")))
	if root == "" {
		return found
	}
	found.env["PATH"] = filepath.Join(root, "bin") + ":" + defaultPath
	found.env["GOROOT"] = root
	if !strings.HasPrefix(root, "/usr/") {
		found.mounts = append(found.mounts, sandbox.Mount{Source: root})
	}
	return found
}

// goRoot follows the go command to the tree that it belongs to.
func goRoot(path []string) string {
	for _, dir := range path {
		command, err := filepath.EvalSymlinks(filepath.Join(dir, "go"))
		if err != nil {
			continue
		}
		root := filepath.Dir(filepath.Dir(command))
		if _, err := os.Stat(filepath.Join(root, "pkg", "tool")); err == nil {
			return root
		}
	}
	return ""
}
