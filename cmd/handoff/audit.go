package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"handoff/runner/store"
)

// auditCommand is about the log of who decided and did what.
type auditCommand struct {
	Verify auditVerify `cmd:"" help:"Check that the audit log was not changed since it was written."`
}

type auditVerify struct {
	databaseSettings
	Head string `help:"A head that an earlier run printed and that was kept elsewhere: the log must still have it." placeholder:"SEQ:HASH"`
}

// Run recomputes the chain of the whole log and prints its head.
func (a *auditVerify) Run(p *process) error {
	kept, err := parseHead(a.Head)
	if err != nil {
		return err
	}
	database, err := store.Open(p.ctx, a.DatabaseURL, store.Options{Mode: store.ModeRead})
	if err != nil {
		return err
	}
	defer database.Close()
	head, err := database.VerifyAudit(p.ctx)
	if errors.Is(err, store.ErrAuditBroken) {
		return fmt.Errorf("%w: it does not follow from the ones before it. Compare the log with a backup from before", err)
	}
	if err != nil {
		return err
	}
	if err := stillHas(p.ctx, database, kept); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%d:%s\n", head.Seq, head.Hash)
	fmt.Fprintf(p.stderr, "The log's %d entries are as they were written. Keep this head elsewhere; --head then shows whether the log was cut or written anew.\n", head.Seq)
	return nil
}

// parseHead reads SEQ:HASH; the zero head stands for none.
func parseHead(text string) (store.AuditHead, error) {
	if text == "" {
		return store.AuditHead{}, nil
	}
	number, hash, _ := strings.Cut(text, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 || len(hash) != 64 && seq > 0 {
		return store.AuditHead{}, misuse(fmt.Sprintf("--head is %q: it must be the number and the hash that handoff audit verify printed, as SEQ:HASH", text))
	}
	return store.AuditHead{Seq: seq, Hash: hash}, nil
}

// stillHas checks that the log has the entry that was its head once.
func stillHas(ctx context.Context, database *store.Store, kept store.AuditHead) error {
	if kept.Seq == 0 {
		return nil
	}
	entries, err := database.AuditLog(ctx, kept.Seq, 1)
	switch {
	case err != nil:
		return err
	case len(entries) == 0:
		return fmt.Errorf("%w: it had %d entries and has fewer now, so its end was cut off", store.ErrAuditBroken, kept.Seq)
	case entries[0].Hash != kept.Hash:
		return fmt.Errorf("%w: entry %d is not the one that it was, so the log was written anew up to there", store.ErrAuditBroken, kept.Seq)
	}
	return nil
}

// restoredCommand is for the time between a restored backup and the first start.
type restoredCommand struct {
	databaseSettings
	logSettings
}

// Run voids the approvals that were open when the backup was made.
func (r *restoredCommand) Run(p *process) error {
	database, err := openStore(p.ctx, r.DatabaseURL, store.Options{Logger: r.logger(p)})
	if err != nil {
		return err
	}
	defer database.Close()
	_, voided, err := database.NewRestoreEpoch(p.ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%d approvals that were open in the backup are void; their sessions ask again.\n", voided)
	return nil
}
