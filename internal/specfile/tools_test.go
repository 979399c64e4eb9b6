package specfile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// servers declares tools that the tests below give to agents.
const servers = `
tools:
  search: {mcp: {command: search}, allow: [find, read.page], accepts: public}
  open: {mcp: {url: "https://open.example/mcp"}}
  http_get: {origins: [https://a.example]}
  file_read: {accepts: confidential, maxOutputBytes: 5}
`

// toolNames returns the tools of an agent, and behind a bar those that it may call from
// untrusted context.
func toolNames(f *specfile.File, agent int) string {
	var names []string
	for _, t := range f.Agents[agent].Member.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ") + " | " + strings.Join(f.Agents[agent].Member.AllowUntrusted, " ")
}

func TestToolsOfAnAgent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ agent, defaults, want string }{
		{"tools: []", "{}", " | "},
		{"tools: [search]", "{}", "search__find search__read_page | "},
		{"tools: [search/read.page]", "{}", "search__read_page | "},
		{"tools: [open/a, open/b]", "{}", "open__a open__b | "},
		{"toolPreset: readonly", "{}", "file_read grep glob | "},
		{"toolPreset: readonly, tools: [search/find, http_get]", "{}", "file_read grep glob search__find http_get | "},
		{"toolPreset: full, disallowedTools: [bash, grep, search]", "{}", "file_read glob file_write file_edit | "},
		{"tools: [search], disallowedTools: [search/find]", "{}", "search__read_page | "},
		{"tools: [search, http_get], allowUntrusted: [search, http_get]", "{}", "search__find search__read_page http_get | search__find search__read_page http_get"},
		{"tools: [search], allowUntrusted: [search/find, search]", "{}", "search__find search__read_page | search__find search__read_page"},
		{"description: d", "{tools: [glob], allowUntrusted: [search]}", "glob | "},
		{"tools: [search/find]", "{tools: [glob], allowUntrusted: [search]}", "search__find | search__find"},
		{"tools: [search]", "{toolPreset: readonly, disallowedTools: [glob]}", "file_read grep search__find search__read_page | "},
		{"toolPreset: readwrite", "{toolPreset: readonly}", "file_read grep glob file_write file_edit | "},
	} {
		f, err := load(t, servers+"agentDefaults: "+tt.defaults+"\nagents: [{name: a, "+tt.agent+"}, {name: b, tools: [open/a]}]\n", specfile.Options{})
		require.NoError(t, err, tt.agent)
		require.Equal(t, tt.want, toolNames(f, 0), tt.agent)
	}
	f, err := load(t, "orchestrator: {defaultToolPreset: readonly}\nagents: [{name: a}, {name: b, toolPreset: full}]\n", specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, "file_read grep glob | ", toolNames(f, 0))
	require.Equal(t, "file_read grep glob file_write file_edit bash | ", toolNames(f, 1))
	require.Same(t, f.Agents[0].Member.Tools[0], f.Agents[1].Member.Tools[0], "agents share tools")
}

func TestLabelsOfTools(t *testing.T) {
	t.Parallel()
	f, err := load(t, servers+"agents: [{name: a, toolPreset: full, tools: [search/find, http_get, open/x]}]\n", specfile.Options{})
	require.NoError(t, err)
	byName := map[string]*tool.Tool{}
	for _, one := range f.Agents[0].Member.Tools {
		byName[one.Name] = one
	}
	for name, want := range map[string][2]label.Classification{
		"grep": {label.Secret, label.Public}, "file_read": {label.Confidential, label.Public},
		"search__find": {label.Public, label.Public}, "http_get": {label.Internal, label.Internal}, "open__x": {label.Internal, label.Internal},
	} {
		require.Equal(t, want, [2]label.Classification{byName[name].Accepts, byName[name].Level()}, name)
	}
	require.Equal(t, 5, byName["file_read"].MaxOutput)
	require.True(t, byName["search__find"].Foreign && byName["search__find"].Stateful)
	bash := [2]label.Classification{label.Secret, label.Public}
	if !builtin.CanConfine() {
		bash = [2]label.Classification{label.Internal, label.Internal}
	}
	require.Equal(t, bash, [2]label.Classification{byName["bash"].Accepts, byName["bash"].Level()})

	_, err = byName["search__find"].Run(t.Context(), tool.Call{})
	require.ErrorContains(t, err, "not connected")
}

func TestNamesOfToolsOutsideOfAgents(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(servers + `
agents: [{name: a, tools: [search], accepts: secret}, {name: b, tools: [open/x, open/y], accepts: secret}]
inputs: {i: {text: t, classification: secret}}
tasks: [{title: T, description: d, requires: {requiredTools: [search/read.page]}}, {title: U, description: d, requires: {requiredTools: [open]}}]
policy: {endorse: [{name: e, from: tool:search/read.page, to: a, reason: r}]}
assert: [input i never reaches tool:search, input i never reaches tool:open/x]
`)})
	require.NoError(t, err)
	require.Equal(t, []string{"search__read_page"}, f.Tasks[0].Requires.Tools)
	require.Equal(t, []string{"open__x", "open__y"}, f.Tasks[1].Requires.Tools)
	require.Equal(t, "tool:search__read_page", f.Config.Policy.Endorse[0].From)
	var asserted []string
	for _, a := range f.Run.Assert {
		asserted = append(asserted, a.Reader)
	}
	require.Equal(t, []string{"tool:search__find", "tool:search__read_page", "tool:open__x"}, asserted)

	_, err = load(t, servers+"agents: [{name: a, tools: [search, open/x]}]\npolicy: {endorse: [{name: e, from: tool:search, to: a, reason: r}]}\n", specfile.Options{})
	require.ErrorContains(t, err, `from: "tool:search" has several tools`)
	require.ErrorContains(t, err, "tool:search/find, tool:search/read.page")
	_, err = check(specfile.Options{Path: "-", Stdin: strings.NewReader(servers + "agents: [{name: a, tools: [search, open/x]}]\ntasks: [{title: T, description: d}]\nassert: [input i never reaches tool:serach]\n")})
	require.ErrorContains(t, err, `no tool "tool:serach"`)
}

// A stored copy has no credentials of servers, and a replay can have their definitions.
func TestStoredToolsHaveDefinitionsAndNoCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", `
tools:
  s:
    mcp: {command: "./run ${KEY}", args: [--api-key, `+canary+`, "${KEY}"], env: {PLAIN: `+canary+`, NAMED: "${KEY}"}}
    allow: [find]
  r: {mcp: {url: "https://r.example", headers: {Authorization: "Bearer `+canary+`"}}, allow: [get]}
agents: [{name: a, tools: [s, r], allowUntrusted: [s, r]}]
`)
	o := specfile.Options{Path: dir, Lookup: env(map[string]string{"KEY": "k-value"}), Trusted: trusted}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	require.Contains(t, strings.Join(specfile.Servers(f), "\n"), canary)
	require.Contains(t, strings.Join(specfile.Servers(f), "\n"), filepath.Join(dir, "run k-value"))
	require.Equal(t, []string{"./run ${KEY}"}, f.Tools.Programs())
	all := f.Stored()
	require.Len(t, all, 1)
	require.NotContains(t, all[0].Text, canary)
	require.NotContains(t, all[0].Text, "k-value")
	require.Contains(t, all[0].Text, "${KEY}")

	o.Stored, o.StoredOnly, o.Offline, o.Lookup = all, true, true, nil
	again, err := specfile.Load(o)
	require.NoError(t, err)
	again.Tools.Restore([]specfile.ToolDefinition{{Name: "s__find", Description: "Finds.", Parameters: json.RawMessage(`{"type":"object","required":["q"]}`)}})
	require.Equal(t, "Finds.", again.Agents[0].Member.Tools[0].Description)
	require.JSONEq(t, `[{"name": "r__get", "parameters": {"type": "object"}}, {"name": "s__find", "description": "Finds.", "parameters": {"type": "object", "required": ["q"]}}]`, asJSON(t, again.Tools.Definitions()))
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// A plan that is saved elsewhere starts the same programs.
func TestSavedPlansHaveTheTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team/team.yaml", `
goal: G
tools:
  s: {mcp: {command: ./run, cwd: sub, env: {API_KEY: literal-key, B: "${KEY}"}}, allow: [find]}
  p: {mcp: {command: npx, args: [x]}, allow: [get]}
  file_read: {accepts: confidential}
orchestrator: {defaultToolPreset: readonly}
agents: [{name: a, tools: [s, p/get], allowUntrusted: [s], disallowedTools: [glob]}]
`)
	o := specfile.Options{Path: filepath.Join(dir, "team"), Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	text, left, err := f.WithPlan(engine.Goal{Text: "G"}, []task.Spec{{Title: "T", Description: "d", Assignee: "a"}}, dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Contains(t, left[0].Message, `tool "s": env: API_KEY: not saved`)
	require.NotContains(t, string(text), "literal-key")
	write(t, dir, "plan.yaml", string(text))
	o.Path = filepath.Join(dir, "plan.yaml")
	back, err := specfile.Load(o)
	require.NoError(t, err, string(text))
	require.Equal(t, toolNames(f, 0), toolNames(back, 0))
	was := strings.ReplaceAll(strings.Join(specfile.Servers(f), "\n"), "API_KEY:literal-key ", "")
	require.Equal(t, was, strings.Join(specfile.Servers(back), "\n"))
}

func TestSavedProgramsHaveNoLiteralKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", `model: m
tools: {search: {mcp: {command: bin/search, args: [--api-key, one, --mode, fast], env: {API_KEY: one, MODE: fast}}, allow: [find]}}
agents:
  - {name: a, tools: [search]}
  - {name: b, backend: {kind: process, command: ./count.sh, cwd: data, confine: false, env: {API_KEY: two, MODE: fast}}}
`)
	f, err := specfile.Load(specfile.Options{Path: dir, Offline: true})
	require.NoError(t, err)
	saved, left, err := f.WithPlan(engine.Goal{}, nil, filepath.Join(dir, "plans"))
	require.NoError(t, err)
	var messages []string
	for i := range left {
		messages = append(messages, left[i].Message)
	}
	require.Equal(t, []string{
		`tool "search": args[1]: not saved: the file contains the key itself`,
		`tool "search": env: API_KEY: not saved: the file contains the key itself`,
		`agent "b": backend.env: API_KEY: not saved: the file contains the key itself`,
	}, messages)
	for _, want := range []string{`command: "./../bin/search"`, `command: "./../count.sh"`, `cwd: "./../data"`, "MODE: fast"} {
		require.Contains(t, string(saved), want)
	}
}

func TestCopiesHaveNoLiteralKeysOfPrograms(t *testing.T) {
	t.Parallel()
	const program = `{command: p, args: [--api-key, canary-1, --token=canary-3, "--token=${KEY}", --mode, fast], env: {A: canary-2}}`
	f, err := load(t, "tools: {search: {mcp: "+program+", allow: [find]}}\nagents:\n  - {name: a, tools: [search]}\n  - {name: b, backend: "+
		strings.Replace(program, "{", "{kind: process, ", 1)+"}\n", specfile.Options{Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted})
	require.NoError(t, err)
	stored := f.Stored()
	require.Len(t, stored, 1)
	require.NotContains(t, stored[0].Text, "canary")
	require.Equal(t, 2, strings.Count(stored[0].Text, `"--token=${KEY}", --mode, fast`))
}

// What is wrong with the tools of an agent is reported once, and not again where they are named.
func TestBadToolsHaveNoFollowUps(t *testing.T) {
	t.Parallel()
	const (
		server  = "tools:\n  search: {mcp: {command: x}, allow: [find], %saccepts: public}\n"
		another = "inputs: {i: {text: x}}\nassert: [\"input i never reaches %s\"]\npolicy: {rules: [{from: a, to: %s, mode: minimal}]}\ntasks: [{title: T, description: d, assignee: a, tools: [%s]}]\n"
	)
	for name, tt := range map[string]struct {
		server, agent, name string
		want                []string
	}{
		"misspelled":           {"", "tools: [serch]", "serch", []string{`unknown tool "serch"`}},
		"misspelled beside it": {"", "tools: [serch]", "search/find", []string{`unknown tool "serch"`}},
		"built-in tool":        {"", "tools: [bsh]", "bash", []string{`unknown tool "bsh"`}},
		"tool of a server":     {"", "tools: [search/fnd]", "search/fnd", []string{`allow of "search" does not list "fnd"`}},
		"invalid server":       {"efect: none, ", "tools: [search]", "search/find", []string{`unknown key "efect"`}},
		"key of the agent":     {"", "tols: [search]", "search/find", []string{`unknown key "tols"`}},
		"value of the agent":   {"", "tools: 5", "search/find", []string{"tools: the number 5 where"}},
		"another mistake remains": {"", "tools: [search, bsh]", "serch", []string{
			`unknown tool "bsh"`, `no tool "tool:serch"`, `unknown tool "tool:serch"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := "tool:" + tt.name
			text := fmt.Sprintf(server, tt.server) + "agents: [{name: a, " + tt.agent + "}]\n" + fmt.Sprintf(another, reader, reader, tt.name)
			_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
			got := messages(t, err)
			require.Len(t, got, len(tt.want), "%q", got)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// A credential that is in the file itself is warned of wherever a program or a server gets it.
func TestLiteralCredentialsAreWarnedOf(t *testing.T) {
	t.Parallel()
	f, err := load(t, `
tools:
  s: {mcp: {command: x, env: {API_KEY: k1, LANG: C}}, allow: [find]}
  r: {mcp: {url: "https://mcp.example/mcp", headers: {Authorization: k2}}, allow: [find]}
agents:
  - {name: a, model: m, tools: [s, r], allowUntrusted: [s, r]}
  - {name: b, backend: {kind: process, command: cat, env: {API_KEY: k3, LANG: C, EMPTY_KEY: ""}}}
tasks: [{title: T, description: d, assignee: a}]
`, specfile.Options{})
	require.NoError(t, err)
	var got []string
	for _, w := range f.Warnings {
		if strings.Contains(w.Message, "the file contains") {
			got = append(got, w.Message)
		}
	}
	require.Equal(t, []string{
		`tool "s": mcp: env: the file contains the value of "API_KEY" itself`,
		`tool "r": mcp: headers: the file contains the value of "Authorization" itself`,
		`backend.env: the file contains the value of "API_KEY" itself`,
	}, got)
}

// The program of a server is confined, or the file says why not, where a person approves something.
func TestConfinementOfServers(t *testing.T) {
	t.Parallel()
	if missing := process.Missing(); missing != "" {
		t.Skip("this system cannot confine programs: it lacks " + missing)
	}
	const (
		spec     = "model: m\ntools:\n  file_write: {%s}\n  s: {mcp: {%s}, allow: [find]}\nagents:\n  - {name: a, tools: [s, file_write]}\n  - {name: ann, backend: {kind: person}}\ntasks: [{title: T, assignee: a, description: d}]\n"
		approved = "approve: ann"
	)
	for _, tt := range []struct{ tool, server, want string }{
		{approved, "command: x, confine: true", ""},
		{approved, "command: x, confine: true, readable: [/usr]", ""},
		{approved, `command: x, confine: false, reason: "It opens the browser."`, ""},
		{approved, `url: "https://mcp.example"`, ""},
		{"timeoutMs: 1000", "command: x, cwd: /", ""},
		{"timeoutMs: 1000", "command: x, confine: false", ""},
		{approved, "command: x", `4:12: mcp server "s": it is not confined, and such a program could answer in place of "ann"`},
		{approved, "command: x, confine: false", `4:12: mcp server "s": it is not confined`},
		{approved, "command: x, reason: It opens the browser.", `4:33: tool "s": mcp: reason: it is only for confine: false`},
		{approved, "command: x, confine: true, reason: It opens the browser.", `mcp: reason: it is only for confine: false`},
		{approved, `command: x, confine: false, reason: " "`, `reason: it is empty`},
		{approved, "command: x, confine: true, cwd: /", `4:45: tool "s": mcp: cwd: a confined program runs in a folder of its own`},
		{approved, "command: x, confine: true, readable: [lib]", `4:51: tool "s": mcp: readable: "lib": it does not exist`},
		{"timeoutMs: 1000", "command: x, readable: [/usr]", `mcp: readable: a program that is not confined can read every file`},
		{approved, `url: "https://mcp.example", confine: true`, `mcp: confine: only with command`},
		{approved, `url: "https://mcp.example", reason: It is elsewhere.`, `mcp: reason: only with command`},
	} {
		f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(fmt.Sprintf(spec, tt.tool, tt.server)), Trusted: trusted})
		if err == nil {
			_, err = f.Build(func(a specfile.Agent) (engine.Agent, error) {
				if a.Person {
					return person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater }), nil
				}
				return idle(a)
			})
		}
		if tt.want == "" {
			require.NoError(t, err, tt.server)
			continue
		}
		require.ErrorContains(t, err, tt.want, tt.server)
	}
}
