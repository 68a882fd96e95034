package github

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPrivateKeyIsReadInEveryForm(t *testing.T) {
	key := testKey()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs1Text := pkcs1PEM(key)
	pkcs8Text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	path := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(path, []byte(pkcs1Text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"PKCS 1":             pkcs1Text,
		"PKCS 8":             pkcs8Text,
		"literal newlines":   strings.ReplaceAll(pkcs1Text, "\n", `\n`),
		"Windows lines":      strings.ReplaceAll(pkcs1Text, "\n", "\r\n"),
		"spaces around":      "\n  " + pkcs1Text + "\n\n",
		"base64":             base64.StdEncoding.EncodeToString([]byte(pkcs1Text)),
		"base64 in lines":    wrap(base64.StdEncoding.EncodeToString([]byte(pkcs8Text))),
		"base64 unpadded":    base64.RawStdEncoding.EncodeToString([]byte(pkcs1Text)),
		"base64 for URLs":    base64.URLEncoding.EncodeToString([]byte(pkcs1Text)),
		"base64 of literals": base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(pkcs1Text, "\n", `\n`))),
		"a path":             path,
	} {
		read, err := readPrivateKey(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !read.current.Load().Equal(key) {
			t.Errorf("%s: another key", name)
		}
	}
}

func wrap(s string) string {
	var lines []string
	for len(s) > 64 {
		lines, s = append(lines, s[:64]), s[64:]
	}
	return strings.Join(append(lines, s), "\n")
}

func TestABadPrivateKeyIsExplainedAndNeverShown(t *testing.T) {
	elliptic, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, _ := x509.MarshalPKCS8PrivateKey(elliptic)
	public := x509.MarshalPKCS1PublicKey(&testKey().PublicKey)
	good := pkcs1PEM(testKey())
	secret := strings.Split(good, "\n")[3]
	for text, want := range map[string]string{
		"":                                 "is missing",
		"   \n":                            "is missing",
		"/no/such/file.pem":                "neither PEM",
		secret:                             "neither PEM",
		strings.Repeat(secret, 40):         "neither PEM",
		os.TempDir():                       "not a key file",
		good[:len(good)/2]:                 "cut or damaged",
		strings.Replace(good, "M", "!", 5): "cut or damaged",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ec})):                                                                        "not an RSA key",
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: public})):                                                                 "private key is needed",
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte("x")})):                                                           "no readable RSA key",
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"DEK-Info": "AES-256-CBC,00"}, Bytes: []byte("x")})): "passphrase",
	} {
		_, err := readPrivateKey(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%.40q: the key is in the error", text)
		}
	}
}

// The operator replaces the key's file and revokes the old key: the next
// refusal makes us read the file again.
func TestAKeyIsRotatedWithoutARestart(t *testing.T) {
	m := newMisbehaving(t)
	path := filepath.Join(t.TempDir(), "app.pem")
	write := func(key *rsa.PrivateKey) {
		if err := os.WriteFile(path, []byte(pkcs1PEM(key)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(testKey())
	fresh, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if m.app.key, err = readPrivateKey(path); err != nil {
		t.Fatal(err)
	}
	m.mint = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		_, err := m.claims(r, fresh)
		if err != nil {
			reply(w, 401, `{"message":"A JSON web token could not be decoded"}`)
		}
		return err != nil
	}
	_, err = m.reader().Issue(t.Context(), 12)
	mustCode(t, err, CodeUnauthorized)
	write(fresh)
	if _, err := m.reader().Issue(t.Context(), 12); err != nil {
		t.Errorf("with the new key: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for configured, want := range map[string][2]string{
		"":                                {"https://api.github.com/", "https://github.com"},
		"https://github.com":              {"https://api.github.com/", "https://github.com"},
		"https://github.com/":             {"https://api.github.com/", "https://github.com"},
		"https://api.github.com":          {"https://api.github.com/", "https://github.com"},
		"https://ghe.example.com":         {"https://ghe.example.com/api/v3/", "https://ghe.example.com"},
		"https://ghe.example.com/api/v3/": {"https://ghe.example.com/api/v3/", "https://ghe.example.com"},
		"https://octocorp.ghe.com":        {"https://api.octocorp.ghe.com/", "https://octocorp.ghe.com"},
		"https://api.octocorp.ghe.com":    {"https://api.octocorp.ghe.com/", "https://octocorp.ghe.com"},
		"http://127.0.0.1:8080":           {"http://127.0.0.1:8080/api/v3/", "http://127.0.0.1:8080"},
		"http://[::1]:8080":               {"http://[::1]:8080/api/v3/", "http://[::1]:8080"},
	} {
		api, web, err := addresses(configured)
		if err != nil || api.String() != want[0] || web.String() != want[1] {
			t.Errorf("addresses(%q) = %v, %v, %v, want %v", configured, api, web, err, want)
		}
	}
	for _, bad := range []string{"http://ghe.example.com", "ghe.example.com", "https://", "https://user:secret@ghe.example.com", "ftp://x", "https://x/?token=1", "http://127.0.0.1.evil.example", "://"} {
		if _, _, err := addresses(bad); err == nil {
			t.Errorf("addresses(%q) is accepted", bad)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows credentials: %v", err)
		}
	}
}

func TestConfigurationFaultsAreToldAllAtOnce(t *testing.T) {
	_, err := NewApp(Config{BaseURL: "http://ghe.example.com"})
	for _, want := range []string{"GITHUB_APP_ID", "GITHUB_PRIVATE_KEY", "GITHUB_URL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}
