package main

import (
	"encoding/base64"
	"net/url"
	"os"
	"strings"
)

// knownSecrets are what must never leave, beside what looks like a secret.
func (b *bot) knownSecrets() []string {
	known := append(keyMaterial(b.settings.PrivateKey), b.settings.WebhookSecret...)
	known = append(known, modelSecrets(b.around.getenv)...)
	if database, err := url.Parse(b.settings.DatabaseURL); err == nil && database.User != nil {
		if password, ok := database.User.Password(); ok {
			known = append(known, password)
		}
	}
	return known
}

// keyMaterial returns what of a private key must not be seen: the key itself,
// where a path was given, and each of its lines, for a part tells enough.
func keyMaterial(setting string) []string {
	key := setting
	if content, err := os.ReadFile(setting); err == nil {
		key = string(content)
	}
	known := []string{key}
	if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key)); err == nil {
		key = string(plain)
		known = append(known, key)
	}
	for line := range strings.Lines(strings.ReplaceAll(key, `\n`, "\n")) {
		if line = strings.TrimSpace(line); len(line) >= 32 && !strings.HasPrefix(line, "-----") {
			known = append(known, line)
		}
	}
	return known
}
