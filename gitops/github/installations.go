package github

import (
	"context"
	"slices"

	gh "github.com/google/go-github/v62/github"
)

// An Identity is who the App is.
type Identity struct {
	AppID int64
	Slug  string
	Name  string
	Owner User
	// Permissions are the ones that the App asks for, by GitHub's name.
	Permissions map[string]string
	Events      []string
}

// BotLogin is the login that the App's comments carry.
func (i Identity) BotLogin() string { return i.Slug + "[bot]" }

// Identity asks GitHub who the App is. The answer is kept after the first
// success, because an App's slug changes only when its owner renames it.
func (a *App) Identity(ctx context.Context) (Identity, error) {
	if known := a.self.Load(); known != nil {
		return *known, nil
	}
	var identity Identity
	err := a.call(ctx, "read the App's own settings", func(ctx context.Context) error {
		app, _, err := a.jwt.Apps.Get(ctx, "")
		if err == nil {
			identity = Identity{
				AppID: app.GetID(), Slug: app.GetSlug(), Name: app.GetName(), Owner: userOf(app.Owner),
				Permissions: permissionsOf(app.Permissions), Events: slices.Clone(app.Events),
			}
		}
		return err
	})
	if err != nil {
		return Identity{}, err
	}
	a.self.Store(&identity)
	return identity, nil
}

// InstallationInfo is what GitHub says about an installation.
type InstallationInfo struct {
	ID      int64
	Account User
	// Suspended says that the account's owner has paused the App.
	Suspended bool
	// Permissions are the granted ones, by GitHub's name.
	Permissions map[string]string
	Events      []string
	// AllRepositories is false when the owner chose some.
	AllRepositories bool
}

// Installations lists where the App is installed.
func (a *App) Installations(ctx context.Context) ([]InstallationInfo, error) {
	var all []InstallationInfo
	err := a.call(ctx, "list the App's installations", func(ctx context.Context) error {
		options := &gh.ListOptions{PerPage: pageSize}
		for {
			page, response, err := a.jwt.Apps.ListInstallations(ctx, options)
			if err != nil {
				return err
			}
			for _, one := range page {
				all = append(all, installationInfoOf(one))
			}
			if response.NextPage == 0 {
				return nil
			}
			options.Page = response.NextPage
		}
	})
	return all, err
}

// Info asks GitHub about the installation.
func (i *Installation) Info(ctx context.Context) (InstallationInfo, error) {
	var info InstallationInfo
	err := i.app.call(ctx, "read the App's installation", func(ctx context.Context) error {
		one, _, err := i.app.jwt.Apps.GetInstallation(ctx, i.id)
		if err == nil {
			info = installationInfoOf(one)
		}
		return err
	})
	return info, err
}

// RepositoryInstallation returns the id of the installation that covers a
// repository; [CodeNotFound] when the App is not installed there.
func (a *App) RepositoryInstallation(ctx context.Context, owner, name string) (int64, error) {
	var id int64
	err := a.call(ctx, "find the App's installation on "+owner+"/"+name, func(ctx context.Context) error {
		if err := checkName(owner, name); err != nil {
			return err
		}
		one, _, err := a.jwt.Apps.FindRepositoryInstallation(ctx, owner, name)
		id = one.GetID()
		return err
	})
	return id, err
}
