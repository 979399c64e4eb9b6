package specfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

func TestPersonInASpec(t *testing.T) {
	t.Parallel()
	f := loaded(t, `
model: m
agentDefaults: {systemPrompt: Be brief., temperature: 0.5, timeoutMs: 1000}
agents:
  - {name: writer}
  - {name: editor, backend: {kind: person}, accepts: confidential, description: Decides.}
tasks: [{title: A, description: a, assignee: editor}]
`)
	editor := f.Agents[1]
	require.True(t, editor.Person)
	require.False(t, editor.HasModel())
	require.Equal(t, label.Confidential, editor.Member.Accepts)
	require.Empty(t, editor.Member.SystemPrompt, "defaults are for models")
	require.Empty(t, editor.Member.Provider)
	require.Equal(t, "person", editor.Member.Version)
	require.True(t, f.Agents[0].HasModel())
}

func TestKeysThatAPersonDoesNotHave(t *testing.T) {
	t.Parallel()
	tests := []struct{ key, want string }{
		{"model: gpt-4o", "model: not for a person"},
		{"systemPrompt: Be kind.", "systemPrompt: not for a person"},
		{"temperature: 1", "temperature: not for a person"},
		{"tools: [file_read]", "tools: not for a person"},
		{"timeoutMs: 1000", "timeoutMs: not for a person; the descriptions of tasks say what to do, and timeoutMs of a task bounds the wait"},
		{"maxTokenBudget: 10", "maxTokenBudget: not for a person"},
	}
	for _, tt := range tests {
		_, err := load(t, "agents: [{name: a, backend: {kind: person}, "+tt.key+"}]", specfile.Options{})
		require.ErrorIs(t, err, specfile.ErrInvalid, tt.key)
		require.ErrorContains(t, err, tt.want)
	}
	_, err := load(t, "agents: [{name: a, backend: {kind: person, command: x, confine: true}}]", specfile.Options{})
	require.ErrorContains(t, err, "backend.command: not for a person")
	require.ErrorContains(t, err, "backend.confine: not for a person")
	_, err = load(t, "agents: [{name: a, backend: {kind: process}}]", specfile.Options{})
	require.ErrorContains(t, err, "backend: command: it is missing")
}

// Users are stored in the form in which names are compared.
func TestUsersOfAPerson(t *testing.T) {
	t.Parallel()
	users := func(list string) string { return "agents: [{name: a, backend: {kind: person, users: " + list + "}}]" }
	f := loaded(t, users("[Ann@Example.org, ｂｏｂ]")+"\ntasks: [{title: A, description: a}]")
	require.Equal(t, []string{"ann@example.org", "bob"}, f.Agents[0].Users)
	for _, tt := range []struct{ text, want string }{
		{users("[ann, ANN]"), `1:57: users: "ANN" is there twice; name each person once`},
		{users(`["a  b"]`), `1:52: users: "a  b" is no name of a person: it has two spaces in a row; write the name as the server authenticates it, such as ann@example.org`},
		{users("[3]"), `1:52: users[0]: the number 3 where a text belongs; put it in quotes`},
		{users("[]"), `1:51: users: the list is empty; name something, or leave the key out`},
		{"agents: [{name: a, backend: {kind: process, command: cat, users: [ann]}}]", `1:59: backend.users: only for a person; remove it`},
	} {
		require.Equal(t, []string{tt.want}, saidOf(t, tt.text))
	}
}

func TestBackendsAreNamed(t *testing.T) {
	t.Parallel()
	tests := []struct{ backend, want string }{
		{"{kind: human}", `1:36: kind: unknown word "human"; did you mean person? known are process, person; leave backend out for a model`},
		{"{kind: Persn}", `1:36: kind: unknown word "Persn"; did you mean person? known are process, person; leave backend out for a model`},
		{"{kind: command, command: cat}", `1:36: kind: unknown word "command"; did you mean process? known are process, person; leave backend out for a model`},
		{"{kind: robot}", `1:36: kind: unknown word "robot"; write process or person, or leave backend out for a model`},
		{"{command: cat}", `1:29: backend: kind: it is missing; write kind: process or person`},
		{"{kimd: person}", `1:30: unknown key "kimd" in a backend; did you mean kind?`},
	}
	for _, tt := range tests {
		require.Equal(t, []string{tt.want}, saidOf(t, "agents: [{name: a, backend: "+tt.backend+"}]"))
	}
}

func loaded(t *testing.T, text string) *specfile.File {
	t.Helper()
	f, err := load(t, text, specfile.Options{})
	require.NoError(t, err)
	return f
}

// A time limit that could be read is not reported as missing because of a mistake elsewhere.
func TestAMistakeElsewhereHidesNoTimeLimit(t *testing.T) {
	t.Parallel()
	_, err := load(t, `
agents: [{name: editor, backend: {kind: person}}]
tasks:
  - {title: A, assignee: editor, description: a, timeoutMs: 5000, onTimeout: fail}
  - {title: B, assignee: editor}
`, specfile.Options{})
	require.ErrorContains(t, err, `task "B": description: it is missing`)
	require.NotContains(t, err.Error(), "no time limit")
}
