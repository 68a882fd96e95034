package store

import (
	"context"
	"crypto/sha1" // Git's own hash of contents, not a signature.
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"

	"handoff/agents"
	"handoff/runner"
)

var (
	insertRecords = named("insert_records")
	setProgress   = named("set_progress")
	insertUsage   = named("insert_usage")
	takeMessage   = named("take_message")
	putCheckpoint = named("put_checkpoint")
	putBlob       = named("put_blob")
	blobExists    = named("blob_exists")
)

// append writes a batch behind the guard, beginning with record g.seq.
func (g *guarded) append(ctx context.Context, batch runner.Batch) error {
	if len(batch.Records) > 0 {
		if err := g.putRecords(ctx, g.session.ID, g.session.Fence, g.seq, millis(g.now), batch.Records); err != nil {
			return err
		}
	}
	if err := g.putRequests(ctx, batch); err != nil {
		return err
	}
	if batch.Checkpoint != nil {
		if err := g.putCheckpoint(ctx, batch.Checkpoint); err != nil {
			return err
		}
	}
	if err := g.putProgress(ctx, batch); err != nil {
		return err
	}
	if err := g.putUsage(ctx, batch.Usage.Entries); err != nil {
		return err
	}
	return g.takeMessages(ctx, batch)
}

func (t *tx) putRecords(ctx context.Context, sessionID string, epoch, seq, now int64, records []runner.Record) error {
	rows := make([][]any, len(records))
	for i, r := range records {
		rows[i] = []any{sessionID, seq + int64(i), r.RunID, r.ParentRunID, epoch, now, max(r.Version, 1), r.Kind, r.Payload}
	}
	t.tell(TopicJournal)
	return t.insert(ctx, insertRecords, rows)
}

// putRequests writes the outbox rows of a batch. They decide the outcome of the
// call whose intent the batch records.
func (g *guarded) putRequests(ctx context.Context, batch runner.Batch) error {
	if len(batch.Effects) == 0 {
		return nil
	}
	var call string
	for _, record := range batch.Records {
		if record.Kind != runner.RecordToolIntent {
			continue
		}
		if call != "" {
			return fmt.Errorf("session %s: a batch with effects has the intents of two calls", g.session.ID)
		}
		var err error
		if call, err = intentCall(record.Payload); err != nil {
			return err
		}
	}
	for _, request := range batch.Effects {
		effect := g.own(Effect{Key: request.Key, Kind: request.Kind, Payload: request.Payload,
			After: request.After, CallKey: call, Priority: resultPriority})
		if _, err := g.putEffect(ctx, effect); err != nil {
			return err
		}
	}
	return nil
}

// putCheckpoint stores a checkpoint that can be restored: every file it names
// has its contents here.
func (g *guarded) putCheckpoint(ctx context.Context, checkpoint *runner.Checkpoint) error {
	for _, id := range slices.Sorted(maps.Keys(checkpoint.Blobs)) {
		content := checkpoint.Blobs[id]
		if got := gitBlobID(content); got != id && len(id) == len(got) {
			return fmt.Errorf("session %s: the contents of blob %s have the id %s", g.session.ID, id, got)
		}
		packed, err := pack(content)
		if err != nil {
			return err
		}
		if _, err := g.exec(ctx, putBlob, g.session.InstallationID, id, packed); err != nil {
			return err
		}
	}
	missing, err := g.missingBlobs(ctx, g.session.InstallationID, unbrought(checkpoint))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("session %s, blob %s: %w", g.session.ID, missing[0], ErrMissingBlob)
	}
	_, err = g.exec(ctx, putCheckpoint, g.session.ID, g.seq, checkpoint.Base, checkpoint.Tree, encode(checkpoint.Changes))
	return err
}

// unbrought yields the blobs that a checkpoint names but does not bring.
func unbrought(checkpoint *runner.Checkpoint) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, change := range checkpoint.Changes {
			if _, brought := checkpoint.Blobs[change.Blob]; change.Blob != "" && !brought && !yield(change.Blob) {
				return
			}
		}
	}
}

func (c conn) missingBlobs(ctx context.Context, installationID int64, ids iter.Seq[string]) ([]string, error) {
	var missing []string
	for id := range ids {
		exists, err := one(ctx, c, scanOne[bool], blobExists, installationID, id)
		if err != nil {
			return nil, err
		}
		if !exists {
			missing = append(missing, id)
		}
	}
	return missing, nil
}

// gitBlobID returns the id that git gives to contents.
func gitBlobID(content []byte) string {
	hash := sha1.New()
	fmt.Fprintf(hash, "blob %d\x00", len(content))
	hash.Write(content)
	return hex.EncodeToString(hash.Sum(nil))
}

// putProgress brings active agent, variables and usage up to date.
func (g *guarded) putProgress(ctx context.Context, batch runner.Batch) error {
	u := batch.Usage
	if batch.ActiveAgent == "" && len(batch.Variables) == 0 && u.Requests == 0 && u.Total == 0 && u.CostMicros == 0 {
		return nil
	}
	agent, variables := progress(g.session, batch)
	_, err := g.exec(ctx, setProgress, g.session.ID, agent, encode(variables), u.Requests, u.Input, u.Output, u.Total,
		u.Cached, u.Reasoning, u.CostMicros, u.CostUnknown)
	return err
}

func (g *guarded) putUsage(ctx context.Context, entries []agents.UsageEntry) error {
	if len(entries) == 0 {
		return nil
	}
	s := g.session
	rows := make([][]any, len(entries))
	for i, e := range entries {
		rows[i] = []any{s.ID, s.InstallationID, s.RepositoryID, s.RequesterID, e.Agent, e.Model, e.Attempt, e.Input,
			e.Output, e.Total, e.Cached, e.Reasoning, e.CostMicros, e.CostUnknown, e.Estimated, millis(g.now)}
	}
	return g.insert(ctx, insertUsage, rows)
}

// takeMessages marks messages as read by the batch's input, each once.
func (g *guarded) takeMessages(ctx context.Context, batch runner.Batch) error {
	seq := g.seq
	if i := slices.IndexFunc(batch.Records, func(r runner.Record) bool { return r.Kind == runner.RecordInputAdded }); i > 0 {
		seq += int64(i)
	}
	for _, id := range batch.TakeMessages {
		err := onlyOne(g.exec(ctx, takeMessage, id, g.session.ID, seq))(
			fmt.Errorf("message %s was taken before: %w", id, ErrDuplicate))
		if err != nil {
			return err
		}
	}
	return nil
}
