package mailbox_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/mailbox"
)

// The bus starts no goroutine, and no test leaves one behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is the time that the clock of a test shows.
var at = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func still() time.Time { return at }

// team is the roster of most tests.
var team = []string{"analyst", "scorer", "writer"}

func newBus(t require.TestingT, o mailbox.Options) *mailbox.Bus {
	if o.Now == nil {
		o.Now = still
	}
	if o.Edges == nil {
		o.Edges = allEdges(team)
	}
	b, err := mailbox.New(team, o)
	require.NoError(t, err)
	return b
}

// allEdges connects each agent with every other one.
func allEdges(names []string) (all []handoff.Edge) {
	for i, from := range names {
		for _, to := range names[i+1:] {
			all = append(all, handoff.Edge{From: from, To: to, Bidirectional: true})
		}
	}
	return all
}

func send(t require.TestingT, b *mailbox.Bus, from, to, content string) mailbox.ID {
	id, err := b.Send(mailbox.Draft{From: from, To: to, Content: content})
	require.NoError(t, err)
	return id
}

func broadcast(t require.TestingT, b *mailbox.Bus, from, content string) mailbox.ID {
	id, err := b.Broadcast(mailbox.Draft{From: from, Content: content})
	require.NoError(t, err)
	return id
}

func unread(t require.TestingT, b *mailbox.Bus, agent string) []mailbox.Message {
	list, err := b.Unread(agent)
	require.NoError(t, err)
	return list
}

func all(t require.TestingT, b *mailbox.Bus, agent string) []mailbox.Message {
	list, err := b.All(agent)
	require.NoError(t, err)
	return list
}

func take(t require.TestingT, b *mailbox.Bus, agent string, accept func(mailbox.Message) bool) []mailbox.Message {
	list, err := b.Take(agent, accept)
	require.NoError(t, err)
	return list
}

// texts is what messages say. The gate is not here, so the tests look themselves.
func texts(list []mailbox.Message) []string {
	said := []string{}
	for _, m := range list {
		said = append(said, m.Envelope.Open().Text())
	}
	return said
}

func ids(list []mailbox.Message) []mailbox.ID {
	out := []mailbox.ID{}
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out
}

// stored returns a snapshot as it comes back from a store.
func stored(t require.TestingT, s mailbox.Snapshot) (back mailbox.Snapshot) {
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back))
	return back
}

// restored returns the bus that goes on from a snapshot of b.
func restored(t require.TestingT, b *mailbox.Bus, o mailbox.Options) *mailbox.Bus {
	if o.Now == nil {
		o.Now = still
	}
	again, err := mailbox.FromSnapshot(stored(t, b.Snapshot()), team, withEdges(o))
	require.NoError(t, err)
	return again
}

const user = handoff.User

func withEdges(o mailbox.Options) mailbox.Options {
	o.Edges = allEdges(team)
	return o
}
