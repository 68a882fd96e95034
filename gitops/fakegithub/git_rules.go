package fakegithub

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Protection is a rule for the branches that its pattern matches. By itself it forbids force pushes and deletion.
type Protection struct {
	// Pattern is a pattern of path.Match over branch names, for example "main" or "release/*".
	Pattern string `json:"pattern"`
	// RequirePullRequest refuses direct pushes.
	RequirePullRequest bool `json:"require_pull_request"`
	// Ruleset makes it a rule of a ruleset that lets nobody create or update matching branches.
	Ruleset          bool `json:"ruleset"`
	AllowForcePushes bool `json:"allow_force_pushes"`
	AllowDeletions   bool `json:"allow_deletions"`
}

func (r *repository) protection(branch string) *Protection {
	for i := range r.protected {
		if matched, err := path.Match(r.protected[i].Pattern, branch); err == nil && matched {
			return &r.protected[i]
		}
	}
	return nil
}

// judge applies the rules for refs to a push. The repository's gitMu must be held.
func (s *Server) judge(r *repository, who *caller, p *push) *verdict {
	store := s.storage(r)
	if err := p.open(store); err != nil {
		return &verdict{unpack: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	result := &verdict{reasons: map[plumbing.ReferenceName]string{}}
	if r.preReceive != "" {
		result.words = strings.Split(r.preReceive, "\n")
		for _, update := range p.updates {
			result.reasons[update.name] = "pre-receive hook declined"
		}
		return result
	}
	for _, update := range p.updates {
		reason, words := s.judgeUpdate(r, who, update, p.objects)
		if reason != "" {
			result.reasons[update.name] = reason
			result.words = append(result.words, words...)
		}
	}
	return result
}

// judgeUpdate says why one ref may not be moved: the reason in a few words, and more of them for people.
func (s *Server) judgeUpdate(r *repository, who *caller, update refUpdate, objects storer.EncodedObjectStorer) (string, []string) {
	if reason := nameFault(update.name); reason != "" {
		return reason, nil
	}
	if reason := s.oldFault(r, update); reason != "" {
		return reason, nil
	}
	if update.new.IsZero() {
		return s.deletionFault(r, update)
	}
	commit, err := peel(objects, update.new)
	if err != nil || objects.HasEncodedObject(commit.TreeHash) != nil {
		return "missing necessary objects", nil
	}
	if reason, words := s.protectionFault(r, update, objects); reason != "" {
		return reason, words
	}
	if reason, words := largeFileFault(commit, objects, int64(s.limits.limits.LargestFile)); reason != "" {
		return reason, words
	}
	return s.workflowFault(r, who, commit), nil
}

func nameFault(name plumbing.ReferenceName) string {
	switch {
	case strings.HasPrefix(name.String(), "refs/pull/"):
		return "deny updating a hidden ref"
	case !name.IsBranch() && !name.IsTag(), name.Validate() != nil:
		return "funny refname"
	}
	return ""
}

// oldFault is the compare in compare-and-swap, in git's words.
func (s *Server) oldFault(r *repository, update refUpdate) string {
	now := s.refSHA(r, update.name)
	old := update.old.String()
	switch {
	case update.old.IsZero() && now != "":
		return fmt.Sprintf("cannot lock ref '%s': reference already exists", update.name)
	case !update.old.IsZero() && now == "":
		return fmt.Sprintf("cannot lock ref '%s': unable to resolve reference '%s'", update.name, update.name)
	case !update.old.IsZero() && now != old:
		return fmt.Sprintf("cannot lock ref '%s': is at %s but expected %s", update.name, now, old)
	case now == "":
		return s.nestingFault(r, update.name)
	}
	return ""
}

// nestingFault: a branch a and a branch a/b cannot both be.
func (s *Server) nestingFault(r *repository, name plumbing.ReferenceName) string {
	refs, err := s.refs(r, "refs/")
	if err != nil {
		return "failed to update ref"
	}
	for _, ref := range refs {
		other := ref.Name().String()
		if strings.HasPrefix(other, name.String()+"/") || strings.HasPrefix(name.String(), other+"/") {
			return fmt.Sprintf("cannot lock ref '%s': '%s' exists; cannot create '%s'", name, other, name)
		}
	}
	return ""
}

func (s *Server) deletionFault(r *repository, update refUpdate) (string, []string) {
	if update.name.IsBranch() && update.name.Short() == r.defaultBranch {
		return "refusing to delete the current branch: " + update.name.String(), nil
	}
	if rule := r.protection(update.name.Short()); update.name.IsBranch() && rule != nil && !rule.AllowDeletions {
		return "protected branch hook declined", []string{
			"error: GH006: Protected branch update failed for " + update.name.String() + ".", "error: Cannot delete this branch"}
	}
	return "", nil
}

func (s *Server) protectionFault(r *repository, update refUpdate, objects storer.EncodedObjectStorer) (string, []string) {
	rule := r.protection(update.name.Short())
	if !update.name.IsBranch() || rule == nil {
		return "", nil
	}
	declined := func(sentence string) (string, []string) {
		return "protected branch hook declined", []string{
			"error: GH006: Protected branch update failed for " + update.name.String() + ".", "error: " + sentence}
	}
	if rule.Ruleset {
		what := "update ref due to updates"
		if update.old.IsZero() {
			what = "create ref due to creations"
		}
		return "push declined due to repository rule violations", []string{
			"error: GH013: Repository rule violations found for " + update.name.String() + ".", "",
			"- Cannot " + what + " being restricted."}
	}
	if rule.RequirePullRequest {
		return declined("Changes must be made through a pull request.")
	}
	if !rule.AllowForcePushes && !update.old.IsZero() && !isAncestor(objects, update.old, update.new) {
		return declined("Cannot force-push to this branch")
	}
	return "", nil
}

func isAncestor(objects storer.EncodedObjectStorer, old, new plumbing.Hash) bool {
	from, err := gitobject.GetCommit(objects, old)
	if err != nil {
		return false
	}
	to, err := peel(objects, new)
	if err != nil {
		return false
	}
	ancestor, err := from.IsAncestor(to)
	return err == nil && ancestor
}

var errFound = errors.New("found")

// largeFileFault looks for files beyond the limit, if the push brings anything that large.
func largeFileFault(commit *gitobject.Commit, objects storer.EncodedObjectStorer, largest int64) (string, []string) {
	incoming, ok := objects.(*quarantine)
	if largest <= 0 || !ok || !anyLargerThan(largest, incoming) {
		return "", nil
	}
	files, err := commit.Files()
	if err != nil {
		return "missing necessary objects", nil
	}
	var words []string
	err = files.ForEach(func(file *gitobject.File) error {
		if file.Size <= largest {
			return nil
		}
		words = []string{
			"error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.",
			fmt.Sprintf("error: File %s is %.2f MB; this exceeds GitHub's file size limit of %.2f MB", file.Name, float64(file.Size)/(1<<20), float64(largest)/(1<<20))}
		return errFound
	})
	if errors.Is(err, errFound) {
		return "pre-receive hook declined", words
	}
	return "", nil
}

func anyLargerThan(largest int64, incoming *quarantine) bool {
	for _, blob := range incoming.fresh.Blobs {
		if blob.Size() > largest {
			return true
		}
	}
	return false
}

const workflowDirectory = ".github/workflows/"

// workflowFault: an App may bring a workflow file that no branch has yet only with the workflows permission.
func (s *Server) workflowFault(r *repository, who *caller, commit *gitobject.Commit) string {
	if who.installation == nil || grants(who.token.permissions, "workflows:write") {
		return ""
	}
	incoming := workflowFiles(commit)
	if len(incoming) == 0 {
		return ""
	}
	known := s.knownWorkflows(r)
	for _, file := range incoming {
		if !known[file] {
			name, _, _ := strings.Cut(file, "\x00")
			return fmt.Sprintf("refusing to allow a GitHub App to create or update workflow `%s` without `workflows` permission", name)
		}
	}
	return ""
}

// workflowFiles lists a commit's workflow files, each as its path and the hash of its content.
func workflowFiles(commit *gitobject.Commit) []string {
	tree, err := commit.Tree()
	if err != nil {
		return nil
	}
	below, err := tree.Tree(strings.TrimSuffix(workflowDirectory, "/"))
	if err != nil {
		return nil
	}
	var list []string
	for _, entry := range below.Entries {
		if strings.HasSuffix(entry.Name, ".yml") || strings.HasSuffix(entry.Name, ".yaml") {
			list = append(list, workflowDirectory+entry.Name+"\x00"+entry.Hash.String())
		}
	}
	return list
}

func (s *Server) knownWorkflows(r *repository) map[string]bool {
	found := map[string]bool{}
	branches, err := s.refs(r, "refs/heads/")
	if err != nil {
		return found
	}
	for _, ref := range branches {
		commit, err := s.commitOf(r, ref.Hash().String())
		if err != nil {
			continue
		}
		for _, file := range workflowFiles(commit) {
			found[file] = true
		}
	}
	return found
}
