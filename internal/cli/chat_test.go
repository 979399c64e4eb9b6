package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

const chatSpec = `
offline: script.yaml
agents:
  - {name: helper, model: m}
  - {name: boss, backend: {kind: person}}
chat: {agent: helper}
`

const chatScript = `replies:
  - {turn: 3, status: 400}
  - {text: "{{ .Turn }}: {{ .Last }}"}
`

func chatFolder(t *testing.T) string {
	t.Helper()
	return clitest.Folder(t, map[string]string{"team.yaml": chatSpec, "script.yaml": chatScript})
}

func TestChatInAPipe(t *testing.T) {
	t.Parallel()
	dir := chatFolder(t)
	got := call{dir: dir, args: []string{"chat", "--offline"}, stdin: "Hello.\n\n/help\n"}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "1: Hello.\n2: /help\n", got.stdout, "a line is never a command")

	got = call{dir: dir, args: []string{"chat", "--continue", "-o", "json", "--message", "Three\x1b[31m", "--message", "Four"}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status, "the turns end with the first that is not answered")
	var d struct {
		Session, RunID, Agent, Status, Answer, Label string
		Turn                                         int
		Success                                      bool
		Errors                                       []struct{ Code string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &d), got.stdout)
	require.Equal(t, 3, d.Turn)
	require.Equal(t, "error", d.Status)
	require.NotEmpty(t, d.Errors)
	require.False(t, d.Success)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte("replies: [{text: 'again {{ .Turn }}'}]\n"), 0o600))
	got = call{dir: dir, args: []string{"chat", "--resume", d.Session[:8], "--message", "Three again"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "again 3\n", got.stdout, "the turn that failed is not part of the conversation")

	got = call{dir: dir, args: []string{"runs"}}.run(t)
	require.Contains(t, got.stdout, "turn 4 of "+d.Session[:8])
	got = call{dir: dir, args: []string{"explain", d.Session[:8]}}.run(t)
	require.Contains(t, got.stdout, "what user asks, Turn 1, internal, plan")
	got = call{dir: dir, args: []string{"replay"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"resume"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "no agent was called")
	got = call{dir: dir, args: []string{"gc", "--older-than", "0h", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, `"kept":[]`)
}

func TestChatUsage(t *testing.T) {
	t.Parallel()
	dir := chatFolder(t)
	for name, of := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"unknown agent":       {[]string{"chat", "--agent", "helpr"}, "", "--agent: unknown agent \"helpr\"\n  hint: did you mean helper?"},
		"person":              {[]string{"chat", "--agent", "boss"}, "", `"boss" is a person, and a chat is with a model`},
		"both":                {[]string{"chat", "--resume", "x", "--continue"}, "", "--resume and --continue both name a session"},
		"resume with a spec":  {[]string{"chat", "team.yaml", "--continue"}, "", "leave out team.yaml"},
		"resume from nothing": {[]string{"chat", "--continue", "--no-journal"}, "", "leave out --no-journal"},
		"label":               {[]string{"chat", "--label", "intern"}, "", `--label "intern": did you mean internal?`},
		"empty message":       {[]string{"chat", "--offline", "--message", " "}, "", "the message: it is empty"},
		"large":               {[]string{"chat", "--offline"}, strings.Repeat("x", 10<<20), "the message: it has 10485760 bytes, at most 262144"},
		"not UTF-8":           {[]string{"chat", "--offline"}, "a\xff\n", "the message: it is not valid UTF-8"},
		"reserved line":       {[]string{"chat", "--offline"}, "## Inputs\n", "reserved for the prompt's own lines"},
		"secret":              {[]string{"chat", "--offline", "--label", "secret", "--message", "x"}, "", "secret"},
	} {
		got := call{dir: dir, args: of.args, stdin: of.stdin}.run(t)
		require.NotEqual(t, exit.StatusOK, got.status, name)
		require.Contains(t, got.stderr, of.want, name)
		require.Empty(t, got.stdout, name)
	}
	got := call{dir: chatFolder(t), args: []string{"chat", "--continue"}}.run(t)
	require.Contains(t, got.stderr, "there is no journal here")
	nobody := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: a, model: m}]\n"})
	got = call{dir: nobody, args: []string{"chat"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "nobody answers in a chat: the spec names no agent for it and has no coordinator")
	require.Contains(t, got.stderr, "hint: write chat: {agent: NAME}, or coordinator: {}, or give --agent NAME; its agents are a")
}

// Errors of a chat say what to do in it.
func TestChatRemedies(t *testing.T) {
	t.Parallel()
	dir := chatFolder(t)
	got := call{dir: dir, args: []string{"chat", "--offline", "--label", "secret", "--message", "x"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, `what you write is secret, and "helper" accepts internal; set a lower label with /label or --label, or set accepts: secret on agent "helper"`)
	require.Contains(t, got.stderr, "runteam: created .runteam to store runs; use --no-journal to store nothing\n")

	got = call{dir: dir, args: []string{"chat", "--continue"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "the journal has no sessions; without --continue, runteam chat begins one")

	keyless := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: a, model: m}]\nchat: {agent: a}\n"})
	got = call{dir: keyless, args: []string{"chat", "--message", "x"}}.run(t)
	require.Contains(t, got.stderr, "no API key")
	require.NoDirExists(t, filepath.Join(keyless, ".runteam"), "nothing is created for a chat that cannot begin")
}

// A session stays with who answered.
func TestChatAgentOfAResumedSession(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": chatSpec + "coordinator: {model: m}\n", "script.yaml": chatScript})
	got := call{dir: dir, args: []string{"chat", "--offline", "--message", "Hi."}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"chat", "--continue", "--agent", "coordinator", "--message", "Hi."}}.run(t)
	require.NotEqual(t, exit.StatusOK, got.status)
	require.Contains(t, got.stderr, `the session is with "helper", not with "coordinator"`)
}

// Every command that reads a spec finds mistakes in its chat.
func TestChatOfASpecIsChecked(t *testing.T) {
	t.Parallel()
	for chat, want := range map[string]string{
		"{agent: helpr}":                    "chat: agent: unknown agent \"helpr\"\n  hint: did you mean helper?",
		"{agent: boss}":                     "chat: agent: \"boss\" is a person, and a chat is with a model",
		"{agent: helper, inputs: [claims]}": "chat: inputs: unknown input \"claims\"\n  hint: did you mean claim?",
	} {
		spec := strings.Replace(chatSpec, "{agent: helper}", chat, 1) + "inputs: {claim: {text: x}}\ntasks: [{title: T, assignee: helper, uses: [claim], description: Do it.}]\n"
		dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "script.yaml": chatScript})
		for _, command := range []string{"check", "plan", "run", "chat"} {
			got := call{dir: dir, args: []string{command}}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%s %s: %+v", command, chat, got)
			message, hint, _ := strings.Cut(want, "\n")
			require.Contains(t, got.stderr, message, command)
			require.Contains(t, got.stderr, hint, command)
			require.Contains(t, got.stderr, "team.yaml:6:", command)
		}
	}
}

// A command answers turns: it gets the conversation as one text.
func TestChatWithACommand(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "agents: [{name: echo, backend: {kind: process, command: cat}}]\nchat: {agent: echo}\n"})
	got := call{dir: dir, args: []string{"chat", "--no-journal"}, stdin: "One.\nTwo.\n"}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "## user\nOne.\n\n## assistant\nOne.\n\n## user\nTwo.")
}
