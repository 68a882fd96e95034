package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"handoff/gitops/git"
	"handoff/sandbox"
)

// lockFiles decide, beside the commands, whether a setup's caches still fit.
var lockFiles = []string{
	"go.mod", "go.sum", "package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock",
	"poetry.lock", "uv.lock", "requirements.txt", "Gemfile.lock", "composer.lock", "pom.xml",
}

// setups makes the setups of one key wait for each other, and whoever reads
// what they made.
var setups turns

// setUp runs the repository's setup in the session's workspace, once. Caches
// that it fills are kept for later sessions with the same lock files, and the
// crew gets a copy: only the setup, which is the base commit's own code, ever
// writes to what others use.
func (h *hold) setUp(ctx context.Context) error {
	done := filepath.Join(h.workspaceDir(h.session.ID), "setup.done")
	if _, err := os.Stat(done); err == nil || len(h.config.Setup) == 0 || h.bench.box == nil {
		return nil
	}
	key, err := h.setupKey(ctx)
	if err != nil {
		return err
	}
	shared := h.setupDir(h.session.InstallationID, h.session.RepositoryID, key)
	unlock, err := lockSetup(ctx, shared)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	// The sweep goes by when a cache was last used.
	now := time.Now()
	if err := os.Chtimes(shared, now, now); err != nil {
		return err
	}
	h.progress.hostDoes("running the setup: " + strings.Join(h.config.Setup, " && "))
	// It may take minutes, in which nothing else would be said.
	if err := h.progress.edit(ctx, "", nil); err != nil {
		return err
	}
	if err := h.setUpBase(ctx, shared); err != nil {
		return err
	}
	if err := copyCache(shared, h.bench.cache); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

// setUpBase runs the setup on the files of the base. Work that the workspace
// was opened with, of an earlier session or another node, is put back
// afterwards: code that nobody approved writes nothing that others use.
func (h *hold) setUpBase(ctx context.Context, shared string) (err error) {
	work, err := h.bench.last(ctx)
	if err != nil {
		return err
	}
	if work != nil {
		if err := h.bench.restore(ctx, nil); err != nil {
			return gitFault(err)
		}
		defer func() {
			err = errors.Join(err, gitFault(h.bench.restore(context.WithoutCancel(ctx), work)))
		}()
	}
	return h.runSetup(ctx, shared)
}

// runSetup runs the commands around the shared cache and puts back what they
// changed in the repository: the diff is the crew's, not the setup's.
func (h *hold) runSetup(ctx context.Context, shared string) error {
	logs := filepath.Join(h.workspaceDir(h.session.ID), "logs")
	box, err := h.createBox(ctx, h.bench.workspace, h.spec(h.session.ID+"-setup", h.bench.workspace.Tree(), shared, logs))
	if err != nil {
		return err
	}
	defer box.Close()
	before, err := h.bench.workspace.Checkpoint(ctx, nil)
	if err != nil {
		return gitFault(err)
	}
	for _, command := range h.config.Setup {
		result, err := box.Exec(ctx, sandbox.Command{Shell: command, Env: environment(box, shared)})
		if err != nil {
			return err
		}
		if result.Reason == sandbox.ReasonCanceled {
			return context.Canceled
		}
		if !result.OK() {
			return &fault{
				code:    "SETUP",
				message: fmt.Sprintf("The setup command `%s` failed (%s):\n\n%s", command, ending(result), tail(h.redact(box.Normalize(result.Output)), 3_000)),
				next:    "Mend the setup on the default branch and comment `/copilot retry`.",
			}
		}
	}
	_, err = h.bench.workspace.RevertOutside(ctx, before, func(string) bool { return false })
	return gitFault(err)
}

// ending says in words how a command ended.
func ending(result sandbox.Result) string {
	if result.Reason == sandbox.ReasonExited {
		return fmt.Sprintf("exit code %d", result.ExitCode)
	}
	return fmt.Sprintf("%s: %s", result.Reason, result.Detail)
}

// tail returns the last bytes of a text, from the beginning of a line.
func tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	if _, rest, found := strings.Cut(text, "\n"); found {
		text = rest
	}
	return "…\n" + strings.ToValidUTF8(text, "")
}

// setupKey names the caches of a setup: whatever decides what the setup puts
// into them. A session that goes on from a pull request has caches of its own,
// because its code is not the default branch's.
func (h *hold) setupKey(ctx context.Context) (string, error) {
	files := map[string]string{}
	for _, name := range lockFiles {
		content, err := h.base.repository.ReadFile(ctx, h.base.commit, name, 16<<20)
		if git.CodeOf(err) == git.CodeNotFound {
			continue
		}
		if err != nil {
			return "", gitFault(err)
		}
		sum := sha256.Sum256(content)
		files[name] = hex.EncodeToString(sum[:])
	}
	continued := ""
	if h.base.commit != h.base.rules {
		continued = h.base.commit
	}
	encoded, err := json.Marshal(map[string]any{
		"setup": h.config.Setup, "files": files, "mounts": h.ReadOnly, "env": h.Env, "continued": continued,
		"git": h.config.Git,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16]), nil
}

// copyCache copies a cache into a directory, as far as it is not there yet.
// Files are never linked: who changes a copy must not change the original. What
// commands left in either directory leads nowhere else, and what they closed to
// their owner is left out.
func copyCache(from, to string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	return fs.WalkDir(source.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return fs.SkipDir
		case err != nil:
			return err
		case entry.IsDir():
			return target.MkdirAll(name, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		return copyFile(source, target, name)
	})
}

func copyFile(source, target *os.Root, name string) (err error) {
	in, err := source.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := target.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o200)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = out.ReadFrom(in)
	return err
}
