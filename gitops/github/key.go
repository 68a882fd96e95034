package github

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// A privateKey is the App's key and, when it came from a file, the way to read
// it again.
type privateKey struct {
	path    string
	current atomic.Pointer[rsa.PrivateKey]
}

// errNoKey and its neighbours say what is wrong with a key without showing it.
var errNoKey = errors.New("the App's private key is missing: set GITHUB_PRIVATE_KEY to the PEM text, its base64, or the path of the .pem file")

// readPrivateKey takes the key in any of the forms of [Config.PrivateKey].
func readPrivateKey(configured string) (*privateKey, error) {
	text := strings.TrimSpace(configured)
	if text == "" {
		return nil, errNoKey
	}
	key := &privateKey{}
	if armoured := findPEM(text); armoured != nil {
		parsed, err := parsePEM(armoured)
		key.current.Store(parsed)
		return key, err
	}
	key.path = text
	parsed, err := readKeyFile(text)
	key.current.Store(parsed)
	return key, err
}

// findPEM returns the PEM in text, which may be PEM, PEM with literal \n, or
// base64 of these; nil when there is none.
func findPEM(text string) []byte {
	const mark = "-----BEGIN "
	if strings.Contains(text, mark) {
		return []byte(strings.ReplaceAll(text, `\n`, "\n"))
	}
	compact := strings.Join(strings.Fields(text), "")
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if decoded, err := encoding.DecodeString(compact); err == nil && bytes.Contains(decoded, []byte(mark)) {
			return bytes.ReplaceAll(decoded, []byte(`\n`), []byte("\n"))
		}
	}
	return nil
}

// keyFileLimit is far above any key, and keeps a path to something else from
// filling the memory.
const keyFileLimit = 64 << 10

func readKeyFile(path string) (*rsa.PrivateKey, error) {
	// The value is not quoted in an error: it may be a key that was damaged.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrInvalid), err != nil && len(path) > 255:
		return nil, errors.New("GITHUB_PRIVATE_KEY is neither PEM, nor base64 of PEM, nor the path of a file that exists")
	case err != nil:
		return nil, errors.New("the file that GITHUB_PRIVATE_KEY names cannot be read: check its permissions")
	case !info.Mode().IsRegular() || info.Size() > keyFileLimit:
		return nil, errors.New("GITHUB_PRIVATE_KEY names something that is not a key file")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.New("the file that GITHUB_PRIVATE_KEY names cannot be read: check its permissions")
	}
	armoured := findPEM(string(content))
	if armoured == nil {
		return nil, errors.New("the file that GITHUB_PRIVATE_KEY names holds no PEM key")
	}
	return parsePEM(armoured)
}

// parsePEM parses an RSA key, PKCS #1 or PKCS #8.
func parsePEM(armoured []byte) (*rsa.PrivateKey, error) {
	start := bytes.Index(armoured, []byte("-----BEGIN "))
	block, _ := pem.Decode(armoured[max(start, 0):])
	if block == nil {
		return nil, errors.New("GITHUB_PRIVATE_KEY starts like PEM but is cut or damaged: copy the whole file, with its BEGIN and END lines")
	}
	switch {
	case strings.Contains(block.Type, "PUBLIC KEY"), block.Type == "CERTIFICATE":
		return nil, fmt.Errorf("GITHUB_PRIVATE_KEY is a %s: the App's private key is needed", strings.ToLower(block.Type))
	case strings.Contains(block.Type, "ENCRYPTED"), block.Headers["DEK-Info"] != "":
		return nil, errors.New("GITHUB_PRIVATE_KEY is protected by a passphrase: give the key as GitHub made it")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("GITHUB_PRIVATE_KEY is PEM but holds no readable RSA key")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("GITHUB_PRIVATE_KEY is not an RSA key: GitHub Apps have RSA keys only")
	}
	return key, nil
}

// reload reads the key's file again and says whether the key has changed.
func (k *privateKey) reload() bool {
	if k.path == "" {
		return false
	}
	fresh, err := readKeyFile(k.path)
	if err != nil || fresh.Equal(k.current.Load()) {
		return false
	}
	k.current.Store(fresh)
	return true
}

// A signer signs JWTs for ghinstallation with GitHub's clock instead of ours.
// GitHub refuses a token from the future and one that lives for more than ten
// minutes; hence a minute of margin at both ends.
type signer struct {
	key   *privateKey
	clock *clock
}

// Sign implements ghinstallation's Signer.
func (s signer) Sign(claims jwt.Claims) (string, error) {
	registered, ok := claims.(*jwt.RegisteredClaims)
	if !ok {
		return "", fmt.Errorf("unexpected claims of type %T", claims)
	}
	now := s.clock.github().Truncate(time.Second)
	registered.IssuedAt = jwt.NewNumericDate(now.Add(-time.Minute))
	registered.ExpiresAt = jwt.NewNumericDate(now.Add(8 * time.Minute))
	return jwt.NewWithClaims(jwt.SigningMethodRS256, registered).SignedString(s.key.current.Load())
}
