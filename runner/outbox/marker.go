package outbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// disarm breaks markers in a text that we post, so that none but the one at
// its end can be taken for ours. The rest stays as it is: a diff that a
// maintainer is shown may hold HTML comments, and must be shown with them.
func disarm(body string) string {
	return strings.ReplaceAll(body, markerPrefix, "<!-- handoff :")
}
