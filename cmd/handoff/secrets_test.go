package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoff/gitops/secrets"
)

// However the private key is given, each of its lines is known, and so are the
// other secrets of the settings.
func TestTheHostKnowsItsSecrets(t *testing.T) {
	line := "MIIEpAIBAAKCAQEA1c7e9f3b2d8a4c6e0f5a7b9d3e1c8f6a4b2d0e9c7f5a3b1d"
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + line + "\n-----END RSA PRIVATE KEY-----\n"
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	for how, setting := range map[string]string{
		"PEM": key, "one line": strings.ReplaceAll(key, "\n", `\n`), "base64": base64.StdEncoding.EncodeToString([]byte(key)), "path": file,
	} {
		b := &bot{around: surroundings{getenv: func(name string) string {
			return map[string]string{"ZAI_API_KEY": "model-Zt5Jf8Qs1Wd4Gh7X"}[name]
		}}}
		b.settings.PrivateKey, b.settings.WebhookSecret = setting, []string{"hook-Kq7vT2mXw9RzB4nY"}
		b.settings.DatabaseURL = "postgres://handoff:pass%2Fword-Kd8Lp3Vn6T@db/handoff"
		scanner := secrets.New(b.knownSecrets()...)
		for _, secret := range []string{line, "model-Zt5Jf8Qs1Wd4Gh7X", "hook-Kq7vT2mXw9RzB4nY", "pass/word-Kd8Lp3Vn6T"} {
			if got := scanner.RedactKnown("it is " + secret); strings.Contains(got, secret) {
				t.Errorf("%s: nobody knows %s", how, secret)
			}
		}
	}
}
