package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"handoff/gitops/fakegithub"
)

// What differs from run to run in what people read.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "COMMIT"},
	{regexp.MustCompile("`[0-9a-f]{8}`"), "`DIGEST`"},
	{regexp.MustCompile(`(approve|reject) [0-9a-f]{8}`), "$1 DIGEST"},
	{regexp.MustCompile(`(copilot/\d+-[a-z0-9-]+)-[0-9a-f]{6}`), "$1-ID"},
	{regexp.MustCompile(`(push|delete) #(\d+) [0-9a-f]{8}`), "$1 #$2 DIGEST"},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "URL"},
	{regexp.MustCompile(`/sessions/[0-9a-f-]{36}`), "/sessions/SESSION"},
	{regexp.MustCompile(`#issuecomment-\d+`), "#COMMENT"},
}

func steady(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.instead)
	}
	return text
}

// writeRepository prints a repository of the fake as a short text: issues with
// the first lines of their comments, pull requests with their files, check
// runs, branches.
func writeRepository(out io.Writer, repository fakegithub.Repository) {
	for _, issue := range repository.Issues {
		kind := "issue"
		if issue.Pull != nil {
			kind = "pull request"
		}
		fmt.Fprintf(out, "%s #%d by %s, %s: %s\n", kind, issue.Number, issue.Author, issue.State, issue.Title)
		if issue.Pull != nil {
			fmt.Fprintf(out, "  %s into %s: %s\n", steady(issue.Pull.Head), issue.Pull.Base, strings.Join(issue.Pull.Files, " "))
		}
		for _, comment := range issue.Comments {
			fmt.Fprintf(out, "  %s: %s%s\n", comment.Author, firstWords(comment.Body), thumbs(comment.Reactions))
		}
	}
	for _, run := range repository.CheckRuns {
		fmt.Fprintf(out, "check run %s: %s, %d buttons\n", steady(run.Name), run.Conclusion, len(run.Actions))
	}
	for _, name := range slices.Sorted(maps.Keys(repository.Branches)) {
		fmt.Fprintf(out, "branch %s\n", steady(name))
	}
}

// firstWords is a comment's first line that says something.
func firstWords(body string) string {
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line != "" {
			return steady(line)
		}
	}
	return ""
}

func thumbs(reactions []fakegithub.Reaction) string {
	if len(reactions) == 0 {
		return ""
	}
	var shown []string
	for _, reaction := range reactions {
		shown = append(shown, reaction.User+" "+reaction.Content)
	}
	slices.Sort(shown)
	return " [" + strings.Join(shown, ", ") + "]"
}
