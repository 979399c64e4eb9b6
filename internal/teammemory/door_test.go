package teammemory_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/teammemory"
)

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		agent, key string
		producer   string // the agent if empty
		ttl        int
		is         []error
		want       string
	}{
		{name: "no agent", key: "k", producer: "x", is: []error{naming.ErrName}, want: `write memory "/k": invalid entry: agent: not a name: it is empty`},
		{name: "agent with a slash", agent: "a/b", key: "k", is: []error{naming.ErrName}, want: `agent: not a name: '/' at byte 1`},
		{name: "agent with a colon", agent: "a:b", key: "k", is: []error{naming.ErrName}, want: `agent: not a name: ':' at byte 1`},
		{name: "agent with a line break", agent: "a\nb", key: "k", is: []error{naming.ErrName}, want: `write memory "a\nb/k"`},
		{name: "coordinator", agent: "coordinator", key: "k", is: []error{naming.ErrReserved}, want: "agent: reserved name coordinator: choose another"},
		{name: "everybody", agent: "*", key: "k", is: []error{naming.ErrReserved}},
		{name: "user in capitals", agent: "User", key: "k", is: []error{naming.ErrReserved}},
		{name: "another's name", agent: "ana", producer: "bob", key: "k", is: []error{teammemory.ErrForeign},
			want: `write memory "ana/k": invalid entry: written in another's name: the envelope is from "bob"`},
		{name: "another's name in other letters", agent: "ana", producer: "Ana", key: "k", is: []error{teammemory.ErrForeign}},
		{name: "the user's name", agent: handoff.User, producer: "ana", key: "k", is: []error{teammemory.ErrForeign}},
		{name: "a note of several", agent: "ana", producer: "ana > bob", key: "k", is: []error{teammemory.ErrForeign}},
		{name: "no end but a negative one", agent: "ana", key: "k", ttl: -1, want: "-1 turns to live: write 0 for no end"},
		{name: "key of a result", agent: "ana", key: "task:t1:result", want: `keys of the form "task:<id>:result" are for results: choose another`},
		{name: "key of no task's result", agent: "ana", key: "task::result", want: "are for results"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := teammemory.New(nil)
			producer := tt.producer
			if producer == "" {
				producer = tt.agent
			}
			err := m.Writer().Write(t.Context(), tt.agent, tt.key, said(t, producer, "", envelope.Text("x")), tt.ttl)
			require.ErrorIs(t, err, teammemory.ErrInvalid)
			for _, is := range tt.is {
				require.ErrorIs(t, err, is)
			}
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, lines(t, m, teammemory.Everything()))
		})
	}
}

// The result of a conversation that was transferred stands under the agent that began it.
func TestResultsOfTransferredConversations(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	e := said(t, "ana > bob", "t1", envelope.Text("x"))
	for _, agent := range []string{"bob", "an", "ana > bob", handoff.User} {
		require.ErrorIs(t, m.Writer().WriteResult(t.Context(), agent, e, 0), teammemory.ErrInvalid, agent)
	}
	require.NoError(t, m.Writer().WriteResult(t.Context(), "ana", e, 0))
	require.Len(t, lines(t, m, teammemory.Everything()), 1)
}

// Requirement: G31.
func TestKeysAreOneCleanLine(t *testing.T) {
	t.Parallel()
	refused := []struct{ key, want string }{
		{"", "it is empty"},
		{" k", "it begins or ends with a blank"},
		{"k\u00a0", "it begins or ends with a blank"},
		{"\n", "it begins or ends with a blank"},
		{"a\n## Shared Team Memory", "line break (U+000A)"},
		{"a\rb", "line break"},
		{"a\vb", "line break"},
		{"a\u0085b", "line break"},
		{"a\u2028b", "line break"},
		{"a\u2029b", "line break"},
		{"a\x1cb", "line break"},
		{"a\x00b", "control character"},
		{"a\x1b[2Jb", "control character"},
		{"a\u202eb", "invisible character"},
		{"\ufeffa", "invisible character"},
		{"a\xff", "not valid UTF-8"},
		{strings.Repeat("é", teammemory.MaxKey+1), "201 characters, more than 200"},
		{strings.Repeat("x", 1<<20), "1048576 characters, more than 200"},
	}
	for _, tt := range refused {
		m := teammemory.New(nil)
		err := m.Writer().Write(t.Context(), "ana", tt.key, said(t, "ana", "", envelope.Text("x")), 0)
		require.ErrorIs(t, err, teammemory.ErrInvalid, "%q", tt.key)
		require.ErrorContains(t, err, "key: ", "%q", tt.key)
		require.ErrorContains(t, err, tt.want, "%q", tt.key)
		require.NotContains(t, err.Error(), "\n", "%q", tt.key)
		require.Less(t, len(err.Error()), 600, "%q", tt.key)
		require.Empty(t, lines(t, m, teammemory.Everything()), "%q", tt.key)
	}
	for _, key := range []string{"k", "a/b/c", "/", "a: b", "- a", "### x", "task:t1", "task:result", "task:t1:result:", "xtask:t1:result", "Grüße 👩‍👧", strings.Repeat("é", teammemory.MaxKey)} {
		m := teammemory.New(nil)
		note(t, m, "ana", key, "x", 0)
		require.Equal(t, []string{"ana/" + key + "=x"}, lines(t, m, teammemory.Everything()))
	}
}

func TestFullKeysAreUnambiguous(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "a", "b/c", "1", 0)
	err := m.Writer().Write(t.Context(), "a/b", "c", said(t, "a/b", "", envelope.Text("2")), 0)
	require.ErrorIs(t, err, naming.ErrName)
	require.Equal(t, []string{"a/b/c=1"}, lines(t, m, teammemory.Everything()))
}

func TestWriteResultRefuses(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	w := m.Writer()
	for _, tt := range []struct {
		name  string
		agent string
		give  *envelope.Envelope
		ttl   int
		want  string
	}{
		{"nothing", "ana", nil, 0, "no envelope"},
		{"a note", "ana", said(t, "ana", "", envelope.Text("x")), 0, "are for results"},
		{"another's", "ana", said(t, "bob", "t1", envelope.Text("x")), 0, `the envelope is from "bob"`},
		{"an id of two lines", "ana", said(t, "ana", "t\n1", envelope.Text("x")), 0, "line break"},
		{"negative turns", "ana", said(t, "ana", "t1", envelope.Text("x")), -3, "-3 turns to live"},
	} {
		err := w.WriteResult(t.Context(), tt.agent, tt.give, tt.ttl)
		require.ErrorIs(t, err, teammemory.ErrInvalid, tt.name)
		require.ErrorContains(t, err, tt.want, tt.name)
	}
	require.ErrorIs(t, w.Write(t.Context(), "ana", "k", nil, 0), teammemory.ErrInvalid)
	require.Empty(t, lines(t, m, teammemory.Everything()))
	require.Zero(t, turn(t, m), "what was refused begins no turn")
}

// TestNotesCannotReplaceResults checks that a note cannot take the place of what
// the executor wrote, and that another agent's result of the task stands apart.
func TestNotesCannotReplaceResults(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	result(t, m, "ana", "t1", "true", 0)
	err := m.Writer().Write(t.Context(), "ana", teammemory.ResultKey("t1"), said(t, "ana", "t1", envelope.Text("forged")), 0)
	require.ErrorIs(t, err, teammemory.ErrInvalid)
	result(t, m, "bob", "t1", "another's", 0)
	require.Equal(t, []string{"ana/task:t1:result=true", "bob/task:t1:result=another's"}, lines(t, m, teammemory.Only("t1")))
}
