package outbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"handoff/runner/store"
)

// markerPrefix opens the hidden line at the end of what we post.
const markerPrefix = "<!-- handoff:"

// Marker returns the hidden line by which an effect's comment or pull request
// is found again: an HMAC over installation, owner and key of the effect.
// Nobody without the server's key can write one.
func Marker(key []byte, effect store.Effect) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%d\x00%d\x00%s\x00%s\x00%s", effect.InstallationID, effect.RepositoryID, effect.SessionID, effect.CommandID, effect.Key)
	return markerPrefix + hex.EncodeToString(mac.Sum(nil)[:16]) + " -->"
}

// HasMarker says whether a body of ours ends with the marker. A marker
// anywhere else is somebody's quotation.
func HasMarker(body, marker string) bool {
	return strings.HasSuffix(strings.TrimRight(body, " \r\n"), marker)
}

var htmlComment = regexp.MustCompile(`(?s)<!--.*?(-->|$)`)

// StripComments removes HTML comments, so that no text that we post on behalf
// of somebody else carries a marker. Removing one may join the pieces of
// another, so it goes on until none is left.
func StripComments(body string) string {
	for htmlComment.MatchString(body) {
		body = htmlComment.ReplaceAllString(body, "")
	}
	return body
}
