package git

import (
	"cmp"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// An Identity is a person's or a bot's name and e-mail address. Both are cleaned
// before they are written: no line ends, no angle brackets, no control or
// invisible characters.
type Identity struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// A Trailer is a line such as "Session: https://…" at the end of a message.
type Trailer struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// CommitInfo is what the host says about a commit. The same info on the same
// files gives the same commit id, on any machine.
type CommitInfo struct {
	// Parent is the commit that the new one follows: "" for the base, or the
	// last one that was pushed to the branch.
	Parent string `json:"parent,omitempty"`
	// Author is the bot, or the requester; an empty Committer is the author.
	Author    Identity `json:"author"`
	Committer Identity `json:"committer"`
	// CoAuthors become "Co-authored-by:" lines.
	CoAuthors []Identity `json:"co_authors,omitempty"`
	// SignOff, when set, becomes the "Signed-off-by:" line.
	SignOff *Identity `json:"sign_off,omitempty"`
	// Trailers come before those.
	Trailers []Trailer `json:"trailers,omitempty"`
	// When is the time of both signatures, to the second, in UTC. It must not be
	// the time of the call: a repeated seal has to give the same id.
	When time.Time `json:"when"`
	// Message may be a model's words: it loses control characters, lines that
	// look like attribution, and marks that switch CI off.
	Message string `json:"message"`
}

// Sealed is one commit that is built and stored, but not yet anywhere else.
type Sealed struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	Parent string `json:"parent"`
	// Base is the commit that Files are relative to.
	Base string `json:"base"`
	// Message is the message as it was written.
	Message string `json:"message"`
	// Files are the changes in the commit, sorted by path.
	Files []Change `json:"files"`
}

// Seal builds the commit of the workspace's files as they are now and keeps its
// objects in the workspace's own store. Nothing outside of the workspace
// changes. The pool of objects is complete: [Workspace.Push] and
// [Workspace.CheckoutSealed] need only it and the repository.
//
// Errors: [CodeRefused] with the paths that can never be pushed, [CodeNoChange]
// when the files are those of the base, [CodeTooLarge].
func (w *Workspace) Seal(ctx context.Context, info CommitInfo) (Sealed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parent, err := parseID(cmp.Or(info.Parent, w.base.String()))
	if err != nil {
		return Sealed{}, err
	}
	s, err := w.scan(ctx, nil)
	if err != nil {
		return Sealed{}, err
	}
	if len(s.refused) > 0 {
		return Sealed{}, refusalError(s.sortedRefusals())
	}
	if len(s.differ) == 0 {
		return Sealed{}, failf(CodeNoChange, nil, "no file differs from the base commit, so there is nothing to push")
	}
	files, err := w.describe(s)
	if err != nil {
		return Sealed{}, err
	}
	tree, err := w.store(s)
	if err != nil {
		return Sealed{}, err
	}
	commit, message, err := buildCommit(tree, parent, info)
	if err != nil {
		return Sealed{}, err
	}
	if err := writeLoose(w.ownObjects(), commit); err != nil {
		return Sealed{}, err
	}
	return Sealed{
		Commit: commit.Hash().String(), Tree: tree.String(), Parent: parent.String(),
		Base: w.base.String(), Message: message, Files: files,
	}, nil
}

func refusalError(refused []Refusal) error {
	fail := failf(CodeRefused, nil, "%s cannot be pushed: %s; delete it or add it to .gitignore", refused[0].Path, refused[0].Reason)
	if len(refused) > 1 {
		fail.Message += ", and likewise the others"
	}
	for _, one := range refused {
		fail.Paths = append(fail.Paths, one.Path)
	}
	return fail
}

// store keeps all blobs and trees of the workspace's state and returns its tree.
func (w *Workspace) store(s *scanner) (plumbing.Hash, error) {
	for name, state := range s.differ {
		if state.present() {
			if _, err := w.keep(name, state); err != nil {
				return plumbing.ZeroHash, err
			}
		}
	}
	tree, built, err := w.build(s.differ)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for _, one := range built {
		if err := writeLoose(w.ownObjects(), one); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	return tree, nil
}

func buildCommit(tree, parent plumbing.Hash, info CommitInfo) (plumbing.EncodedObject, string, error) {
	when := info.When.UTC().Truncate(time.Second)
	if when.Unix() <= 0 {
		return nil, "", failf(CodeInvalid, nil, "a commit needs a time")
	}
	author := cleanIdentity(info.Author)
	committer := cleanIdentity(cmp.Or(info.Committer, info.Author))
	if author.Name == "" || author.Email == "" {
		return nil, "", failf(CodeInvalid, nil, "a commit needs an author with a name and an address")
	}
	message := cleanMessage(info)
	commit := object.Commit{
		Author:       object.Signature{Name: author.Name, Email: author.Email, When: when},
		Committer:    object.Signature{Name: committer.Name, Email: committer.Email, When: when},
		Message:      message,
		TreeHash:     tree,
		ParentHashes: []plumbing.Hash{parent},
	}
	raw := &plumbing.MemoryObject{}
	if err := commit.Encode(raw); err != nil {
		return nil, "", failf(CodeInvalid, err, "the commit cannot be written")
	}
	return raw, message, nil
}

// cleanIdentity makes a name and an address that stay on their line.
func cleanIdentity(who Identity) Identity {
	clean := func(text string) string {
		text = strings.Map(func(r rune) rune {
			switch {
			case r == '<' || r == '>' || isInvisible(r):
				return -1
			case unicode.IsControl(r) || unicode.IsSpace(r):
				return ' '
			}
			return r
		}, strings.ToValidUTF8(text, ""))
		// Git drops these at the ends of names as well.
		return clip(strings.Trim(strings.Join(strings.Fields(text), " "), ` .,:;"'\`), 200)
	}
	return Identity{Name: clean(who.Name), Email: strings.ReplaceAll(clean(who.Email), " ", "")}
}

var (
	// attribution is any line that git or GitHub reads as a statement about who
	// wrote, reviewed or signed the commit, or that switches checks off.
	attribution = regexp.MustCompile(`(?i)^\s*(?:[a-z-]+-by|skip-checks|on-behalf-of|cc)\s*:`)
	// skipCI are the marks by which GitHub and common CI systems skip a commit.
	skipCI     = regexp.MustCompile(`(?i)\[((?:skip|no)[ -](?:ci|actions)|(?:ci|actions)[ -]skip|ci-?skip|\*\*\*no_ci\*\*\*)\]`)
	trailerKey = regexp.MustCompile(`^[A-Za-z][A-Za-z-]{0,40}$`)
)

// maxMessage is far above any sensible message and far below GitHub's limits.
const maxMessage = 16 << 10

// cleanMessage returns the message with its trailers: the words of whoever
// wrote it without attribution, then what the host adds.
func cleanMessage(info CommitInfo) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(info.Message, ""), "\r\n", "\n")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Map(func(r rune) rune {
			switch {
			case r == '\t':
				return r
			case unicode.IsControl(r) || isInvisible(r):
				return -1
			}
			return r
		}, line)
		if !attribution.MatchString(line) {
			lines = append(lines, strings.TrimRightFunc(skipCI.ReplaceAllString(line, "($1)"), unicode.IsSpace))
		}
	}
	body := strings.Trim(strings.Join(lines, "\n"), "\n")
	body = cmp.Or(clip(body, maxMessage), "Update files")
	trailers := trailersOf(info)
	if len(trailers) == 0 {
		return body + "\n"
	}
	return body + "\n\n" + strings.Join(trailers, "\n") + "\n"
}

func trailersOf(info CommitInfo) []string {
	var lines []string
	add := func(key, value string) {
		value = strings.Join(strings.Fields(serverWords(value)), " ")
		line := key + ": " + value
		if trailerKey.MatchString(key) && value != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, trailer := range info.Trailers {
		add(trailer.Key, trailer.Value)
	}
	person := func(key string, who Identity) {
		if who = cleanIdentity(who); who.Name != "" && who.Email != "" {
			add(key, who.Name+" <"+who.Email+">")
		}
	}
	for _, who := range info.CoAuthors {
		person("Co-authored-by", who)
	}
	if info.SignOff != nil {
		person("Signed-off-by", *info.SignOff)
	}
	return lines
}

// HasSealed says whether the workspace's own store holds the commit that was
// sealed, so that [Workspace.Push] needs nothing else. It is false on a machine
// that did not seal it: [Repository.Restore] and [Workspace.Seal] make it there.
func (w *Workspace) HasSealed(sealed Sealed) bool {
	id, err := parseID(sealed.Commit)
	if err != nil {
		return false
	}
	_, err = os.Lstat(loosePath(w.ownObjects(), id))
	return err == nil
}

// ReadSealed returns the content of one file of a sealed commit, by its blob id
// (or a symlink's target), for a push through an API instead of git.
func (w *Workspace) ReadSealed(_ context.Context, blob string) ([]byte, error) {
	id, err := parseID(blob)
	if err != nil {
		return nil, err
	}
	return readObject(w.objects, id, plumbing.BlobObject, w.repo.limits.FileBytes)
}

// CheckoutSealed writes exactly the files of a sealed commit to dir, as a
// workspace of its own: what the host runs the tests on.
func (w *Workspace) CheckoutSealed(ctx context.Context, sealed Sealed, dir string) (*Workspace, error) {
	return w.repo.checkout(ctx, w.objects, sealed.Commit, dir)
}
