package specfile_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/prompt"
)

// TestVersionCoversAnswerSettings and nothing else of the settings.
func TestVersionCoversAnswerSettings(t *testing.T) {
	t.Parallel()
	one := func(t *testing.T, text string, o specfile.Options) (agent, coordinator string) {
		f, err := load(t, text, o)
		require.NoError(t, err)
		require.Regexp(t, `^spec1-[0-9a-f]{32}$`, f.Agents[0].Member.Version)
		require.Regexp(t, `^spec1-[0-9a-f]{32}$`, f.Coordinator.Version)
		return f.Agents[0].Member.Version, f.Coordinator.Version
	}
	base, planner := one(t, "model: m\nagents: [{name: a}]", specfile.Options{})
	require.Equal(t, base, planner, "the same settings")
	o := specfile.Options{Lookup: env(map[string]string{"URL": "http://localhost:1/v1", "KEY": "k"})}
	for _, same := range []string{
		"model: m\nname: other\nagents: [{name: b, systemPrompt: p, description: d, capabilities: [c], accepts: public}]",
		"model: m\napiKey: ${KEY}\nheaders: {A: b}\nagents: [{name: a, timeoutMs: 5, callTimeoutMs: 5, maxSessionMs: 5, maxParallel: 2, reuse: never}]",
		"agents: [{name: a, model: m, provider: openai, disallowedTools: [bash]}]\ncoordinator: {model: m, instructions: i, maxPromptBytes: 5}",
		"model: x\nagents: [{name: a, model: m}]\ncoordinator: {model: m}\ntasks: [{title: T, description: d, reuse: never}]",
	} {
		agent, coordinator := one(t, same, o)
		require.Equal(t, base, agent, same)
		require.Equal(t, base, coordinator, same)
	}
	seen := map[string]string{base: "the first"}
	for _, other := range []string{
		"model: n\nagents: [{name: a}]", "model: m\nbaseURL: http://localhost:1/v1\nagents: [{name: a}]", "model: m\nbaseURL: http://localhost:2/v1\nagents: [{name: a}]",
		"model: m\nagentDefaults: {temperature: 0}\nagents: [{name: a}]\ncoordinator: {temperature: 0}", "model: m\nagentDefaults: {temperature: 0.5}\nagents: [{name: a}]\ncoordinator: {temperature: 0.5}",
		"model: m\nagentDefaults: {topP: 0.5}\nagents: [{name: a}]\ncoordinator: {topP: 0.5}", "model: m\nagentDefaults: {maxTokens: 5}\nagents: [{name: a}]\ncoordinator: {maxTokens: 5}",
		"model: m\nagentDefaults: {maxTurns: 5}\nagents: [{name: a}]\ncoordinator: {maxTurns: 5}",
		"model: m\nfallback: [{model: n}]\nagents: [{name: a}]", "model: m\nfallback: [{model: o}]\nagents: [{name: a}]", "model: n\nfallback: [{model: m}]\nagents: [{name: a}]",
		"model: m\nfallback: [{model: n}, {model: o}]\nagents: [{name: a}]", "model: m\nfallback: [{model: o}, {model: n}]\nagents: [{name: a}]",
		"model: m\nfallback: [{baseURL: http://localhost:1/v1}]\nagents: [{name: a}]", "model: m\nfallback: [{baseURL: http://localhost:2/v1}]\nagents: [{name: a}]",
	} {
		agent, coordinator := one(t, other, o)
		require.NotContains(t, seen, agent, other)
		require.Equal(t, agent, coordinator, other)
		seen[agent] = other
	}
	const variable = "model: m\nbaseURL: ${URL}\nagents: [{name: a}]"
	agent, _ := one(t, variable, o)
	require.NotContains(t, seen, agent)
	again, _ := one(t, variable, specfile.Options{Lookup: env(map[string]string{"URL": "http://localhost:2/v1"})})
	require.Equal(t, agent, again, "as the file writes it: the port is no part of what is asked")
	agent, _ = one(t, "model: x\nagents: [{name: a}]", specfile.Options{Models: []string{"m"}})
	require.Equal(t, base, agent, "as the flag makes it")
}

// TestBuildGivesMembersTheirVersions: also those that connect is asked about.
func TestBuildGivesMembersTheirVersions(t *testing.T) {
	t.Parallel()
	f, err := load(t, "model: m\ngoal: g\nagents: [{name: a, reuse: never}]\ncoordinator: {reuse: never}", specfile.Options{})
	require.NoError(t, err)
	var asked []specfile.Agent
	_, err = f.Build(func(a specfile.Agent) (engine.Agent, error) {
		asked = append(asked, a)
		return engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil }), nil
	})
	require.NoError(t, err)
	require.Len(t, asked, 2)
	for _, a := range asked {
		require.NotEmpty(t, a.Member.Version, a.Member.Name)
		require.Equal(t, "never", a.Member.Reuse, a.Member.Name)
	}
}

// TestFingerprintIgnoresSpelling and not of how it is written.
func TestFingerprintIgnoresSpelling(t *testing.T) {
	t.Parallel()
	const text = "name: n\nmodel: m\nparams: {p: v}\ninputs: {i: {file: i.md}}\nagents: [{name: a, systemPrompt: {file: a.md}}]\ntasks: [{title: T, description: \"${params.p}\", uses: [i]}]\n"
	print := func(t *testing.T, text string, o specfile.Options, files ...string) string {
		f, err := load(t, text, o, append([]string{"i.md", "I", "a.md", "A"}, files...)...)
		require.NoError(t, err)
		require.Regexp(t, `^[0-9a-f]{64}$`, f.Fingerprint())
		require.Equal(t, f.Fingerprint(), f.Fingerprint())
		return f.Fingerprint()
	}
	base := print(t, text, specfile.Options{})
	require.Equal(t, base, print(t, text, specfile.Options{}), "in another folder")
	require.Equal(t, base, print(t, "# a comment\n\n"+text+"\n# another\n", specfile.Options{}))
	require.Equal(t, base, print(t, `{"name": "n", "model": "m", "params": {"p": "v"}, "inputs": {"i": {"file": "i.md"}}, "agents": [{"name": "a", "systemPrompt": {"file": "a.md"}}], "tasks": [{"title": "T", "description": "${params.p}", "uses": ["i"]}]}`, specfile.Options{}))
	with := specfile.Options{Lookup: env(map[string]string{"M": "m", "N": "n"})}
	require.Equal(t, print(t, text+"apiKey: one\n", with), print(t, text+"apiKey: two\n", with), "a key that is rotated")
	seen := map[string]bool{base: true}
	for i, other := range []string{
		print(t, text+"timeoutMs: 5\n", specfile.Options{}), print(t, text, specfile.Options{}, "a.md", "B"), print(t, text, specfile.Options{}, "i.md", "J"), print(t, text, specfile.Options{}, "i.md", "I\n"),
		print(t, text, specfile.Options{Models: []string{"n"}}), print(t, text, specfile.Options{Params: map[string]string{"p": "w"}}), print(t, text, specfile.Options{Goal: "G"}),
		print(t, text+"baseURL: \"${U:-http://localhost:1/v1}\"\n", with), print(t, text+"baseURL: \"${U:-http://localhost:2/v1}\"\n", with),
	} {
		require.False(t, seen[other], i)
		seen[other] = true
	}
	// What a variable stands for counts.
	f := func(value string) string {
		o := specfile.Options{Lookup: env(map[string]string{"M": value})}
		return print(t, "name: n\nmodel: ${M}\nagents: [{name: a}]\n", o)
	}
	require.NotEqual(t, f("m"), f("n"))
	of := func(value string) string {
		o := specfile.Options{Lookup: env(map[string]string{"M": value})}
		return print(t, "name: n\ncoordinator:\n  model: ${M}\nagents: [{name: a}]\n", o)
	}
	require.NotEqual(t, of("m"), of("n"), "of the coordinator too")
	// As does a file of a flag, and which input it is for.
	dir := t.TempDir()
	write(t, dir, "x", "X", "orch.yaml", "maxConcurrency: 3\n")
	given := print(t, text, specfile.Options{Inputs: map[string]string{"i": filepath.Join(dir, "x")}})
	require.False(t, seen[given])
	require.NotEqual(t, base, print(t, text, specfile.Options{Orchestrator: filepath.Join(dir, "orch.yaml")}))
}
