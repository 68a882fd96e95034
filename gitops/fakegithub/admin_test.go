package fakegithub

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestTheWorldChanges: what happens to a repository beside the work on it, as its readers see it afterwards.
func TestTheWorldChanges(t *testing.T) {
	s := newStage(t)
	s.ok(s.server.SetPrivate("acme/hello", true))
	s.person("stranger").get("/repos/acme/hello").is(404)
	s.ok(s.server.SetPrivate("acme/hello", false))
	s.person("stranger").get("/repos/acme/hello").is(200)

	_, err := s.server.Commit(CommitSpec{Repository: "acme/hello", Branch: "trunk/ünï", From: "main", Author: "maria", Message: "m", Delete: []string{"README.md"}})
	s.ok(err)
	s.ok(s.server.SetDefaultBranch("acme/hello", "trunk/ünï"))
	if got := s.bot().get("/repos/acme/hello").text("default_branch"); got != "trunk/ünï" {
		t.Errorf("the default branch is %q", got)
	}
	s.bot().get("/repos/acme/hello/branches/trunk/%C3%BCn%C3%AF").is(200)
	s.bot().get("/repos/acme/hello/contents/README.md").is(404)
	s.bot().get("/repos/acme/hello/contents/README.md?ref=main").is(200)

	s.ok(s.server.SetRole("acme/hello", "walter", RoleNone))
	if got := s.bot().get("/repos/acme/hello/collaborators/walter/permission").text("role_name"); got != "read" {
		t.Errorf("walter's role is %q", got)
	}
	for what, err := range map[string]error{
		"a role that is none":       s.server.SetRole("acme/hello", "walter", "emperor"),
		"a role for nobody":         s.server.SetRole("acme/hello", "nobody", RoleRead),
		"a branch that is none":     s.server.SetDefaultBranch("acme/hello", "nowhere"),
		"a name that is none":       s.server.RenameRepository("acme/hello", "a/b"),
		"a repository that is none": s.server.ArchiveRepository("acme/none"),
		"an App that is none":       s.server.SetWebhook("none", "", ""),
		"a delivery that is none":   s.server.Redeliver(1),
		"an installation of none":   s.server.Uninstall(1),
	} {
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

// TestReusedLogin: a login that was given up and taken by somebody else is somebody else.
func TestReusedLogin(t *testing.T) {
	s := newStage(t)
	before := s.person("maria").get("/user").is(200).id()
	s.ok(s.server.RenameUser("maria", "mary"))
	_, err := s.server.AddUser(UserSpec{Login: "maria"})
	s.ok(err)
	role := func(login string) string {
		return s.bot().get("/repos/acme/hello/collaborators/" + login + "/permission").text("role_name")
	}
	if role("maria") != "read" || role("mary") != "maintain" {
		t.Errorf("roles are maria: %s, mary: %s", role("maria"), role("mary"))
	}
	if after := s.person("mary").get("/user").is(200).id(); after != before {
		t.Errorf("mary is %d, was %d", after, before)
	}
}

func TestSeedsThatAreRefused(t *testing.T) {
	s := newStage(t)
	for _, login := range []string{"", "-x", "a/b", "..", "settings", "API", "maria", "MARIA", "a b"} {
		if _, err := s.server.AddUser(UserSpec{Login: login}); err == nil {
			t.Errorf("the login %q was accepted", login)
		}
	}
	for _, name := range []string{"", "..", ".", "a/b", "hello", "Hello", "ü"} {
		if _, err := s.server.AddRepository(RepositorySpec{Owner: "acme", Name: name}); err == nil {
			t.Errorf("the repository %q was accepted", name)
		}
	}
	for _, spec := range []AppSpec{{Slug: "robot", Owner: "acme"}, {Slug: "x", Owner: "nobody"}, {Slug: "a b", Owner: "acme"}, {Slug: "x", Owner: "acme", PrivateKey: "no key"}} {
		if _, err := s.server.AddApp(spec); err == nil {
			t.Errorf("the App %+v was accepted", spec)
		}
	}
}

// TestEmptyRepository: nothing is committed yet; then somebody does.
func TestEmptyRepository(t *testing.T) {
	withBackends(t, func(s *stage) {
		_, err := s.server.AddRepository(RepositorySpec{Owner: "acme", Name: "empty", Roles: map[string]Role{"walter": RoleWrite}})
		s.ok(err)
		s.bot().get("/repos/acme/empty/commits").refused(409, "Git Repository is empty.")
		if got := s.bot().get("/repos/acme/empty/branches").is(200).list(); len(got) != 0 {
			s.Errorf("branches are %v", got)
		}
		s.browser().open("/acme/empty", 200)
		directory := filepath.Join(s.TempDir(), "empty")
		remote := s.server.URL() + "/acme/empty.git"
		s.mustGit(".", "clone", "--quiet", remote, directory)
		s.commit(directory, "first", "x")
		s.mustGit(directory, "push", "--quiet", "http://x:"+s.server.As("walter").Token()+"@"+remote[len("http://"):], "HEAD:main")
		s.bot().get("/repos/acme/empty/contents/first").is(200)
	})
}

// TestManyFiles pushes more than is kept loose, so that the native backend keeps a pack, and reads it back.
func TestManyFiles(t *testing.T) {
	withBackends(t, func(s *stage) {
		directory := s.clone(s.remote(s.token()))
		for n := range 2 * unpackLimit {
			s.ok(os.WriteFile(filepath.Join(directory, fmt.Sprintf("file-%03d", n)), fmt.Appendf(nil, "content %d\n", n), 0o644))
		}
		s.commit(directory, "last", "x")
		s.mustGit(directory, "push", "--quiet", "origin", "HEAD:many")
		s.mustGit(directory, "push", "--quiet", "origin", "HEAD:again") // nothing new to send
		files, err := s.server.CommitFiles("acme/hello", "many")
		s.ok(err)
		if len(files) != len(helloFiles())+2*unpackLimit+1 || files["file-007"] != "content 7\n" {
			s.Errorf("%d files arrived", len(files))
		}
		second := s.clone(s.server.URL() + "/acme/hello.git")
		s.mustGit(second, "checkout", "--quiet", "many")
		s.mustGit(second, "fsck", "--strict")
	})
}
