package fakegithub

import (
	"crypto/rsa"
	"regexp"
	"strings"
)

// pendingManifest is an App that was described by a manifest and waits to be fetched with its code.
type pendingManifest struct {
	manifest appManifest
	owner    *account
}

// appManifest is what `handoff setup` posts to describe its App.
// Source: https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
type appManifest struct {
	Name           string `json:"name"`
	URL            string `json:"url"`
	RedirectURL    string `json:"redirect_url"`
	Description    string `json:"description"`
	Public         bool   `json:"public"`
	HookAttributes struct {
		URL    string `json:"url"`
		Active *bool  `json:"active"`
	} `json:"hook_attributes"`
	DefaultPermissions map[string]string `json:"default_permissions"`
	DefaultEvents      []string          `json:"default_events"`
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// offerManifest keeps a manifest that the owner agreed to and returns the code for it.
func (s *Server) offerManifest(manifest appManifest, owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := randomToken("")
	s.world.manifests[code] = &pendingManifest{manifest: manifest, owner: s.world.account(owner)}
	return code
}

// convertManifest trades the code for the App and its secrets, once.
func convertManifest(c *call) (any, error) {
	s := c.server
	pending := s.world.manifests[c.param("code")]
	if pending == nil {
		return nil, errNotFound
	}
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(pending.manifest.Name), "-"), "-")
	if !loginPattern.MatchString(slug) || s.world.appBySlug(slug) != nil {
		return nil, invalid("Integration", "name", "already_exists")
	}
	delete(s.world.manifests, c.param("code"))
	key, private, err := appKey("")
	if err != nil {
		return nil, err
	}
	a := s.newApp(AppSpec{Slug: slug, Name: pending.manifest.Name, WebhookURL: pending.manifest.HookAttributes.URL,
		WebhookSecret: randomToken(""), Permissions: pending.manifest.DefaultPermissions, Events: pending.manifest.DefaultEvents,
		Public: pending.manifest.Public}, pending.owner)
	a.description, a.externalURL = pending.manifest.Description, pending.manifest.URL
	a.keys = []*rsa.PublicKey{key}
	result := s.integration(a)
	result["client_secret"], result["webhook_secret"], result["pem"] = a.clientSecret, a.hookSecret, private
	return result, nil
}
