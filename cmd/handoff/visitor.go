package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"handoff/gitops/fakegithub"
)

// A visitor is a person who uses the fake GitHub through its REST API with a
// token of their own, as a person's tools do on the real one.
type visitor struct {
	base  string
	token string
}

func newVisitor(server *fakegithub.Server, login string) *visitor {
	return &visitor{base: server.URL() + "/api/v3", token: server.As(login).Token()}
}

// A remark is an issue or a comment as the API returns it.
type remark struct {
	ID     int64  `json:"id"`
	Number int    `json:"number"`
	URL    string `json:"html_url"`
	Body   string `json:"body"`
	User   struct {
		Type string `json:"type"`
	} `json:"user"`
}

// A pullSummary is what the demo shows of a pull request.
type pullSummary struct {
	URL      string
	Branch   string
	CloneURL string
	Files    []pullFile
}

type pullFile struct {
	Filename  string `json:"filename"`
	Status    string `json:"status"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}

func (v *visitor) openIssue(ctx context.Context, repository, title, body string) (remark, error) {
	var opened remark
	err := v.call(ctx, http.MethodPost, repository+"/issues", map[string]string{"title": title, "body": body}, &opened)
	return opened, err
}

func (v *visitor) comment(ctx context.Context, repository string, issue int, body string) error {
	return v.call(ctx, http.MethodPost, fmt.Sprintf("%s/issues/%d/comments", repository, issue), map[string]string{"body": body}, nil)
}

func (v *visitor) react(ctx context.Context, repository string, comment int64, content string) error {
	return v.call(ctx, http.MethodPost, fmt.Sprintf("%s/issues/comments/%d/reactions", repository, comment), map[string]string{"content": content}, nil)
}

// prompt returns the bot's newest question on an issue.
func (v *visitor) prompt(ctx context.Context, repository string, issue int) (remark, bool, error) {
	var comments []remark
	if err := v.call(ctx, http.MethodGet, fmt.Sprintf("%s/issues/%d/comments?per_page=100", repository, issue), nil, &comments); err != nil {
		return remark{}, false, err
	}
	for i := len(comments) - 1; i >= 0; i-- {
		if comments[i].User.Type == "Bot" && strings.Contains(comments[i].Body, "/copilot approve") {
			return comments[i], true, nil
		}
	}
	return remark{}, false, nil
}

func (v *visitor) pull(ctx context.Context, repository, number string) (pullSummary, error) {
	var pull struct {
		URL  string `json:"html_url"`
		Head struct {
			Ref  string `json:"ref"`
			Repo struct {
				CloneURL string `json:"clone_url"`
			} `json:"repo"`
		} `json:"head"`
	}
	if number == "" {
		return pullSummary{}, fmt.Errorf("the crew opened none")
	}
	if err := v.call(ctx, http.MethodGet, repository+"/pulls/"+number, nil, &pull); err != nil {
		return pullSummary{}, err
	}
	summary := pullSummary{URL: pull.URL, Branch: pull.Head.Ref, CloneURL: pull.Head.Repo.CloneURL}
	return summary, v.call(ctx, http.MethodGet, repository+"/pulls/"+number+"/files?per_page=100", nil, &summary.Files)
}

// call sends one request about a repository of the stage's organisation.
func (v *visitor) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var payload io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, v.base+"/repos/"+stageOwner+"/"+path, payload)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "token "+v.token)
	request.Header.Set("Accept", "application/vnd.github+json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 10<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, response.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
