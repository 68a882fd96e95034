package fakegithub

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// UserSpec describes a person or organisation to add.
type UserSpec struct {
	Login string `json:"login"`
	Name  string `json:"name"`
	// ID is the numeric id; zero draws the next one.
	ID int64 `json:"id"`
	// Type is User (the default) or Organization.
	Type string `json:"type"`
	// Token is the personal access token; empty draws a random one. Organisations have none.
	Token string `json:"token"`
}

// RepositorySpec describes a repository to add, with its first commit.
type RepositorySpec struct {
	// Owner is the login of a user or organisation that exists.
	Owner string `json:"owner"`
	Name  string `json:"name"`
	ID    int64  `json:"id"`
	// Private hides the repository from everyone without a role in it.
	Private       bool   `json:"private"`
	Description   string `json:"description"`
	DefaultBranch string `json:"default_branch"` // empty means main
	// Files is the tree of the first commit; nil leaves the repository empty, without any commit. Executable bits
	// and symlinks are kept if the file system has them.
	Files fs.FS `json:"-"`
	// Message is the first commit's message; empty means "Initial commit". Author, message, date and files being
	// equal, the commit has the same hash every time.
	Message string `json:"message"`
	// When dates the first commit; zero means a fixed day.
	When time.Time `json:"when"`
	// Roles are granted by login.
	Roles map[string]Role `json:"roles"`
	// CustomRoles names roles of the organisation's own and the built-in role that each builds on.
	CustomRoles map[string]Role `json:"custom_roles"`
	// Protected are the rules for branches.
	Protected []Protection `json:"protected"`
}

// AppSpec describes a GitHub App to add.
type AppSpec struct {
	Slug string `json:"slug"`
	Name string `json:"name"`
	ID   int64  `json:"id"`
	// Owner is the login of the account the App belongs to.
	Owner string `json:"owner"`
	// PrivateKey is the PEM (PKCS #1 or #8) whose public half the fake keeps; empty makes one, see App.PrivateKey.
	PrivateKey    string `json:"private_key"`
	WebhookURL    string `json:"webhook_url"`
	WebhookSecret string `json:"webhook_secret"`
	// Permissions are those the App asks for, for example {"issues": "write"}; metadata: read is always there.
	Permissions map[string]string `json:"permissions"`
	// Events are the webhooks it subscribes to; nil means all that its permissions allow.
	Events []string `json:"events"`
	// Public Apps may be installed by anyone.
	Public bool `json:"public"`
}

// InstallationSpec says where an App is installed.
type InstallationSpec struct {
	App     string `json:"app"`     // slug
	Account string `json:"account"` // login
	ID      int64  `json:"id"`
	// Repositories are names without owner; nil means all, also those that come later.
	Repositories []string `json:"repositories"`
	// Permissions that the account granted; nil means all that the App asks for.
	Permissions map[string]string `json:"permissions"`
}

var loginPattern = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$`)

// reservedLogins are the first path segments that the API and the pages use themselves.
var reservedLogins = []string{"api", "app", "app-manifests", "apps", "installation", "login", "meta", "rate_limit",
	"repos", "repositories", "settings", "static", "user", "users"}

// AddUser adds a person or an organisation. It fails when the login is malformed, reserved or taken.
func (s *Server) AddUser(spec UserSpec) (User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !loginPattern.MatchString(spec.Login) || slices.Contains(reservedLogins, strings.ToLower(spec.Login)) {
		return User{}, fmt.Errorf("fakegithub: %q cannot be a login", spec.Login)
	}
	if s.world.account(spec.Login) != nil {
		return User{}, fmt.Errorf("fakegithub: login %q is taken", spec.Login)
	}
	a := s.newAccount(spec.Login, spec.Type, spec.ID)
	a.name = spec.Name
	if a.kind == "User" {
		a.token = spec.Token
		if a.token == "" {
			a.token = randomToken("ghp_")
		}
		s.world.personTokens[a.token] = a
	}
	return a.dump(), nil
}

func (s *Server) newAccount(login, kind string, id int64) *account {
	if kind == "" {
		kind = "User"
	}
	if id == 0 {
		id = s.world.nextID()
	}
	a := &account{id: id, login: login, kind: kind, created: s.Now()}
	s.world.accounts[strings.ToLower(login)] = a
	return a
}

// AddRepository adds a repository and its first commit. It fails when the owner does not exist or the name is taken
// or malformed.
func (s *Server) AddRepository(spec RepositorySpec) (Repository, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.newRepository(spec)
	if err != nil {
		return Repository{}, err
	}
	if err := s.initGit(r, spec); err != nil {
		return Repository{}, fmt.Errorf("fakegithub: repository %s: %w", r.fullName(), err)
	}
	r.size = measure(r)
	s.world.repositories[r.id] = r
	return s.dumpRepository(r), nil
}

var repositoryNamePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

func (s *Server) newRepository(spec RepositorySpec) (*repository, error) {
	owner := s.world.account(spec.Owner)
	switch {
	case owner == nil:
		return nil, fmt.Errorf("fakegithub: no account %q to own repository %q", spec.Owner, spec.Name)
	case !repositoryNamePattern.MatchString(spec.Name) || spec.Name == "." || spec.Name == "..":
		return nil, fmt.Errorf("fakegithub: %q cannot be a repository's name", spec.Name)
	case s.world.repository(spec.Owner, spec.Name) != nil:
		return nil, fmt.Errorf("fakegithub: repository %s/%s exists", spec.Owner, spec.Name)
	}
	r := &repository{
		id: spec.ID, owner: owner, name: spec.Name, private: spec.Private, description: spec.Description,
		defaultBranch: spec.DefaultBranch, roles: map[int64]Role{}, customRoles: maps.Clone(spec.CustomRoles),
		protected: slices.Clone(spec.Protected), issues: map[int]*issue{}, comments: map[int64]*comment{}, changes: map[string]*change{},
		created: s.Now(), updated: s.Now(), pushed: s.Now(),
	}
	if r.id == 0 {
		r.id = s.world.nextID()
	}
	if r.defaultBranch == "" {
		r.defaultBranch = "main"
	}
	for login, role := range spec.Roles {
		if err := s.grant(r, login, role); err != nil {
			return nil, err
		}
	}
	s.addDefaultLabels(r)
	return r, nil
}

// grant gives the account a role, or takes it away with RoleNone.
func (s *Server) grant(r *repository, login string, role Role) error {
	a := s.world.account(login)
	if a == nil {
		return fmt.Errorf("fakegithub: no account %q to give a role in %s", login, r.fullName())
	}
	if !slices.Contains(roleOrder, role) && r.customRoles[string(role)] == "" {
		return fmt.Errorf("fakegithub: %q is no role in %s", role, r.fullName())
	}
	if role == RoleNone {
		delete(r.roles, a.id)
		return nil
	}
	r.roles[a.id] = role
	return nil
}

func (s *Server) addDefaultLabels(r *repository) {
	for _, l := range []struct{ name, color, description string }{
		{"bug", "d73a4a", "Something isn't working"},
		{"documentation", "0075ca", "Improvements or additions to documentation"},
		{"enhancement", "a2eeef", "New feature or request"},
	} {
		r.labels = append(r.labels, &label{id: s.world.nextID(), name: l.name, color: l.color, description: l.description})
	}
}

// AddApp registers an App and its bot account, which is called like the slug followed by [bot].
func (s *Server) AddApp(spec AppSpec) (App, error) {
	key, private, err := appKey(spec.PrivateKey)
	if err != nil {
		return App{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := s.world.account(spec.Owner)
	switch {
	case owner == nil:
		return App{}, fmt.Errorf("fakegithub: no account %q to own App %q", spec.Owner, spec.Slug)
	case !loginPattern.MatchString(spec.Slug):
		return App{}, fmt.Errorf("fakegithub: %q cannot be an App's slug", spec.Slug)
	case s.world.appBySlug(spec.Slug) != nil:
		return App{}, fmt.Errorf("fakegithub: App %q exists", spec.Slug)
	}
	a := s.newApp(spec, owner)
	a.keys, a.privateKeyPEM = []*rsa.PublicKey{key}, private
	return a.dump(), nil
}

func (s *Server) newApp(spec AppSpec, owner *account) *app {
	a := &app{
		id: spec.ID, slug: spec.Slug, name: spec.Name, owner: owner, public: spec.Public,
		hookURL: spec.WebhookURL, hookSecret: spec.WebhookSecret, hookType: "json", hookInsecure: "0",
		permissions: maps.Clone(spec.Permissions), events: slices.Clone(spec.Events),
		clientID: "Iv23li" + randomToken("")[:14], clientSecret: randomToken(""),
		created: s.Now(), updated: s.Now(),
	}
	if a.id == 0 {
		a.id = s.world.nextID()
	}
	if a.name == "" {
		a.name = spec.Slug
	}
	if a.permissions == nil {
		a.permissions = map[string]string{}
	}
	a.permissions["metadata"] = "read"
	if a.events == nil {
		a.events = eventsAllowedBy(a.permissions)
	}
	a.hookID = s.world.nextID()
	a.externalURL = s.URL() + "/apps/" + a.slug
	a.bot = s.newAccount(spec.Slug+"[bot]", "Bot", 0)
	s.world.apps[a.id] = a
	return a
}

// appKey reads the App's key or makes one. The public half is all that the fake checks signatures with.
func appKey(text string) (*rsa.PublicKey, string, error) {
	if text == "" {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, "", fmt.Errorf("fakegithub: making an App key: %w", err)
		}
		block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
		return &key.PublicKey, string(pem.EncodeToMemory(block)), nil
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, "", errors.New("fakegithub: the App's private key is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return &key.PublicKey, text, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, "", errors.New("fakegithub: the App's private key is not an RSA key in PKCS #1 or PKCS #8")
	}
	return &key.PublicKey, text, nil
}

// Install installs an App on an account and sends it installation.created.
func (s *Server) Install(spec InstallationSpec) (Installation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, owner := s.world.appBySlug(spec.App), s.world.account(spec.Account)
	if a == nil || owner == nil {
		return Installation{}, fmt.Errorf("fakegithub: cannot install App %q on %q: one of them does not exist", spec.App, spec.Account)
	}
	if !a.public && a.owner != owner {
		return Installation{}, fmt.Errorf("fakegithub: App %q is private and can be installed on %q only", a.slug, a.owner.login)
	}
	i := &installation{
		id: spec.ID, app: a, account: owner, all: spec.Repositories == nil, repositories: map[int64]bool{},
		permissions: maps.Clone(spec.Permissions), created: s.Now(), updated: s.Now(),
	}
	if i.id == 0 {
		i.id = s.world.nextID()
	}
	if i.permissions == nil {
		i.permissions = maps.Clone(a.permissions)
	}
	i.permissions["metadata"] = "read"
	for _, name := range spec.Repositories {
		r := s.world.repository(spec.Account, name)
		if r == nil {
			return Installation{}, fmt.Errorf("fakegithub: no repository %s/%s to install App %q on", spec.Account, name, a.slug)
		}
		i.repositories[r.id] = true
	}
	s.world.installations[i.id] = i
	s.emitInstallation(i, "created", owner)
	return i.dump(), nil
}
