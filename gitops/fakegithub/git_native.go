package fakegithub

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// nativeGit serves git with go-git's parts: no process, no git on the machine. It speaks protocol version 0 without
// shallow clones; every client falls back to that.
type nativeGit struct{ server *Server }

func (g *nativeGit) advertise(w http.ResponseWriter, _ *http.Request, r *repository, service string) error {
	advertised := packp.NewAdvRefs()
	advertised.Prefix = [][]byte{[]byte("# service=" + service), pktline.Flush}
	store := g.server.storage(r)
	if err := listRefs(store, advertised); err != nil {
		return err
	}
	if err := setCapabilities(advertised.Capabilities, service); err != nil {
		return err
	}
	noCache(w, "application/x-"+service+"-advertisement")
	return advertised.Encode(w)
}

func setCapabilities(list *capability.List, service string) error {
	names := []capability.Capability{capability.OFSDelta, "allow-tip-sha1-in-want", "allow-reachable-sha1-in-want"}
	if service == receivePack {
		names = []capability.Capability{capability.OFSDelta, capability.ReportStatus, capability.DeleteRefs,
			capability.Sideband64k, capability.Quiet, "no-thin"}
	}
	failures := []error{list.Set(capability.Agent, "git/fakegithub")}
	for _, name := range names {
		failures = append(failures, list.Set(name))
	}
	return errors.Join(failures...)
}

func listRefs(store *filesystem.Storage, advertised *packp.AdvRefs) error {
	iterator, err := store.IterReferences()
	if err != nil {
		return err
	}
	err = iterator.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() != plumbing.HashReference {
			return nil
		}
		advertised.References[ref.Name().String()] = ref.Hash()
		if tag, err := gitobject.GetTag(store, ref.Hash()); err == nil {
			advertised.Peeled[ref.Name().String()] = tag.Target
		}
		return nil
	})
	if err != nil {
		return err
	}
	head, err := store.Reference(plumbing.HEAD)
	if err != nil {
		return nil // a repository may lack HEAD; clients cope
	}
	target, err := storer.ResolveReference(store, head.Target())
	if err != nil {
		return nil // nothing committed yet
	}
	hash := target.Hash()
	advertised.Head = &hash
	return advertised.AddReference(head)
}

func noCache(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
}

// negotiation is what a client wants and what it says it has.
type negotiation struct {
	wants, haves []plumbing.Hash
	done         bool
}

var errShallow = errors.New("this server does not support shallow clones")

// parseNegotiation reads one round of a fetch.
func parseNegotiation(body []byte) (*negotiation, error) {
	result := &negotiation{}
	scanner := pktline.NewScanner(bytes.NewReader(body))
	for scanner.Scan() {
		line := bytes.TrimSuffix(scanner.Bytes(), []byte("\n"))
		word, rest, _ := bytes.Cut(line, []byte(" "))
		hash, _, _ := bytes.Cut(rest, []byte(" "))
		switch string(word) {
		case "want":
			result.wants = append(result.wants, plumbing.NewHash(string(hash)))
		case "have":
			result.haves = append(result.haves, plumbing.NewHash(string(hash)))
		case "done":
			result.done = true
		case "shallow", "deepen", "deepen-since", "deepen-not":
			return nil, errShallow
		}
	}
	return result, scanner.Err()
}

// upload answers one round of a fetch in git's simplest form: the first common commit is acknowledged until the
// client says done; then the objects follow.
func (g *nativeGit) upload(w http.ResponseWriter, _ *http.Request, r *repository, body []byte) error {
	noCache(w, "application/x-git-upload-pack-result")
	encoder := pktline.NewEncoder(w)
	request, err := parseNegotiation(body)
	if err != nil {
		return encoder.Encodef("ERR %s", err)
	}
	store := g.server.storage(r)
	for _, want := range request.wants {
		if store.HasEncodedObject(want) != nil {
			return encoder.Encodef("ERR upload-pack: not our ref %s", want)
		}
	}
	common := known(store, request.haves)
	if len(common) > 0 {
		err = encoder.Encodef("ACK %s\n", common[0])
	} else {
		err = encoder.EncodeString("NAK\n")
	}
	if err != nil || !request.done {
		return err
	}
	return sendPack(w, store, request.wants, common)
}

func known(store storer.EncodedObjectStorer, haves []plumbing.Hash) []plumbing.Hash {
	var common []plumbing.Hash
	for _, have := range haves {
		if store.HasEncodedObject(have) == nil {
			common = append(common, have)
		}
	}
	return common
}

func sendPack(w http.ResponseWriter, store *filesystem.Storage, wants, common []plumbing.Hash) error {
	theirs, err := revlist.Objects(store, common, nil)
	if err != nil {
		return err
	}
	missing, err := revlist.Objects(store, wants, theirs)
	if err != nil {
		return err
	}
	// No window for deltas: between processes of one machine time is dearer than bytes.
	_, err = packfile.NewEncoder(w, store, false).Encode(missing, 0)
	return err
}

// unpackLimit is from how many objects on a push is kept as a pack; git's default for the same.
const unpackLimit = 100

// receive stores the objects and moves the refs. The old values have been compared already, under the same lock.
func (g *nativeGit) receive(w http.ResponseWriter, _ *http.Request, r *repository, p *push) error {
	store := g.server.storage(r)
	unpacked := g.keep(store, p)
	reasons := map[plumbing.ReferenceName]string{}
	for _, update := range p.updates {
		reasons[update.name] = "ok"
		if unpacked != nil {
			reasons[update.name] = "unpacker error"
		} else if err := moveRef(store, update); err != nil {
			reasons[update.name] = "failed to update ref"
		}
	}
	return report(w, p, unpacked, reasons, nil)
}

func (g *nativeGit) keep(store *filesystem.Storage, p *push) error {
	if p.objects == nil || len(p.objects.fresh.Objects) == 0 {
		return nil
	}
	if len(p.objects.fresh.Objects) >= unpackLimit {
		return packfile.UpdateObjectStorage(store, bytes.NewReader(p.pack))
	}
	for _, encoded := range p.objects.fresh.Objects {
		if _, err := store.SetEncodedObject(encoded); err != nil {
			return err
		}
	}
	return nil
}

func moveRef(store *filesystem.Storage, update refUpdate) error {
	if update.new.IsZero() {
		return store.RemoveReference(update.name)
	}
	return store.SetReference(plumbing.NewHashReference(update.name, update.new))
}
