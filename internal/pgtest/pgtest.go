// Package pgtest runs a server of PostgreSQL for tests.
package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/stretchr/testify/require"
)

// A Server is a running server with an empty database. It trusts the user postgres; others need a password.
type Server struct {
	dir  string
	bin  string // the folder of its programs
	port int
	as   *user.User // who runs it; nil for this user, since the server does not run as root

	end   *os.File  // closing it ends the server
	shell *exec.Cmd // the shell that watches it
}

var (
	shared  = sync.OnceValues(func() (*Server, error) { return start("-c", "fsync=off") })
	schemas atomic.Int64
)

// Shared returns the server of this test binary, which ends with it. It skips the test where PostgreSQL is not installed.
func Shared(t testing.TB) *Server {
	t.Helper()
	requireInstalled(t)
	s, err := shared()
	require.NoError(t, err)
	return s
}

// Address returns the address of an empty schema in the server of this test binary.
func Address(t testing.TB) string {
	t.Helper()
	return Shared(t).Schema(t)
}

// Start starts a server for one test, with these settings, such as "-c", "max_connections=8".
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	requireInstalled(t)
	s, err := start(settings...)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Kill(t)
		require.NoError(t, os.RemoveAll(s.dir))
	})
	return s
}

func requireInstalled(t testing.TB) {
	t.Helper()
	if programs() == "" {
		t.Skip("PostgreSQL is not installed: `apt-get install postgresql` installs it")
	}
}

// programs returns the folder of the programs of the newest installed version; empty if there is none. Debian does not
// put it in PATH.
func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return versionOf(a) - versionOf(b) }))
	}
	if at, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(at)
	}
	return ""
}

func versionOf(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return n
}

func start(settings ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: programs()}
	if os.Geteuid() == 0 {
		if s.as, err = user.Lookup("postgres"); err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(s.as.Uid)
		gid, _ := strconv.Atoi(s.as.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	init := s.command(filepath.Join(s.bin, "initdb"), "-D", s.data(), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	access := "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(access), 0o600); err != nil {
		return nil, err
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	return s, s.run(settings...)
}

// freePort returns a port at which nobody listens. It is below those that systems give to outgoing connections: one of
// another test must not take it before the server starts, or while it is stopped.
func freePort() (port int, err error) {
	for range 100 {
		port = 10_000 + rand.IntN(22_000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run starts the process, and waits until it answers. A shell ends it when this process has ended, however that happens.
func (s *Server) run(settings ...string) error {
	const script = `"$@" >"$0/log" 2>&1 </dev/null & server=$!
cat >/dev/null
kill -QUIT $server 2>/dev/null
wait $server
[ -e "$0/keep" ] || rm -rf "$0"`
	args := append([]string{"-c", script, s.dir, filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir, "-c", "listen_addresses=127.0.0.1", "-c", "password_encryption=scram-sha-256"}, settings...)
	c := s.command("/bin/sh", args...)
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	c.Stdin = in
	s.end, s.shell = out, c
	if err := c.Start(); err != nil {
		return err
	}
	_ = in.Close() // the shell has it
	db, err := sql.Open("pgx", s.Address(nil))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = db.PingContext(context.Background()); err == nil {
			return nil
		}
		if time.Now().After(until) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server does not answer: %w: %s", err, log)
		}
	}
}

// command returns a command of the user of the server.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.dir
	runAs(c, s.as)
	return c
}

// Address returns the address of the database, with these parameters.
func (s *Server) Address(parameters url.Values) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/postgres", RawQuery: parameters.Encode()}
	return u.String()
}

// Schema returns the address of a new schema.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", schemas.Add(1))
	s.Exec(t, "create schema "+name)
	return s.Address(url.Values{"search_path": {name}})
}

// UserAddress returns the address of a new schema that belongs to a new user with a password.
func (s *Server) UserAddress(t testing.TB, password string) *url.URL {
	t.Helper()
	u, err := url.Parse(s.Schema(t))
	require.NoError(t, err)
	schema := u.Query().Get("search_path")
	u.User = url.UserPassword("user_of_"+schema, password)
	s.Exec(t, "create role "+u.User.Username()+" login password '"+password+"'", "alter schema "+schema+" owner to "+u.User.Username())
	return u
}

// Exec executes statements in the database.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	Exec(t, s.Address(nil), statements...)
}

// Exec executes statements in the database with an address.
func Exec(t testing.TB, address string, statements ...string) {
	t.Helper()
	db, err := sql.Open("pgx", address)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // each statement was answered
	for _, statement := range statements {
		_, err := db.ExecContext(context.Background(), statement)
		require.NoError(t, err, statement)
	}
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.end == nil {
		return
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "keep"), nil, 0o600))
	require.NoError(t, s.end.Close())
	s.end = nil
	_ = s.shell.Wait() // the server was killed
}

// Restart starts a server that was killed.
func (s *Server) Restart(t testing.TB, settings ...string) {
	t.Helper()
	require.NoError(t, s.run(settings...))
}
