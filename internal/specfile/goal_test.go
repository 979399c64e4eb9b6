package specfile_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

const roster = "params: {year: 2026}\nagents: [{name: a}]\n"

func TestGoal(t *testing.T) {
	t.Parallel()
	year := []provenance.Param{{Name: "year", Start: 3, End: 7}}
	for _, tt := range []struct {
		name, give string
		want       engine.Goal
	}{
		{"a text", "goal: In ${params.year}.", engine.Goal{Text: "In 2026.", Source: provenance.Source{Params: year, Origin: provenance.Position{Line: 3, Column: 7}}}},
		{"several lines", "goal: |\n  Say ${params.$}{params.year}\n  or ${year}.\n", engine.Goal{Text: "Say ${params.year}\nor ${year}.\n", Source: provenance.Source{Origin: provenance.Position{Line: 3, Column: 7}}}},
		{"a file", "goal: {file: goal.md}", engine.Goal{Text: "In 2026, so ${params.x}", Source: provenance.Source{Params: year, Origin: provenance.Position{Line: 3, Column: 7}}}},
		{"a text with a label", "goal: {text: \"In ${params.year}.\", classification: secret}", engine.Goal{Text: "In 2026.", Source: provenance.Source{Params: year, Origin: provenance.Position{Line: 3, Column: 7}}, Classification: label.Secret}},
		{"a file with a label", "goal: {classification: public, file: goal.md}", engine.Goal{Text: "In 2026, so ${params.x}", Source: provenance.Source{Params: year, Origin: provenance.Position{Line: 3, Column: 7}}, Classification: label.Public}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := load(t, roster+tt.give, specfile.Options{}, "goal.md", "In ${params.year}, so ${params.$}{params.x}")
			require.NoError(t, err)
			f.Goal.Source.Origin.File = ""
			require.Equal(t, tt.want, *f.Goal)
			require.Nil(t, f.Run.Answer)
			require.NotNil(t, f.Coordinator)
		})
	}
}

func TestGoalBesideTasksIsAnswered(t *testing.T) {
	t.Parallel()
	const text = "goal: {text: Settle it., classification: confidential}\nagents: [{name: a}]\n"
	f, err := load(t, text+"tasks: [{title: T, description: d}]", specfile.Options{})
	require.NoError(t, err)
	require.Nil(t, f.Goal)
	require.Equal(t, "Settle it.", f.Run.Answer.Text)
	require.Equal(t, label.Confidential, f.Run.Answer.Classification)
	require.Len(t, f.Tasks, 1)
	f, err = load(t, text+"tasks: []", specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, "Settle it.", f.Goal.Text, "no tasks are no plan")
}

func TestGoalOfTheFlag(t *testing.T) {
	t.Parallel()
	const text = roster + "goal: {file: none.md, classification: confidential}\ntasks: [{title: T, description: \"d ${params.year}\"}]\n"
	f, err := load(t, text, specfile.Options{Goal: "In ${params.year}, then."})
	require.NoError(t, err, "the file's own goal is not read")
	require.Equal(t, engine.Goal{Text: "In 2026, then.", Source: provenance.Source{Params: []provenance.Param{{Name: "year", Start: 3, End: 7}}}, Classification: label.Confidential}, *f.Goal)
	require.Nil(t, f.Run.Answer)
	require.Empty(t, f.Tasks)
	require.Equal(t, []string{"4:8: tasks: not run: the coordinator plans tasks for Options.Goal"}, warnings(f))

	_, err = load(t, text, specfile.Options{Goal: "In ${params.yaer} ${params.} ${year}"})
	require.Equal(t, []string{`Options.Goal: no parameter "yaer"`, "Options.Goal: ${params. without a name and the closing }"}, messages(t, err))
	_, err = load(t, roster, specfile.Options{Goal: " "})
	require.Equal(t, []string{"Options.Goal: it is empty"}, messages(t, err))
	f, err = load(t, roster, specfile.Options{Goal: "Write about ${year}."})
	require.NoError(t, err)
	require.Equal(t, `Options.Goal: "${year}" is plain text here`, f.Warnings[0].Message)
	require.Equal(t, "write ${params.year}", f.Warnings[0].Hint)

	err = f.Locate(task.Problems{{Pointer: "/goal", Message: "the goal is too long", Hint: "h"}})
	require.Equal(t, []string{"Options.Goal: the goal is too long"}, messages(t, err), "no place in a file")
}

func TestCoordinatorHasTheSpecsConnection(t *testing.T) {
	t.Parallel()
	vars := env(map[string]string{"KEY": "fake-spec", "OWN": "fake-own"})
	f, err := load(t, `
model: small
baseURL: https://one.example/v1
apiKey: ${KEY}
headers: {X-A: spec}
agentDefaults: {model: agents, maxTurns: 2, accepts: secret, systemPrompt: defaults}
goal: Go.
coordinator: {instructions: Be brief., maxTokens: 9, timeoutMs: 5, callTimeoutMs: 6, temperature: 0, topP: 0.5, headers: {X-B: own}, mayGrant: [inputs], maxPromptBytes: 1000}
agents: [{name: a}]
`, specfile.Options{Lookup: vars})
	require.NoError(t, err)
	c := f.Coordinator
	require.Equal(t, "small", c.Connection.Model, "agentDefaults are the agents'")
	require.Equal(t, "small", c.Coordinator.Model)
	require.Equal(t, "https://one.example/v1", c.BaseURL)
	require.Equal(t, "fake-spec", c.APIKey.Reveal())
	require.Equal(t, map[string]string{"X-A": "spec", "X-B": "own"}, c.Headers)
	require.Zero(t, c.MaxTurns)
	require.Equal(t, 9, c.MaxTokens)
	require.Equal(t, []time.Duration{5 * time.Millisecond, 6 * time.Millisecond}, []time.Duration{c.Timeout, c.CallTimeout})
	require.Equal(t, []float64{0, 0.5}, []float64{*c.Temperature, *c.TopP})
	require.Empty(t, c.SystemPrompt)
	require.Equal(t, "Be brief.", c.Instructions)
	require.Nil(t, c.Accepts, "as much as the caller")
	require.Equal(t, synth.Grants{Inputs: true}, c.MayGrant)
	require.Equal(t, 1000, c.MaxPromptBytes)
	require.Equal(t, 8, c.Origin.Line)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", c, c, *c, *c), "fake-")

	f, err = load(t, "model: small\ngoal: Go.\ncoordinator: {model: big, accepts: public, systemPrompt: \"You are ${params.x}.\", baseURL: https://two.example}\nparams: {x: y}\nbaseURL: https://one.example\napiKey: ${KEY}\nagents: [{name: a}]", specfile.Options{Lookup: vars})
	require.NoError(t, err)
	require.Equal(t, "big", f.Coordinator.Connection.Model)
	require.Equal(t, label.Public, *f.Coordinator.Accepts)
	require.Equal(t, "You are y.", f.Coordinator.SystemPrompt)
	require.Equal(t, []provenance.Param{{Name: "x", Start: 8, End: 9}}, f.Coordinator.SystemParams)
	require.True(t, f.Coordinator.APIKey.IsZero())
	require.Equal(t, []string{"3:91: coordinator: apiKey of line 6: for another host, so not sent to this one"}, warnings(f))
}

func TestCoordinatorExistsForLaterGoals(t *testing.T) {
	t.Parallel()
	const tasks = "tasks: [{title: T, description: d}]\n"
	for _, tt := range []struct {
		name, give string
		want       bool
		warns      []string
	}{
		{"a roster", "agents: [{name: a}]", true, nil},
		{"a goal", "goal: Go.\nagents: [{name: a}]", true, nil},
		{"a goal beside tasks", "goal: Go.\nagents: [{name: a}]\n" + tasks, true, nil},
		{"tasks", "agents: [{name: a}]\n" + tasks, false, nil},
		{"tasks and the key", "coordinator: {model: m}\nagents: [{name: a}]\n" + tasks, true, []string{"1:14: coordinator: not called: there are tasks and no goal"}},
	} {
		f, err := load(t, tt.give, specfile.Options{})
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, f.Coordinator != nil, tt.name)
		require.Equal(t, tt.warns, warnings(f), tt.name)
	}
}

func TestCoordinatorOfAFile(t *testing.T) {
	t.Parallel()
	files := []string{
		"plain.json", `{"model": "big", "systemPrompt": {"file": "p.md"}, "cwd": "/tmp"}`, "p.md", "You plan.",
		"named.yaml", "coordinator: {model: named}\n", "more.yaml", "coordinator: {model: named}\nagents: []\n", "list.yaml", "- a\n", "bad.yaml", "modle: x\n",
	}
	dir := t.TempDir()
	write(t, dir, append(files, "team.yaml", "goal: Go.\ncoordinator: {model: own}\nagents: [{name: a}]")...)
	with := func(name string) (*specfile.File, error) {
		return check(specfile.Options{Path: dir, Coordinator: filepath.Join(dir, name)})
	}
	f, err := with("plain.json")
	require.NoError(t, err)
	require.Equal(t, "big", f.Coordinator.Connection.Model)
	require.Equal(t, "You plan.", f.Coordinator.SystemPrompt, "paths start from its folder")
	require.Equal(t, []string{
		"2:14: coordinator: not used: Options.Coordinator brings one",
		"1:52: coordinator: cwd: no effect here: folder of tools for files; each attempt at a task has a workspace of its own",
	}, warnings(f))
	f, err = with("named.yaml")
	require.NoError(t, err)
	require.Equal(t, "named", f.Coordinator.Connection.Model)
	for name, want := range map[string]string{
		"more.yaml": `2:1: unknown key "agents" in the file of the coordinator`,
		"list.yaml": "1:1: coordinator: a list where the coordinator belongs",
		"bad.yaml":  `1:1: coordinator: unknown key "modle" in the coordinator`,
		"none.yaml": "Options.Coordinator: it does not exist",
	} {
		_, err = with(name)
		require.Equal(t, []string{want}, messages(t, err), name)
	}
}

func TestPromptsOfTheCoordinatorAreBounded(t *testing.T) {
	t.Parallel()
	for size, ok := range map[int]bool{0: false, 1: true, brief.MaxBytes: true, brief.MaxBytes + 1: false} {
		_, err := load(t, fmt.Sprintf("agents: [{name: a}]\ncoordinator: {maxPromptBytes: %d}", size), specfile.Options{})
		require.Equal(t, ok, err == nil, size)
	}
}

func TestBuildConnectsTheCoordinatorForAGoal(t *testing.T) {
	t.Parallel()
	names := func(text string, o specfile.Options) (seen []string) {
		f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(text), Goal: o.Goal})
		require.NoError(t, err)
		_, err = f.Build(func(a specfile.Agent) (engine.Agent, error) {
			seen = append(seen, a.Member.Name+" "+a.Model)
			return idle(a)
		})
		require.NoError(t, err)
		return seen
	}
	const roster = "model: m\nagents: [{name: a}]\n"
	require.Equal(t, []string{"a m"}, names(roster, specfile.Options{}), "a roster needs no key for it")
	require.Equal(t, []string{"a m", "coordinator m"}, names(roster, specfile.Options{Goal: "Go."}))
	require.Equal(t, []string{"a m"}, names(roster+"tasks: [{title: T, description: d}]", specfile.Options{}))
	require.Equal(t, []string{"a m", "coordinator m"}, names(roster+"goal: Go.\ntasks: [{title: T, description: d}]", specfile.Options{}))

	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(roster + "goal: Go.")})
	require.NoError(t, err)
	_, err = f.Build(func(a specfile.Agent) (engine.Agent, error) {
		if a.Member.Name == "coordinator" {
			return nil, errors.New("no key")
		}
		return idle(a)
	})
	require.EqualError(t, err, "coordinator: no key")
}

func TestModelsOfTheCoordinator(t *testing.T) {
	t.Parallel()
	models := func(flags ...string) []string {
		f, err := load(t, "goal: Go.\ncoordinator: {model: own}\nagents: [{name: a, model: m}]", specfile.Options{Models: flags})
		require.NoError(t, err)
		return []string{f.Agents[0].Model, f.Coordinator.Connection.Model, f.Coordinator.Coordinator.Model}
	}
	require.Equal(t, []string{"m", "x", "x"}, models("Coordinator=x"))
	require.Equal(t, []string{"all", "x", "x"}, models("all", "coordinator=x"))
	require.Equal(t, []string{"all", "all", "all"}, models("all"))
	_, err := load(t, "agents: [{name: a}]\ntasks: [{title: T, description: d}]", specfile.Options{Models: []string{"coordinator=x"}})
	require.Equal(t, []string{`Options.Models "coordinator=x": no agent "coordinator"`}, messages(t, err))
	require.ErrorContains(t, err, "the coordinator is not called")
}

func TestMessages(t *testing.T) {
	t.Parallel()
	f, err := load(t, `
agents: [{name: a}, {name: b}]
edges: [{from: a, to: b}]
messages:
  - {from: user, to: "*", text: {file: m.md}, classification: public, ttlMs: 1500}
  - {from: a, to: b, text: "See ${params.x}."}
tasks: [{title: T, assignee: b, description: d}, {title: U, assignee: a, description: d}]
`, specfile.Options{}, "m.md", "Hello.\n")
	require.NoError(t, err)
	require.Equal(t, []engine.Message{
		{From: "user", To: "*", Text: "Hello.\n", Classification: label.Public, TTL: 1500 * time.Millisecond}, {From: "a", To: "b", Text: "See ${params.x}."},
	}, f.Run.Messages)
	require.Equal(t, []string{`6:33: message 2: text: "${params.x}" is plain text here`}, warnings(f))
}

func TestRunSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "orch.yaml", "maxTokenBudget: 10\nschedulingStrategy: least-busy\n")
	f, err := load(t, "maxTokenBudget: 1000\nschedulingStrategy: capability-match\nmode: auto\nagents: [{name: a}]", specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, 1000, f.Run.MaxTokenBudget)
	require.Equal(t, assign.CapabilityMatch, f.Run.Strategy)
	require.True(t, f.Run.Auto)
	f, err = load(t, "maxTokenBudget: 1000\nschedulingStrategy: capability-match\nmode: plan\nagents: [{name: a}]", specfile.Options{Orchestrator: filepath.Join(dir, "orch.yaml")})
	require.NoError(t, err)
	require.Equal(t, 10, f.Run.MaxTokenBudget, "that of the flag")
	require.Equal(t, assign.Strategy("least-busy"), f.Run.Strategy)
	require.False(t, f.Run.Auto)
	require.Equal(t, filepath.Join(dir, "orch.yaml")+":1", f.Place("/maxTokenBudget").String())
	f, err = load(t, "agents: [{name: a}]", specfile.Options{})
	require.NoError(t, err)
	require.Empty(t, f.Run.Strategy, "the team's default")
	for _, s := range append(assign.Strategies(), "round-robin", "least-busy", "composite") {
		f, err = load(t, "schedulingStrategy: "+s+"\nagents: [{name: a}]", specfile.Options{})
		require.NoError(t, err)
		require.Equal(t, assign.Strategy(s), f.Run.Strategy)
	}
}

func TestRequires(t *testing.T) {
	t.Parallel()
	f, err := load(t, `
agents: [{name: a, capabilities: [sql, law]}]
taskDefaults: {requires: {requiredCapabilities: [law]}}
tasks:
  - {title: Own, description: d, requires: {requiredCapabilities: [SQL], requiredProvider: openai}}
  - {title: Default, description: d}
  - {title: Nothing, description: d, requires: {}}
`, specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, &task.Requires{Capabilities: []string{"SQL"}, Provider: "openai"}, f.Tasks[0].Requires)
	require.Equal(t, &task.Requires{Capabilities: []string{"law"}}, f.Tasks[1].Requires)
	require.Nil(t, f.Tasks[2].Requires)
	require.Equal(t, "openai", f.Agents[0].Member.Provider)
}

func TestOutputAndGoalContradict(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"goal: Go.\noutput: T\nagents: [{name: a}]", "goal: Go.\noutput: T\nagents: [{name: a}]\ntasks: [{title: T, description: d}]"} {
		_, err := load(t, text, specfile.Options{})
		require.Equal(t, []string{"2:9: output: the coordinator answers the goal, from all results"}, messages(t, err))
	}
	f, err := load(t, "output: T\nagents: [{name: a}]\ntasks: [{title: T, description: d}]", specfile.Options{Goal: "Go."})
	require.NoError(t, err)
	require.Empty(t, f.Run.Output)
	require.Equal(t, []string{"1:9: output: no effect: the coordinator answers Options.Goal, from all results", "3:8: tasks: not run: the coordinator plans tasks for Options.Goal"}, warnings(f))
}

func TestKeysWithoutEffectAreAWarning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, give string
		goal       string
		want       []string
	}{
		{"a goal is planned", "goal: Go.\ntaskDefaults: {maxRetries: 2}\nmode: auto\nagents: [{name: a}]", "", []string{
			"2:15: taskDefaults: no effect: the coordinator plans the tasks",
		}},
		{"tasks are written", "goal: Go.\nmode: auto\nagents: [{name: a}]\ntasks: [{title: T, description: d}]", "", []string{
			"2:7: mode: no effect: the tasks are written",
		}},
		{"a roster", "taskDefaults: {maxRetries: 2}\noutput: T\nmode: auto\nagents: [{name: a}]", "", nil},
		{"the default", "mode: plan\nagents: [{name: a}]\ntasks: [{title: T, description: d}]", "", nil},
		{"inputs that no plan may grant", "inputs: {i: {text: x}}\nparams: {p: x, q: y}\nagents: [{name: a, systemPrompt: \"${params.q}\"}]", "Go.", []string{
			`1:10: input "i": no plan may grant it`, `2:10: params: nothing uses "p"`,
		}},
		{"inputs that a plan may grant", "inputs: {i: {text: x}}\ncoordinator: {mayGrant: [inputs]}\nagents: [{name: a}]", "Go.", nil},
		{"a parameter where none stands", "params: {p: x}\ncoordinator: {instructions: \"Mind ${params.p}.\", systemPrompt: \"${params.p}\"}\nagents: [{name: a}]", "Go.", []string{
			`2:35: coordinator: instructions: "${params.p}" is plain text here`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := load(t, tt.give, specfile.Options{Goal: tt.goal})
			require.NoError(t, err)
			require.Equal(t, tt.want, warnings(f))
		})
	}
}

func TestLoadReadsAGoal(t *testing.T) {
	t.Parallel()
	f, err := check(specfile.Options{Path: "testdata/ok/goal.yaml"})
	require.NoError(t, err)
	require.Len(t, f.Warnings, 1)
	require.Equal(t, `maxTokenBudget: one reply may overdraw it, since those of "reader", "critic" have no limit`, f.Warnings[0].Message)
	require.Equal(t, "Review the contract of 2026; write ${params.year} nowhere.", f.Goal.Text)
	require.Equal(t, synth.Grants{Memory: true, Inputs: true}, f.Coordinator.MayGrant)
	require.Equal(t, "The claim.\n", f.Coordinator.Instructions)
	require.Len(t, f.Run.Messages, 2)
}

// TestRunOfTheOriginal loads what its command run takes.
func TestRunOfTheOriginal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir,
		"plain.json", `{"name": "api", "agents": [{"name": "architect", "model": "m", "tools": []}], "sharedMemory": true}`,
		"both.json", `{"team": {"name": "api", "agents": [{"name": "architect", "model": "m"}]}, "orchestrator": {"defaultModel": "d", "maxConcurrency": 3, "maxTokenBudget": 9}}`,
		"orch.json", `{"defaultModel": "o", "defaultApiKey": "${KEY}"}`, "coordinator.json", `{"instructions": "Plan well.", "maxTurns": 3}`,
	)
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"plain.json", "both.json"} {
		f, err := check(specfile.Options{
			Team: in(name), Goal: "Build it.", Coordinator: in("coordinator.json"), Orchestrator: in("orch.json"), Lookup: env(map[string]string{"KEY": "k"}),
		})
		require.NoError(t, err)
		require.True(t, f.Compat)
		require.Equal(t, "api", f.Name)
		require.Equal(t, "Build it.", f.Goal.Text)
		require.Empty(t, f.Tasks)
		require.Equal(t, "m", f.Agents[0].Model)
		require.Equal(t, "o", f.Coordinator.Connection.Model, "the default, first of the flag")
		require.Equal(t, "k", f.Coordinator.APIKey.Reveal())
		require.Equal(t, "Plan well.", f.Coordinator.Instructions)
		for _, w := range f.Warnings {
			require.Contains(t, w.Message, "maxTokenBudget: one reply may overdraw it")
		}
	}
	f, err := check(specfile.Options{Team: in("both.json"), Goal: "Build it."})
	require.NoError(t, err)
	require.Equal(t, "d", f.Coordinator.Connection.Model)
	require.Equal(t, 9, f.Run.MaxTokenBudget)
	write(t, dir, "goal.json", `{"agents": [{"name": "a"}], "goal": "x", "messages": [], "coordinator": {"model": "theirs"}}`, "tasks.json", `{"tasks": []}`)
	_, err = check(specfile.Options{Path: in("tasks.json"), Team: in("goal.json")})
	require.Equal(t, []string{"1:29: goal: the file of Options.Team brings a team only", "1:42: messages: the file of Options.Team brings a team only"}, messages(t, err))
	write(t, dir, "goal.json", `{"agents": [{"name": "a"}], "coordinator": {"model": "theirs"}}`)
	f, err = check(specfile.Options{Path: in("tasks.json"), Team: in("goal.json"), Goal: "x"})
	require.NoError(t, err)
	require.Equal(t, "theirs", f.Coordinator.Connection.Model)
}

func TestPointersOfGoals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "m.md", "one\n two\n", "team.yaml", `goal:
  text: |
    one
      two
  classification: public
coordinator:
  accepts: secret
messages:
  - from: user
    to: a
    text: {file: m.md}
  - {from: a, to: "*", text: Hi.}
agents: [{name: a}, {name: b}]
tasks:
  - title: T
    description: d
    requires: {requiredCapabilities: [x, y]}
`)
	f, err := specfile.Load(specfile.Options{Path: dir})
	require.NoError(t, err)
	for _, tt := range []struct {
		pointer string
		line    int // in a text
		want    string
	}{
		{"/goal", 0, "team.yaml:2:9"},
		{"/goal", 2, "team.yaml:4:7"},
		{"/goal/classification", 0, "team.yaml:5:19"},
		{"/coordinator", 0, "team.yaml:7:3"},
		{"/coordinator/accepts", 0, "team.yaml:7:12"},
		{"/coordinator/maxPromptBytes", 0, "team.yaml:7:3"}, // nowhere: the coordinator
		{"/messages/0/to", 0, "team.yaml:10:9"},
		{"/messages/0/text", 2, "m.md:2:2"},
		{"/messages/1/from", 0, "team.yaml:12:12"},
		{"/messages/1/ttlMs", 0, "team.yaml:12:5"}, // nowhere: the message
		{"/tasks/0/requires/requiredCapabilities/1", 0, "team.yaml:17:42"},
		{"/tasks/0/requires/requiredTools/0", 0, "team.yaml:17:15"},
	} {
		bad := f.Locate(task.Problem{Pointer: tt.pointer, Line: tt.line, Message: "m"}).(*specfile.Error)
		p := bad.Problems[0]
		require.Equal(t, tt.want, fmt.Sprintf("%s:%d:%d", filepath.Base(p.File), p.Line, p.Column), "%s %d", tt.pointer, tt.line)
	}

	f, err = specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader("agents: [{name: a}]"), Goal: "Go."})
	require.NoError(t, err)
	require.Equal(t, "-:1", f.Place("/coordinator/accepts").String(), "the file that has none")
	require.Empty(t, f.Place("/goal").String())
}

// TestGoalIsPlannedSavedAndRun goes the whole way: a goal, its plan, the plan
// as a spec, and a run of that.
func TestGoalIsPlannedSavedAndRun(t *testing.T) {
	t.Parallel()
	const plan = `[{"title": "Read", "description": "Say what ${params.year} brought.", "assignee": "b"}, {"title": "Tell", "description": "Tell it.", "dependsOn": ["Read"]}]`
	asked := 0
	connect := func(a specfile.Agent) (engine.Agent, error) {
		return engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			if a.Member.Name != "coordinator" {
				return agent.Reply{Text: a.Member.Name + " did " + firstLine(p.Text())}, nil
			}
			if asked++; asked == 1 {
				return agent.Reply{Text: plan}, nil
			}
			return agent.Reply{Text: "answered from: " + p.Text()}, nil
		}), nil
	}
	dir := t.TempDir()
	write(t, dir, "team.yaml", "name: t\ngoal: What of ${params.year}?\nparams: {year: 2026}\nagents: [{name: a}, {name: b}]\nschedulingStrategy: round-robin\n")
	f, err := specfile.Load(specfile.Options{Path: dir})
	require.NoError(t, err)
	tm, err := f.Build(connect)
	require.NoError(t, err)
	p, err := tm.PlanTeam(t.Context(), *f.Goal, &f.Run)
	require.NoError(t, err)
	path, left := save(t, f, *f.Goal, p.Specs(), dir)
	require.Empty(t, left)

	got, err := specfile.Load(specfile.Options{Path: path})
	require.NoError(t, err)
	require.Empty(t, got.Warnings)
	requireSaved(t, f, got, *f.Goal, p.Specs())
	require.Equal(t, "Say what ${params.year} brought.", got.Tasks[0].Description)
	require.Equal(t, "a", got.Tasks[1].Assignee, "who got it stands in the plan")
	tm, err = got.Build(connect)
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), got.Tasks, &got.Run)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, 2, asked, "not planned again")
	require.Contains(t, res.Output, "answered from: ")
	require.Contains(t, res.Output, "What of 2026?")
	require.Contains(t, res.Output, "b did # Task: Read")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
