package fakegithub

import (
	"slices"
	"strings"
	"time"
)

// State is everything that the fake knows, as plain copies for tests to look at.
type State struct {
	Users         []User         `json:"users"`
	Apps          []App          `json:"apps"`
	Installations []Installation `json:"installations"`
	Repositories  []Repository   `json:"repositories"`
	Deliveries    []Delivery     `json:"deliveries"`
}

// User is an account: a person, an organisation, or an App's bot.
type User struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
	// Token is a person's personal access token; State leaves it out.
	Token string `json:"token,omitempty"`
}

// App is a GitHub App.
type App struct {
	ID          int64             `json:"id"`
	Slug        string            `json:"slug"`
	Bot         User              `json:"bot"`
	Permissions map[string]string `json:"permissions"`
	Events      []string          `json:"events"`
	WebhookURL  string            `json:"webhook_url"`
	// WebhookSecret and PrivateKey are given once, by AddApp; State leaves them out.
	WebhookSecret string `json:"webhook_secret,omitempty"`
	PrivateKey    string `json:"private_key,omitempty"`
}

// Installation is an App on an account.
type Installation struct {
	ID          int64             `json:"id"`
	AppID       int64             `json:"app_id"`
	Account     string            `json:"account"`
	Permissions map[string]string `json:"permissions"`
	Suspended   bool              `json:"suspended"`
}

// Repository is a repository with all that belongs to it.
type Repository struct {
	ID            int64             `json:"id"`
	FullName      string            `json:"full_name"`
	DefaultBranch string            `json:"default_branch"`
	CloneURL      string            `json:"clone_url"`
	Private       bool              `json:"private"`
	Archived      bool              `json:"archived"`
	Branches      map[string]string `json:"branches"` // name → commit
	Issues        []Issue           `json:"issues"`
	CheckRuns     []CheckRun        `json:"check_runs"`
}

// Issue is an issue, or a pull request if Pull is set.
type Issue struct {
	ID        int64      `json:"id"`
	Number    int        `json:"number"`
	Title     string     `json:"title"`
	Body      string     `json:"body"`
	Author    string     `json:"author"`
	State     string     `json:"state"`
	Locked    bool       `json:"locked"`
	Labels    []string   `json:"labels"`
	URL       string     `json:"url"` // of its page
	Reactions []Reaction `json:"reactions"`
	Comments  []Comment  `json:"comments"`
	Pull      *Pull      `json:"pull,omitempty"`
}

// Pull is what a pull request has beyond an issue.
type Pull struct {
	Head     string   `json:"head"` // branch
	HeadSHA  string   `json:"head_sha"`
	Base     string   `json:"base"`
	BaseSHA  string   `json:"base_sha"`
	Merged   bool     `json:"merged"`
	Draft    bool     `json:"draft"`
	Files    []string `json:"files"`
	Commits  []string `json:"commits"`
	MergeSHA string   `json:"merge_sha,omitempty"`
}

// Comment is a comment on a conversation, or on a diff if Path is set.
type Comment struct {
	ID        int64      `json:"id"`
	Author    string     `json:"author"`
	Body      string     `json:"body"`
	Created   time.Time  `json:"created"`
	Updated   time.Time  `json:"updated"`
	URL       string     `json:"url"` // of its place on the page
	Path      string     `json:"path,omitempty"`
	Reactions []Reaction `json:"reactions"`
}

// Reaction is one person's reaction.
type Reaction struct {
	ID      int64     `json:"id"`
	Content string    `json:"content"`
	User    string    `json:"user"`
	Created time.Time `json:"created"`
}

// CheckRun is an App's check on a commit.
type CheckRun struct {
	ID         int64         `json:"id"`
	App        string        `json:"app"`
	Name       string        `json:"name"`
	HeadSHA    string        `json:"head_sha"`
	ExternalID string        `json:"external_id"`
	Status     string        `json:"status"`
	Conclusion string        `json:"conclusion"`
	Title      string        `json:"title"`
	Summary    string        `json:"summary"`
	Text       string        `json:"text"`
	Actions    []CheckAction `json:"actions"`
}

// Delivery is one webhook that was sent.
type Delivery struct {
	ID         int64  `json:"id"`
	GUID       string `json:"guid"`
	App        string `json:"app"`
	Event      string `json:"event"`
	Action     string `json:"action"`
	StatusCode int    `json:"status_code"`
	Status     string `json:"status"`
	Redelivery bool   `json:"redelivery"`
	Payload    string `json:"payload"`
}

// State copies everything, in a fixed order.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	var state State
	for _, a := range s.world.accounts {
		user := a.dump()
		user.Token = ""
		state.Users = append(state.Users, user)
	}
	slices.SortFunc(state.Users, func(a, b User) int { return strings.Compare(a.Login, b.Login) })
	for _, a := range sorted(s.world.apps) {
		shown := a.dump()
		shown.PrivateKey, shown.WebhookSecret = "", ""
		state.Apps = append(state.Apps, shown)
	}
	for _, i := range sorted(s.world.installations) {
		state.Installations = append(state.Installations, i.dump())
	}
	for _, r := range sorted(s.world.repositories) {
		state.Repositories = append(state.Repositories, s.dumpRepository(r))
	}
	for _, d := range s.world.deliveries {
		state.Deliveries = append(state.Deliveries, Delivery{ID: d.id, GUID: d.guid, App: d.app.slug, Event: d.event, Action: d.action,
			StatusCode: d.statusCode, Status: d.status, Redelivery: d.redelivery, Payload: string(d.payload)})
	}
	return state
}

// Repository returns the repository owner/name out of the state.
func (s State) Repository(fullName string) (Repository, bool) {
	for _, r := range s.Repositories {
		if strings.EqualFold(r.FullName, fullName) {
			return r, true
		}
	}
	return Repository{}, false
}

// Issue returns an issue or pull request by its number.
func (r Repository) Issue(number int) (Issue, bool) {
	for _, i := range r.Issues {
		if i.Number == number {
			return i, true
		}
	}
	return Issue{}, false
}

func (a *account) dump() User {
	return User{ID: a.id, Login: a.login, Type: a.kind, Token: a.token}
}

func (a *app) dump() App {
	return App{ID: a.id, Slug: a.slug, Bot: a.bot.dump(), Permissions: copyStrings(a.permissions), Events: slices.Clone(a.events),
		WebhookURL: a.hookURL, WebhookSecret: a.hookSecret, PrivateKey: a.privateKeyPEM}
}

func (i *installation) dump() Installation {
	return Installation{ID: i.id, AppID: i.app.id, Account: i.account.login, Permissions: copyStrings(i.permissions), Suspended: !i.suspended.IsZero()}
}

func (s *Server) dumpRepository(r *repository) Repository {
	result := Repository{ID: r.id, FullName: r.fullName(), DefaultBranch: r.defaultBranch, CloneURL: s.repoPage(r) + ".git",
		Private: r.private, Archived: r.archived, Branches: map[string]string{}}
	if refs, err := s.refs(r, "refs/heads/"); err == nil {
		for _, ref := range refs {
			result.Branches[ref.Name().Short()] = ref.Hash().String()
		}
	}
	for _, i := range sorted(r.issues) {
		result.Issues = append(result.Issues, s.dumpIssue(r, i))
	}
	for _, run := range r.checkRuns {
		result.CheckRuns = append(result.CheckRuns, CheckRun{ID: run.id, App: run.app.slug, Name: run.name, HeadSHA: run.headSHA,
			ExternalID: run.externalID, Status: run.status, Conclusion: run.conclusion, Title: run.title, Summary: run.summary,
			Text: run.text, Actions: slices.Clone(run.actions)})
	}
	return result
}

func (s *Server) dumpIssue(r *repository, i *issue) Issue {
	result := Issue{ID: i.id, Number: i.number, Title: i.title, Body: i.body, Author: i.author.login, State: i.state(), Locked: i.locked,
		URL: s.conversationPage(r, i), Reactions: dumpReactions(i.reactions)}
	for _, l := range i.labels {
		result.Labels = append(result.Labels, l.name)
	}
	for _, m := range commentsWhere(r, func(m *comment) bool { return m.number == i.number }) {
		result.Comments = append(result.Comments, s.dumpComment(r, m))
	}
	if i.pull != nil {
		result.Pull = s.dumpPull(r, i)
	}
	return result
}

func (s *Server) dumpPull(r *repository, i *issue) *Pull {
	result := &Pull{Head: i.pull.headBranch, HeadSHA: s.headSHA(r, i), Base: i.pull.baseBranch, BaseSHA: s.baseSHA(r, i),
		Merged: i.pull.merged, Draft: i.pull.draft, MergeSHA: i.pull.mergeCommit}
	difference := s.pullChange(r, i)
	for _, file := range difference.files {
		result.Files = append(result.Files, file.name)
	}
	for _, commit := range difference.commits {
		result.Commits = append(result.Commits, commit.Hash.String())
	}
	return result
}

func (s *Server) dumpComment(r *repository, m *comment) Comment {
	result := Comment{ID: m.id, Author: m.author.login, Body: m.body, Created: m.created, Updated: m.updated,
		URL: s.commentPage(r, m), Reactions: dumpReactions(m.reactions)}
	if m.line != nil {
		result.Path = m.line.path
	}
	return result
}

func dumpReactions(reactions []*reaction) []Reaction {
	var list []Reaction
	for _, one := range reactions {
		list = append(list, Reaction{ID: one.id, Content: one.content, User: one.user.login, Created: one.created})
	}
	return list
}
