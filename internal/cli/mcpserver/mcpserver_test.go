package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/mcpserver"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
)

func TestMain(m *testing.M) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		os.Setenv("TMPDIR", "/dev/shm") // journals wait for the disk on any other file system
	}
	goleak.VerifyTestMain(m)
}

// echo returns its texts, without a model.
const echo = `
name: Echo team
description: Repeats what it gets.
params: {tone: , words: 3}
inputs:
  claim: {classification: confidential}
  law: {text: Pay.}
agents: [{name: cat, backend: {kind: process, command: cat}}]
tasks:
  - title: Say
    uses: [claim, law]
    template: "{{.inputs.claim}} {{.inputs.law}}"
  - {title: Ask, assignee: cat, description: "In a ${params.tone} tone, ${params.words} words."}
output: Say
`

// A service is a server with a client over pipes.
type service struct {
	*sdk.ClientSession
	dir    string
	stderr *bytes.Buffer
	ended  chan error // what Serve returned
	stop   context.CancelCauseFunc
	leave  func() error // closes the client's end

	mu       sync.Mutex
	progress []*sdk.ProgressNotificationParams
}

// start serves the specs of a folder. Prepare may change the console and the flags.
func start(t *testing.T, files map[string]string, specs []string, prepare func(*console.Console, *run.Launch)) *service {
	t.Helper()
	con, stdout, stderr := clitest.Console(t)
	s := &service{dir: clitest.Folder(t, files), stderr: stderr, ended: make(chan error, 1)}
	base := &run.Launch{}
	if prepare != nil {
		prepare(con, base)
	}
	paths := make([]string, len(specs))
	for i, spec := range specs {
		paths[i] = filepath.Join(s.dir, spec)
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ctx, stop := context.WithCancelCause(context.Background())
	s.stop, s.leave = stop, toServer.Close
	go func() {
		s.ended <- mcpserver.Serve(ctx, con, paths, *base, "1.2.3", fromClient, toClient)
		toClient.Close()
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.progress = append(s.progress, req.Params)
		},
	})
	var err error
	s.ClientSession, err = client.Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		stop(nil)
		toServer.Close()
		_ = s.Close() // the server may be gone
		require.Empty(t, stdout.String(), "stdout has nothing but MCP")
	})
	return s
}

// call calls a tool.
func (s *service) call(t *testing.T, tool string, arguments any) *sdk.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err)
	return res
}

// textOf returns the text of a result.
func textOf(t *testing.T, res *sdk.CallToolResult) string {
	t.Helper()
	var all []string
	for _, c := range res.Content {
		all = append(all, c.(*sdk.TextContent).Text)
	}
	return strings.Join(all, "\n")
}

func TestToolsDescribeTheirSpecs(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{
		"echo.yaml": echo,
		"goal.yaml": "name: planner\nmodel: m\nagents: [{name: a}]\ngoal: Do it.",
		"none.yaml": "name: free\nmodel: m\nagents: [{name: a}]",
		"list.yaml": "name: two\nmodel: m\nagents: [{name: a}]\ntasks: [{title: Find, description: D.}, {title: Sum up, description: D.}]",
	}, []string{"echo.yaml", "goal.yaml", "none.yaml", "list.yaml"}, func(_ *console.Console, f *run.Launch) { f.Answers.Offline = true })
	require.Equal(t, "runteam", s.InitializeResult().ServerInfo.Name)
	require.Equal(t, "1.2.3", s.InitializeResult().ServerInfo.Version)
	list, err := s.ListTools(t.Context(), nil)
	require.NoError(t, err)
	tools := map[string]*sdk.Tool{}
	for _, tool := range list.Tools {
		tools[tool.Name] = tool
	}
	require.Len(t, tools, 4)
	require.Equal(t, "Repeats what it gets.", tools["Echo_team"].Description)
	require.Equal(t, `Runs the team "two", which does these tasks: Find and Sum up.`, strings.ReplaceAll(tools["two"].Description, "Find, Sum", "Find and Sum"))
	requireSchema(t, tools["Echo_team"], `{"type":"object","additionalProperties":false,"required":["claim","tone"],"properties":{
		"claim":{"type":"string","minLength":1,"description":"A text, which the team treats as confidential"},
		"law":{"type":"string","minLength":1,"description":"A text, which the team treats as internal; the team has one of its own"},
		"tone":{"type":"string","description":"One line"},
		"words":{"type":"string","description":"One line; the team has one of its own"}}}`)
	requireSchema(t, tools["planner"], `{"type":"object","additionalProperties":false,"properties":{
		"goal":{"type":"string","minLength":1,"description":"What the team should find out or produce; the team has one of its own"}}}`)
	requireSchema(t, tools["free"], `{"type":"object","additionalProperties":false,"required":["goal"],"properties":{
		"goal":{"type":"string","minLength":1,"description":"What the team should find out or produce"}}}`)
	requireSchema(t, tools["two"], `{"type":"object","additionalProperties":false,"properties":{}}`)
}

func requireSchema(t *testing.T, tool *sdk.Tool, want string) {
	t.Helper()
	got, err := json.Marshal(tool.InputSchema)
	require.NoError(t, err)
	require.JSONEq(t, want, string(got))
}

func TestSpecsThatCannotBeOffered(t *testing.T) {
	t.Parallel()
	const rest = "model: m\nagents: [{name: a}]\ntasks: [{title: T, uses: [x], description: '${params.x}'}]"
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no spec", nil, "name at least one SPEC"},
		{"names that are one tool", map[string]string{"a.yaml": strings.Replace(echo, "Echo team", "a b", 1), "b.yaml": strings.Replace(echo, "Echo team", "a.b", 1)}, "would both be the tool a_b: change the name of one of them"},
		{"a name without a letter", map[string]string{"a.yaml": strings.Replace(echo, "Echo team", "团队", 1)}, "write a name with letters from a to z or digits"},
		{"an input and a parameter of one name", map[string]string{"a.yaml": "params: {x: }\ninputs: {x: }\n" + rest}, `parameter "x" and the input would be one argument`},
		{"a bad file", map[string]string{"a.yaml": "bogus: 1\n" + rest}, `unknown key "bogus"`},
		{"a missing file", map[string]string{"a.yaml": "name: [", "b.yaml": echo}, "a.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			con, _, _ := clitest.Console(t)
			dir := clitest.Folder(t, tt.files)
			var specs []string
			for _, name := range []string{"a.yaml", "b.yaml"} {
				if tt.files[name] != "" {
					specs = append(specs, filepath.Join(dir, name))
				}
			}
			var out bytes.Buffer
			err := mcpserver.Serve(t.Context(), con, specs, run.Launch{}, "", strings.NewReader(""), &out)
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, out.String())
		})
	}
	con, _, _ := clitest.Console(t)
	err := mcpserver.Serve(t.Context(), con, []string{"-"}, run.Launch{}, "", strings.NewReader(""), io.Discard)
	require.Equal(t, exit.KindUsage, exit.KindOf(err))
}

// TestACallIsARun: it is stored like any other, and its inputs keep the labels of the spec.
func TestACallIsARun(t *testing.T) {
	t.Parallel()
	var con *console.Console
	s := start(t, map[string]string{"echo.yaml": echo}, []string{"echo.yaml"}, func(c *console.Console, l *run.Launch) { con, l.Starter = c, "ann@example.org" })
	res := s.call(t, "Echo_team", map[string]any{"claim": "The roof leaks.", "tone": "kind"})
	require.False(t, res.IsError, textOf(t, res))
	require.Equal(t, "The roof leaks. Pay.", textOf(t, res))
	require.Nil(t, res.StructuredContent)
	require.Equal(t, "ok", res.Meta["runteam/status"])
	id, _ := res.Meta["runteam/runId"].(string)
	require.Len(t, id, 36)

	j, _, err := journals.Open(con, &journals.Flags{}, journals.ToRead)
	require.NoError(t, err)
	defer j.Close()
	stored, err := j.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "run", stored.Info.Command)
	require.Equal(t, "Echo team", stored.Info.Name)
	require.Equal(t, "Echo team", stored.Info.Spec)
	require.Equal(t, "ann@example.org", stored.Info.Starter)
	texts := map[string]string{}
	for _, f := range stored.Info.Files {
		texts[f.Path] = f.Label.String() + ": " + f.Text
	}
	require.Equal(t, "confidential: The roof leaks.", texts["--input claim"])
	require.Equal(t, "internal: kind", texts["--param tone"])
}

// TestInputsKeepTheirLabels: what a client brings is withheld from whom the spec withholds it, and from
// the client itself.
func TestInputsKeepTheirLabels(t *testing.T) {
	t.Parallel()
	spec := `
name: hide
inputs: {key: {classification: secret}, note: {text: Open.}}
policy: {rules: [{from: user, to: computed, mode: full}, {from: computed, to: user, mode: full}]}
agents: [{name: cat, backend: {kind: process, command: cat}}]
tasks:
  - {title: Keep, uses: [key], template: "{{.inputs.key}}"}
  - {title: Show, uses: [note], template: "{{.inputs.note}}"}
`
	s := start(t, map[string]string{"hide.yaml": spec}, []string{"hide.yaml"}, nil)
	res := s.call(t, "hide", map[string]any{"key": "CANARY-7431"})
	raw, err := json.Marshal(res)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "CANARY")
	require.Contains(t, string(raw), "withheld: secret")
	require.Contains(t, string(raw), "Open.")

	low := start(t, map[string]string{"echo.yaml": echo}, []string{"echo.yaml"}, func(_ *console.Console, f *run.Launch) { f.Accepts = new(label.Internal) })
	res = low.call(t, "Echo_team", map[string]any{"claim": "CANARY-7431", "tone": "kind"})
	raw, err = json.Marshal(res)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "CANARY", "the server's clients see internal texts only")
}

func TestStructuredAnswers(t *testing.T) {
	t.Parallel()
	spec := `
name: form
agents: [{name: cat, backend: {kind: process, command: cat}}]
tasks:
  - {title: Form, value: {sum: 12, note: Paid.}}
`
	s := start(t, map[string]string{"form.yaml": spec}, []string{"form.yaml"}, nil)
	res := s.call(t, "form", nil)
	require.False(t, res.IsError, textOf(t, res))
	got, err := json.Marshal(res.StructuredContent)
	require.NoError(t, err)
	require.Contains(t, string(got), `"sum":12`)
	require.JSONEq(t, string(got), textOf(t, res))
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"echo.yaml": echo, "free.yaml": "name: free\nmodel: m\nagents: [{name: a}]"}, []string{"echo.yaml", "free.yaml"}, func(_ *console.Console, f *run.Launch) { f.Answers.Offline = true })
	good := map[string]any{"claim": "C.", "tone": "kind"}
	tests := []struct {
		name, tool string
		change     map[string]any // nil values are removed
		want       string
	}{
		{"missing input", "Echo_team", map[string]any{"claim": nil}, `argument "claim" is missing`},
		{"missing parameter", "Echo_team", map[string]any{"tone": nil}, `argument "tone" is missing`},
		{"unknown", "Echo_team", map[string]any{"clam": "x"}, `unknown argument "clam": the tool takes claim, law, tone`},
		{"no string", "Echo_team", map[string]any{"words": 3}, `argument "words" is no string`},
		{"empty input", "Echo_team", map[string]any{"claim": "  "}, `input "claim": it is empty`},
		{"zero byte", "Echo_team", map[string]any{"claim": "a\x00b"}, "zero byte"},
		{"too large", "Echo_team", map[string]any{"claim": strings.Repeat("x", run.MaxText+1)}, "it is larger than 4 MiB"},
		{"two lines", "Echo_team", map[string]any{"tone": "a\nb"}, "parameter tone: "},
		{"a path is a text", "Echo_team", map[string]any{"claim": "/etc/hostname"}, ""},
		{"a goal in a spec with tasks", "Echo_team", map[string]any{"goal": "Leak."}, `unknown argument "goal"`},
		{"no goal", "free", map[string]any{"claim": nil, "tone": nil}, `argument "goal" is missing`},
		{"empty goal", "free", map[string]any{"claim": nil, "tone": nil, "goal": " "}, `goal is empty`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "too large" {
				slowtest.NotUnderRace(t)
			}
			arguments := map[string]any{}
			maps.Copy(arguments, good)
			for name, value := range tt.change {
				if arguments[name] = value; value == nil {
					delete(arguments, name)
				}
			}
			res := s.call(t, tt.tool, arguments)
			if tt.want == "" {
				require.False(t, res.IsError, textOf(t, res))
				require.Contains(t, textOf(t, res), arguments["claim"])
				return
			}
			require.True(t, res.IsError)
			require.Contains(t, textOf(t, res), tt.want)
			require.Contains(t, textOf(t, res), "nothing was run")
			require.NotContains(t, textOf(t, res), "--input")
		})
	}
	res := s.call(t, "Echo_team", json.RawMessage(`{"claim":"C.","claim":"Another.","tone":"kind"}`))
	require.True(t, res.IsError)
	require.Contains(t, textOf(t, res), "an argument is given twice")
	_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "nobody"})
	require.Error(t, err)
}

// TestASuspendedRunSaysHowToAnswer and the run goes on where the server runs.
func TestASuspendedRunSaysHowToAnswer(t *testing.T) {
	t.Parallel()
	spec := `
name: approve
inputs: {letter: }
agents: [{name: editor, backend: {kind: person}}]
tasks: [{title: Review, assignee: editor, uses: [letter], description: May it be sent?}]
`
	s := start(t, map[string]string{"a.yaml": spec}, []string{"a.yaml"}, nil)
	res := s.call(t, "approve", map[string]any{"letter": "Dear Ann"})
	require.True(t, res.IsError)
	require.Equal(t, "suspended", res.Meta["runteam/status"])
	text, id := textOf(t, res), res.Meta["runteam/runId"].(string)
	require.Contains(t, text, "waiting for a person")
	require.Contains(t, text, "runteam answer "+id[:8]+" Review --question ")
	require.Contains(t, text, "runteam resume "+id[:8])
}

// endpoint answers model calls with what answer writes.
func endpoint(t *testing.T, answer func(http.ResponseWriter, *http.Request)) func(*console.Console, *run.Launch) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices a client that leaves
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return func(con *console.Console, _ *run.Launch) {
		con.LookupEnv = func(name string) (string, bool) {
			if name == "OPENAI_BASE_URL" {
				return server.URL + "/v1", true
			}
			return "", false
		}
	}
}

const asksModel = "name: ask\nmodel: m\nagents: [{name: a}]\ntasks: [{title: T, description: D.}]"

func TestAFailedRunSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"a.yaml": asksModel}, []string{"a.yaml"}, endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":{"message":"The model m does not exist","code":"model_not_found"}}`)
	}))
	res := s.call(t, "ask", nil)
	require.True(t, res.IsError)
	require.Equal(t, "error", res.Meta["runteam/status"])
	require.Contains(t, textOf(t, res), "The model m does not exist")
	require.Contains(t, textOf(t, res), "write another model in the spec, or give --model")
	require.Contains(t, textOf(t, res), "runteam resume "+res.Meta["runteam/runId"].(string)[:8])
}

// TestCancellationCancelsTheRun, by the client and by its leaving.
func TestCancellationCancelsTheRun(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprintf("leaves %v", leaves), func(t *testing.T) {
			t.Parallel()
			called, canceled := make(chan struct{}), make(chan struct{})
			var con *console.Console
			reachable := endpoint(t, func(_ http.ResponseWriter, r *http.Request) {
				close(called)
				<-r.Context().Done()
				close(canceled)
			})
			s := start(t, map[string]string{"a.yaml": asksModel}, []string{"a.yaml"}, func(c *console.Console, f *run.Launch) {
				con = c
				reachable(c, f)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "ask"})
				answered <- err
			}()
			<-called
			if leaves {
				s.leave()
			} else {
				cancel()
				require.Error(t, <-answered)
			}
			<-canceled
			if leaves {
				require.NoError(t, <-s.ended)
			} else {
				s.stop(errors.New("enough"))
				require.ErrorContains(t, <-s.ended, "enough")
			}
			j, _, err := journals.Open(con, &journals.Flags{}, journals.ToRead)
			require.NoError(t, err)
			defer j.Close()
			list, err := j.Runs(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, "cancelled", list[0].Status)
		})
	}
}

// TestProgress: each task counts when it starts and when it ends, and never backwards.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"echo.yaml": echo}, []string{"echo.yaml"}, nil)
	params := &sdk.CallToolParams{Name: "Echo_team", Arguments: map[string]any{"claim": "C.", "tone": "kind"}}
	params.SetProgressToken("p-1")
	res, err := s.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.False(t, res.IsError, textOf(t, res))
	require.NoError(t, s.Ping(t.Context(), nil)) // what was sent before has arrived
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.progress)
	last := 0.0
	for _, p := range s.progress {
		require.Equal(t, "p-1", p.ProgressToken)
		require.Greater(t, p.Progress, last)
		require.InDelta(t, 4, p.Total, 0)
		last = p.Progress
	}
	require.InDelta(t, 4, last, 0)
	require.Contains(t, s.progress[len(s.progress)-1].Message, "completed ")
}

// TestCallsRunAtTheSameTime, more than there are slots.
func TestCallsRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"echo.yaml": echo}, []string{"echo.yaml"}, nil)
	var calls sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		calls.Go(func() {
			res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "Echo_team", Arguments: map[string]any{"claim": fmt.Sprintf("Claim %d.", i), "tone": "kind"}})
			if err == nil && !res.IsError && strings.HasPrefix(textOf(t, res), fmt.Sprintf("Claim %d. ", i)) {
				ids[i], _ = res.Meta["runteam/runId"].(string)
			}
		})
	}
	calls.Wait()
	seen := map[string]bool{}
	for i, id := range ids {
		require.NotEmpty(t, id, "call %d; %s", i, s.stderr)
		require.False(t, seen[id])
		seen[id] = true
	}
}

// TestAClientThatReadsNothing does not keep the server, nor its runs.
func TestAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	con, _, _ := clitest.Console(t)
	dir := clitest.Folder(t, map[string]string{"echo.yaml": echo})
	in, client := io.Pipe()
	out, server := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcpserver.Serve(t.Context(), con, []string{filepath.Join(dir, "echo.yaml")}, run.Launch{}, "", in, server)
	}()
	say := func(line string) {
		_, err := io.WriteString(client, line+"\n")
		require.NoError(t, err)
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	_, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Echo_team","arguments":{"claim":"C.","tone":"kind"},"_meta":{"progressToken":1}}}`)
	client.Close()
	require.NoError(t, <-ended)
	out.Close()
}

// TestLinesThatAreNoMessage get an error response, and the calls after them are answered.
func TestLinesThatAreNoMessage(t *testing.T) {
	t.Parallel()
	const (
		hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		ping  = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	)
	tests := []struct {
		name, line string
		want       string // in an error; empty for none
		code       int
	}{
		{"no JSON", "hello", "the line is not JSON", -32700},
		{"half a message", ping[:20], "the line is not JSON", -32700},
		{"two messages", ping + ping, "the line is not JSON", -32700},
		{"control characters", "\x00\x1b[2J", "the line is not JSON", -32700},
		{"too long", strings.Repeat("x", 16<<20+1), "the line is longer than 16 MiB", -32700},
		{"too long, and JSON", `{"jsonrpc":"2.0","id":3,"method":"` + strings.Repeat("x", 16<<20) + `"}`, "the line is longer than 16 MiB", -32700},
		{"too deep", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "Invalid request", -32600},
		{"no object", "3", "Invalid request", -32600},
		{"no version", `{"id":3,"method":"ping"}`, "Invalid request", -32600},
		{"no method", `{"jsonrpc":"2.0","params":{}}`, "Invalid request", -32600},
		{"a method that is no text", `{"jsonrpc":"2.0","id":3,"method":4}`, "Invalid request", -32600},
		{"an ID that is no text", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "Invalid request", -32600},
		{"an empty batch", `[]`, "Invalid request", -32600},
		{"an empty line", "", "", 0},
		{"spaces around a message", "  " + ready + " \t\r", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if len(tt.line) > 1<<20 {
				slowtest.NotUnderRace(t)
			}
			con, stdout, _ := clitest.Console(t)
			dir := clitest.Folder(t, map[string]string{"echo.yaml": echo})
			in := strings.NewReader(strings.Join([]string{tt.line, hello, ready, tt.line, ping, ""}, "\n"))
			answers := answersOf(t, con, filepath.Join(dir, "echo.yaml"), in)
			require.Empty(t, stdout.String())
			require.Contains(t, answers, `1 result`)
			require.Contains(t, answers, `2 result`)
			if tt.want == "" {
				require.Len(t, answers, 2, "%s", answers)
				return
			}
			require.Len(t, answers, 4, "%s", answers)
			refused := 0
			for _, a := range answers {
				if strings.HasPrefix(a, fmt.Sprintf("<nil> error %d ", tt.code)) && strings.Contains(a, tt.want) && strings.Contains(a, "; send ") {
					refused++
				}
			}
			require.Equal(t, 2, refused, "%s", answers)
		})
	}
}

// answersOf serves a spec to a client that writes in and leaves once it has an answer to the request 2,
// and returns what the server answers: ID, and the code and the message of errors.
func answersOf(t *testing.T, con *console.Console, spec string, in io.Reader) (answers []string) {
	t.Helper()
	out, server := io.Pipe()
	stays, leave := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcpserver.Serve(t.Context(), con, []string{spec}, run.Launch{}, "", io.MultiReader(in, stays), server)
		server.Close()
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var a struct {
			ID    any
			Error *struct {
				Code    int
				Message string
			}
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &a), "%s", lines.Text())
		if a.Error != nil {
			answers = append(answers, fmt.Sprintf("%v error %d %s", a.ID, a.Error.Code, a.Error.Message))
			continue
		}
		if answers = append(answers, fmt.Sprintf("%v result", a.ID)); a.ID == 2.0 {
			leave.Close()
		}
	}
	require.NoError(t, <-ended)
	return answers
}

// TestAClientThatFloods with lines that are no message and reads nothing does not keep the server.
func TestAClientThatFloods(t *testing.T) {
	t.Parallel()
	con, _, _ := clitest.Console(t)
	dir := clitest.Folder(t, map[string]string{"echo.yaml": echo})
	out, server := io.Pipe()
	in := strings.NewReader(strings.Repeat("hello\n", 10_000))
	require.NoError(t, mcpserver.Serve(t.Context(), con, []string{filepath.Join(dir, "echo.yaml")}, run.Launch{}, "", in, server))
	out.Close()
}
