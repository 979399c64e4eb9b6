package messagebus_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/messagebus"
)

// The bus starts no goroutine, and no test leaves one behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is the time that the clock of a test shows.
var at = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func still() time.Time { return at }

// team is the roster of most tests.
var team = []string{"analyst", "scorer", "writer"}

func newBus(t require.TestingT, o messagebus.Options) *messagebus.Bus {
	if o.Now == nil {
		o.Now = still
	}
	b, err := messagebus.New(team, o)
	require.NoError(t, err)
	return b
}

func send(t require.TestingT, b *messagebus.Bus, from, to, content string) messagebus.ID {
	id, err := b.Send(messagebus.Draft{From: from, To: to, Content: content})
	require.NoError(t, err)
	return id
}

func broadcast(t require.TestingT, b *messagebus.Bus, from, content string) messagebus.ID {
	id, err := b.Broadcast(messagebus.Draft{From: from, Content: content})
	require.NoError(t, err)
	return id
}

func unread(t require.TestingT, b *messagebus.Bus, agent string) []messagebus.Message {
	list, err := b.Unread(agent)
	require.NoError(t, err)
	return list
}

func all(t require.TestingT, b *messagebus.Bus, agent string) []messagebus.Message {
	list, err := b.All(agent)
	require.NoError(t, err)
	return list
}

func take(t require.TestingT, b *messagebus.Bus, agent string, accept func(messagebus.Message) bool) []messagebus.Message {
	list, err := b.Take(agent, accept)
	require.NoError(t, err)
	return list
}

// texts is what messages say. The gate is not here, so the tests look themselves.
func texts(list []messagebus.Message) []string {
	said := []string{}
	for _, m := range list {
		said = append(said, m.Envelope.Open().Text())
	}
	return said
}

func ids(list []messagebus.Message) []messagebus.ID {
	out := []messagebus.ID{}
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out
}

// stored returns a snapshot as it comes back from a store.
func stored(t require.TestingT, s messagebus.Snapshot) (back messagebus.Snapshot) {
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back))
	return back
}

// restored returns the bus that goes on from a snapshot of b.
func restored(t require.TestingT, b *messagebus.Bus, o messagebus.Options) *messagebus.Bus {
	if o.Now == nil {
		o.Now = still
	}
	again, err := messagebus.FromSnapshot(stored(t, b.Snapshot()), team, o)
	require.NoError(t, err)
	return again
}

const user = envelope.User
