package mailbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/label"
)

// TestEdges checks that every way to store a message checks the edge: sending as the program and as
// the run, broadcasting, restoring after a crash, and reading a snapshot.
//
// Requirement: G37.
func TestEdges(t *testing.T) {
	t.Parallel()
	edges := []handoff.Edge{{From: "analyst", To: "writer", MaxClassification: new(label.Internal)}, {From: "scorer", To: "writer", Bidirectional: true}}
	b, err := mailbox.New(team, mailbox.Options{Edges: edges, Now: still})
	require.NoError(t, err)
	ways := map[string]func(from, to string, level label.Classification) error{
		"program": func(from, to string, level label.Classification) error {
			_, err := b.Send(mailbox.Draft{From: from, To: to, Content: "x", Classification: level})
			return err
		},
		"run": func(from, to string, level label.Classification) error {
			p, err := b.Attach("r", nil)
			require.NoError(t, err)
			defer p.Detach()
			_, _, err = p.Send(mailbox.Draft{From: from, To: to, Content: "x"}, envelope.Header{Classification: level})
			checked := p.Check(mailbox.Draft{From: from, To: to, Content: "x", Classification: level})
			require.Equal(t, err == nil, checked == nil)
			return err
		},
		"restored": func(from, to string, level label.Classification) error {
			p, err := b.Attach("r", nil)
			require.NoError(t, err)
			defer p.Detach()
			_, err = p.Restore(mailbox.Draft{From: from, To: to, Content: "x"}, envelope.Header{Classification: level})
			return err
		},
		"snapshot": func(from, to string, level label.Classification) error {
			open := newBus(t, mailbox.Options{})
			_, err := open.Send(mailbox.Draft{From: from, To: to, Content: "x", Classification: level})
			require.NoError(t, err)
			_, err = mailbox.FromSnapshot(open.Snapshot(), team, mailbox.Options{Edges: edges})
			return err
		},
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, send("analyst", "writer", label.Public))
			require.NoError(t, send("analyst", "writer", label.Internal))
			require.NoError(t, send("scorer", "writer", label.Secret))
			require.NoError(t, send("writer", "scorer", label.Confidential))
			require.NoError(t, send(handoff.User, "analyst", label.Confidential), "the user needs no edge")
			err := send("analyst", "writer", label.Confidential)
			require.ErrorIs(t, err, mailbox.ErrNoEdge)
			require.ErrorContains(t, err, `no edge leads from "analyst" to "writer" for what is confidential: at most internal`)
			err = send("writer", "analyst", label.Public)
			require.ErrorIs(t, err, mailbox.ErrNoEdge)
			require.ErrorContains(t, err, `no edge leads from "writer" to "analyst"`)
		})
	}
	_, err = b.Broadcast(mailbox.Draft{From: "scorer", Content: "to all that it may write to"})
	require.NoError(t, err)
	for _, m := range all(t, b, "analyst") {
		require.Equal(t, handoff.User, m.From)
	}
	none, err := mailbox.New(team, mailbox.Options{})
	require.NoError(t, err)
	_, err = none.Broadcast(mailbox.Draft{From: "scorer", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrNoEdge)
	_, err = none.Broadcast(mailbox.Draft{From: handoff.User, Content: "x"})
	require.NoError(t, err)
}

func TestBadEdges(t *testing.T) {
	t.Parallel()
	for _, e := range []handoff.Edge{{From: "analyst", To: "eve"}, {From: "", To: "analyst"}, {From: handoff.User, To: "analyst"}, {From: "analyst", To: mailbox.Everyone}, {From: "analyst", To: "analyst"}} {
		_, err := mailbox.New(team, mailbox.Options{Edges: []handoff.Edge{e}})
		require.ErrorContains(t, err, "edge 1: ")
	}
}
