package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"handoff/gitops/git"
	"handoff/gitops/secrets"
	"handoff/runner/report"
)

// checkLeaving refuses what must not be pushed, before anybody is asked. It
// looks at the files, their names, the commit as it is sealed, the words of the
// pull request and the branch.
func (h *hold) checkLeaving(ctx context.Context, diff string, args pushArgs, seal seal) error {
	findings, err := h.Scanner.ScanDiff(diff)
	if err != nil {
		return err
	}
	for _, look := range []func() ([]secrets.Finding, error){
		func() ([]secrets.Finding, error) { return h.scanUnshown(ctx, diff, seal.Sealed) },
		func() ([]secrets.Finding, error) { return h.scanNames(seal.Sealed) },
		func() ([]secrets.Finding, error) { return h.scanWords(args, seal) },
	} {
		found, err := look()
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	if len(findings) > 0 {
		h.alarm(findings)
		return secretsRefusal(findings)
	}
	return h.checkWorkflows(ctx, seal.Sealed)
}

// checkWorkflows refuses a change of workflow files that GitHub would refuse for
// want of a permission, or that the operator does not want.
func (h *hold) checkWorkflows(ctx context.Context, sealed git.Sealed) error {
	first := slices.IndexFunc(sealed.Files, func(change git.Change) bool { return slices.Contains(change.Flags, git.FlagWorkflow) })
	if first < 0 {
		return nil
	}
	const what = "%s is a workflow file, which this App may not change, so nobody was asked. Leave it as it was, or ask %s."
	name := sealed.Files[first].Path
	if !h.Workflows {
		return &refusal{fmt.Sprintf(what, name, "the operator to allow workflow files (GITHUB_WORKFLOWS)")}
	}
	if h.Granted == nil {
		return nil
	}
	granted, err := h.Granted(ctx, h.session.InstallationID)
	if err != nil {
		return hostFault(err)
	}
	if granted["workflows"] != "write" {
		return &refusal{fmt.Sprintf(what, name, "an owner of the account to grant the App the permission “Workflows: write”")}
	}
	return nil
}

// maxFindings is how many findings are named; a key store can hold hundreds.
const maxFindings = 20

// secretsRefusal names where secrets were found, and by which rules, and shows
// none of them.
func secretsRefusal(findings []secrets.Finding) error {
	lines := make([]string, min(len(findings), maxFindings))
	for i := range lines {
		lines[i] = findings[i].String()
	}
	if more := len(findings) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return &refusal{"The push holds what looks like secrets, so nobody was asked. Remove them and try again:\n" + strings.Join(lines, "\n")}
}

// scanWords looks for secrets in the words that go with a push: as the crew
// wrote them, and as people will see them, because what is taken out on the way,
// such as invisible characters, may hold the parts of one asunder.
func (h *hold) scanWords(args pushArgs, seal seal) ([]secrets.Finding, error) {
	var findings []secrets.Finding
	for _, words := range []struct{ name, text string }{
		{"title", args.Title}, {"title", report.Clean(args.Title)},
		{"body", args.Body}, {"body", report.Clean(report.StripComments(args.Body))},
		{"commit message", args.CommitMessage}, {"commit message", seal.Sealed.Message},
		{"branch name", seal.Ref},
	} {
		found, err := h.Scanner.ScanText(words.name, words.text)
		if err != nil {
			return nil, err
		}
		if len(findings) == 0 || len(found) == 0 || findings[len(findings)-1] != found[len(found)-1] {
			findings = append(findings, found...)
		}
	}
	return findings, nil
}

// scanNames looks for secrets in the names of files.
func (h *hold) scanNames(sealed git.Sealed) ([]secrets.Finding, error) {
	names := make([]string, len(sealed.Files))
	for i, change := range sealed.Files {
		names[i] = change.Path
	}
	return h.Scanner.ScanText("names of files", strings.Join(names, "\n"))
}

// scanUnshown looks for secrets in the files of a sealed commit whose lines a
// diff does not hold: binary ones, and those that were too much for it.
func (h *hold) scanUnshown(ctx context.Context, diff string, sealed git.Sealed) ([]secrets.Finding, error) {
	shown := splitDiff(diff)
	var findings []secrets.Finding
	for _, change := range sealed.Files {
		if _, ok := shown[change.Path]; ok || change.Blob == "" || change.Blob == change.OldBlob {
			continue
		}
		content, err := h.bench.workspace.ReadSealed(ctx, change.Blob)
		if err != nil {
			return nil, gitFault(err)
		}
		found, err := h.Scanner.ScanFile(change.Path, string(content))
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}
