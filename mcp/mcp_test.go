package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

// The test binary is also the program of the servers: MCP_TEST_SERVER says how it behaves.
func TestMain(m *testing.M) {
	if mode := os.Getenv("MCP_TEST_SERVER"); mode != "" {
		if mode, is := strings.CutPrefix(mode, "raw "); is {
			serveRaw(mode)
			return
		}
		serve(mode)
		return
	}
	process.StopTime = 300 * time.Millisecond
	mcp.SetPing(0, 100*time.Millisecond)
	mcp.SetDiscover(time.Second)
	goleak.VerifyTestMain(m)
}

type echoArguments struct {
	Text string `json:"text"`
}

// newServer returns a server with the tool echo.
func newServer(mode string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	description := "Returns its argument."
	if file := os.Getenv("DEFINITION"); file != "" { // grows by one at each start
		raw, _ := os.ReadFile(file)
		os.WriteFile(file, append(raw, 'x'), 0o600)
		description += string(raw)
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: description}, func(ctx context.Context, _ *sdk.CallToolRequest, in echoArguments) (*sdk.CallToolResult, any, error) {
		switch mode {
		case "dies":
			os.Exit(3)
		case "hangs":
			<-ctx.Done()
		case "floods":
			for {
				os.Stdout.WriteString(strings.Repeat("x", 1<<20))
			}
		case "attempts":
			in.Text = attempts()
		case "large file":
			_ = os.WriteFile("own", nil, 0o600)
			_ = os.Truncate("own", 512<<20)
			os.Exit(3)
		case "fails":
			return nil, nil, fmt.Errorf("no %s today", in.Text)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "env"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, map[string]any, error) {
		return nil, map[string]any{"pid": os.Getpid(), "names": os.Environ()}, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "picture"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "see"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("png")}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		_, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 10})
		_, err2 := r.Session.ListRoots(ctx, nil)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("sampling refused: %t, roots refused: %t", err != nil, err2 != nil)}}}, nil, nil
	})
	return s
}

// serve runs a server over standard input and output.
func serve(mode string) {
	switch mode {
	case "broken":
		fmt.Fprintln(os.Stderr, "cannot find the index")
		os.Exit(1)
	case "silent":
		time.Sleep(time.Hour)
	case "deaf": // stops reading once it has listed its tools
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct{ ProtocolVersion string }
			}
			_ = json.Unmarshal(in.Bytes(), &m)
			switch m.Method {
			case "initialize":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`+"\n", m.ID, m.Params.ProtocolVersion)
			case "tools/list":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}`+"\n", m.ID)
				time.Sleep(time.Hour)
			default:
				if m.ID != nil {
					fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`+"\n", m.ID)
				}
			}
		}
	case "stubborn": // ignores signals and the end of its input, and has a child that does too
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		child := exec.Command("/bin/sh", "-c", "trap '' TERM INT; sleep 3600")
		_ = child.Start()
		os.WriteFile(os.Getenv("PIDS"), []byte(strconv.Itoa(child.Process.Pid)), 0o600)
		_ = newServer(mode).Run(context.Background(), &sdk.StdioTransport{})
		time.Sleep(time.Hour)
	}
	_ = newServer(mode).Run(context.Background(), &sdk.StdioTransport{})
}

// server returns a server that is a process.
func server(t testing.TB, mode string) *mcp.Server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return &mcp.Server{Name: "test", Command: self, Env: map[string]string{"MCP_TEST_SERVER": mode}}
}

// toolsOf returns the tools of a server by their names.
func toolsOf(t testing.TB, s *mcp.Server) map[string]*tool.Tool {
	t.Helper()
	list, err := s.Tools(t.Context())
	require.NoError(t, err)
	byName := map[string]*tool.Tool{}
	for _, one := range list {
		byName[one.Name] = one
	}
	return byName
}

func echo(t testing.TB, f *tool.Tool, shared *tool.Shared, text string) (string, error) {
	t.Helper()
	arguments, err := json.Marshal(echoArguments{text})
	require.NoError(t, err)
	r, err := f.Run(t.Context(), tool.Call{ID: "1", Arguments: arguments, Shared: shared})
	return r.Text, err
}

func TestToolsOfAProcess(t *testing.T) {
	t.Parallel()
	s := server(t, "plain")
	tools := toolsOf(t, s)
	require.Len(t, tools, 4)
	f := tools["test__echo"]
	require.NotNil(t, f)
	require.Equal(t, "Returns its argument.", f.Description)
	require.True(t, f.Stateful)
	require.Equal(t, label.Internal, f.Accepts)
	require.Contains(t, string(f.Parameters), `"text"`)

	var shared tool.Shared
	got, err := echo(t, f, &shared, "hello")
	require.NoError(t, err)
	require.Equal(t, "hello", got)

	r, err := tools["test__picture"].Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`), Shared: &shared})
	require.NoError(t, err)
	require.Equal(t, "see\n[image image/png, 3 bytes: not shown]", r.Text)

	r, err = tools["test__ask"].Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`), Shared: &shared})
	require.NoError(t, err)
	require.Equal(t, "sampling refused: true, roots refused: true", r.Text)
	require.NoError(t, shared.Close())
	_, err = echo(t, f, &shared, "late")
	require.ErrorIs(t, err, tool.ErrClosed)
}

// Tasks have sessions of their own, and the calls of one task share one.
func TestSessionOfATask(t *testing.T) {
	t.Parallel()
	s := server(t, "plain")
	s.Env["TOKEN"] = "t0ken"
	f := toolsOf(t, s)["test__env"]
	info := func(shared *tool.Shared) (pid float64, names string) {
		r, err := f.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`), Shared: shared})
		require.NoError(t, err)
		require.Empty(t, r.Text, "the structured result is not repeated")
		var v struct {
			PID   float64  `json:"pid"`
			Names []string `json:"names"`
		}
		require.NoError(t, json.Unmarshal(r.JSON, &v))
		return v.PID, strings.Join(v.Names, "\n")
	}
	var a, b tool.Shared
	first, names := info(&a)
	again, _ := info(&a)
	other, _ := info(&b)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
	require.Contains(t, names, "TOKEN=${TOKEN}") // it has the variable, and nothing shows the value
	require.NotContains(t, names, "GOPATH")
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.Eventually(t, func() bool { return syscall.Kill(int(first), 0) != nil && syscall.Kill(int(other), 0) != nil }, 5*time.Second, 10*time.Millisecond)
}

func TestToolsOfAnURL(t *testing.T) {
	t.Parallel()
	var authorized atomic.Int32
	sdkServer := newServer("plain")
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return sdkServer }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer t" {
			authorized.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	s := &mcp.Server{Name: "web", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer t"}, Allow: []string{"echo"}}
	tools := toolsOf(t, s)
	require.Len(t, tools, 1)
	var shared tool.Shared
	got, err := echo(t, tools["web__echo"], &shared, "hello")
	require.NoError(t, err)
	require.Equal(t, "hello", got)
	require.NoError(t, shared.Close())
	require.Positive(t, authorized.Load())
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// Headers can hold a token, so they are not sent to another origin.
func TestRedirectToAnotherOriginIsRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer web.Close()
	_, err := (&mcp.Server{Name: "web", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer t"}}).Tools(t.Context())
	require.ErrorContains(t, err, "redirect to another origin")
	require.False(t, reached.Load())
}

func TestServersThatFail(t *testing.T) {
	t.Parallel()
	t.Run("program is missing", func(t *testing.T) {
		t.Parallel()
		_, err := (&mcp.Server{Name: "a", Command: "/no/such/program"}).Tools(t.Context())
		require.ErrorContains(t, err, `mcp server "a"`)
		require.ErrorContains(t, err, "no such file")
	})
	t.Run("program ends at once", func(t *testing.T) {
		t.Parallel()
		_, err := server(t, "broken").Tools(t.Context())
		require.ErrorContains(t, err, "stderr: cannot find the index")
	})
	t.Run("program does not answer", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := server(t, "silent").Tools(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("tool is missing", func(t *testing.T) {
		t.Parallel()
		s := server(t, "plain")
		s.Allow = []string{"search"}
		_, err := s.Tools(t.Context())
		require.ErrorContains(t, err, `the server has no tool "search"`)
	})
	t.Run("tool fails", func(t *testing.T) {
		t.Parallel()
		f := toolsOf(t, server(t, "fails"))["test__echo"]
		var shared tool.Shared
		defer shared.Close()
		r, err := f.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{"text": "milk"}`), Shared: &shared})
		require.NoError(t, err)
		require.True(t, r.IsError)
		require.Equal(t, "no milk today", r.Text)
	})
	t.Run("program dies in a call", func(t *testing.T) {
		t.Parallel()
		f := toolsOf(t, server(t, "dies"))["test__echo"]
		var shared tool.Shared
		defer shared.Close()
		for range 2 { // the second call finds a new process
			_, err := echo(t, f, &shared, "x")
			require.ErrorContains(t, err, `mcp server "test"`)
		}
	})
	t.Run("call hangs", func(t *testing.T) {
		t.Parallel()
		f := toolsOf(t, server(t, "hangs"))["test__echo"]
		var shared tool.Shared
		defer shared.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := f.Run(ctx, tool.Call{Arguments: json.RawMessage(`{"text": "x"}`), Shared: &shared})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("program floods", func(t *testing.T) {
		t.Parallel()
		f := toolsOf(t, server(t, "floods"))["test__echo"]
		var shared tool.Shared
		defer shared.Close()
		_, err := echo(t, f, &shared, "x")
		require.ErrorContains(t, err, `mcp server "test"`)
	})
}

func TestProcessesThatIgnoreSignalsAreEnded(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	s := server(t, "stubborn")
	s.Env["PIDS"] = pids
	_, err := s.Tools(t.Context())
	require.NoError(t, err)
	raw, err := os.ReadFile(pids)
	require.NoError(t, err)
	child, err := strconv.Atoi(string(raw))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ended(child) }, 5*time.Second, 10*time.Millisecond)
}

// ended reports whether a process has ended, whether or not its parent has noticed.
func ended(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(raw), ") Z ")
}

func TestServersThatAreDescribedWrongly(t *testing.T) {
	t.Parallel()
	public := label.Public
	for _, tt := range []struct {
		give *mcp.Server
		want string
	}{
		{&mcp.Server{Name: "a b", Command: "x"}, "use 1 to 32"},
		{&mcp.Server{Name: "a__b", Command: "x"}, "leave out __"},
		{&mcp.Server{Name: "a_", Command: "x"}, "and _ at its end"},
		{&mcp.Server{Name: "a"}, "set either Command or URL"},
		{&mcp.Server{Name: "a", Command: "x", URL: "http://x"}, "set either Command or URL"},
		{&mcp.Server{Name: "a", URL: "http://x", Args: []string{"x"}}, "require Command"},
		{&mcp.Server{Name: "a", Command: "x", Headers: map[string]string{"A": "b"}}, "require URL"},
		{&mcp.Server{Name: "a", URL: "http://x", Stateless: true}, "remove Stateless"},
	} {
		_, err := tt.give.Tools(t.Context())
		require.ErrorContains(t, err, tt.want)
	}
	s := server(t, "plain")
	s.Options.Produces = &public
	_, err := s.Tools(t.Context())
	require.ErrorContains(t, err, "could lower the label of arguments")
}

// Calls of a server that does not read end with their context, and so does its session.
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	f := toolsOf(t, server(t, "deaf"))["test__echo"]
	var shared tool.Shared
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	arguments, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 60<<10)})
	require.NoError(t, err)
	var calls errgroup.Group
	for range 8 {
		calls.Go(func() error {
			_, err := f.Run(ctx, tool.Call{ID: "1", Arguments: arguments, Shared: &shared})
			return err
		})
	}
	require.ErrorIs(t, calls.Wait(), context.DeadlineExceeded)
	require.NoError(t, shared.Close())
}

// With SharedSession all tasks talk to one process, until the server is closed.
func TestSharedSession(t *testing.T) {
	t.Parallel()
	s := server(t, "plain")
	s.SharedSession = true
	f := toolsOf(t, s)["test__echo"]
	require.True(t, f.Stateful)
	for range 2 {
		var own tool.Shared
		got, err := echo(t, f, &own, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		require.NoError(t, own.Close())
	}
	require.NoError(t, s.Close())
	_, err := echo(t, f, nil, "x")
	require.ErrorIs(t, err, tool.ErrClosed)
}

func TestServerIsPrintedWithoutCredentials(t *testing.T) {
	t.Parallel()
	s := &mcp.Server{Name: "a", URL: "https://user:canary@example.com/?key=canary", Headers: map[string]string{"Authorization": "canary"}, Env: map[string]string{"T": "canary"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, `mcp server "a" at https://example.com`, fmt.Sprintf(verb, s))
	}
}

// BenchmarkCall compares a call with one of the SDK alone.
func BenchmarkCall(b *testing.B) {
	b.Run("runteam", func(b *testing.B) {
		f := toolsOf(b, server(b, "plain"))["test__echo"]
		var shared tool.Shared
		defer shared.Close()
		for b.Loop() {
			_, err := echo(b, f, &shared, "x")
			require.NoError(b, err)
		}
	})
	b.Run("sdk", func(b *testing.B) {
		s := server(b, "plain")
		cmd := exec.Command(s.Command)
		cmd.Env = []string{"MCP_TEST_SERVER=plain"}
		session, err := sdk.NewClient(&sdk.Implementation{Name: "x"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		require.NoError(b, err)
		defer session.Close()
		for b.Loop() {
			_, err := session.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"text": "x"}`)})
			require.NoError(b, err)
		}
	})
}
