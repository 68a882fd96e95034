package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Fixed places of a Go toolchain in a sandbox; see [GoToolchain].
const (
	GoRootPath     = "/opt/go"
	GoModCachePath = "/opt/gomodcache"
)

// A Toolchain is a set of read-only mounts and the environment to go with them.
type Toolchain struct {
	Mounts []Mount
	// Root is the host directory with the toolchain.
	Root string
}

// GoToolchain finds the Go toolchain of this machine by the PATH, and the
// module cache of the user if there is one. It starts nothing. The error is
// [CodeUnavailable] if there is no Go.
func GoToolchain() (Toolchain, error) {
	program, err := exec.LookPath("go")
	if err != nil {
		return Toolchain{}, fail(CodeUnavailable, err, "There is no Go toolchain on the PATH; install Go or add its bin directory")
	}
	resolved, err := filepath.EvalSymlinks(program)
	if err != nil {
		return Toolchain{}, fail(CodeUnavailable, err, "The Go toolchain at %s cannot be used", program)
	}
	root := filepath.Dir(filepath.Dir(resolved))
	if _, err := os.Stat(filepath.Join(root, "VERSION")); err != nil {
		return Toolchain{}, fail(CodeUnavailable, err, "%s is not the go command of a whole Go toolchain", resolved)
	}
	toolchain := Toolchain{Root: root, Mounts: []Mount{{Source: root, Target: GoRootPath}}}
	if cache := moduleCache(); isDirectory(cache) {
		toolchain.Mounts = append(toolchain.Mounts, Mount{Source: cache, Target: GoModCachePath})
	}
	return toolchain, nil
}

// Env returns the variables under which the go command works offline in the
// sandbox: its PATH, GOROOT and GOMODCACHE, and no look at any network.
// path is [Sandbox.Path].
func (t Toolchain) Env(path func(host string) string) map[string]string {
	env := map[string]string{
		"PATH":        filepath.Join(path(t.Root), "bin") + ":/usr/local/bin:/usr/bin:/bin",
		"GOROOT":      path(t.Root),
		"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOSUMDB": "off", "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0", "GOTELEMETRY": "off",
	}
	if len(t.Mounts) > 1 {
		env["GOMODCACHE"] = path(t.Mounts[1].Source)
	}
	return env
}

// moduleCache is where the go command keeps modules, by its documented defaults.
func moduleCache() string {
	if dir := os.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	if list := filepath.SplitList(os.Getenv("GOPATH")); len(list) > 0 && list[0] != "" {
		return filepath.Join(list[0], "pkg", "mod")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, "go", "pkg", "mod")
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
