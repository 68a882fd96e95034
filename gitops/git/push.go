package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// A PushRequest says which ref is to move, and from where.
type PushRequest struct {
	// Ref is a full name that passes [ValidateRef].
	Ref string
	// Old is the commit that the ref must point to on the server, "" to create it.
	Old string
	// Protected are full ref names that are never pushed to, whatever their form:
	// the default branch, at least.
	Protected []string
}

// A PushResult is what became of a push that arrived.
type PushResult struct {
	// ServerMessages are the lines that the server sent meanwhile, cleaned.
	ServerMessages []string
	// AlreadyThere says that the ref pointed to the commit before anything was
	// sent: an earlier push had arrived.
	AlreadyThere bool
	// Objects and Bytes tell how much was sent.
	Objects, Bytes int
}

// Push sends a sealed commit and moves one ref to it. Exactly the objects that
// the server lacks are sent, and the server moves the ref only if it is where
// Old says. A repeated push of the same commit succeeds.
//
// Errors: [CodeInvalid] (the ref is not ours to push), [CodeStale] (the ref is
// elsewhere), [CodeRejected] (declined; Server holds the server's words),
// [CodeAuth], [CodeNotFound], [CodeRedirect], [CodeTransport] (nothing was
// changed), [CodeUnknown] (the request may have arrived: ask [Cache.RemoteRef]
// before anything else).
func (w *Workspace) Push(ctx context.Context, remote Remote, request PushRequest, sealed Sealed) (PushResult, error) {
	command, err := request.command(sealed)
	if err != nil {
		return PushResult{}, err
	}
	p := &pusher{w: w, remote: remote, command: command, sealed: sealed}
	result, err := p.try(ctx)
	if CodeOf(err) == CodeAuth && remote.Auth != nil {
		// A refused token has changed nothing; it may just have expired.
		result, err = p.try(ctx)
	}
	return result, err
}

// Validate says whether the ref is ours to push; the error has [CodeInvalid].
func (r PushRequest) Validate() error {
	if err := ValidateRef(r.Ref); err != nil {
		return err
	}
	if slices.Contains(r.Protected, r.Ref) {
		return failf(CodeInvalid, nil, "%s is a protected branch and is never pushed to", r.Ref)
	}
	return nil
}

func (r PushRequest) command(sealed Sealed) (*packp.Command, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	id, err := parseID(sealed.Commit)
	if err != nil {
		return nil, err
	}
	command := &packp.Command{Name: plumbing.ReferenceName(r.Ref), New: id}
	if r.Old != "" {
		if command.Old, err = parseID(r.Old); err != nil {
			return nil, err
		}
	}
	return command, nil
}

type pusher struct {
	w       *Workspace
	remote  Remote
	command *packp.Command
	sealed  Sealed
}

func (p *pusher) try(ctx context.Context) (PushResult, error) {
	endpoint, err := p.remote.endpoint()
	if err != nil {
		return PushResult{}, err
	}
	auth, err := p.remote.token(ctx)
	if err != nil {
		return PushResult{}, err
	}
	session, err := p.w.repo.transport.NewReceivePackSession(endpoint, auth)
	if err != nil {
		return PushResult{}, failf(CodeTransport, err, "the repository cannot be reached")
	}
	advertised, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return PushResult{}, remoteError(ctx, err)
	}
	if there, err := p.compare(advertised); there || err != nil {
		return PushResult{AlreadyThere: there}, err
	}
	return p.send(ctx, session, advertised)
}

// compare looks at the server's refs before anything is sent. It says true when
// the ref is already where it should go.
func (p *pusher) compare(advertised *packp.AdvRefs) (bool, error) {
	name := string(p.command.Name)
	now := advertised.References[name]
	switch {
	case now == p.command.New:
		return true, nil
	case now == p.command.Old:
	case p.command.Old == plumbing.ZeroHash:
		return false, failf(CodeStale, nil, "the branch %s exists already, at %s", short(name), now)
	case now == plumbing.ZeroHash:
		return false, failf(CodeStale, nil, "the branch %s was deleted meanwhile", short(name))
	default:
		return false, failf(CodeStale, nil, "somebody else has pushed to %s: it is at %s, not at %s", short(name), now, p.command.Old)
	}
	parent := strings.TrimSuffix(RefPrefix, "/")
	if _, blocked := advertised.References[parent]; blocked {
		return false, failf(CodeRejected, nil, "the repository has a branch named %s, so git allows none below %s; rename that branch", short(parent), BranchPrefix)
	}
	return false, nil
}

func short(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

func (p *pusher) send(ctx context.Context, session transport.ReceivePackSession, advertised *packp.AdvRefs) (PushResult, error) {
	pack, objects, err := p.pack()
	if err != nil {
		return PushResult{}, err
	}
	request := packp.NewReferenceUpdateRequestFromCapabilities(advertised.Capabilities)
	request.Commands = []*packp.Command{p.command}
	request.Packfile = io.NopCloser(bytes.NewReader(pack))
	banded := advertised.Capabilities.Supports(capability.Sideband64k)
	if banded {
		if err := request.Capabilities.Set(capability.Sideband64k); err != nil {
			return PushResult{}, failf(CodeTransport, err, "the server's capabilities contradict each other")
		}
	}
	answer := &capture{}
	report, err := session.ReceivePack(context.WithValue(ctx, captureKey{}, answer), request)
	result := PushResult{Objects: objects, Bytes: len(pack)}
	if raw := answer.finish(); banded {
		result.ServerMessages = sideWords(raw)
	}
	return result, p.outcome(ctx, report, err, result.ServerMessages)
}

// sideWords returns what a server said beside its report, before and after it.
func sideWords(answer []byte) []string {
	var words bytes.Buffer
	bands := sideband.NewDemuxer(sideband.Sideband64k, bytes.NewReader(answer))
	bands.Progress = &words
	// An answer that is cut, or ends in the server's error band, has said what
	// it had to say up to there.
	if _, err := io.Copy(io.Discard, bands); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		words.WriteString(err.Error())
	}
	return messageLines(words.String())
}

// pack builds the pack: the commit, and what of its tree neither the base nor
// the parent has.
func (p *pusher) pack() ([]byte, int, error) {
	ids, err := p.w.lacking(p.command.New)
	if err != nil {
		return nil, 0, err
	}
	ids = append([]plumbing.Hash{p.command.New}, ids...)
	slices.SortFunc(ids[1:], func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	var out bytes.Buffer
	encoder := packfile.NewEncoder(&out, packSource{from: p.w.objects}, false)
	if _, err := encoder.Encode(ids, 0); err != nil {
		return nil, 0, failf(CodeCorrupt, err, "the pack to push cannot be built")
	}
	return out.Bytes(), len(ids), nil
}

// packSource is the part of go-git's object storage that its pack encoder uses.
type packSource struct {
	storer.EncodedObjectStorer
	from source
	// lazy makes objects be read when they are written, twice in all.
	lazy bool
}

// EncodedObject returns an object by its id; the encoder knows no types.
func (s packSource) EncodedObject(_ plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) {
	if s.lazy {
		return newLazyObject(s.from, id)
	}
	return s.from.get(id)
}

// outcome tells what became of a push whose request was sent.
func (p *pusher) outcome(ctx context.Context, report *packp.ReportStatus, err error, words []string) error {
	if err == nil && report != nil {
		return nil
	}
	if report != nil {
		return p.declined(report, words)
	}
	if err == nil {
		return failf(CodeUnknown, nil, "the git server answered the push with nothing; it may have arrived")
	}
	known := remoteError(ctx, err)
	switch code := CodeOf(known); {
	case code == CodeAuth || code == CodeNotFound || code == CodeRedirect:
		return known // refused before anything was read
	case isDialError(err):
		return known // the request never left
	}
	fail := failf(CodeUnknown, err, "the push was sent, but its answer was lost; it may have arrived")
	if e, ok := errors.AsType[*Error](known); ok {
		fail.Server = e.Server
		fail.Err = e.Err
		if e.Code == CodeTransport && e.Err == nil {
			fail.Message += ": " + e.Message
		}
	}
	fail.Server = cmp.Or(fail.Server, strings.Join(words, "\n"))
	return fail
}

// isDialError says whether no connection came about, so nothing was sent.
func isDialError(err error) bool {
	if unexpected, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		err = unexpected.Err
	}
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && operation.Op == "dial"
}

// staleWords are what git servers say when a ref is not where it should be.
var staleWords = []string{
	"fetch first", "stale info", "non-fast-forward", "already exists", "but expected", "incorrect old value",
	"failed to update ref", "cannot lock ref", "remote ref updated since checkout",
}

// declined turns a report into an error with the server's own words.
func (p *pusher) declined(report *packp.ReportStatus, words []string) error {
	reason := report.UnpackStatus
	for _, status := range report.CommandStatuses {
		if status.ReferenceName == p.command.Name && status.Status != "ok" {
			reason = status.Status
		}
	}
	server := strings.Join(append(slices.Clone(words), serverWords(reason)), "\n")
	if slices.ContainsFunc(staleWords, func(word string) bool { return strings.Contains(reason, word) }) {
		fail := failf(CodeStale, nil, "the branch %s moved while the push was under way", short(string(p.command.Name)))
		fail.Server = server
		return fail
	}
	return Declined(string(p.command.Name), server)
}

// Declined is the error for a ref that the server would not move, with its own
// words. The message says what to do about the usual refusals.
func Declined(ref, server string) *Error {
	server = serverWords(server)
	fail := failf(CodeRejected, nil, "the git server declined the push to %s: %s", short(ref), explain(server))
	fail.Server = server
	return fail
}

// explain says in a sentence what GitHub's most usual refusals ask for.
func explain(server string) string {
	text := strings.ToLower(server)
	switch {
	case strings.Contains(text, "workflow"):
		return "the App needs the permission “Workflows: write” to change files below .github/workflows"
	case strings.Contains(text, "gh013") || strings.Contains(text, "rule"):
		return "a ruleset of the repository forbids it; let the App bypass it or change the rule"
	case strings.Contains(text, "gh006") || strings.Contains(text, "protected branch") || strings.Contains(text, "through a pull request"):
		return "the branch is protected; exclude copilot/* from the protection"
	case strings.Contains(text, "not accessible by integration"):
		return "the App needs the permission “Contents: write”; let an owner of the account grant it"
	case strings.Contains(text, "gh009") || strings.Contains(text, "secret"):
		return "push protection found a secret in it"
	case strings.Contains(text, "gh001") || strings.Contains(text, "file size limit"):
		return "it holds a file that is too large for the server"
	case strings.Contains(text, "pre-receive"):
		return "a pre-receive hook of the server refused it"
	}
	return "see the server's own words"
}

// messageLines splits what came over the side band into clean lines.
func messageLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(serverWords(strings.ReplaceAll(text, "\r", "\n")), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
