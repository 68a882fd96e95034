package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// serverVariable names the environment variable for a server of one's own.
const serverVariable = "HANDOFF_TEST_POSTGRES"

// superuser is the name of the private server's one user.
const superuser = "postgres"

// server starts the private server once in the life of the process and returns
// its URL without a database.
var server = sync.OnceValues(startServer)

// errNoServer says that the machine has no Postgres to start.
var errNoServer = errors.New("no PostgreSQL server is installed; set " + serverVariable + " to the URL of one")

// freshSchema returns the URL of a schema of its own, which is a database as far
// as the store can tell, and ten times as fast to make.
func freshSchema(t testing.TB) string {
	t.Helper()
	address := os.Getenv(serverVariable)
	private := address == ""
	if private {
		started, err := server()
		if err != nil {
			missing(t, err.Error())
		}
		address = started
	}
	location, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%s is not a URL", serverVariable)
	}
	name := fmt.Sprintf("handoff_test_%d_%d", os.Getpid(), time.Now().UnixNano())
	if err := run(t.Context(), address, "CREATE SCHEMA "+name); err != nil {
		missing(t, "the server cannot create a schema: "+err.Error())
	}
	if !private {
		t.Cleanup(func() {
			if err := run(context.Background(), address, "DROP SCHEMA "+name+" CASCADE"); err != nil {
				t.Error(err)
			}
		})
	}
	parameters := location.Query()
	parameters.Set("search_path", name)
	location.RawQuery = parameters.Encode()
	return location.String()
}

func run(ctx context.Context, address, statement string) error {
	pool, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.ExecContext(ctx, statement)
	return err
}

// startServer makes a cluster in a temporary directory and starts it on a
// Unix socket there.
func startServer() (string, error) {
	programs, err := findPrograms()
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp("", "handoff-postgres-")
	if err != nil {
		return "", err
	}
	attributes, err := serverAttributes(directory)
	if err != nil {
		return "", err
	}
	initialise := exec.Command(filepath.Join(programs, "initdb"), "--pgdata", filepath.Join(directory, "data"),
		"--username", superuser, "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
	initialise.Dir, initialise.SysProcAttr = directory, attributes
	if output, err := initialise.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, output)
	}
	if err := runServer(programs, directory, attributes); err != nil {
		return "", err
	}
	address := (&url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres",
		RawQuery: url.Values{"host": {directory}}.Encode()}).String()
	return address, awaitServer(address, filepath.Join(directory, "log"))
}

// serverScript runs the server until its standard input ends, which the kernel
// sees to when this process ends, however it ends. Then nothing is left. Tests
// kill clients and never the machine, so the server need not sync.
const serverScript = `
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c max_connections=300 -c shared_buffers=32MB \
	-c fsync=off -c full_page_writes=off >"$2/log" 2>&1 </dev/null &
read -r _
kill -QUIT $!
wait
rm -rf "$2"`

func runServer(programs, directory string, attributes *syscall.SysProcAttr) error {
	command := exec.Command("/bin/sh", "-c", serverScript, "sh", programs, directory)
	command.Dir, command.SysProcAttr = "/", attributes
	// Nothing is ever written to it; it ends with us.
	if _, err := command.StdinPipe(); err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	// Whoever waits keeps the pipe from being collected, and closed.
	go func() { _ = command.Wait() }()
	return nil
}

func awaitServer(address, log string) error {
	pool, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer pool.Close()
	deadline, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := pool.PingContext(deadline)
		if err == nil {
			return nil
		}
		select {
		case <-deadline.Done():
			said, _ := os.ReadFile(log)
			return fmt.Errorf("the server did not start: %w: %s", err, said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// findPrograms returns the directory of the newest installed server. Debian
// keeps it outside of PATH.
func findPrograms() (string, error) {
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	if len(installed) == 0 {
		return "", errNoServer
	}
	newest := slices.MaxFunc(installed, func(a, b string) int { return serverVersion(a) - serverVersion(b) })
	return filepath.Dir(newest), nil
}

func serverVersion(path string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return version
}

// serverAttributes chooses who runs the server, which refuses to be root, and
// gives that user the directory. The server is out of reach of a terminal's
// Ctrl-C, which would take the script away before it has cleaned up.
func serverAttributes(directory string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{Setpgid: true}, nil
	}
	for _, name := range []string{superuser, "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		return &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}},
			os.Chown(directory, int(uid), int(gid))
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
