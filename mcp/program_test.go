package mcp_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

// attempts returns what a server can do: it names its folder, and what works of that which would let it
// reach somebody else.
func attempts() string {
	dir, _ := os.Getwd()
	works := []string{dir}
	for _, a := range []struct {
		name string
		err  error
	}{
		{"own file", os.WriteFile("own", []byte("x"), 0o600)},
		{"other file", os.WriteFile(os.Getenv("OTHER"), []byte("x"), 0o600)},
		{"program", os.WriteFile(os.Args[0], nil, 0o600)},
		{"network", dial("tcp", os.Getenv("ADDRESS"))},
	} {
		if a.err == nil {
			works = append(works, a.name)
		}
	}
	return strings.Join(works, ",")
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		c.Close()
	}
	return err
}

// A confined server has a folder of its own while a session lasts, which is all that it can write, and
// reaches nobody.
//
// Requirement: G65.
func TestConfinedServer(t *testing.T) {
	t.Parallel()
	if !process.Confines() {
		t.Skip("this system cannot confine programs")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	for confine, want := range map[bool]string{true: "own file", false: "own file,other file,network"} {
		s, other := server(t, "attempts"), filepath.Join(t.TempDir(), "other")
		s.Confine, s.Env["OTHER"], s.Env["ADDRESS"] = new(confine), other, listener.Addr().String()
		if !confine {
			s.Dir = t.TempDir()
		}
		f := toolsOf(t, s)["test__echo"]
		require.Equal(t, &tool.Program{Name: `mcp server "test"`, Confined: confine}, f.Program)
		var shared, next tool.Shared
		got, err := echo(t, f, &shared, "x")
		require.NoError(t, err)
		dir, works, _ := strings.Cut(got, ",")
		require.Equal(t, want, works)
		if confine {
			require.DirExists(t, dir)
			again, err := echo(t, f, &next, "x")
			require.NoError(t, err)
			require.NotContains(t, again, dir, "each session has a folder of its own")
			require.NoError(t, next.Close())
			require.NoFileExists(t, other)
		}
		require.NoError(t, shared.Close())
		require.Equal(t, !confine, isFolder(dir), "the folder is removed at the end of the session")
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// A limit of confined programs that a server reaches is in the error of the call.
func TestConfinedServerReachesALimit(t *testing.T) {
	t.Parallel()
	if !process.Confines() {
		t.Skip("this system cannot confine programs")
	}
	s := server(t, "large file")
	s.Confine = new(true)
	var shared tool.Shared
	_, err := echo(t, toolsOf(t, s)["test__echo"], &shared, "x")
	require.ErrorContains(t, err, "its program was stopped: a file reached 512 MiB, the limit for one file")
	require.NoError(t, shared.Close())
}

func TestConfinementThatCannotWork(t *testing.T) {
	t.Parallel()
	const (
		unneeded = "Reason is only for a program with Confine false; leave it out"
		remote   = "Args, Env, Dir, Confine, Reason and Options.Readable require Command"
	)
	for _, tt := range []struct {
		server *mcp.Server
		want   string
	}{
		{&mcp.Server{Command: "sh", Reason: "It opens the browser."}, unneeded},
		{&mcp.Server{Command: "sh", Confine: new(true), Reason: "It opens the browser."}, unneeded},
		{&mcp.Server{URL: "https://mcp.example", Confine: new(true)}, remote},
		{&mcp.Server{URL: "https://mcp.example", Reason: "It opens the browser."}, remote},
		{&mcp.Server{URL: "https://mcp.example", Options: tool.Options{Readable: []string{"/usr"}}}, remote},
		{&mcp.Server{Command: "sh", Options: tool.Options{Readable: []string{"/usr"}}}, "a program that is not confined can read every file"},
	} {
		tt.server.Name = "s"
		_, err := tt.server.Declared()
		require.ErrorContains(t, err, tt.want)
	}
	s := &mcp.Server{Name: "s", Command: "sh", Allow: []string{"a"}, Confine: new(false), Reason: "It opens the browser."}
	list, err := s.Declared()
	require.NoError(t, err)
	require.Equal(t, "It opens the browser.", list[0].Program.Reason)
	s.Confine, s.Reason = new(true), ""
	if !process.Confines() {
		_, err = s.Declared()
		require.ErrorContains(t, err, "this system cannot confine programs")
		return
	}
	for want, change := range map[string]func(*mcp.Server){
		"runs in a folder of its own": func(s *mcp.Server) { s.Dir = "/usr" },
		"the path is relative":        func(s *mcp.Server) { s.Options.Readable = []string{"lib"} },
		"":                            func(s *mcp.Server) { s.Options.Readable = []string{"/usr"} },
	} {
		changed := &mcp.Server{Name: s.Name, Command: s.Command, Allow: s.Allow, Confine: s.Confine}
		change(changed)
		_, err := changed.Declared()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}
