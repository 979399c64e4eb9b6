package mailbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/mailbox"
)

// exchanged is a bus on which everybody has written.
func exchanged(t *testing.T) *mailbox.Bus {
	b := newBus(t, mailbox.Options{})
	send(t, b, "analyst", "scorer", "one")
	send(t, b, "scorer", "analyst", "two")
	broadcast(t, b, "analyst", "three")
	send(t, b, user, "analyst", "four")
	broadcast(t, b, user, "five")
	send(t, b, "scorer", "writer", "six")
	send(t, b, "analyst", "scorer", "seven")
	return b
}

func TestMessageWaitsForItsReadersOnly(t *testing.T) {
	t.Parallel()
	b := exchanged(t)
	for agent, want := range map[string][]string{
		"analyst": {"two", "four", "five"}, // not its own broadcast
		"scorer":  {"one", "three", "five", "seven"},
		"writer":  {"three", "five", "six"},
	} {
		require.Equal(t, want, texts(unread(t, b, agent)), agent)
		require.Equal(t, want, texts(all(t, b, agent)), agent)
	}
}

func TestConversationHasTwoAgents(t *testing.T) {
	t.Parallel()
	b := exchanged(t)
	tests := []struct {
		one, other string
		want       []string
	}{
		{"analyst", "scorer", []string{"one", "two", "seven"}},
		{"analyst", user, []string{"four"}},
		{"scorer", "writer", []string{"six"}},
		{"analyst", "writer", []string{}},
		{"writer", user, []string{}},
	}
	for _, tt := range tests {
		there, err := b.Conversation(tt.one, tt.other)
		require.NoError(t, err)
		back, err := b.Conversation(tt.other, tt.one)
		require.NoError(t, err)
		require.Equal(t, tt.want, texts(there), "%s and %s", tt.one, tt.other)
		require.Equal(t, there, back)
	}
	take(t, b, "scorer", nil)
	there, err := b.Conversation("analyst", "scorer")
	require.NoError(t, err)
	require.Len(t, there, 3, "reading removes nothing")
}

func TestBroadcastIsOneMessageThatEachReads(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	id := broadcast(t, b, "analyst", "hello")
	one, other := unread(t, b, "scorer")[0], unread(t, b, "writer")[0]
	require.Equal(t, one, other)
	require.Same(t, one.Envelope, other.Envelope)
	require.Equal(t, id, one.ID)
	require.Equal(t, mailbox.Everyone, one.To)

	require.NoError(t, b.MarkRead("scorer", id))
	require.Empty(t, unread(t, b, "scorer"))
	require.Len(t, unread(t, b, "writer"), 1)
	require.ErrorIs(t, b.MarkRead("analyst", id), mailbox.ErrUnknown, "it was not sent to its sender")
}

func TestMarkReadHidesFromUnreadAlone(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	first, second := send(t, b, user, "writer", "first"), send(t, b, user, "writer", "second")
	require.NoError(t, b.MarkRead("writer", second))
	require.Equal(t, []string{"first"}, texts(unread(t, b, "writer")))
	require.NoError(t, b.MarkRead("writer", second, first, second), "twice is fine")
	require.NoError(t, b.MarkRead("writer"))
	require.Empty(t, unread(t, b, "writer"))
	require.Equal(t, []string{"first", "second"}, texts(all(t, b, "writer")))
}

func TestBroadcastTakesItsReaderByEitherName(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	_, err := b.Broadcast(mailbox.Draft{From: user, To: mailbox.Everyone, Content: "x"})
	require.NoError(t, err)
	for _, agent := range b.Agents() {
		require.Len(t, unread(t, b, agent), 1)
	}
}

func TestBusCopiesTheRoster(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b"}
	b, err := mailbox.New(names, mailbox.Options{Edges: allEdges(names)})
	require.NoError(t, err)
	names[0] = "changed"
	b.Agents()[1] = "changed"
	require.Equal(t, []string{"a", "b"}, b.Agents())
	require.Equal(t, mailbox.ID("message/1"), send(t, b, "a", "b", "x"))
}
