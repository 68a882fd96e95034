package approval

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// An Action is everything that one approval is about. Two actions that differ
// in anything have different digests, and so have two prompts for the same
// action, because of the nonce.
type Action struct {
	Version        int    `json:"version"`
	Kind           string `json:"kind"`
	Session        string `json:"session"`
	InstallationID int64  `json:"installation_id"`
	RepositoryID   int64  `json:"repository_id"`
	Issue          int    `json:"issue"`
	// CallKey is the tool call that waits, ArgumentsHash the SHA-256 of its
	// arguments.
	CallKey       string `json:"call_key"`
	ArgumentsHash string `json:"arguments_hash"`
	// The sealed commit and where it goes; empty for other kinds than a push.
	Base           string `json:"base,omitempty"`
	BaseRef        string `json:"base_ref,omitempty"`
	Commit         string `json:"commit,omitempty"`
	Tree           string `json:"tree,omitempty"`
	TargetRef      string `json:"target_ref,omitempty"`
	ExpectedRemote string `json:"expected_remote,omitempty"`
	Title          string `json:"title,omitempty"`
	Body           string `json:"body,omitempty"`
	// Path and Blob name the file of a delete_file.
	Path string `json:"path,omitempty"`
	Blob string `json:"blob,omitempty"`
	// RoleNeeded and RequireOther are who may decide.
	RoleNeeded   string `json:"role_needed"`
	RequireOther bool   `json:"require_other,omitempty"`
	// ConfigHash names the rules under which the question was asked.
	ConfigHash string `json:"config_hash"`
	// Nonce is drawn by the host for this prompt, so that nobody can search
	// for an action whose digest starts as another's does.
	Nonce string `json:"nonce"`
}

// digestLength is the length of a digest in hexadecimal digits.
const digestLength = 2 * sha256.Size

// minPrefix is how much of a digest a person has to type.
const minPrefix = 8

// NewNonce returns 128 random bits in hexadecimal.
func NewNonce() string {
	var random [16]byte
	rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// Digest returns the name of the action, in hexadecimal, and the canonical
// record that was hashed: the fields in the order of the struct as JSON.
func (a Action) Digest() (digest string, record []byte) {
	record, err := json.Marshal(a)
	if err != nil {
		panic("approval: an action is always encodable: " + err.Error())
	}
	sum := sha256.Sum256(record)
	return hex.EncodeToString(sum[:]), record
}

// ParsePrefix takes a digest as a person types it, at least eight of its
// hexadecimal digits in any case, in backticks or not.
func ParsePrefix(text string) (prefix string, ok bool) {
	prefix = strings.ToLower(strings.Trim(strings.TrimSpace(text), "`"))
	if len(prefix) < minPrefix || len(prefix) > digestLength {
		return "", false
	}
	for _, r := range prefix {
		if !strings.ContainsRune("0123456789abcdef", r) {
			return "", false
		}
	}
	return prefix, true
}
