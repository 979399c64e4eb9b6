package specfile_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
)

func init() {
	slowtest.Checks(25)
	slowtest.FilesInMemory()
}

var update = flag.Bool("update", false, "rewrite golden files and the tables of docs/reference/spec-file.md")

// idle is an agent that is never asked.
func idle(specfile.Agent) (engine.Agent, error) {
	return engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{}, errors.New("not meant to run")
	}), nil
}

// check does what a user's check does: load, make the team, plan.
func check(o specfile.Options) (*specfile.File, error) {
	if o.Trusted == nil {
		o.Trusted = trusted
	}
	f, err := specfile.Load(o)
	if err != nil {
		return nil, err
	}
	t, err := f.Build(idle)
	if err != nil {
		return f, err
	}
	if len(f.Tasks) == 0 {
		return f, nil
	}
	_, err = t.Plan(f.Tasks, &f.Run)
	return f, f.Locate(err)
}

// TestBadFiles compares what is said of each file in testdata/bad with the text beside it.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/bad/*.json"} {
		more, err := filepath.Glob(pattern)
		require.NoError(t, err)
		paths = append(paths, more...)
	}
	require.Greater(t, len(paths), 25)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			_, err := check(specfile.Options{Path: path})
			bad, ok := errors.AsType[*specfile.Error](err)
			require.True(t, ok, "%v", err)
			requireLocated(t, bad)
			golden := path + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(bad.Error()+"\n"), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), bad.Error()+"\n")

			_, again := check(specfile.Options{Path: path})
			require.Equal(t, bad.Error(), again.Error(), "the same every time")
		})
	}
}

// requireLocated holds that every problem has a message and a place that exists in its file.
func requireLocated(t *testing.T, bad *specfile.Error) {
	t.Helper()
	require.NotEmpty(t, bad.Problems)
	for _, p := range bad.Problems {
		require.NotEmpty(t, p.Message)
		if p.File == "" {
			continue
		}
		require.Positive(t, p.Line, p.Message)
		data, err := os.ReadFile(p.File)
		require.NoError(t, err)
		lines := regexp.MustCompile("\r\n|\r|\n").Split(string(data), -1)
		require.LessOrEqual(t, p.Line, len(lines), p.Message)
		require.Positive(t, p.Column, p.Message)
		require.LessOrEqual(t, p.Column, len([]rune(lines[p.Line-1]))+1, p.Message)
	}
}

// TestNoErrorShowsAKey checks that excerpts and messages leave out whatever
// may be a credential, also in files that cannot be parsed.
//
// Requirement: G42.
func TestNoErrorShowsAKey(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"secrets.yaml", "secrets-syntax.yaml"} {
		_, err := check(specfile.Options{Path: "testdata/bad/" + name})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "fake-key", name)
	}
	for _, text := range []string{
		"{\"apiKey\": \"fake-key-1\", \"bogus\": 1, \"apiKy\": \"fake-key-2\", \"headers\": {\"A\": \"fake-key-3\"}",
		"{\"headers\": {\"A\": \"fake-key-3\", \"B\": 4}, \"agents\": [{\"apiKey\": [\"fake-key-5\"]}]}",
		"apiKey: fake-key-1\n  bad: - x\n",
		"orchestrator: {defaultApiKey: fake-key-1, x: y}\n",
		"apiKey: >\n  fake-key-1\n  fake-key-2\nbogus: 3\n",
		"apiKey: \"${A:-fake-key-1}${B}\"\n",
		"headers: [fake-key-1]\n",
		"bogus: 1\nbaseURL: http://me:fake-key-1@localhost/v1\nagents: [{name: a}]\n",
		"bogus: 1\nbaseURL: http://fake-key-1@localhost/v1\n bad\n",
		"mcp: {env: {GITHUB_TOKEN: fake-key-1}, x: [{password: fake-key-2}]}\n",
		"headers: {A: \"${fake-key-1}\", Authorization: fake-key-2}\n",
	} {
		_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "fake-key", text)
	}
}

// TestErrorsAreRedacted checks that excerpts and messages leave out
// what a run takes out as a secret, wherever it stands.
func TestErrorsAreRedacted(t *testing.T) {
	t.Parallel()
	const body = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA"
	key := "sk-proj-" + body + "cD4fG7hJ"
	pem := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(body+body+"\n", 3) + "-----END PRIVATE KEY-----"
	const spaces = "    "
	for _, tt := range []struct{ name, text string }{
		{"on the line", `agents: [{name: a, bogus: 1, description: "key ` + key + `"}]`},
		{"on a line beside it", "inputs:\n  i:\n    text: \"key " + key + "\"\n    bogus: 1\n"},
		{"in a file that is no YAML", "inputs: {i: {text: \"key " + key + "\"}}\n bad\n"},
		{"in a file that is no JSON", `{"inputs": {"i": {"text": "key ` + key + `"}},,}`},
		{"at the end of a long line", "bogus: 1\nname: \"" + strings.Repeat("word ", 815) + key + "\"\n"},
		{"behind an escape", `{"bogus": 1, "name": "key sk\u002dproj-` + body + `cD4fG7hJ"}`},
		{"over two lines", "bogus: 1\nname: \"sk-proj-\\\n  " + body + "cD4fG7hJ\"\n"},
		{"over many lines", "inputs:\n  i:\n    text: |\n      " + strings.ReplaceAll(pem, "\n", "\n"+spaces+"  ") + "\n    bogus: 1\n"},
		{"as a key", key + ": 1\n"},
		{"as a key behind an escape", `{"sk\u002dproj-` + body + `cD4fG7hJ": 1}`},
		{"as a word", "mode: " + key + "\n"},
		{"as a long word", "mode: " + strings.Repeat("word ", 9) + key + "\n"},
		{"as a value of the wrong type", "agents: " + key + "\n"},
		{"as an input", "inputs: {i: " + key + "}\n"},
		{"as the name of a task", "agents: [{name: a}]\ntasks: [{title: T, description: d, dependsOn: [" + key + "]}]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(tt.text)})
			require.Error(t, err)
			require.NotContains(t, err.Error(), body[:12])
			clean, _, redactErr := redact.Secrets().Text(err.Error())
			require.NoError(t, redactErr)
			require.Equal(t, clean, err.Error(), "a run finds nothing more")
		})
	}
	_, err := specfile.Load(specfile.Options{Path: "testdata/ok", Models: []string{key + "=m"}})
	require.ErrorContains(t, err, "[REDACTED:token]")
	require.NotContains(t, err.Error(), body[:12], "nor what a flag says")
	there := filepath.Join(t.TempDir(), "a-"+key+".yaml")
	require.NoError(t, os.WriteFile(there, []byte("bogus: 1\n"), 0o600))
	missing := "no-" + key + ".yaml"
	for _, o := range []specfile.Options{
		{Path: missing}, {Path: there}, {Path: "testdata/ok", Team: missing}, {Path: "testdata/ok", Orchestrator: missing},
		{Path: "testdata/ok", Coordinator: missing}, {Path: "testdata/ok", Inputs: map[string]string{"claim": missing}},
	} {
		_, err := specfile.Load(o)
		require.ErrorContains(t, err, "[REDACTED:token]", "%+v", o)
		require.NotContains(t, err.Error(), body[:12], "nor a path")
	}
}

// TestMisspelledCountsAreShown checks that only what may be a credential is hidden.
func TestMisspelledCountsAreShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		want string
	}{
		{"maxTokenBudgts: 5", "maxTokenBudgts: 5"},
		{"maxTokenBudgts: 500000", "maxTokenBudgts: 500000"},
		{"tokenBudget: 5", "tokenBudget: 5"},
		{"maxToken: 5", "maxToken: 5"},
		{"maxTokensKey: tokens", "maxTokensKey: tokens"},
		{"maxTokenBudgts: fake", "maxTokenBudgts: [hidden]"},
		{"apiKy: 5", "apiKy: [hidden]"},
		{"token: 5", "token: [hidden]"},
		{"secretNumber: 5", "secretNumber: [hidden]"},
		{"headers: {maxTokens: 777}", "[hidden]"},
		{"{maxTokenBudgts: 5, apiKy: 6}", "{maxTokenBudgts: 5, apiKy: [hidden]"},
	} {
		for kind, bogus := range map[string]string{"a file": "bogus: 1", "a file that is no YAML": "bogus: \"a\" b"} {
			text := bogus + "\n" + tt.line + "\n"
			if strings.HasPrefix(tt.line, "{") {
				text = "bogus: 1\nteam: " + tt.line + "\n"
			}
			_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
			require.ErrorContains(t, err, tt.want, kind)
			require.NotContains(t, err.Error(), "777", kind)
		}
	}
}
