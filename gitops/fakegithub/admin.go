package fakegithub

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Reset forgets everything: accounts, repositories, deliveries, faults, counts and the moved clock.
func (s *Server) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failures []error
	for _, r := range s.world.repositories {
		failures = append(failures, os.RemoveAll(r.directory))
	}
	last := s.world.lastID
	s.world = newWorld()
	s.world.lastID = last // so that nothing old is taken for something new
	s.hooks.drop()
	s.ClearFaults()
	s.limits.reset()
	s.clock.reset()
	return errors.Join(failures...)
}

// onRepository runs work on the repository owner/name, under the lock.
func (s *Server) onRepository(fullName string, work func(*repository) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, name, _ := strings.Cut(fullName, "/")
	r := s.world.repository(owner, name)
	if r == nil {
		return fmt.Errorf("fakegithub: no repository %q", fullName)
	}
	return work(r)
}

// SetRole gives an account a role in a repository; RoleNone takes it away.
func (s *Server) SetRole(repository, login string, role Role) error {
	return s.onRepository(repository, func(r *repo) error { return s.grant(r, login, role) })
}

// Protect adds a rule for branches.
func (s *Server) Protect(repository string, rule Protection) error {
	return s.onRepository(repository, func(r *repo) error {
		r.protected = append(r.protected, rule)
		return nil
	})
}

// SetPreReceive makes every push fail with these words, as a pre-receive hook would; empty accepts pushes again.
func (s *Server) SetPreReceive(repository, words string) error {
	return s.onRepository(repository, func(r *repo) error {
		r.preReceive = words
		return nil
	})
}

// SetDefaultBranch makes another existing branch the default.
func (s *Server) SetDefaultBranch(repository, branch string) error {
	return s.onRepository(repository, func(r *repo) error {
		if s.branchSHA(r, branch) == "" {
			return fmt.Errorf("fakegithub: %s has no branch %q", repository, branch)
		}
		head := plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(branch))
		r.defaultBranch = branch
		return s.storage(r).SetReference(head)
	})
}

// ArchiveRepository makes a repository read-only and tells the Apps.
func (s *Server) ArchiveRepository(repository string) error {
	return s.onRepository(repository, func(r *repo) error {
		r.archived = true
		s.emit(event{name: "repository", action: "archived", repo: r, sender: r.owner})
		return nil
	})
}

// SetPrivate hides a repository or shows it.
func (s *Server) SetPrivate(repository string, private bool) error {
	return s.onRepository(repository, func(r *repo) error {
		r.private = private
		return nil
	})
}

// RenameRepository gives a repository another name; the old one redirects.
func (s *Server) RenameRepository(repository, name string) error {
	return s.onRepository(repository, func(r *repo) error {
		if !repositoryNamePattern.MatchString(name) || s.world.repository(r.owner.login, name) != nil {
			return fmt.Errorf("fakegithub: %s cannot be renamed to %q", repository, name)
		}
		before := r.name
		s.world.moved[strings.ToLower(r.fullName())] = r.id
		r.name = name
		s.emit(event{name: "repository", action: "renamed", repo: r, sender: r.owner,
			payload: object{"changes": object{"repository": object{"name": object{"from": before}}}}})
		return nil
	})
}

// DeleteRepository removes a repository and tells the Apps.
func (s *Server) DeleteRepository(repository string) error {
	return s.onRepository(repository, func(r *repo) error {
		s.emit(event{name: "repository", action: "deleted", repo: r, sender: r.owner})
		delete(s.world.repositories, r.id)
		return os.RemoveAll(r.directory)
	})
}

// RenameUser gives an account another login; the old one is free for somebody else.
func (s *Server) RenameUser(login, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.account(login)
	if a == nil || !loginPattern.MatchString(name) || s.world.account(name) != nil {
		return fmt.Errorf("fakegithub: account %q cannot be renamed to %q", login, name)
	}
	delete(s.world.accounts, strings.ToLower(a.login))
	a.login = name
	s.world.accounts[strings.ToLower(name)] = a
	return nil
}

// onInstallation runs work on an installation, under the lock.
func (s *Server) onInstallation(id int64, work func(*installation) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.world.installations[id]
	if i == nil {
		return fmt.Errorf("fakegithub: no installation %d", id)
	}
	return work(i)
}

// Uninstall removes an installation: its tokens die at once.
func (s *Server) Uninstall(id int64) error {
	return s.onInstallation(id, func(i *installation) error {
		s.emitInstallation(i, "deleted", i.account)
		delete(s.world.installations, id)
		return nil
	})
}

// Suspend switches an installation off, or on again with false.
func (s *Server) Suspend(id int64, suspended bool) error {
	return s.onInstallation(id, func(i *installation) error {
		action := "unsuspend"
		i.suspended, i.suspendedBy = zeroTime, nil
		if suspended {
			action = "suspend"
			i.suspended, i.suspendedBy = s.Now(), i.account
		}
		s.emitInstallation(i, action, i.account)
		return nil
	})
}

// SetInstallationRepositories changes which repositories an installation covers and tells the App what came and went.
func (s *Server) SetInstallationRepositories(id int64, names ...string) error {
	return s.onInstallation(id, func(i *installation) error {
		after := map[int64]bool{}
		var added, removed []*repository
		for _, name := range names {
			r := s.world.repository(i.account.login, name)
			if r == nil {
				return fmt.Errorf("fakegithub: no repository %s/%s", i.account.login, name)
			}
			after[r.id] = true
			if !i.covers(r) {
				added = append(added, r)
			}
		}
		for _, r := range sorted(s.world.repositories) {
			if i.covers(r) && !after[r.id] {
				removed = append(removed, r)
			}
		}
		i.all, i.repositories, i.updated = false, after, s.Now()
		if len(added) > 0 {
			s.emitInstallationRepositories(i, "added", added, i.account)
		}
		if len(removed) > 0 {
			s.emitInstallationRepositories(i, "removed", removed, i.account)
		}
		return nil
	})
}

// SetPermissions changes what an installation's account granted. Tokens already minted keep what they have.
func (s *Server) SetPermissions(id int64, permissions map[string]string) error {
	return s.onInstallation(id, func(i *installation) error {
		i.permissions = copyStrings(permissions)
		i.permissions["metadata"] = "read"
		s.emitInstallation(i, "new_permissions_accepted", i.account)
		return nil
	})
}

// ExpireTokens makes every installation token minted so far invalid, without moving the clock.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.world.tokens)
}

// SetWebhook changes where an App's webhooks go and how they are signed. The bot's address is often known only after
// the App was added.
func (s *Server) SetWebhook(slug, address, secret string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.appBySlug(slug)
	if a == nil {
		return fmt.Errorf("fakegithub: no App %q", slug)
	}
	a.hookURL, a.hookSecret = address, secret
	return nil
}

// Redeliver sends a delivery again, with its GUID; it is found by its id.
func (s *Server) Redeliver(id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.world.deliveries, func(d *delivery) bool { return d.id == id })
	if at < 0 {
		return fmt.Errorf("fakegithub: no delivery %d", id)
	}
	s.redeliver(s.world.deliveries[at])
	return nil
}
