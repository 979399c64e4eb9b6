package specfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// env is an environment of a test.
func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// trusted allows a spec to send every variable everywhere, in tests about
// something else.
func trusted(string, []specfile.EnvUse) bool { return true }

// load reads a spec that is written in the test; files stand beside it.
func load(t *testing.T, text string, o specfile.Options, files ...string) (*specfile.File, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, append([]string{"team.yaml", text}, files...)...)
	o.Path = filepath.Join(dir, "team.yaml")
	return check(o)
}

// write writes files, given as names and texts by turns.
func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(files[i+1]), 0o600))
	}
}

// messages returns the messages of an error of this package, without excerpts.
func messages(t *testing.T, err error) []string {
	t.Helper()
	bad, ok := errors.AsType[*specfile.Error](err)
	require.True(t, ok, "%v", err)
	out := make([]string, len(bad.Problems))
	for i, p := range bad.Problems {
		out[i] = p.Message
		if p.Line > 0 {
			out[i] = fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message)
		}
	}
	return out
}

func warnings(f *specfile.File) []string {
	var out []string
	for _, w := range f.Warnings {
		out = append(out, fmt.Sprintf("%d:%d: %s", w.Line, w.Column, w.Message))
	}
	return out
}

func TestLoadReadsEverything(t *testing.T) {
	t.Parallel()
	f, err := check(specfile.Options{Path: "testdata/ok", Lookup: env(map[string]string{"HOME": "/home/me"})})
	require.NoError(t, err)
	require.Empty(t, f.Warnings)
	require.Equal(t, "testdata/ok/team.yaml", f.Path)
	require.Equal(t, "testdata/ok", f.Dir)
	require.Equal(t, "claims", f.Name)
	require.Equal(t, "testdata/ok/script.yaml", f.Offline)
	require.False(t, f.Compat)
	require.Equal(t, map[string]label.Classification{"http://localhost:11434/v1": label.Secret}, f.Config.Endpoints)

	require.Equal(t, 4, f.Run.MaxConcurrency)
	require.Equal(t, time.Minute, f.Run.Timeout)
	require.Equal(t, "letter", f.Run.Output)
	require.Equal(t, []engine.Input{
		{Name: "claim", Text: "The claim.\n", Classification: label.Confidential, TTL: 1500 * time.Millisecond, Origin: provenance.Position{File: f.Path, Line: 13, Column: 3}},
		{Name: "rules", Text: "Be fair to ${params.year}.", Origin: provenance.Position{File: f.Path, Line: 14, Column: 3}},
	}, f.Run.Inputs)

	require.Len(t, f.Agents, 2)
	intake, letters := f.Agents[0], f.Agents[1]
	require.Equal(t, "You extract facts of 2026.\n", intake.Member.SystemPrompt)
	require.Equal(t, []provenance.Param{{Name: "year", Start: 21, End: 25}}, intake.Member.SystemParams)
	require.Equal(t, label.Confidential, intake.Member.Accepts)
	require.Nil(t, intake.Member.Produces)
	require.Equal(t, "gpt-4o-mini", intake.Model)
	require.Equal(t, "gpt-4o-mini", intake.Member.Model)
	require.Equal(t, 3, intake.MaxTurns)
	require.Equal(t, "http://localhost:11434/v1", intake.BaseURL)
	require.Equal(t, "You write to customers.\n\nIn 2026, ${HOME}.\n", letters.Member.SystemPrompt, "no environment enters a prompt")
	require.Equal(t, label.Secret, letters.Member.Accepts)
	require.Equal(t, label.Confidential, *letters.Member.Produces)
	require.Equal(t, "big", letters.Model)
	require.Equal(t, provenance.Position{File: f.Path, Line: 21, Column: 5}, letters.Member.Origin)

	require.Len(t, f.Tasks, 3)
	facts, score, letter := f.Tasks[0], f.Tasks[1], f.Tasks[2]
	require.Equal(t, "List the facts of 2026 in 5 lines.", facts.Description)
	require.Equal(t, []provenance.Param{{Name: "year", Start: 18, End: 22}, {Name: "unit", Start: 26, End: 27}}, facts.Source.Params)
	require.Equal(t, []task.Use{{Name: "claim"}, {Name: "rules"}}, facts.Uses)
	require.JSONEq(t, `{"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number"}}}`, string(facts.OutputSchema))
	require.Equal(t, 2, facts.MaxRetries)
	require.Equal(t, task.NoDelay, facts.RetryDelay)
	require.Equal(t, 0, score.MaxRetries, "a task's own 0 counts")
	require.Equal(t, []task.Ref{{Task: "Extract facts", As: task.Both, Optional: true}}, score.DependsOn)
	require.JSONEq(t, `{"type": "object", "required": ["fraud_score"], "properties": {"fraud_score": {"type": "number"}}}`, string(score.OutputSchema))
	require.Equal(t, "letter", letter.Key)
	require.Equal(t, []task.Ref{{Task: "Extract facts", As: task.Structured}, {Task: "Score", As: task.Structured}}, letter.DependsOn)
	require.Equal(t, provenance.Position{File: f.Path, Line: 42, Column: 5}, letter.Source.Origin)
}

func TestLoadReadsATasksFileOfTheOriginal(t *testing.T) {
	t.Parallel()
	f, err := check(specfile.Options{Path: "testdata/ok/tasks.json", Lookup: env(map[string]string{"KEY": "k"})})
	require.NoError(t, err)
	require.True(t, f.Compat)
	require.Equal(t, "pipeline", f.Name)
	require.Equal(t, 2, f.Run.MaxConcurrency, "the smaller one counts")
	require.Equal(t, "m2", f.Agents[0].Model)
	require.Equal(t, "m1", f.Agents[1].Model)
	require.Equal(t, "http://localhost:1/v1", f.Agents[1].BaseURL)
	require.Equal(t, "k", f.Agents[1].APIKey.Reveal())
	require.Equal(t, []task.Ref{{Task: "Design"}}, f.Tasks[1].DependsOn)
	require.Equal(t, []string{"7:49: agent \"builder\": compressToolResults: no effect here: the oldest results of tools are moved out of a conversation when it reaches maxPromptBytes"}, warnings(f))
}

func TestJSONAndYAMLSayTheSame(t *testing.T) {
	t.Parallel()
	yaml, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader("\xef\xbb\xbfagents:\r\n  - name: a\r\n    maxTurns: 1_0\r\ntasks:\r\n  - title: Ü\r\n    description: |\r\n      one\r\n      two\r\n    metadata: {n: 0x10, f: 1.5, t: yes, b: true}\r\n")})
	require.NoError(t, err)
	js, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(`{"agents": [{"name": "a", "maxTurns": 10}], "tasks": [{"title": "\u00dc", "description": "one\ntwo\n", "metadata": {"n": 16, "f": 1.5, "t": "yes", "b": true}}]}`)})
	require.NoError(t, err)
	require.Equal(t, 10, yaml.Agents[0].MaxTurns)
	for _, f := range []*specfile.File{yaml, js} {
		f.Tasks[0].Source.Origin, f.Agents[0].Member.Origin = provenance.Position{}, provenance.Position{}
		require.Equal(t, "stdin", f.Name)
		require.Equal(t, "-", f.Path)
	}
	require.Equal(t, js.Tasks, yaml.Tasks)
	require.Equal(t, js.Agents, yaml.Agents)
}

func TestLoadFindsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := specfile.Load(specfile.Options{Path: dir})
	require.ErrorIs(t, err, specfile.ErrNotFound)
	_, err = specfile.Load(specfile.Options{Path: filepath.Join(dir, "none.yaml")})
	require.ErrorIs(t, err, specfile.ErrNotFound)
	for _, name := range []string{"team.json", "team.yml", "team.yaml"} { // the last one wins
		write(t, dir, name, "{\"agents\": [{\"name\": \"a\"}]}")
		f, err := specfile.Load(specfile.Options{Path: dir})
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, name), f.Path)
		require.Equal(t, "team", f.Name)
	}
}

func TestLoadOfTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // so it does not run in parallel
	_, err := specfile.Load(specfile.Options{})
	require.ErrorIs(t, err, specfile.ErrNotFound)
	write(t, dir, "team.yml", "agents: [{name: a}]", "roster.json", `{"team": {"name": "r", "agents": [{"name": "b"}]}}`)
	f, err := specfile.Load(specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, "team.yml", f.Path)
	f, err = specfile.Load(specfile.Options{Team: "roster.json"})
	require.NoError(t, err)
	require.Equal(t, "roster.json", f.Path, "with a team alone, the team is the spec")
	require.Equal(t, "r", f.Name)
	require.True(t, f.Compat)
}

func TestFilesThatAreNotText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"empty.yaml", "", "cannot read: it is empty"},
		{"blank.yaml", " \n\n", "cannot read: it is empty"},
		{"bom.yaml", "\xef\xbb\xbf\n", "cannot read: it is empty"},
		{"binary.yaml", "name: a\x00b", "cannot read: it holds a zero byte: name a text file"},
		{"latin1.yaml", "name: caf\xe9", "cannot read: it is not UTF-8: save it as UTF-8"},
		{"utf16.yaml", "\xff\xfen\x00", "cannot read: it is UTF-16: save it as UTF-8"},
		{"large.yaml", strings.Repeat("# x\n", 1<<19), "cannot read: it is larger than 1 MiB"},
		{"large.json", "{}", "cannot read: it is larger than 64 MiB"},
		{"large.txt", "a: b\n" + strings.Repeat("# x\n", 1<<19), "1:1: larger than 1024 KiB, the most for YAML"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, tt.name, tt.text)
			path := filepath.Join(dir, tt.name)
			if tt.name == "large.json" {
				require.NoError(t, os.Truncate(path, 64<<20+1)) // takes no space on the disk
			}
			_, err := specfile.Load(specfile.Options{Path: path})
			require.Equal(t, []string{tt.want}, messages(t, err))
			require.NotErrorIs(t, err, specfile.ErrNotFound)
		})
	}
}

func TestInputsOfFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "elsewhere.md", "from the flag", "empty.md", "")
	const text = `
inputs:
  claim: {classification: secret}
  rules:
agentDefaults: {accepts: secret}
endpoints: {http://localhost/v1: {accepts: secret}}
agents: [{name: a}]
tasks: [{title: T, description: d, uses: [claim, rules]}]
`
	elsewhere := filepath.Join(dir, "elsewhere.md")
	f, err := load(t, text, specfile.Options{Inputs: map[string]string{"claim": elsewhere, "rules": elsewhere}})
	if err != nil { // the label may hold the task back for other reasons than this test's
		require.NotContains(t, err.Error(), "no text")
	}
	require.Equal(t, "from the flag", f.Run.Inputs[0].Text)
	require.Equal(t, label.Secret, f.Run.Inputs[0].Classification, "the spec's label stays")

	_, err = load(t, text, specfile.Options{Inputs: map[string]string{"claim": filepath.Join(dir, "empty.md"), "Rules": dir}})
	require.Equal(t, []string{
		`4:3: input "rules": it has no text`,
		`Options.Inputs claim: cannot read: it is empty`,
		`Options.Inputs "Rules": the spec has no such input`,
	}, messages(t, err))
	_, err = load(t, text, specfile.Options{Inputs: map[string]string{"claim": os.DevNull, "rules": filepath.Join(dir, "none")}})
	require.Equal(t, []string{"Options.Inputs claim: cannot read: it is not a regular file", "Options.Inputs rules: cannot read: no such file or directory"}, messages(t, err))
}

func TestParamsOfFlags(t *testing.T) {
	t.Parallel()
	const text = `
params: {year: 2025, city: , on: true}
agents: [{name: a, systemPrompt: "${params.city}"}]
tasks: [{title: T, description: "${params.year}${params.on} ${params.year} ${YEAR}"}]
`
	f, err := load(t, text, specfile.Options{Params: map[string]string{"city": "", "year": "MMXXVI"}})
	require.NoError(t, err)
	require.Equal(t, "MMXXVItrue MMXXVI ${YEAR}", f.Tasks[0].Description)
	require.Equal(t, []provenance.Param{{Name: "year", Start: 0, End: 6}, {Name: "on", Start: 6, End: 10}, {Name: "year", Start: 11, End: 17}}, f.Tasks[0].Source.Params)
	require.Equal(t, []provenance.Param{{Name: "city", Start: 0, End: 0}}, f.Agents[0].Member.SystemParams)

	_, err = load(t, text, specfile.Options{Params: map[string]string{"yeer": "1", "year": "two\nlines"}})
	require.Equal(t, []string{
		"2:27: params: city has no value",
		"Options.Params year: not one clean line: it has a line break (U+000A) at byte 3",
		`Options.Params "yeer": no such parameter`,
	}, messages(t, err))
}

func TestModels(t *testing.T) {
	t.Parallel()
	const text = "model: ${MODEL:-small}\nagents: [{name: a}, {name: b, model: own}, {name: c}]\n"
	models := func(o specfile.Options) []string {
		f, err := load(t, text, o)
		require.NoError(t, err)
		return []string{f.Agents[0].Model, f.Agents[1].Member.Model, f.Agents[2].Model}
	}
	require.Equal(t, []string{"small", "own", "small"}, models(specfile.Options{}))
	require.Equal(t, []string{"env", "own", "env"}, models(specfile.Options{Lookup: env(map[string]string{"MODEL": "env"})}))
	require.Equal(t, []string{"x", "x", "x"}, models(specfile.Options{Models: []string{"x"}}))
	require.Equal(t, []string{"x", "y", "x"}, models(specfile.Options{Models: []string{"x", "B=y"}}))
	_, err := load(t, text, specfile.Options{Models: []string{"d=x", "a="}})
	require.Equal(t, []string{`Options.Models "d=x": no agent "d"`, `Options.Models "a=": no model`}, messages(t, err))
}

func TestTeamAndOrchestratorFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir,
		"tasks.json", `{"orchestrator": {"defaultModel": "main"}, "team": {"name": "old", "agents": [{"name": "x"}]}, "tasks": [{"title": "T", "description": "d", "assignee": "a"}]}`,
		"team.json", `{"name": "new", "agents": [{"name": "a", "systemPrompt": {"file": "p.md"}}], "baseURL": "http://localhost:9/v1"}`,
		"p.md", "From the folder of the team.",
		"orch.yaml", "defaultModel: first\nmaxConcurrency: 7\n",
		"wrong.yaml", "defaultModle: first\ntasks: []\n",
		"withtasks.yaml", "agents: [{name: a}]\ntasks: []\ninputs: {}\n",
	)
	at := func(name string) string { return filepath.Join(dir, name) }
	f, err := check(specfile.Options{Path: at("tasks.json"), Team: at("team.json")})
	require.NoError(t, err)
	require.True(t, f.Compat)
	require.Equal(t, "old", f.Name)
	require.Equal(t, "main", f.Agents[0].Model)
	require.Equal(t, "http://localhost:9/v1", f.Agents[0].BaseURL)
	require.Equal(t, "From the folder of the team.", f.Agents[0].Member.SystemPrompt)
	require.Equal(t, []string{"1:52: team: not used: Options.Team brings the team"}, warnings(f))

	f, err = check(specfile.Options{Path: at("tasks.json"), Team: at("team.json"), Orchestrator: at("orch.yaml")})
	require.NoError(t, err)
	require.Equal(t, "first", f.Agents[0].Model)
	require.Equal(t, 7, f.Run.MaxConcurrency)

	_, err = check(specfile.Options{Path: at("tasks.json"), Team: at("withtasks.yaml"), Orchestrator: at("wrong.yaml")})
	require.Equal(t, []string{
		"2:1: tasks: the file of Options.Team brings a team only",
		"3:1: inputs: the file of Options.Team brings a team only",
		`1:1: unknown key "defaultModle" in orchestrator`,
		`2:1: unknown key "tasks" in orchestrator`,
	}, messages(t, err))
	_, err = check(specfile.Options{Path: at("tasks.json"), Team: at("none.json")})
	require.ErrorIs(t, err, specfile.ErrNotFound)
}

// said returns messages and hints.
func said(t *testing.T, err error) (all []string) {
	t.Helper()
	bad, ok := errors.AsType[*specfile.Error](err)
	require.True(t, ok, "%v", err)
	for _, p := range bad.Problems {
		all = append(all, p.Message+"; "+p.Hint)
	}
	return all
}

func TestFilesOfFlagsThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	const (
		hasTeam        = "name a file with a team: name and agents"
		hasSettings    = "name a file with settings, such as defaultModel and maxConcurrency"
		hasCoordinator = "name a file with the keys of the coordinator, such as model and instructions"
	)
	dir := t.TempDir()
	write(t, dir, "team.yaml", "agents: [{name: a}]", "null.json", "null", "list.yaml", "- a\n", "sub/x.yaml", "a: b")
	for _, tt := range []struct {
		name, want string
		o          specfile.Options
	}{
		{"none.json", "Options.Team: it does not exist; " + hasTeam, specfile.Options{Path: dir, Team: "none.json"}},
		{"none.json", "Options.Team: it does not exist; " + hasTeam, specfile.Options{Team: "none.json"}},
		{"none.json", "Options.Orchestrator: it does not exist; " + hasSettings, specfile.Options{Path: dir, Orchestrator: "none.json"}},
		{"none.json", "Options.Coordinator: it does not exist; " + hasCoordinator, specfile.Options{Path: dir, Coordinator: "none.json"}},
		{"none.json", "no spec file: it does not exist; name a file, or a folder with team.yaml, team.yml, team.json", specfile.Options{Path: "none.json"}},
		{"sub", "Options.Team: the folder has no team.yaml, team.yml or team.json; " + hasTeam, specfile.Options{Path: dir, Team: "sub"}},
		{"sub", "Options.Orchestrator: cannot read: it is a folder; " + hasSettings, specfile.Options{Path: dir, Orchestrator: "sub"}},
		{"sub", "Options.Coordinator: cannot read: it is a folder; " + hasCoordinator, specfile.Options{Path: dir, Coordinator: "sub"}},
		{"null.json", `the file is empty; write {"name": "…", "agents": […]}`, specfile.Options{Path: dir, Team: "null.json"}},
		{"null.json", "the file is empty; write the keys of the coordinator, such as model and instructions", specfile.Options{Path: dir, Coordinator: "null.json"}},
		{"list.yaml", "a list where keys such as name and agents belong; write name: and agents:", specfile.Options{Path: dir, Team: "list.yaml"}},
	} {
		for _, path := range []*string{&tt.o.Path, &tt.o.Team, &tt.o.Orchestrator, &tt.o.Coordinator} {
			if *path == tt.name {
				*path = filepath.Join(dir, tt.name)
			}
		}
		_, err := check(tt.o)
		require.Equal(t, []string{tt.want}, said(t, err), "%+v", tt.o)
		require.Equal(t, tt.name == "none.json" || strings.Contains(tt.want, "the folder has no"), errors.Is(err, specfile.ErrNotFound))
	}
}

func TestFilesWithoutATeam(t *testing.T) {
	t.Parallel()
	const (
		list  = "a list where keys such as agents and tasks belong; "
		bring = "a team needs at least one agent; write agents, with one that has a name, or bring a team with --team FILE"
		own   = "a team needs at least one agent; add one with a name"
		tasks = `"tasks": [{"title": "T", "description": "d"}]}`
	)
	for _, tt := range []struct{ name, text, want string }{
		{"list.json", `[{"title": "T", "description": "d"}]`, list + `write {"team": {…}, "tasks": […]}`},
		{"list.txt", ` [{"title": "T", "description": "d"}]`, list + `write {"team": {…}, "tasks": […]}`},
		{"list.yaml", "- {title: T, description: d}\n", list + "write agents: and tasks:"},
		{"tasks.json", "{" + tasks, bring},
		{"goal.yaml", "goal: Go.\n", bring},
		{"none.json", `{"agents": [], ` + tasks, own},
		{"team.json", `{"team": {"name": "t", "agents": []}, ` + tasks, own},
		{"roster.yaml", "name: t\n", own},
	} {
		dir := t.TempDir()
		write(t, dir, tt.name, tt.text, "empty.yaml", "name: t\nagents: []\n")
		path := filepath.Join(dir, tt.name)
		flags := map[string]string{"Team": "--team"}
		_, err := check(specfile.Options{Path: path, Names: flags})
		require.Equal(t, []string{tt.want}, said(t, err), tt.name)
		if tt.want == bring {
			_, err = check(specfile.Options{Path: path, Names: flags, Team: filepath.Join(dir, "empty.yaml")})
			require.Equal(t, []string{own}, said(t, err), "there is a team")
		}
	}
}

func TestKeysGoOnlyToTheirHost(t *testing.T) {
	t.Parallel()
	vars := env(map[string]string{"KEY": "spec-key", "OWN": "own-key", "BASE": "https://one.example/v1/"})
	key := func(text string) (string, []string) {
		f, err := load(t, text, specfile.Options{Lookup: vars})
		require.NoError(t, err)
		return f.Agents[0].APIKey.Reveal(), warnings(f)
	}
	for _, tt := range []struct {
		name, text, want string
		warns            int
	}{
		{"the spec's", "apiKey: ${KEY}\nagents: [{name: a}]", "spec-key", 0},
		{"without a base beside it, as in the original", "apiKey: ${KEY}\nagents: [{name: a, baseURL: http://two.example}]", "spec-key", 0},
		{"same host", "baseURL: ${BASE}\napiKey: ${KEY}\nagents: [{name: a, baseURL: https://ONE.example/v2}]", "spec-key", 0},
		{"another host", "baseURL: ${BASE}\napiKey: ${KEY}\nagents: [{name: a, baseURL: https://two.example/v1}]", "", 1},
		{"the port that is meant anyway", "baseURL: https://one.example:443/v1\napiKey: ${KEY}\nagents: [{name: a, baseURL: https://one.example/v1}]", "spec-key", 0},
		{"another port", "baseURL: ${BASE}\napiKey: ${KEY}\nagents: [{name: a, baseURL: https://one.example:8443/v1}]", "", 1},
		{"its own", "baseURL: ${BASE}\napiKey: ${KEY}\nagents: [{name: a, baseURL: https://two.example/v1, apiKey: '${OWN}'}]", "own-key", 0},
		{"defaults", "baseURL: ${BASE}\nagentDefaults: {apiKey: '${OWN}', baseURL: https://d.example}\nagents: [{name: a, baseURL: https://two.example/v1}]", "", 1},
		{"orchestrator", "orchestrator: {defaultApiKey: '${KEY}', defaultBaseURL: '${BASE}'}\nagents: [{name: a, baseURL: https://two.example/v1}]", "", 1},
		{"literal", "apiKey: fake\nagents: [{name: a}, {name: b}]", "fake", 1},
	} {
		got, warned := key(tt.text)
		require.Equal(t, tt.want, got, tt.name)
		require.Len(t, warned, tt.warns, tt.name)
	}
}

func TestHeadersGoOnlyToTheirHost(t *testing.T) {
	t.Parallel()
	f, err := load(t, "baseURL: https://one.example/v1\nheaders: {Authorization: '${KEY}'}\nagents: [{name: a}, {name: b, baseURL: https://two.example/v1, headers: {X: y}}]",
		specfile.Options{Lookup: env(map[string]string{"KEY": "fake"})})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Authorization": "fake"}, f.Agents[0].Headers)
	require.Equal(t, map[string]string{"X": "y"}, f.Agents[1].Headers)
	require.Equal(t, []string{`3:40: agent "b": headers of line 2: for another host, so not sent to this one`}, warnings(f))
}

func TestHeadersAdd(t *testing.T) {
	t.Parallel()
	f, err := load(t, "headers: {X-A: spec, X-B: spec}\nagentDefaults: {headers: {x-b: '${B}', X-C: default}}\nagents: [{name: a, headers: {X-C: own}}, {name: b}]",
		specfile.Options{Lookup: env(map[string]string{"B": "env"})})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"X-A": "spec", "x-b": "env", "X-C": "own"}, f.Agents[0].Headers)
	require.Equal(t, map[string]string{"X-A": "spec", "x-b": "env", "X-C": "default"}, f.Agents[1].Headers)
}

func TestNoPrinterShowsAKey(t *testing.T) {
	t.Parallel()
	f, err := load(t, "baseURL: http://localhost/v1\napiKey: fake-secret\nheaders: {Authorization: fake-secret}\nagents: [{name: a}]", specfile.Options{})
	require.NoError(t, err)
	a := f.Agents[0]
	require.Equal(t, "fake-secret", a.APIKey.Reveal())
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "a", a, "c", a.Connection, "k", a.APIKey, "f", f)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "a", a, "c", a.Connection, "k", a.APIKey, "f", f)
	var all strings.Builder
	all.WriteString(log.String())
	for _, v := range []any{a, &a, a.Connection, &a.Connection, a.APIKey, &a.APIKey, f, *f, f.Agents, f.Warnings, []specfile.Key{a.APIKey}, struct{ k specfile.Key }{a.APIKey}} {
		all.WriteString(fmt.Sprintf("%v %+v %#v %s %q %x %d", v, v, v, v, v, v, v))
		data, _ := json.Marshal(v) // a File cannot be: its options hold functions
		all.WriteString(string(data))
	}
	require.NotContains(t, all.String(), "fake-secret")
	require.NotContains(t, all.String(), fmt.Sprintf("%x", "fake-secret"))
	require.Contains(t, a.Connection.String(), "Authorization")
	a.BaseURL = "http://me:fake-secret@localhost/v1?key=fake-secret"
	require.NotContains(t, fmt.Sprint(a), "fake-secret", "also what no file could bring")
	require.Empty(t, specfile.Key{}.String())
	require.Equal(t, "[key]", a.APIKey.String())
}

func TestUnusedIsAWarning(t *testing.T) {
	t.Parallel()
	f, err := load(t, "params: {p: 1}\ninputs: {i: {text: x}}\nstrictAssignees: false\nagents: [{name: a}]\ntasks: [{title: T, description: d}]", specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"1:10: params: nothing uses \"p\"", `2:10: input "i": no task uses it`,
		"3:18: strictAssignees: no effect here: an unknown assignee is an error in any case",
	}, warnings(f))
	f, err = load(t, "params: {p: 1}\ninputs: {i: {text: x}}\nagents: [{name: a}]", specfile.Options{})
	require.NoError(t, err)
	require.Empty(t, f.Warnings, "a roster has no tasks that could use them")
}

func TestSmallerConcurrencyApplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want int
	}{
		{"maxConcurrency: 3\nteam: {agents: [{name: a}], maxConcurrency: 7}", 3},
		{"maxConcurrency: 7\nteam: {agents: [{name: a}], maxConcurrency: 3}", 3},
		{"team: {agents: [{name: a}], maxConcurrency: 7}", 7},
		{"orchestrator: {maxConcurrency: 2}\nagents: [{name: a}]", 2},
		{"agents: [{name: a}]", 0},
	} {
		f, err := load(t, tt.text, specfile.Options{})
		require.NoError(t, err)
		require.Equal(t, tt.want, f.Run.MaxConcurrency, tt.text)
	}
}

// TestPipesAreNotOpened: a spec that names one would wait for ever.
func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	write(t, dir, "team.yaml", "inputs: {i: {file: pipe}}\nagents: [{name: a}]")
	_, err := specfile.Load(specfile.Options{Path: dir})
	require.Equal(t, []string{`1:20: input "i": file: "pipe": cannot read: it is not a regular file`}, messages(t, err))
}

func TestMessagesAreFitForATerminal(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{\"\\u001b[31mname\": 1, \"params\": {\"\\u202e\": 1}, \"agents\": [{\"name\": \"a\\u0007\"}], \"inputs\": {\"\\u001b\": 5}}",
		"{\"inputs\": {\"\\u001b[31m\": null}}",
		"agents: [{name: \"\\e[2J\"}]\ntasks: [{title: \"\\u202ex\", description: d}]\n",
		"name: \x1b[2J\n  bad: : :\n",
		"agents: [{name: a}]\ntasks: [{title: T, description: \"\u009b\", dependsOn: [\"\u2028\u202e\"]}]\n",
	} {
		_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
		require.Error(t, err)
		for _, r := range err.Error() {
			require.False(t, r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028, "%q", err.Error())
		}
	}
}
