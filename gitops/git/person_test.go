package git

import (
	"os"
	"path/filepath"
	"testing"
)

// The repository's own configuration goes before the person's, field by field,
// and neither can put a line into a commit.
func TestThePersonOfARepository(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "xdg"))
	cli(t, dir, "init", "-q")
	local, err := OpenLocal(dir, Limits{})
	must(t, err)
	is := func(want Identity) {
		t.Helper()
		if got := local.Person(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	is(Identity{})
	put(t, home, map[string]string{".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.com\n"})
	is(Identity{Name: "Ada", Email: "ada@example.com"})
	put(t, home, map[string]string{"xdg/git/config": "[user]\n\tname = Ada X\n"})
	is(Identity{Name: "Ada X", Email: "ada@example.com"})
	cli(t, dir, "config", "user.email", "ada@work.example")
	is(Identity{Name: "Ada X", Email: "ada@work.example"})
	put(t, home, map[string]string{"xdg/git/config": "[user]\n\tname = \"Eve\\nSigned-off-by: Ada <ada@example.com>\"\n"})
	is(Identity{Name: "Eve Signed-off-by: Ada ada@example.com", Email: "ada@work.example"})
	must(t, os.WriteFile(filepath.Join(home, "xdg/git/config"), []byte("[user\nname"), 0o600))
	is(Identity{Name: "Ada", Email: "ada@work.example"})
}
