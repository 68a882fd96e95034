package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"handoff/runner/store"
)

type sessionsExport struct {
	databaseSettings
	ID     string `arg:"" help:"The session's id, or a beginning of it."`
	Output string `short:"o" help:"The zip file to write, - for standard output; session-ID.zip by default." placeholder:"FILE"`
	File   string `help:"Write only this file of the session, such as work.patch, to standard output." placeholder:"NAME"`
}

// Run writes the session out.
func (e *sessionsExport) Run(p *process) error {
	database, err := openToRead(p, e.databaseSettings)
	if err != nil {
		return err
	}
	defer database.Close()
	found, err := oneSession(p.ctx, database, e.ID)
	if err != nil {
		return err
	}
	switch {
	case e.File != "":
		return e.one(p, database, found)
	case e.Output == "-":
		return export(p.ctx, database, found, p.stdout)
	}
	name := e.Output
	if name == "" {
		name = "session-" + found.ID + ".zip"
	}
	// The journal holds source code: it is for whoever asked for it.
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(export(p.ctx, database, found, file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	fmt.Fprintln(p.stdout, name)
	return nil
}

// one writes one file of the session.
func (e *sessionsExport) one(p *process, database *store.Store, found store.Session) error {
	if e.File == tapeName {
		played, err := tapeOf(p.ctx, database, found)
		if err != nil {
			return err
		}
		_, err = played.WriteTo(p.stdout)
		return err
	}
	artifacts, err := database.Artifacts(p.ctx, found.ID)
	if err != nil {
		return err
	}
	for _, listed := range artifacts {
		if listed.Name != e.File {
			continue
		}
		artifact, err := database.Artifact(p.ctx, listed.ID)
		if err != nil {
			return err
		}
		_, err = p.stdout.Write(artifact.Body)
		return err
	}
	return fmt.Errorf("session %s has no file %q; handoff sessions show lists those that it has", found.ID, e.File)
}

// export writes a session as a zip file: session.json as show tells it, the
// journal and the events that it adds up to as JSON lines, a tape that plays it
// again, and the files.
func export(ctx context.Context, database *store.Store, found store.Session, to io.Writer) error {
	detail, err := detailOf(ctx, database, found)
	if err != nil {
		return err
	}
	records, err := database.Records(ctx, found.ID, 1)
	if err != nil {
		return err
	}
	events := detail.Events
	detail.Events = nil
	archive := zip.NewWriter(to)
	session, err := json.MarshalIndent(detail, "", "  ")
	if err != nil {
		return err
	}
	if err := addFile(archive, found.CreatedAt, "session.json", append(session, '\n')); err != nil {
		return err
	}
	if err := addLines(archive, found.CreatedAt, "journal.jsonl", records); err != nil {
		return err
	}
	if err := addLines(archive, found.CreatedAt, "events.jsonl", events); err != nil {
		return err
	}
	if err := addTape(ctx, archive, database, found); err != nil {
		return err
	}
	artifacts, err := database.Artifacts(ctx, found.ID)
	if err != nil {
		return err
	}
	for _, listed := range artifacts {
		artifact, err := database.Artifact(ctx, listed.ID)
		if err != nil {
			return err
		}
		if err := addFile(archive, found.CreatedAt, "files/"+path.Base(artifact.Name), artifact.Body); err != nil {
			return err
		}
	}
	return archive.Close()
}

// addEntry begins a file of the archive. All are dated as their session, so
// that the same session makes the same archive.
func addEntry(archive *zip.Writer, when time.Time, name string) (io.Writer, error) {
	return archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: when.UTC()})
}

// addTape adds the session as a tape, if any model answered in it.
func addTape(ctx context.Context, archive *zip.Writer, database *store.Store, found store.Session) error {
	played, err := tapeOf(ctx, database, found)
	if errors.Is(err, errNothingPlayed) {
		return nil
	}
	if err != nil {
		return err
	}
	entry, err := addEntry(archive, found.CreatedAt, tapeName)
	if err != nil {
		return err
	}
	_, err = played.WriteTo(entry)
	return err
}

func addFile(archive *zip.Writer, when time.Time, name string, content []byte) error {
	entry, err := addEntry(archive, when, name)
	if err != nil {
		return err
	}
	_, err = entry.Write(content)
	return err
}

func addLines[T any](archive *zip.Writer, when time.Time, name string, values []T) error {
	entry, err := addEntry(archive, when, name)
	if err != nil {
		return err
	}
	return eachJSON(entry, values)
}
