package fakegithub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// The fake's own signature stands for GitHub's web-flow key: it looks like PGP's, and nobody else can make one.

// LeaveUnsigned makes the fake an Enterprise Server on which nobody has switched the signing of commits on, or off
// again.
func (s *Server) LeaveUnsigned(unsigned bool) { s.unsigned.Store(unsigned) }

// mark signs a text.
func (s *Server) mark(text string) string {
	sum := hmac.New(sha256.New, s.signingKey)
	sum.Write([]byte(text))
	return "-----BEGIN PGP SIGNATURE-----\n\n" + base64.StdEncoding.EncodeToString(sum.Sum(nil)) + "\n-----END PGP SIGNATURE-----\n"
}

// signedPart is the text of a commit that its signature is about.
func signedPart(commit *gitobject.Commit) (string, error) {
	encoded := &plumbing.MemoryObject{}
	if err := commit.EncodeWithoutSignature(encoded); err != nil {
		return "", err
	}
	reader, err := encoded.Reader()
	if err != nil {
		return "", err
	}
	defer reader.Close()
	text, err := io.ReadAll(reader)
	return string(text), err
}

// verification says whether GitHub vouches for a commit.
func (s *Server) verification(commit *gitobject.Commit) object {
	none := object{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}
	if commit.PGPSignature == "" {
		return none
	}
	payload, err := signedPart(commit)
	if err != nil || !hmac.Equal([]byte(s.mark(payload)), []byte(commit.PGPSignature)) {
		none["reason"], none["signature"], none["payload"] = "unknown_key", commit.PGPSignature, payload
		return none
	}
	return object{"verified": true, "reason": "valid", "signature": commit.PGPSignature, "payload": payload,
		"verified_at": stamp(commit.Committer.When)}
}
