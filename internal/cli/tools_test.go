package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// toolServerName is the name under which the test binary is an MCP server.
const toolServerName = "tool-test-server"

// serveTools serves MCP over standard input and output. The first argument says how.
func serveTools() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	if file := os.Getenv("STARTED"); file != "" {
		f, _ := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
	if mode == "broken" {
		fmt.Fprintln(os.Stderr, "no index at", os.Getenv("KEY"))
		os.Exit(1)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	type query struct {
		Query string `json:"query"`
	}
	description := "Searches the documents."
	if mode == "new" {
		description = "Searches other documents."
	}
	search := func(ctx context.Context, _ *sdk.CallToolRequest, in query) (*sdk.CallToolResult, any, error) {
		switch {
		case mode == "counted", mode == "hangs": // the second argument is the file of the queries
			log, _ := os.ReadFile(os.Args[2])
			_ = os.WriteFile(os.Args[2], append(log, in.Query+" "...), 0o600)
			if mode == "hangs" && string(log) == "1 " {
				<-ctx.Done()
			}
		case mode == "answers":
			in.Query = answerForAnn(os.Args[2], os.Args[3])
		case mode == "dies":
			os.Exit(3)
		case mode == "noisy":
			fmt.Println("INFO searching with", os.Getenv("KEY"))
			fmt.Println(`{"level":"info","key":"` + os.Getenv("KEY") + `"}`)
		case in.Query == "nothing":
			return nil, nil, fmt.Errorf("no document with the key %s", os.Getenv("KEY"))
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "found \x1b[31m" + in.Query + " with " + os.Getenv("KEY")}}}, nil, nil
	}
	name := "web_search"
	if mode == "other" {
		name = "web_lookup"
	}
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: description}, search)
	if mode == "names" {
		sdk.AddTool(s, &sdk.Tool{Name: "drop/all"}, search)
	}
	sdk.AddTool(s, &sdk.Tool{Name: "drop.all", Description: "Deletes the documents."}, search)
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
}

// toolServer returns the path of the test binary under the name of the server.
func toolServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), toolServerName)
	require.NoError(t, os.Symlink(binary, path))
	return path
}

// caller answers with a call of a tool, and then with its result.
func caller(t *testing.T, name, arguments string) *endpointServer {
	return serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		var body struct {
			Messages []struct{ Role, Content string }
			Tools    []struct {
				Function struct{ Name string }
			}
		}
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &body)
		last := body.Messages[len(body.Messages)-1]
		if last.Role == "tool" || len(body.Tools) == 0 {
			reply(w, "The tool said: "+last.Content)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"x","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":%q,"arguments":%q}}]}}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`, name, arguments)
	})
}

// searching is a spec whose agent searches with an MCP server.
func searching(server, args, more string) string {
	return "name: s\nmodel: m\ntools:\n  search:\n    mcp: {command: " + server + ", args: [" + args + `], env: {KEY: "${KEY}", STARTED: "${STARTED}"}}` + "\n    allow: [" + cmp.Or(more, "web_search") + `]
    effect: none
agents: [{name: solo, tools: [search]}]
tasks: [{title: Answer, assignee: solo, description: Search.}]
`
}

// A searchCase is a folder with such a spec, and what its calls share.
type searchCase struct {
	dir, started string
	env          map[string]string
	allow        []string
}

func newSearchCase(t *testing.T, args, more string) *searchCase {
	t.Helper()
	server := toolServer(t)
	c := &searchCase{dir: clitest.Folder(t, map[string]string{"team.yaml": searching(server, args, more), ".runteam/x": ""})}
	c.started = filepath.Join(c.dir, "started")
	c.env = map[string]string{"KEY": "k3y-value", "STARTED": c.started}
	c.allow = []string{"--allow-env", "KEY=command:" + server, "--allow-env", "STARTED=command:" + server}
	return c
}

// run makes a call that may send the variables.
func (c *searchCase) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return call{dir: c.dir, env: c.env, args: append(args, c.allow...)}.run(t)
}

// requireNotStarted holds that no server was started since the last call of it.
func (c *searchCase) requireNotStarted(t *testing.T) {
	t.Helper()
	require.NoFileExists(t, c.started)
}

func TestAgentOfASpecCallsAnMCPServer(t *testing.T) {
	t.Parallel()
	c := newSearchCase(t, "", "")
	s := caller(t, "search__web_search", `{"query":"gates"}`)
	c.env["OPENAI_BASE_URL"] = s.URL + "/v1"

	got := c.run(t, "check")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = c.run(t, "plan")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `solo +search/web_search +internal +internal +none +may reach it +always`, got.stdout)
	require.Contains(t, got.stdout, "may call search/web_search\n")
	require.Contains(t, got.stdout, "│ tool:search/web_search, internal\n")
	require.NotContains(t, got.stdout, "search__")
	require.Contains(t, c.run(t, "plan", "-o", "json").stdout, `"search__web_search"`)
	got = c.run(t, "plan", "--to", "tool:search/web_search", "--assert", `task "Answer" never reaches tool:search`)
	require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
	require.Contains(t, got.stdout, "to tool:search/web_search, internal\n")
	require.Contains(t, got.stdout, "BROKEN  task \"Answer\" never reaches tool:search (--assert)\n")
	require.NotContains(t, got.stdout, "search__")
	c.requireNotStarted(t)

	got = c.run(t, "run")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "found")
	require.Contains(t, got.stdout, "gates with ${KEY}")
	require.NotContains(t, got.stdout+got.stderr, "k3y-value")
	require.FileExists(t, c.started)
	require.NoError(t, os.Remove(c.started))

	got = call{dir: c.dir, args: []string{"explain"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "toolResult call_1_1 from tool:search/web_search,")
	require.Contains(t, got.stdout, `from "tool:search__web_search"`, "the prompt as the model read it")
	got = call{dir: c.dir, args: []string{"replay"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "equal to the byte")
	c.requireNotStarted(t)

	require.NoError(t, filepath.WalkDir(filepath.Join(c.dir, ".runteam"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			require.NotContains(t, clitest.Contents(t, path), "k3y-value", path)
		}
		return err
	}))
}

// A run that was resumed has the answers of the first process, unless definitions changed.
func TestResumeConnectsToTheServerOfASpec(t *testing.T) {
	t.Parallel()
	c := newSearchCase(t, "", "")
	s := caller(t, "search__web_search", `{"query":"gates"}`)
	c.env["OPENAI_BASE_URL"] = s.URL + "/v1"
	require.Equal(t, exit.StatusOK, c.run(t, "run").status)
	calls := s.calls.Load()
	require.NoError(t, os.Remove(c.started))

	got := c.run(t, "resume")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, calls, s.calls.Load(), "no agent is called")
	require.FileExists(t, c.started)

	spec := filepath.Join(c.dir, "team.yaml")
	require.NoError(t, os.WriteFile(spec, []byte(strings.Replace(clitest.Contents(t, spec), "args: []", "args: [new]", 1)), 0o600))
	got = c.run(t, "resume")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Greater(t, s.calls.Load(), calls, "the definition has changed")
	got = call{dir: c.dir, args: []string{"replay"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)

	require.NoError(t, os.Remove(spec))
	require.NoError(t, os.Remove(c.started))
	got = c.run(t, "resume")
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "its copy in the journal starts the program")
	c.requireNotStarted(t)
}

func TestServersOfSpecsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, args, allow string
		status            int
		want              []string // on stderr
	}{
		{"program dies", "broken", "", exit.StatusNoRun, []string{"team.yaml:4:3: tool \"search\":", "stderr: no index at ${KEY}"}},
		{"other tools", "other", "", exit.StatusUsage, []string{"team.yaml:6:13: tool \"search\": the server has no tool \"web_search\"", "it offers drop.all, web_lookup"}},
		{"name of two tools", "names", "web_search, drop_all", exit.StatusUsage, []string{"team.yaml:6:25: tool \"search\": the server has no tool \"drop_all\", and several that it may be", "write one of drop.all, drop/all"}},
		{"tool is missing", "", "web_search, none", exit.StatusUsage, []string{"team.yaml:6:25: tool \"search\": the server has no tool \"none\"", "it offers drop.all, web_search"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newSearchCase(t, tt.args, tt.allow)
			got := c.run(t, "run", "--offline")
			require.Equal(t, tt.status, got.status, "%+v", got)
			for _, want := range tt.want {
				require.Contains(t, got.stderr, want)
			}
			require.NotContains(t, got.stderr, "k3y-value")
		})
	}
	t.Run("program does not exist", func(t *testing.T) {
		t.Parallel()
		got := call{args: []string{"run", "-"}, stdin: "model: m\nbaseURL: http://127.0.0.1:1/v1\ntools: {s: {mcp: {command: ./no-such-server}, allow: [a]}}\nagents: [{name: a, tools: [s]}]\ntasks: [{title: T, description: d}]\n"}.run(t)
		require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
		require.Contains(t, got.stderr, "no-such-server: no such file or directory")
		require.Contains(t, got.stderr, ":3:9: tool \"s\"")
	})
	t.Run("program logs to its standard output", func(t *testing.T) {
		t.Parallel()
		c := newSearchCase(t, "noisy", "")
		c.env["OPENAI_BASE_URL"] = caller(t, "search__web_search", `{"query":"x"}`).URL + "/v1"
		got := c.run(t, "run")
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "found")
		require.Equal(t, 1, strings.Count(got.stderr, "WRN"), got.stderr)
		require.Contains(t, got.stderr, "server=search")
		require.Contains(t, got.stderr, "INFO searching with ${KEY}")
		require.NotContains(t, got.stderr, "k3y-value")
	})
	t.Run("program dies in a call", func(t *testing.T) {
		t.Parallel()
		c := newSearchCase(t, "dies", "")
		c.env["OPENAI_BASE_URL"] = caller(t, "search__web_search", `{"query":"x"}`).URL + "/v1"
		got := c.run(t, "run")
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "The tool said:")
		require.NotContains(t, got.stdout, "found")
	})
}

func TestVariablesOfServersNeedConsent(t *testing.T) {
	t.Parallel()
	c := newSearchCase(t, "", "")
	for _, args := range [][]string{{"check"}, {"run", "--offline"}, {"tools"}} {
		got := call{dir: c.dir, env: c.env, args: args}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%v: %+v", args, got)
		require.Contains(t, got.stderr, "KEY is not allowed to go to the program")
		require.Contains(t, got.stderr, "--allow-env KEY=command:")
		got = call{dir: c.dir, args: append(args, c.allow...)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%v: %+v", args, got)
		require.Contains(t, got.stderr, "the environment has no KEY")
	}
	c.requireNotStarted(t)
	got := c.run(t, "check", "-o", "json")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, `"to":"command:`)
}

func TestToolsListsWhatServersOffer(t *testing.T) {
	t.Parallel()
	c := newSearchCase(t, "", "")
	got := c.run(t, "tools", "--schema")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "search/web_search\n  name for models  search__web_search\n  agents           solo\n")
	require.Contains(t, got.stdout, "| Searches the documents.\n  arguments: {")
	require.NotContains(t, got.stdout, "drop")

	doc := object(t, c.run(t, "tools", "-o", "json").stdout)
	one := doc["tools"].([]any)[0].(map[string]any)
	require.Equal(t, "search/web_search", one["written"])
	require.Equal(t, []any{"solo"}, one["agents"])
	require.Equal(t, "object", one["parameters"].(map[string]any)["type"])

	spec := filepath.Join(c.dir, "team.yaml")
	require.NoError(t, os.WriteFile(spec, []byte(strings.Replace(clitest.Contents(t, spec), "    allow: [web_search]\n", "", 1)), 0o600))
	got = c.run(t, "tools")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "search has no allow, so no agent gets its tools. Allow those that agents need:\n  allow: [drop_all, web_search]\n")
	got = call{dir: c.dir, args: []string{"trust", "--yes"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `KEY +to the program /`, got.stdout)
	got = c.run(t, "check")
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "allow: it is missing, and no agent lists search/TOOL")
	require.Contains(t, got.stderr, "runteam tools")
}

func TestToolsCallsOneTool(t *testing.T) {
	t.Parallel()
	c := newSearchCase(t, "", "")
	got := c.run(t, "tools", "--call", "search/web_search", "--args", `{"query": "gates"}`)
	require.Equal(t, outcome{stdout: "found \\x1b[31mgates with ${KEY}\n"}, got)
	got = c.run(t, "tools", "--call", "search", "--args", `{"query": "nothing"}`)
	require.Equal(t, exit.StatusFailed, got.status)
	require.Equal(t, "error: no document with the key ${KEY}\n", got.stdout)

	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "args.json"), []byte(`{"query": "b"}`), 0o600))
	got = c.run(t, "tools", "--call", "search__web_search", "--args", "@args.json", "-o", "json")
	require.Equal(t, false, object(t, got.stdout)["isError"])
	got = call{dir: c.dir, env: c.env, stdin: `{"query": "c"}`, args: append([]string{"tools", "--call", "search", "--args", "-"}, c.allow...)}.run(t)
	require.Contains(t, got.stdout, "c with")

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--call", "search", "--args", `{"q": 1}`}, `; the schema is {"`},
		{[]string{"--call", "search", "--args", `{`}, "; write an object, such as"},
		{[]string{"--call", "bash"}, "there is no such tool; \"runteam tools"},
		{[]string{"--call", "search/web_serch"}, "did you mean search/web_search?"},
		{[]string{"--args", "{}"}, "--args needs --call"},
		{[]string{"--call", "search", "--schema"}, "leave --call out"},
		{[]string{"--call", "search", "--args", "@none"}, "none: "},
	} {
		got := c.run(t, append([]string{"tools"}, tt.args...)...)
		require.Equal(t, exit.StatusUsage, got.status, "%v: %+v", tt.args, got)
		require.Contains(t, got.stderr, tt.want)
	}
}

func TestToolsOfTheWorkspaceAreCalledInAnEmptyFolder(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: a, toolPreset: readwrite}]\n"})
	got := call{dir: dir, args: []string{"tools"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "file_write\n  agents    a\n  accepts   secret\n  produces  public, joined with the label of the arguments\n  effect    workspace\n  network   no\n")
	got = call{dir: dir, args: []string{"tools", "--call", "glob", "--args", `{"pattern": "**"}`}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stdout, "team.yaml")
}

// What makes allowUntrusted necessary is reported at the agent.
func TestCheckNamesTheUntrustedSource(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
tools: {s: {mcp: {command: none}, allow: [find]}}
agents:
  - name: a
    tools: [s]
tasks: [{title: T, description: d}]
`})
	got := call{dir: dir, args: []string{"check"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, `team.yaml:5:12: task "T": the tool "s/find" of agent "a" has external effects, and the definition of tool "s/find", written by a server, is untrusted`)
	require.Contains(t, got.stderr, `add "s/find" to allowUntrusted of agent "a", or endorse what "tool:s/find" delivers to it`)
	got = call{dir: dir, args: []string{"plan"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
}

// What later holders cannot call is a warning at the tool of the agent, with the way of the conversation.
func TestCheckWarnsOfToolsOfLaterHolders(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ accepts, trusts, want string }{
		"untrusted": {want: `team.yaml:9:7: warning: agent "billing": calls of tool "s/pay" are refused in task "T", which can be transferred to it (triage > billing): the tool has external effects, and the definition of tool "s/pay", written by a server, is untrusted; if the tool changes nothing, write effect: none for it; else add "s/pay" to allowUntrusted of agent "billing", or endorse what "tool:s/pay" delivers to it` + "\n"},
		"label":     {accepts: ", accepts: public", trusts: "allowUntrusted: [s/pay], ", want: `team.yaml:9:9: warning: agent "billing": calls of tool "s/pay" are refused in task "T", which can be transferred to it (triage > billing): its context is at least internal, and the tool accepts at most public; raise accepts of the tool to internal, or remove it from the tools of "billing"` + "\n"},
		"neither":   {trusts: "allowUntrusted: [s/pay], "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": `model: m
tools: {s: {mcp: {command: none}, allow: [find, pay]` + tt.accepts + `}}
agents:
  - {name: triage}
  - name: billing
    description: Pays.
    ` + strings.TrimSuffix(tt.trusts, ", ") + `
    tools:
      - s/pay
edges: [{from: triage, to: billing, transfer: true}]
tasks: [{title: T, assignee: triage, description: d}]
`})
			got := call{dir: dir, args: []string{"check"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, tt.want, got.stderr)
		})
	}
}
