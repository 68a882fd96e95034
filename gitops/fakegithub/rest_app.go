package fakegithub

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func getApp(c *call) (any, error) {
	result := c.server.integration(c.caller.app)
	count := 0
	for _, i := range c.server.world.installations {
		if i.app == c.caller.app {
			count++
		}
	}
	result["installations_count"] = count
	return result, nil
}

func listInstallations(c *call) (any, error) {
	var list []*installation
	for _, i := range sorted(c.server.world.installations) {
		if i.app == c.caller.app {
			list = append(list, i)
		}
	}
	return each(paginate(c, list), c.server.installationObject), nil
}

// ownInstallation finds an installation of the calling App.
func ownInstallation(c *call) (*installation, error) {
	id, err := c.number("installation_id")
	if err != nil {
		return nil, err
	}
	i := c.server.world.installations[id]
	if i == nil || i.app != c.caller.app {
		return nil, errNotFound
	}
	return i, nil
}

func getInstallation(c *call) (any, error) {
	i, err := ownInstallation(c)
	if err != nil {
		return nil, err
	}
	return c.server.installationObject(i), nil
}

func getRepositoryInstallation(c *call) (any, error) {
	if !c.caller.isApp() {
		return nil, errNotDecodedJWT
	}
	for _, i := range sorted(c.server.world.installations) {
		if i.app == c.caller.app && i.covers(c.repo) {
			return c.server.installationObject(i), nil
		}
	}
	return nil, errNotFound
}

// tokenLifetime is how long an installation token is good for.
// Source: https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app
const tokenLifetime = time.Hour

func createInstallationToken(c *call) (any, error) {
	i, err := ownInstallation(c)
	if err != nil {
		return nil, err
	}
	if !i.suspended.IsZero() {
		return nil, errorStatus(http.StatusForbidden, "This installation has been suspended")
	}
	var wanted struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	token := &installationToken{value: randomToken("ghs_"), installation: i, created: c.server.Now(), expires: c.server.Now().Add(tokenLifetime)}
	if token.repositories, err = c.server.tokenScope(i, wanted.Repositories, wanted.RepositoryIDs); err != nil {
		return nil, err
	}
	if token.permissions, err = tokenPermissions(i, wanted.Permissions); err != nil {
		return nil, err
	}
	c.server.world.tokens[token.value] = token
	return c.server.tokenObject(token), nil
}

// tokenScope narrows a token to repositories; nil means all of the installation's.
func (s *Server) tokenScope(i *installation, names []string, ids []int64) (map[int64]bool, error) {
	if len(names) == 0 && len(ids) == 0 {
		return nil, nil
	}
	scope := map[int64]bool{}
	for _, name := range names {
		r := s.world.repository(i.account.login, name)
		if r == nil || !i.covers(r) {
			return nil, errorStatus(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		scope[r.id] = true
	}
	for _, id := range ids {
		r := s.world.repositories[id]
		if r == nil || !i.covers(r) {
			return nil, errorStatus(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		scope[id] = true
	}
	return scope, nil
}

// tokenPermissions narrows a token's permissions, never beyond what was granted.
func tokenPermissions(i *installation, wanted map[string]string) (map[string]string, error) {
	if len(wanted) == 0 {
		return copyStrings(i.permissions), nil
	}
	result := map[string]string{"metadata": "read"}
	for name, want := range wanted {
		if level(want) == 0 || level(want) > level(i.permissions[name]) {
			return nil, errorStatus(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
		}
		result[name] = want
	}
	return result, nil
}

func (s *Server) tokenObject(token *installationToken) object {
	result := object{"token": token.value, "expires_at": stamp(token.expires), "permissions": copyStrings(token.permissions),
		"repository_selection": "all"}
	if token.repositories != nil {
		list := []object{}
		for _, r := range sorted(s.world.repositories) {
			if token.repositories[r.id] {
				list = append(list, s.repositoryObject(r))
			}
		}
		result["repositories"], result["repository_selection"] = list, "selected"
	} else if !token.installation.all {
		result["repository_selection"] = "selected"
	}
	return result
}

func revokeInstallationToken(c *call) (any, error) {
	delete(c.server.world.tokens, c.caller.token.value)
	return nil, nil
}

func listInstallationRepositories(c *call) (any, error) {
	var list []*repository
	for _, r := range sorted(c.server.world.repositories) {
		if c.caller.reaches(r) {
			list = append(list, r)
		}
	}
	selection := "selected"
	if c.caller.installation.all {
		selection = "all"
	}
	return object{"total_count": len(list), "repository_selection": selection,
		"repositories": each(paginate(c, list), c.server.repositoryObject)}, nil
}

func hookConfig(a *app) object {
	result := object{"url": a.hookURL, "content_type": a.hookType, "insecure_ssl": a.hookInsecure}
	if a.hookSecret != "" {
		result["secret"] = "********"
	}
	return result
}

func getHookConfig(c *call) (any, error) { return hookConfig(c.caller.app), nil }

func updateHookConfig(c *call) (any, error) {
	var edit struct {
		URL         *string `json:"url"`
		Secret      *string `json:"secret"`
		ContentType *string `json:"content_type"`
		// GitHub takes a number or a string here.
		InsecureSSL any `json:"insecure_ssl"`
	}
	if err := c.decode(&edit); err != nil {
		return nil, err
	}
	a := c.caller.app
	set(&a.hookURL, edit.URL)
	set(&a.hookSecret, edit.Secret)
	set(&a.hookType, edit.ContentType)
	switch insecure := edit.InsecureSSL.(type) {
	case string:
		a.hookInsecure = insecure
	case float64:
		a.hookInsecure = strconv.Itoa(int(insecure))
	}
	a.updated = c.server.Now()
	return hookConfig(a), nil
}

// ownDeliveries lists the App's deliveries, newest first.
func ownDeliveries(s *Server, a *app) []*delivery {
	var list []*delivery
	for _, d := range s.world.deliveries {
		if d.app == a {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *delivery) int { return cmp.Compare(b.id, a.id) })
	return list
}

// listDeliveries pages by cursor: the Link header's next carries the place where the list goes on, and old
// deliveries fall out after three days.
func listDeliveries(c *call) (any, error) {
	query := c.request().URL.Query()
	list := slices.DeleteFunc(ownDeliveries(c.server, c.caller.app), func(d *delivery) bool {
		return d.delivered.Before(c.server.Now().Add(-deliveryLogReach)) || !wantedStatus(query.Get("status"), d)
	})
	if cursor := query.Get("cursor"); cursor != "" {
		last, err := decodeCursor(cursor)
		if err != nil {
			return nil, errorStatus(http.StatusUnprocessableEntity, "Invalid cursor")
		}
		list = slices.DeleteFunc(list, func(d *delivery) bool { return d.id >= last })
	}
	size := boundedNumber(query.Get("per_page"), 30, 100)
	if len(list) > size {
		list = list[:size]
		query.Set("cursor", encodeCursor(list[size-1].id))
		c.header("Link", "<"+c.server.api("/app/hook/deliveries")+"?"+query.Encode()+`>; rel="next"`)
	}
	return each(list, deliverySummary), nil
}

// deliveryLogReach is how far back GitHub's delivery log goes.
const deliveryLogReach = 3 * 24 * time.Hour

func wantedStatus(wanted string, d *delivery) bool {
	succeeded := d.statusCode >= 200 && d.statusCode < 400
	switch wanted {
	case "success":
		return succeeded
	case "failure":
		return !succeeded
	default:
		return true
	}
}

func encodeCursor(id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte("v1_" + strconv.FormatInt(id, 10)))
}

func decodeCursor(cursor string) (int64, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimPrefix(string(text), "v1_"), 10, 64)
}

func deliverySummary(d *delivery) object {
	result := object{"id": d.id, "guid": d.guid, "delivered_at": stamp(d.delivered), "redelivery": d.redelivery,
		"duration": float64(d.duration.Milliseconds()) / 1000, "status": d.status, "status_code": d.statusCode,
		"event": d.event, "action": optional(d.action), "installation_id": nil, "repository_id": nil, "throttled_at": nil}
	if d.installation != 0 {
		result["installation_id"] = d.installation
	}
	if d.repository != 0 {
		result["repository_id"] = d.repository
	}
	return result
}

func ownDelivery(c *call) (*delivery, error) {
	id, err := c.number("delivery_id")
	if err != nil {
		return nil, err
	}
	for _, d := range ownDeliveries(c.server, c.caller.app) {
		if d.id == id {
			return d, nil
		}
	}
	return nil, errNotFound
}

func getDelivery(c *call) (any, error) {
	d, err := ownDelivery(c)
	if err != nil {
		return nil, err
	}
	result := deliverySummary(d)
	result["url"] = d.url
	result["request"] = object{"headers": copyStrings(d.requestHeaders), "payload": json.RawMessage(d.payload)}
	result["response"] = object{"headers": copyStrings(d.responseHeaders), "payload": d.responseBody}
	return result, nil
}

func redeliverDelivery(c *call) (any, error) {
	d, err := ownDelivery(c)
	if err != nil {
		return nil, err
	}
	c.server.redeliver(d)
	return object{}, nil
}
