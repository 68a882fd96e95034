package main

import (
	"fmt"

	"handoff/cmd/handoff/demo"
	"handoff/gitops/fakegithub"
)

type fakegithubCommand struct {
	logSettings
	Listen string `default:"127.0.0.1:4000" help:"Loopback address to listen on."`
	Data   string `help:"Directory for the repositories, an empty one; without it a temporary one." placeholder:"DIR"`
}

// Run serves a fake GitHub with the demo's repository and people until it is
// told to stop.
func (f *fakegithubCommand) Run(p *process) error {
	files, err := demo.Files()
	if err != nil {
		return err
	}
	s := &stage{}
	server, err := fakegithub.New(fakegithub.Options{Listen: f.Listen, DataDir: f.Data, ActingAs: stageMaintainer, Logger: f.logger(p)})
	if err != nil {
		return err
	}
	defer server.Close()
	s.github = server
	if err := s.people(); err != nil {
		return err
	}
	if err := s.repository(demo.Repository, files); err != nil {
		return err
	}
	if err := server.Start(p.ctx); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s/%s/%s\n", server.URL(), stageOwner, demo.Repository)
	for _, login := range []string{stageMaintainer, stageWriter, stageReader} {
		fmt.Fprintf(p.stdout, "  %s's token: %s\n", login, server.As(login).Token())
	}
	fmt.Fprintf(p.stdout, "  controls' token: %s\n", server.ControlToken())
	<-p.ctx.Done()
	return nil
}
