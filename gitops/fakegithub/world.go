package fakegithub

import (
	"crypto/rsa"
	"slices"
	"strings"
	"sync"
	"time"
)

// world is everything the fake knows except git objects and refs. Server.mu guards it.
type world struct {
	lastID        int64
	accounts      map[string]*account // by lower-case login
	apps          map[int64]*app
	installations map[int64]*installation
	repositories  map[int64]*repository
	moved         map[string]int64 // lower-case full names that repositories once had
	tokens        map[string]*installationToken
	personTokens  map[string]*account
	manifests     map[string]*pendingManifest
	deliveries    []*delivery
}

func newWorld() *world {
	return &world{
		lastID:        1000,
		accounts:      map[string]*account{},
		apps:          map[int64]*app{},
		installations: map[int64]*installation{},
		repositories:  map[int64]*repository{},
		moved:         map[string]int64{},
		tokens:        map[string]*installationToken{},
		personTokens:  map[string]*account{},
		manifests:     map[string]*pendingManifest{},
	}
}

// nextID draws from one sequence for everything, so that an id of one kind is never a valid id of another.
func (w *world) nextID() int64 {
	w.lastID++
	return w.lastID
}

type account struct {
	id      int64
	login   string
	name    string
	kind    string // User, Organization or Bot
	token   string // personal access token; empty for organisations and bots
	created time.Time
}

type app struct {
	id            int64
	slug          string
	name          string
	description   string
	externalURL   string
	owner         *account
	bot           *account
	keys          []*rsa.PublicKey
	clientID      string
	clientSecret  string
	hookID        int64
	hookURL       string
	hookSecret    string
	hookInsecure  string
	hookType      string // content type of the webhook: json
	public        bool
	permissions   map[string]string
	events        []string
	created       time.Time
	updated       time.Time
	privateKeyPEM string
}

type installation struct {
	id           int64
	app          *app
	account      *account
	all          bool
	repositories map[int64]bool // used when all is false
	permissions  map[string]string
	created      time.Time
	updated      time.Time
	suspended    time.Time // zero unless suspended
	suspendedBy  *account
}

type installationToken struct {
	value        string
	installation *installation
	repositories map[int64]bool // nil means all of the installation's
	permissions  map[string]string
	expires      time.Time
	created      time.Time
}

type repository struct {
	id            int64
	owner         *account
	name          string
	private       bool
	archived      bool
	description   string
	defaultBranch string
	directory     string
	roles         map[int64]Role
	customRoles   map[string]Role // name → the built-in role it builds on
	protected     []Protection
	preReceive    string // a text refuses every push
	labels        []*label
	number        int
	issues        map[int]*issue
	comments      map[int64]*comment
	reviews       []*review
	checkRuns     []*checkRun
	statuses      []*status
	workflowRuns  []*workflowRun
	created       time.Time
	updated       time.Time
	pushed        time.Time
	size          int64              // KiB on disk after the last push
	changes       map[string]*change // comparisons already made, by base...head

	gitMu sync.Mutex // one writer of refs at a time; taken before Server.mu
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

type label struct {
	id          int64
	name        string
	color       string
	description string
}

// issue is an issue or, with pull set, a pull request: both draw from one sequence of numbers.
type issue struct {
	id          int64
	number      int
	title       string
	body        string
	author      *account
	via         *app // the App through which it was written, if any
	closed      bool
	closedAt    time.Time
	closedBy    *account
	stateReason string
	locked      bool
	labels      []*label
	assignees   []*account
	reactions   []*reaction
	created     time.Time
	updated     time.Time
	pull        *pull
}

type pull struct {
	id            int64
	headBranch    string
	baseBranch    string
	draft         bool
	canModify     bool
	merged        bool
	mergedAt      time.Time
	mergedBy      *account
	mergeCommit   string
	closedBaseSHA string // the base when it was closed; while open it is read from git
	reviewers     []*account
}

// comment is a comment on an issue's or pull request's conversation, or, with line set, on a diff.
type comment struct {
	id        int64
	number    int
	body      string
	author    *account
	via       *app
	reactions []*reaction
	created   time.Time
	updated   time.Time
	line      *lineComment
}

type lineComment struct {
	review   int64
	path     string
	line     int
	hunk     string
	commit   string
	replyTo  int64
	position int
}

type review struct {
	id        int64
	number    int
	author    *account
	state     string // APPROVED, CHANGES_REQUESTED, COMMENTED
	body      string
	commit    string
	submitted time.Time
}

type reaction struct {
	id      int64
	content string
	user    *account
	created time.Time
}

type checkRun struct {
	id          int64
	suite       int64
	app         *app
	name        string
	headSHA     string
	externalID  string
	detailsURL  string
	status      string
	conclusion  string
	started     time.Time
	completed   time.Time
	title       string
	summary     string
	text        string
	annotations []map[string]any
	actions     []CheckAction
}

type status struct {
	id          int64
	sha         string
	state       string
	context     string
	description string
	targetURL   string
	creator     *account
	created     time.Time
}

func (w *world) account(login string) *account {
	return w.accounts[strings.ToLower(login)]
}

func (w *world) repository(owner, name string) *repository {
	for _, r := range w.repositories {
		if strings.EqualFold(r.owner.login, owner) && strings.EqualFold(r.name, name) {
			return r
		}
	}
	return nil
}

func (w *world) appBySlug(slug string) *app {
	for _, a := range w.apps {
		if a.slug == slug {
			return a
		}
	}
	return nil
}

func (i *installation) covers(r *repository) bool {
	return i.account == r.owner && (i.all || i.repositories[r.id])
}

// sorted returns a map's values in order of their keys, so that lists are the same each time.
func sorted[K ~int | ~int64, V any](values map[K]V) []V {
	keys := make([]K, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	list := make([]V, len(keys))
	for i, key := range keys {
		list[i] = values[key]
	}
	return list
}
