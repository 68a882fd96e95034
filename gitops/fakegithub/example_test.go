package fakegithub_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"handoff/gitops/fakegithub"
)

// A world with one repository, an App on it, and a maintainer who asks the App for something.
func Example() {
	server, err := fakegithub.New(fakegithub.Options{ActingAs: "maria"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	must := func(_ any, err error) {
		if err != nil {
			fmt.Println(err)
		}
	}
	must(server.AddUser(fakegithub.UserSpec{Login: "acme", Type: "Organization"}))
	must(server.AddUser(fakegithub.UserSpec{Login: "maria"}))
	must(server.AddRepository(fakegithub.RepositorySpec{Owner: "acme", Name: "hello",
		Files: fstest.MapFS{"README.md": {Data: []byte("# Hello\n")}}, Roles: map[string]fakegithub.Role{"maria": fakegithub.RoleMaintain}}))
	must(server.AddApp(fakegithub.AppSpec{Slug: "robot", Owner: "acme", WebhookURL: "http://127.0.0.1:9/", WebhookSecret: "secret",
		Permissions: map[string]string{"issues": "write", "contents": "write", "pull_requests": "write", "checks": "write"}}))
	must(server.Install(fakegithub.InstallationSpec{App: "robot", Account: "acme"}))
	must(nil, server.Start(context.Background()))

	maria := server.As("maria")
	must(maria.CreateIssue("acme/hello", "Greet by name", "Please."))
	must(maria.Comment("acme/hello", 1, "/copilot greet by name"))

	repository, _ := server.State().Repository("acme/hello")
	issue, _ := repository.Issue(1)
	fmt.Println(issue.Title, "by", issue.Author)
	fmt.Println(issue.Comments[0].Body)
	// Output:
	// Greet by name by maria
	// /copilot greet by name
}
