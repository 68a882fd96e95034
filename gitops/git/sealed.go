package git

// HasSealed says whether the workspace's own store holds the commit that was
// sealed, so that [Workspace.Push] needs nothing else. It is false on a machine
// that did not seal it: [Repository.Restore] and [Workspace.Seal] make it there.
func (w *Workspace) HasSealed(sealed Sealed) bool {
	id, err := parseID(sealed.Commit)
	if err != nil {
		return false
	}
	_, err = readCommit(newObjectStore(w.repo.limits.FileBytes, w.ownObjects()), id)
	return err == nil
}
