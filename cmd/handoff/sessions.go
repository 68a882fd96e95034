package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/report"
	"handoff/runner/session"
	"handoff/runner/store"
)

// A sessionsCommand looks after sessions, also beside a server that works on
// them.
type sessionsCommand struct {
	List   sessionsList   `cmd:"" help:"List the newest sessions."`
	Show   sessionsShow   `cmd:"" help:"Show one session: its state, checklist, approvals, costs and what happened."`
	Stop   sessionsStop   `cmd:"" help:"Ask a session to end; its work is kept."`
	Export sessionsExport `cmd:"" help:"Write all that is recorded of a session into a zip file, or one of its files to standard output."`
	Replay sessionsReplay `cmd:"" help:"Play a session again on a local clone: what its models answered, with real tools and tests."`
	Link   sessionsLink   `cmd:"" help:"Make a link to a session's page, or to the list of all sessions, that works for a while."`
	Revoke sessionsRevoke `cmd:"" help:"Make all links that were given out useless at once."`
}

// openToRead opens the database for reading, beside whoever serves it.
func openToRead(p *process, settings databaseSettings) (*store.Store, error) {
	return store.Open(p.ctx, settings.DatabaseURL, store.Options{Mode: store.ModeRead})
}

// oneSession reads a session by its id, or by a beginning of it that no other
// has.
func oneSession(ctx context.Context, database *store.Store, id string) (store.Session, error) {
	found, err := database.SessionByPrefix(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return found, fmt.Errorf("there is no session %q; handoff sessions list shows those that there are", id)
	case errors.Is(err, store.ErrAmbiguous):
		return found, fmt.Errorf("more than one session begins with %q; type more of the id, as handoff sessions list shows it", id)
	}
	return found, err
}

// operator is who types, for the audit log.
func operator() string {
	if who, err := user.Current(); err == nil {
		return "operator " + who.Username
	}
	return "operator"
}

type sessionsList struct {
	databaseSettings
	Limit int  `default:"30" help:"How many at most."`
	Live  bool `help:"Leave out those that have ended."`
	JSON  bool `name:"json" help:"One JSON object a line."`
}

// Run lists sessions, newest first.
func (l *sessionsList) Run(p *process) error {
	database, err := openToRead(p, l.databaseSettings)
	if err != nil {
		return err
	}
	defer database.Close()
	found, err := database.Sessions(p.ctx, store.SessionFilter{Live: l.Live}, l.Limit)
	if err != nil {
		return err
	}
	if l.JSON {
		summaries := make([]sessionSummary, len(found))
		for i, s := range found {
			summaries[i] = summaryOf(s)
		}
		return eachJSON(p.stdout, summaries)
	}
	if len(found) == 0 {
		fmt.Fprintln(p.stdout, "no sessions")
		return nil
	}
	table := newTable(p.stdout)
	table.row("ID", "STATE", "ISSUE", "BY", "CREATED", "COST", "TASK")
	for _, s := range found {
		table.row(s.ID, string(s.State), issueName(s), oneLine(s.RequesterLogin), stamp(s.CreatedAt), report.Cost(s.Usage), shortly(s.Task))
	}
	return table.Flush()
}

type sessionsShow struct {
	databaseSettings
	ID   string `arg:"" help:"The session's id, or a beginning of it."`
	JSON bool   `name:"json" help:"One JSON object."`
}

// A sessionDetail is all that show tells of a session.
type sessionDetail struct {
	sessionSummary
	Reason    string                  `json:"reason,omitempty"`
	Code      string                  `json:"code,omitempty"`
	Checklist []report.Task           `json:"checklist"`
	Approvals []approvalSummary       `json:"approvals"`
	Usage     map[string]agents.Usage `json:"usage_by_agent"`
	Files     []string                `json:"files"`
	Events    []runner.Event          `json:"events"`
}

// An approvalSummary is an approval without what only machines read.
type approvalSummary struct {
	Digest    string    `json:"digest"`
	Kind      string    `json:"kind"`
	State     string    `json:"state"`
	Commit    string    `json:"commit,omitempty"`
	TargetRef string    `json:"target_ref,omitempty"`
	DecidedBy string    `json:"decided_by,omitempty"`
	Via       string    `json:"decided_via,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	DecidedAt time.Time `json:"decided_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Run shows one session.
func (s *sessionsShow) Run(p *process) error {
	database, err := openToRead(p, s.databaseSettings)
	if err != nil {
		return err
	}
	defer database.Close()
	found, err := oneSession(p.ctx, database, s.ID)
	if err != nil {
		return err
	}
	detail, err := detailOf(p.ctx, database, found)
	if err != nil {
		return err
	}
	if s.JSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(detail)
	}
	return detail.print(p.stdout, found)
}

// detailOf gathers what is recorded of a session.
func detailOf(ctx context.Context, database *store.Store, found store.Session) (detail sessionDetail, err error) {
	detail = sessionDetail{sessionSummary: summaryOf(found), Reason: found.Reason, Code: found.Code}
	records, err := database.Records(ctx, found.ID, 1)
	if err != nil {
		return detail, err
	}
	state, err := runner.Fold(records)
	if err != nil {
		return detail, err
	}
	detail.Checklist = session.Checklist(state.Items())
	if detail.Events, err = runner.Replay(records, 1); err != nil {
		return detail, err
	}
	approvals, err := database.ApprovalsOfSession(ctx, found.ID)
	if err != nil {
		return detail, err
	}
	for _, a := range approvals {
		detail.Approvals = append(detail.Approvals, approvalSummary{
			Digest: a.Digest, Kind: a.Kind, State: string(a.State), Commit: a.Commit, TargetRef: a.TargetRef, DecidedBy: a.DecidedBy,
			Via: a.DecidedVia, Reason: a.Reason, DecidedAt: a.DecidedAt, ExpiresAt: a.ExpiresAt,
		})
	}
	artifacts, err := database.Artifacts(ctx, found.ID)
	if err != nil {
		return detail, err
	}
	for _, artifact := range artifacts {
		detail.Files = append(detail.Files, artifact.Name)
	}
	detail.Usage, err = database.UsageByAgent(ctx, found.ID)
	return detail, err
}

// print writes the session as columns. What others wrote is shown with what is
// hidden in it, so that a terminal obeys none of it.
func (d sessionDetail) print(to io.Writer, found store.Session) error {
	table := newTable(to)
	table.row("session", d.ID)
	table.row("state", strings.TrimSpace(d.State+" "+d.Code))
	if d.Reason != "" {
		table.row("reason", oneLine(d.Reason))
	}
	table.row("issue", issueName(found))
	table.row("asked by", oneLine(d.Requester))
	table.row("task", oneLine(d.Task))
	table.row("created", stamp(d.CreatedAt))
	if !d.EndedAt.IsZero() {
		table.row("ended", stamp(d.EndedAt))
	}
	if d.PullRequest != "" {
		table.row("pull request", oneLine(d.PullRequest))
	}
	table.row("at work", report.Duration(time.Duration(found.ActiveMillis)*time.Millisecond))
	table.row("cost", report.Cost(found.Usage)+", "+report.Tokens(found.Usage.Total)+" tokens")
	for _, name := range d.Files {
		table.row("file", oneLine(name))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	d.printLists(to)
	return d.printEvents(to)
}

func (d sessionDetail) printLists(to io.Writer) {
	for i, task := range d.Checklist {
		if i == 0 {
			fmt.Fprintln(to, "\nCHECKLIST")
		}
		mark := " "
		if task.Done {
			mark = "x"
		}
		fmt.Fprintf(to, "[%s] %s\n", mark, oneLine(task.Title))
	}
	for i, a := range d.Approvals {
		if i == 0 {
			fmt.Fprintln(to, "\nAPPROVALS")
		}
		decided := ""
		if a.DecidedBy != "" {
			decided = fmt.Sprintf(" by %s (%s) %s", oneLine(a.DecidedBy), oneLine(a.Via), stamp(a.DecidedAt))
		}
		fmt.Fprintf(to, "%s  %s  %s%s  %s\n", a.Digest, oneLine(a.Kind), a.State, decided, oneLine(a.Reason))
	}
	for i, agent := range slices.Sorted(maps.Keys(d.Usage)) {
		if i == 0 {
			fmt.Fprintln(to, "\nCOST")
		}
		usage := d.Usage[agent]
		fmt.Fprintf(to, "%-16s %4d calls %8s tokens  %s\n", oneLine(agent), usage.Requests, report.Tokens(usage.Total), report.Cost(usage))
	}
}

func (d sessionDetail) printEvents(to io.Writer) error {
	table := newTable(to)
	fmt.Fprintln(to, "\nEVENTS")
	for _, event := range d.Events {
		if event.Kind == runner.EventUsage {
			continue
		}
		who := cmp.Or(event.Agent, event.From, event.To)
		what := strings.TrimSpace(event.Tool + " " + cmp.Or(event.Text, event.Arguments))
		table.row(fmt.Sprint(event.Seq), event.Time.UTC().Format(time.TimeOnly), string(event.Kind), oneLine(who), shortly(what))
	}
	return table.Flush()
}

type sessionsStop struct {
	databaseSettings
	ID string `arg:"" help:"The session's id, or a beginning of it."`
}

// Run asks the session to end.
func (s *sessionsStop) Run(p *process) error {
	database, err := store.Open(p.ctx, s.DatabaseURL, store.Options{Mode: store.ModeShare})
	if err != nil {
		return err
	}
	defer database.Close()
	found, err := oneSession(p.ctx, database, s.ID)
	if err != nil {
		return err
	}
	if found.State.Ended() {
		fmt.Fprintf(p.stdout, "session %s is over already: %s\n", found.ID, found.State)
		return nil
	}
	stopped, err := database.Cancel(p.ctx, found.ID, operator())
	if err != nil {
		return err
	}
	entry := store.AuditEntry{
		InstallationID: found.InstallationID, RepositoryID: found.RepositoryID, SessionID: found.ID,
		Actor: operator(), Action: "session.stop_requested", Subject: found.ID,
	}
	if err := database.Audit(p.ctx, entry); err != nil {
		return err
	}
	if stopped.State.Ended() {
		fmt.Fprintf(p.stdout, "session %s is stopped; it had not begun\n", found.ID)
	} else {
		fmt.Fprintf(p.stdout, "session %s will stop as soon as its server sees this; its work is kept\n", found.ID)
	}
	return nil
}

// A sessionSummary is a session as list shows it.
type sessionSummary struct {
	ID          string    `json:"id"`
	State       string    `json:"state"`
	Repository  string    `json:"repository"`
	Issue       int       `json:"issue"`
	Requester   string    `json:"requester"`
	Task        string    `json:"task"`
	PullRequest string    `json:"pull_request,omitempty"`
	CostMicros  int64     `json:"cost_micros"`
	Tokens      int64     `json:"tokens"`
	CreatedAt   time.Time `json:"created_at"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
}

func summaryOf(s store.Session) sessionSummary {
	return sessionSummary{
		ID: s.ID, State: string(s.State), Repository: s.Owner + "/" + s.Repository, Issue: s.Issue, Requester: s.RequesterLogin, Task: s.Task,
		PullRequest: pullRequestOf(s), CostMicros: s.Usage.CostMicros, Tokens: s.Usage.Total, CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
	}
}

// A table is aligned columns.
type table struct{ *tabwriter.Writer }

func newTable(to io.Writer) table { return table{tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)} }

// row adds a row. Write errors show when the table is flushed.
func (t table) row(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }

func issueName(s store.Session) string {
	return fmt.Sprintf("%s/%s#%d", oneLine(s.Owner), oneLine(s.Repository), s.Issue)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// shortly is somebody's text on one line of bearable length.
func shortly(text string) string {
	const limit = 90
	line := []rune(oneLine(text))
	if len(line) > limit {
		return string(line[:limit-1]) + "…"
	}
	return string(line)
}

// eachJSON writes one JSON object a line.
func eachJSON[T any](to io.Writer, values []T) error {
	encoder := json.NewEncoder(to)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return err
		}
	}
	return nil
}
