package git

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/config"
	formatcfg "github.com/go-git/go-git/v5/plumbing/format/config"
)

// Person returns who works in the repository, by user.name and user.email of
// its configuration or else of the person's own; what neither names is "".
// Files that cannot be read count as empty, and files that they include are not
// read.
func (l *Local) Person() Identity {
	files := []string{filepath.Join(l.commonDir, "config")}
	if own, err := config.Paths(config.GlobalScope); err == nil {
		files = append(files, own...)
	}
	var person Identity
	for _, file := range files {
		user := userSection(file)
		if person.Name == "" {
			person.Name = user.Option("name")
		}
		if person.Email == "" {
			person.Email = user.Option("email")
		}
	}
	return cleanIdentity(person)
}

func userSection(file string) *formatcfg.Section {
	parsed := formatcfg.New()
	if raw, err := os.ReadFile(file); err != nil || formatcfg.NewDecoder(bytes.NewReader(raw)).Decode(parsed) != nil {
		parsed = formatcfg.New()
	}
	return parsed.Section("user")
}
