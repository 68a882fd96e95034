package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"handoff/runner/store"
	"handoff/webhook/pages"
)

// linkSettings are what links are made of.
type linkSettings struct {
	databaseSettings
	PublicURL string `name:"public-url" env:"PUBLIC_URL" help:"Address under which people reach the server." placeholder:"URL"`
}

type sessionsLink struct {
	linkSettings
	ID  string        `arg:"" optional:"" help:"The session's id, or a beginning of it; none for the list of all sessions."`
	For time.Duration `default:"1h" help:"How long the link works, a day at most."`
}

// Run makes a link.
func (l *sessionsLink) Run(p *process) error {
	switch {
	case l.PublicURL == "":
		return errors.New("PUBLIC_URL is missing: it is the address under which people reach the server, and the link begins with it")
	case l.For <= 0 || l.For > pages.MaxLifetime:
		return misuse(fmt.Sprintf("--for is %v: a link works for a while, and for %v at most", l.For, pages.MaxLifetime))
	}
	database, err := store.Open(p.ctx, l.DatabaseURL, store.Options{Mode: store.ModeShare})
	if err != nil {
		return err
	}
	defer database.Close()
	links, err := pages.NewLinks(database, l.PublicURL)
	if err != nil {
		return err
	}
	link, err := l.link(p.ctx, database, links)
	if err != nil {
		return err
	}
	entry := store.AuditEntry{SessionID: l.ID, Actor: operator(), Action: "link.made", Subject: "until " + stamp(link.Expires)}
	if err := database.Audit(p.ctx, entry); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, link.URL)
	fmt.Fprintf(p.stderr, "It works until %s and opens the page to whoever has it.\n", stamp(link.Expires))
	return nil
}

func (l *sessionsLink) link(ctx context.Context, database *store.Store, links *pages.Links) (pages.Link, error) {
	if l.ID == "" {
		return links.Overview(ctx, l.For)
	}
	found, err := oneSession(ctx, database, l.ID)
	if err != nil {
		return pages.Link{}, err
	}
	l.ID = found.ID
	return links.Session(ctx, found.ID, l.For)
}

type sessionsRevoke struct {
	databaseSettings
}

// Run renews the key that signs links.
func (r *sessionsRevoke) Run(p *process) error {
	database, err := store.Open(p.ctx, r.DatabaseURL, store.Options{Mode: store.ModeShare})
	if err != nil {
		return err
	}
	defer database.Close()
	links, err := pages.NewLinks(database, "")
	if err != nil {
		return err
	}
	if err := links.Revoke(p.ctx, operator()); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "all links that were given out are useless now, those to patches included")
	return nil
}
