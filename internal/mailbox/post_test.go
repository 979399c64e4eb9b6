package mailbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/label"
)

// One run at a time speaks for the agents; the program is the user meanwhile.
//
// Requirement: G37.
func TestOnlyTheRunSendsForAgents(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{MaxUnread: 2})
	var seen []string
	p, err := b.Attach("run-2", func(m mailbox.Message) string {
		seen = append(seen, string(m.ID))
		return "named " + string(m.ID)
	})
	require.NoError(t, err)
	_, err = b.Attach("run-3", nil)
	require.EqualError(t, err, `attach: bus in use: run "run-2" has it; wait for its end, or make another bus`)
	_, err = b.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrInvalid)
	_, err = b.Broadcast(mailbox.Draft{From: "analyst", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrInvalid)
	require.Empty(t, all(t, b, "writer"))

	send(t, b, user, "writer", "one")
	var told []mailbox.Message
	cancel, err := b.Subscribe("writer", func(m mailbox.Message) { told = append(told, m) })
	require.NoError(t, err)
	defer cancel()
	until := at.Add(time.Hour)
	m, notify, err := p.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "two", TTL: 2 * time.Hour},
		envelope.Header{Run: "run-2", Classification: label.Confidential, Hops: 3, ExpiresAt: until, DerivedFrom: []envelope.ID{"e1"}})
	require.NoError(t, err)
	require.Empty(t, told)
	notify()
	require.Equal(t, []mailbox.Message{m}, told)
	_, _, err = p.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "three"}, envelope.Header{Run: "run-2"})
	require.NoError(t, err)
	told = told[:1]
	require.Equal(t, "named message/1", unread(t, b, "writer")[0].Name, "by the run")
	h := m.Envelope.Header()
	require.Equal(t, "run-2", h.Run)
	require.Equal(t, "analyst", h.Producer)
	require.Equal(t, label.Confidential, h.Classification)
	require.Equal(t, 3, h.Hops)
	require.Equal(t, until, h.ExpiresAt, "the earlier of both")
	require.Equal(t, []string{"message/1"}, seen, "the run knows of its own")

	require.NoError(t, p.Check(mailbox.Draft{From: "analyst", To: "writer", Content: "x"}), "whether the inbox has room is not for the sender to know")
	require.NoError(t, p.Check(mailbox.Draft{From: "analyst", To: "scorer", Content: "x"}))
	require.ErrorIs(t, p.Check(mailbox.Draft{From: "eve", Content: "x"}), mailbox.ErrUnknown)
	_, _, err = p.Send(mailbox.Draft{From: "analyst", Content: "all or nothing"}, envelope.Header{})
	require.ErrorIs(t, err, mailbox.ErrFull)
	_, err = p.Restore(mailbox.Draft{From: "analyst", To: "writer", Content: "four"}, envelope.Header{CreatedAt: at.Add(-time.Hour), Run: "run-1"})
	require.NoError(t, err, "also beyond the limit")
	require.Equal(t, []string{"one", "two", "three", "four"}, texts(unread(t, b, "writer")))
	require.Len(t, told, 1)

	p.Detach()
	p.Detach()
	again, err := b.Attach("run-3", nil)
	require.NoError(t, err)
	p.Detach() // another's is not ended
	_, err = b.Attach("run-4", nil)
	require.ErrorIs(t, err, mailbox.ErrBusy)
	again.Detach()
	_, err = b.Send(mailbox.Draft{From: "writer", To: "analyst", Content: "x"})
	require.NoError(t, err)

	_, err = mailbox.FromSnapshot(b.Snapshot(), team, withEdges(mailbox.Options{}))
	require.NoError(t, err, "messages of several runs")
}
