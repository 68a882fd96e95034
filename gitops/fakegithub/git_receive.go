package fakegithub

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/memory"
)

// push is one request to move refs, with the objects that come along.
type push struct {
	body         []byte // as it came, for git's own backend
	updates      []refUpdate
	capabilities *capability.List
	pack         []byte
	objects      *quarantine
}

// refUpdate moves one ref: a zero old creates it, a zero new deletes it.
type refUpdate struct {
	name     plumbing.ReferenceName
	old, new plumbing.Hash
}

var errMalformedPush = errors.New("the push is malformed")

// parsePush reads the commands before the pack.
func parsePush(body []byte) (*push, error) {
	p := &push{body: body, capabilities: capability.NewList()}
	reader := bytes.NewReader(body)
	scanner := pktline.NewScanner(reader)
	for scanner.Scan() {
		line := scanner.Bytes()
		if len(line) == 0 {
			break
		}
		command, capabilities, first := bytes.Cut(line, []byte{0})
		if first {
			if err := p.capabilities.Decode(bytes.TrimSpace(capabilities)); err != nil {
				return nil, errMalformedPush
			}
		}
		if bytes.HasPrefix(command, []byte("shallow ")) {
			continue // where the client's own history ends; it sends what we lack all the same
		}
		update, err := parseUpdate(string(command))
		if err != nil {
			return nil, err
		}
		p.updates = append(p.updates, update)
	}
	if scanner.Err() != nil || len(p.updates) == 0 {
		return nil, errMalformedPush
	}
	if p.capabilities.Supports("push-options") {
		for scanner.Scan() && len(scanner.Bytes()) > 0 {
			continue // options mean nothing here
		}
	}
	p.pack = body[len(body)-reader.Len():]
	return p, nil
}

func parseUpdate(line string) (refUpdate, error) {
	fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
	if len(fields) != 3 || !plumbing.IsHash(fields[0]) || !plumbing.IsHash(fields[1]) {
		return refUpdate{}, errMalformedPush
	}
	return refUpdate{old: plumbing.NewHash(fields[0]), new: plumbing.NewHash(fields[1]), name: plumbing.ReferenceName(fields[2])}, nil
}

// quarantine holds a push's objects in memory, over those of the repository, until the push has been judged.
type quarantine struct {
	fresh *memory.ObjectStorage
	storer.EncodedObjectStorer
}

func (q *quarantine) SetEncodedObject(encoded plumbing.EncodedObject) (plumbing.Hash, error) {
	return q.fresh.SetEncodedObject(encoded)
}

func (q *quarantine) NewEncodedObject() plumbing.EncodedObject { return q.fresh.NewEncodedObject() }

func (q *quarantine) HasEncodedObject(hash plumbing.Hash) error {
	if q.fresh.HasEncodedObject(hash) == nil {
		return nil
	}
	return q.EncodedObjectStorer.HasEncodedObject(hash)
}

func (q *quarantine) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	if size, err := q.fresh.EncodedObjectSize(hash); err == nil {
		return size, nil
	}
	return q.EncodedObjectStorer.EncodedObjectSize(hash)
}

func (q *quarantine) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if encoded, err := q.fresh.EncodedObject(kind, hash); err == nil {
		return encoded, nil
	}
	return q.EncodedObjectStorer.EncodedObject(kind, hash)
}

// open unpacks the push over the repository's objects.
func (p *push) open(base storer.EncodedObjectStorer) error {
	fresh := memory.NewStorage().ObjectStorage
	p.objects = &quarantine{fresh: &fresh, EncodedObjectStorer: base}
	if len(p.pack) == 0 {
		return nil
	}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(p.pack)), p.objects)
	if err != nil {
		return err
	}
	_, err = parser.Parse()
	return err
}

// verdict says why refs may not be moved as asked: a short reason per ref for git's summary line and sentences that
// the client shows after "remote:". One refused ref refuses the push.
type verdict struct {
	unpack  error
	reasons map[plumbing.ReferenceName]string
	words   []string
}

func (v *verdict) refused() bool { return v.unpack != nil || len(v.reasons) > 0 }

func (v *verdict) answer(w http.ResponseWriter, p *push) error {
	for _, update := range p.updates {
		if v.reasons[update.name] == "" {
			if v.reasons == nil {
				v.reasons = map[plumbing.ReferenceName]string{}
			}
			v.reasons[update.name] = "pre-receive hook declined"
		}
	}
	return report(w, p, v.unpack, v.reasons, v.words)
}

// report answers a push in git's form: the words on the channel for people, then the result of each ref.
func report(w http.ResponseWriter, p *push, unpack error, reasons map[plumbing.ReferenceName]string, words []string) error {
	noCache(w, "application/x-git-receive-pack-result")
	status := packp.NewReportStatus()
	status.UnpackStatus = "ok"
	if unpack != nil {
		status.UnpackStatus = strings.ReplaceAll(unpack.Error(), "\n", " ")
	}
	for _, update := range p.updates {
		status.CommandStatuses = append(status.CommandStatuses,
			&packp.CommandStatus{ReferenceName: update.name, Status: reasons[update.name]})
	}
	var plain bytes.Buffer
	if err := status.Encode(&plain); err != nil {
		return fmt.Errorf("report of a push: %w", err)
	}
	if !p.capabilities.Supports(capability.Sideband64k) {
		_, err := w.Write(plain.Bytes())
		return err
	}
	channel := sideband.NewMuxer(sideband.Sideband64k, w)
	for _, line := range words {
		if _, err := channel.WriteChannel(sideband.ProgressMessage, []byte(line+"\n")); err != nil {
			return err
		}
	}
	if _, err := channel.WriteChannel(sideband.PackData, plain.Bytes()); err != nil {
		return err
	}
	return pktline.NewEncoder(w).Flush()
}
