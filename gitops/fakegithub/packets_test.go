package fakegithub

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// packetLine frames a line as git does.
func packetLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// emptyPack is a pack of no objects.
var emptyPack = func() string {
	pack, err := hex.DecodeString("5041434b0000000200000000029d08823bd8a8eab510ad6ac75c823cfd3ed31e")
	if err != nil {
		panic(err)
	}
	return string(pack)
}()

// reportOf reads the answer to a push and returns why it was refused.
func reportOf(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	plain, err := io.ReadAll(sideband.NewDemuxer(sideband.Sideband64k, response.Body))
	if err != nil {
		return err
	}
	report := packp.NewReportStatus()
	if err := report.Decode(bytes.NewReader(plain)); err != nil {
		return err
	}
	return report.Error()
}

// FuzzParsePush: whatever is sent, reading it ends in a push or an error, and what was read is sane.
func FuzzParsePush(f *testing.F) {
	zero := strings.Repeat("0", 40)
	one := strings.Repeat("1", 40)
	f.Add([]byte(packetLine(zero+" "+one+" refs/heads/x\x00 report-status") + "0000" + emptyPack))
	f.Add([]byte(packetLine("shallow "+one) + packetLine(one+" "+zero+" refs/heads/x\x00report-status push-options") + "0000" + packetLine("o=1") + "0000"))
	f.Add([]byte("0000"))
	f.Add([]byte("ffff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := parsePush(body)
		if err != nil {
			return
		}
		if len(p.updates) == 0 || len(p.pack) > len(body) {
			t.Errorf("%q was read as %d updates and a pack of %d bytes", body, len(p.updates), len(p.pack))
		}
	})
}

// FuzzParseNegotiation: the same for a fetch.
func FuzzParseNegotiation(f *testing.F) {
	f.Add([]byte(packetLine("want "+strings.Repeat("1", 40)+" ofs-delta\n") + "0000" + packetLine("have "+strings.Repeat("2", 40)+"\n") + packetLine("done\n")))
	f.Add([]byte(packetLine("deepen 1")))
	f.Fuzz(func(t *testing.T, body []byte) {
		if request, err := parseNegotiation(body); err == nil && len(request.wants) > len(body)/9 {
			t.Errorf("%q was read as %d wants", body, len(request.wants))
		}
	})
}
