// Package git keeps repositories: it fetches them, hands out copies to work
// in, tells what changed, seals the changes into one commit and pushes exactly
// that commit.
//
// The idea is that the host alone speaks git and whoever works sees only files.
// A [Cache] holds one bare repository per (host, installation, repository id)
// and brings it up to date over smart HTTP. A [Repository] reads objects from
// there, or from a person's own repository ([OpenLocal]), and checks a commit
// out into a [Workspace]: a directory with two halves,
//
//	tree/   plain files without any .git, all that a sandbox ever sees
//	meta/   manifest, base commit and the session's own objects, never mounted
//
// What is in tree/ is hostile: whoever works there may leave a .git, a symlink
// to /etc, a device or a ten-gigabyte file. So nothing in it is ever followed,
// executed or taken as configuration; it is walked by descriptor, compared
// with the manifest by ctime, size and inode, and only suspects are read
// ([Workspace.Scan]). Bytes equal blobs both ways: no line-ending conversion,
// no filters, no hooks, no attributes.
//
// A [Checkpoint] is base commit plus changed files by content hash: it resets
// the workspace, and rebuilds it on another machine, byte for byte.
// [Workspace.Seal] builds the commit from it. Only trees on changed paths are
// rebuilt, and the same input gives the same commit id anywhere, so a push can
// be retried. [Workspace.Push] sends one pack of exactly the new objects and
// moves one ref below refs/heads/copilot/ by compare-and-swap, so somebody
// else's commit is never overwritten; the server's own words come back.
//
// Around that line: a [Pool] keeps pristine trees ready, also across restarts, and
// hands them out by rename; [Workspace.PutGit] makes up a .git for builds that ask
// for one; [Repository.Log] and [Repository.Blame] read history on the host; and
// [Local.CreateBranch] puts a sealed commit into a person's own repository.
//
// Memory is bounded: pack indexes (about 28 bytes an object), sixty-four megabytes
// of delta bases for the whole process, the largest files in flight (four readers
// for a repository, each object refused by its declared size), and the manifest of
// each open workspace (about 200 bytes a file). See [Limits] for what bounds the
// rest.
//
// The package builds on go-git's plumbing (wire formats, pack files, object
// encodings) and never starts a process. Its Worktree, alternates and
// Remote.Push are left alone: they are tens of times slower than git on large
// repositories. Failures are [Error] values with a [Code] and a sentence for a
// person; no token ever appears in one.
package git
