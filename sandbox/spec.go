package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// reserved are the places of a sandbox's root that mounts may not cover.
var reserved = []string{"/proc", "/dev", "/sys", "/tmp", "/etc", WorkspacePath}

// resolve checks a specification against the host, follows the symbolic links
// of its sources, and returns it with every default filled in.
func (s Spec) resolve() (Spec, error) {
	if !validID.MatchString(s.ID) {
		return s, fail(CodeInvalidSpec, nil, "The session id %q is not made of 1 to 64 letters, digits, '.', '_' or '-'.", s.ID)
	}
	if field := s.Limits.negative(); field != "" {
		return s, fail(CodeInvalidSpec, nil, "The limit %s is negative.", field)
	}
	if s.Network != NetworkNone {
		return s, fail(CodeInvalidSpec, nil, "The local sandbox offers no network %q.", s.Network)
	}
	if err := checkEnv(CodeInvalidSpec, s.Env); err != nil {
		return s, err
	}
	s.Limits = s.Limits.orDefault(DefaultLimits())
	var err error
	if s.Workspace, err = hostDir("workspace", s.Workspace); err != nil {
		return s, err
	}
	if s.ReadOnly, err = resolveMounts(s.ReadOnly, false); err != nil {
		return s, err
	}
	if s.Writable, err = resolveMounts(s.Writable, true); err != nil {
		return s, err
	}
	if err := checkOverlap(s); err != nil {
		return s, err
	}
	if s.LogDir != "" {
		if s.LogDir, err = hostDir("log directory", s.LogDir); err != nil {
			return s, err
		}
	}
	return s, s.checkLogDir()
}

func hostDir(what, path string) (string, error) {
	resolved, info, err := hostPath(what, path)
	if err == nil && !info.IsDir() {
		err = fail(CodeInvalidSpec, nil, "The %s %s is not a directory.", what, path)
	}
	return resolved, err
}

func hostPath(what, path string) (string, os.FileInfo, error) {
	if !filepath.IsAbs(path) {
		return "", nil, fail(CodeInvalidSpec, nil, "The %s %q is not an absolute path.", what, path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, fail(CodeInvalidSpec, err, "The %s %s cannot be used", what, path)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", nil, fail(CodeInvalidSpec, err, "The %s %s cannot be used", what, path)
	}
	if resolved == "/" {
		return "", nil, fail(CodeInvalidSpec, nil, "The %s is the root of the host's file system.", what)
	}
	return resolved, info, nil
}

func resolveMounts(mounts []Mount, dirsOnly bool) ([]Mount, error) {
	out := make([]Mount, 0, len(mounts))
	for _, mount := range mounts {
		target := mount.Target
		if target == "" {
			target = filepath.Clean(mount.Source)
		}
		if err := checkTarget(target); err != nil {
			return nil, err
		}
		resolve := hostDir
		if !dirsOnly {
			resolve = func(what, path string) (string, error) {
				resolved, _, err := hostPath(what, path)
				return resolved, err
			}
		}
		source, err := resolve("mount", mount.Source)
		if err != nil {
			return nil, err
		}
		out = append(out, Mount{Source: source, Target: target})
	}
	return out, nil
}

func checkTarget(target string) error {
	if !filepath.IsAbs(target) || filepath.Clean(target) != target || target == "/" {
		return fail(CodeInvalidSpec, nil, "The mount target %q is not a clean absolute path.", target)
	}
	for _, place := range reserved {
		if _, inside := below(place, target); inside {
			return fail(CodeInvalidSpec, nil, "The mount target %s lies in %s, which the sandbox makes itself.", target, place)
		}
	}
	return nil
}

// checkOverlap refuses targets that hide one another, and a read-only source
// inside of a writable one, which commands could change from the other side.
func checkOverlap(s Spec) error {
	all := append(append([]Mount{}, s.ReadOnly...), s.Writable...)
	for i, a := range all {
		for _, b := range all[i+1:] {
			if overlap(a.Target, b.Target) {
				return fail(CodeInvalidSpec, nil, "The mount targets %s and %s overlap.", a.Target, b.Target)
			}
		}
	}
	writable := []string{s.Workspace}
	for _, mount := range s.Writable {
		writable = append(writable, mount.Source)
	}
	for _, dir := range writable {
		for _, mount := range s.ReadOnly {
			if overlap(dir, mount.Source) {
				return fail(CodeInvalidSpec, nil, "The read-only mount %s and the writable directory %s overlap.", mount.Source, dir)
			}
		}
	}
	return nil
}

// checkLogDir keeps logs out of what commands can reach.
func (s Spec) checkLogDir() error {
	if s.LogDir == "" {
		return nil
	}
	visible := append([]Mount{{Source: s.Workspace}}, append(append([]Mount{}, s.ReadOnly...), s.Writable...)...)
	for _, mount := range visible {
		if _, inside := below(mount.Source, s.LogDir); inside {
			return fail(CodeInvalidSpec, nil, "The log directory %s lies in %s, which commands can see.", s.LogDir, mount.Source)
		}
	}
	return nil
}

func overlap(a, b string) bool {
	_, ab := below(a, b)
	_, ba := below(b, a)
	return ab || ba
}

func checkEnv(code Code, env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fail(code, nil, "The environment variable %q has a name or value that no program can be given.", name)
		}
	}
	return nil
}

// check reports what is wrong with a command.
func (c Command) check() error {
	if (len(c.Args) == 0) == (c.Shell == "") {
		return fail(CodeInvalidCommand, nil, "A command has either arguments or a shell script.")
	}
	if len(c.Args) > 0 && c.Args[0] == "" {
		return fail(CodeInvalidCommand, nil, "The command's program is empty.")
	}
	for _, arg := range append([]string{c.Shell, c.Dir}, c.Args...) {
		if strings.ContainsRune(arg, 0) {
			return fail(CodeInvalidCommand, nil, "The command holds a NUL byte.")
		}
	}
	if c.Dir != "" && !filepath.IsLocal(c.Dir) {
		return fail(CodeInvalidCommand, nil, "The working directory %q is not relative to the workspace.", c.Dir)
	}
	if field := c.Limits.negative(); field != "" {
		return fail(CodeInvalidCommand, nil, "The limit %s is negative.", field)
	}
	return checkEnv(CodeInvalidCommand, c.Env)
}

// argv returns the program and its arguments.
func (c Command) argv() []string {
	if c.Shell != "" {
		return []string{"/bin/sh", "-c", c.Shell}
	}
	return c.Args
}

// environ merges environments, later ones over earlier ones.
func environ(layers ...map[string]string) []string {
	merged := map[string]string{}
	for _, layer := range layers {
		for name, value := range layer {
			merged[name] = value
		}
	}
	list := make([]string, 0, len(merged))
	for name, value := range merged {
		list = append(list, fmt.Sprintf("%s=%s", name, value))
	}
	return list
}
