package mailbox_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func TestBusMakesTheEnvelope(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("CET", 3600)
	b := newBus(t, mailbox.Options{Run: "run-1", Now: func() time.Time { return at.In(zone) }})
	send(t, b, user, "writer", "first")
	id, err := b.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "résumé", Classification: label.Confidential, TTL: 10 * time.Second})
	require.NoError(t, err)
	m := unread(t, b, "writer")[1]
	require.NoError(t, m.Envelope.Genuine())
	require.Equal(t, envelope.Text("résumé"), m.Envelope.Open())
	require.Equal(t, envelope.Header{
		ID: "message/2", Producer: "analyst", Run: "run-1", Classification: label.Confidential,
		CreatedAt: at, ExpiresAt: at.Add(10 * time.Second), Hops: 1,
	}, m.Envelope.Header())
	require.Equal(t, mailbox.Message{ID: id, From: "analyst", To: "writer", At: at, Bytes: 8, Envelope: m.Envelope}, m)
}

// Requirement: G15.
func TestMessageWithoutALabelIsInternalAndUntrusted(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	send(t, b, user, "writer", "x")
	e := unread(t, b, "writer")[0].Envelope
	require.Equal(t, label.Internal, e.Classification())
	require.Equal(t, label.Untrusted, e.Trust())
	require.True(t, e.ExpiresAt().IsZero())
}

// Requirement: G16.
func TestMessageExpiresByTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := mailbox.New(team, mailbox.Options{Edges: allEdges(team)}) // the clock of package time
		require.NoError(t, err)
		_, err = b.Send(mailbox.Draft{From: user, To: "writer", Content: "x", TTL: 10 * time.Second})
		require.NoError(t, err)
		e := unread(t, b, "writer")[0].Envelope
		time.Sleep(9999 * time.Millisecond)
		require.NoError(t, e.Fresh(time.Now()))
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, e.Fresh(time.Now()), envelope.ErrExpired)
		require.Len(t, unread(t, b, "writer"), 1, "who may see it is not for the bus to say")
	})
}

// Requirement: G17.
func TestMessageCountsAsAHop(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	broadcast(t, b, "analyst", "x")
	require.Equal(t, 1, unread(t, b, "writer")[0].Envelope.Header().Hops)
}

func TestGateCanRedactTheLargestContent(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, mailbox.MaxContent, gate.MaxRedact)
	b := newBus(t, mailbox.Options{})
	send(t, b, user, "writer", strings.Repeat("x", mailbox.MaxContent))
	_, err := b.Send(mailbox.Draft{From: user, To: "writer", Content: strings.Repeat("x", mailbox.MaxContent+1)})
	require.ErrorIs(t, err, mailbox.ErrInvalid)
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give mailbox.Draft
		want error
		says string
	}{
		{"an unknown sender", mailbox.Draft{From: "analist", To: "writer", Content: "x"}, mailbox.ErrUnknown, `unknown agent "analist": did you mean "analyst"?`},
		{"no sender", mailbox.Draft{To: "writer", Content: "x"}, mailbox.ErrUnknown, `unknown agent "": write the name of an agent`},
		{"a sender like the caller", mailbox.Draft{From: "User", To: "writer", Content: "x"}, mailbox.ErrUnknown, `unknown agent "User": did you mean "user"?`},
		{"an unknown reader", mailbox.Draft{From: "analyst", To: "scoer", Content: "x"}, mailbox.ErrUnknown, `unknown agent "scoer": did you mean "scorer"?`},
		{"another letter case", mailbox.Draft{From: "analyst", To: "Scorer", Content: "x"}, mailbox.ErrUnknown, `unknown agent "Scorer": did you mean "scorer"?`},
		{"nobody near", mailbox.Draft{From: "analyst", To: "xyz", Content: "x"}, mailbox.ErrUnknown, `unknown agent "xyz": write the name of an agent of the roster`},
		{"a very long name", mailbox.Draft{From: "analyst", To: strings.Repeat("é", 1<<20), Content: "x"}, mailbox.ErrUnknown, `unknown agent "` + strings.Repeat("é", 60) + `": write`},
		{"a name for a terminal", mailbox.Draft{From: "analyst", To: "\x1b[2J", Content: "x"}, mailbox.ErrUnknown, `unknown agent "\x1b[2J"`},
		{"the caller as reader", mailbox.Draft{From: "analyst", To: user, Content: "x"}, mailbox.ErrUnknown, `the caller has no inbox`},
		{"everyone as reader", mailbox.Draft{From: "analyst", To: "*", Content: "x"}, mailbox.ErrUnknown, `to write to all, broadcast`},
		{"oneself", mailbox.Draft{From: "writer", To: "writer", Content: "x"}, mailbox.ErrInvalid, `"writer" writes to itself`},
		{"nothing to say", mailbox.Draft{From: user, To: "writer"}, mailbox.ErrInvalid, "it is empty"},
		{"no text", mailbox.Draft{From: user, To: "writer", Content: "a\xff"}, mailbox.ErrInvalid, "not valid UTF-8"},
		{"too much", mailbox.Draft{From: user, To: "writer", Content: strings.Repeat("x", 1<<20+1)}, mailbox.ErrInvalid, "1048577 bytes, at most 1048576"},
		{"no such label", mailbox.Draft{From: user, To: "writer", Content: "x", Classification: 9}, label.ErrUnknown, "write one of public, internal"},
		{"a label too low", mailbox.Draft{From: user, To: "writer", Content: "x", Classification: -2}, mailbox.ErrInvalid, "classification(-2)"},
		{"a life in the past", mailbox.Draft{From: user, To: "writer", Content: "x", TTL: -time.Second}, mailbox.ErrInvalid, "a TTL of -1s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t, mailbox.Options{})
			id, err := b.Send(tt.give)
			require.Empty(t, id)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, "send: ")
			require.ErrorContains(t, err, tt.says)
			require.Less(t, len(err.Error()), 400)
			require.Empty(t, b.Snapshot().Messages)
		})
	}
}

func TestAllProblemsOfAMessageAreReported(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	_, err := b.Send(mailbox.Draft{From: "analist", To: "riter", Classification: 9, TTL: -1})
	for _, word := range []string{"analist", "riter", "empty", "classification(9)", "-1ns"} {
		require.ErrorContains(t, err, word)
	}
}

func TestBroadcastRefuses(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	_, err := b.Broadcast(mailbox.Draft{From: "analist", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrUnknown)
	require.ErrorContains(t, err, `broadcast: unknown agent "analist": did you mean "analyst"?`)
	_, err = b.Broadcast(mailbox.Draft{From: "analyst", To: "writer", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrInvalid)
	require.ErrorContains(t, err, `a broadcast to "writer"`)
	_, err = b.Broadcast(mailbox.Draft{From: "analyst"})
	require.ErrorIs(t, err, mailbox.ErrInvalid)
	require.Empty(t, b.Snapshot().Messages)

	alone, err := mailbox.New([]string{"hermit"}, mailbox.Options{})
	require.NoError(t, err)
	_, err = alone.Broadcast(mailbox.Draft{From: "hermit", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrInvalid)
	require.ErrorContains(t, err, `nobody but "hermit"`)
}

func TestZeroClockSendsNothing(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{Now: func() time.Time { return time.Time{} }})
	_, err := b.Send(mailbox.Draft{From: user, To: "writer", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrInvalid)
	require.ErrorIs(t, err, envelope.ErrInvalid)
	require.Empty(t, unread(t, b, "writer"))
}

func TestPanicInTheClockLeavesTheBusUsable(t *testing.T) {
	t.Parallel()
	broken := true
	b := newBus(t, mailbox.Options{Now: func() time.Time {
		if broken {
			panic("no clock")
		}
		return at
	}})
	require.Panics(t, func() { _, _ = b.Send(mailbox.Draft{From: user, To: "writer", Content: "x"}) })
	broken = false
	require.Equal(t, mailbox.ID("message/1"), send(t, b, user, "writer", "x"))
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		agents []string
		o      mailbox.Options
		want   error
		says   string
	}{
		{"nobody", nil, mailbox.Options{}, mailbox.ErrInvalid, "invalid roster: it is empty"},
		{"a bad name", []string{"a", "b/c"}, mailbox.Options{}, naming.ErrName, `invalid roster: agent 2, "b/c": not a name`},
		{"the caller", []string{"User"}, mailbox.Options{}, naming.ErrReserved, "choose another"},
		{"everyone", []string{"*"}, mailbox.Options{}, naming.ErrReserved, "choose another"},
		{"twice", []string{"Ann", "ann"}, mailbox.Options{}, task.ErrDuplicate, `agent 2, "ann": duplicate of "Ann"`},
		{"a negative limit", []string{"a"}, mailbox.Options{MaxUnread: -1}, mailbox.ErrInvalid, "MaxUnread -1"},
		{"a run of two lines", []string{"a"}, mailbox.Options{Run: "a\nb"}, naming.ErrLine, "invalid run id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := mailbox.New(tt.agents, tt.o)
			require.Nil(t, b)
			require.ErrorIs(t, err, mailbox.ErrInvalid)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.says)
			_, err = mailbox.FromSnapshot(mailbox.Snapshot{Version: 1}, tt.agents, tt.o)
			require.ErrorIs(t, err, tt.want)
		})
	}
	_, err := mailbox.New([]string{"a b ", "*", "c", "C"}, mailbox.Options{MaxUnread: -1})
	for _, part := range []string{"agent 1", "agent 2", "agent 4", "MaxUnread"} {
		require.ErrorContains(t, err, part, "all at once")
	}
}

func TestReadersMustBeAgents(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	calls := map[string]func(agent string) error{
		"unread messages": func(a string) error { _, err := b.Unread(a); return err },
		"all messages":    func(a string) error { _, err := b.All(a); return err },
		"take":            func(a string) error { _, err := b.Take(a, nil); return err },
		"mark read":       func(a string) error { return b.MarkRead(a) },
		"mark unread":     func(a string) error { return b.MarkUnread(a) },
		"subscribe":       func(a string) error { _, err := b.Subscribe(a, func(mailbox.Message) {}); return err },
		"conversation":    func(a string) error { _, err := b.Conversation("scorer", a); return err },
	}
	for verb, call := range calls {
		err := call("wrter")
		require.ErrorIs(t, err, mailbox.ErrUnknown, verb)
		require.EqualError(t, err, verb+`: unknown agent "wrter": did you mean "writer"?`)
		if verb != "conversation" {
			require.ErrorIs(t, call(user), mailbox.ErrUnknown, verb)
		}
	}
	_, err := b.Conversation("writer", "writer")
	require.ErrorIs(t, err, mailbox.ErrInvalid)
	_, err = b.Subscribe("writer", nil)
	require.ErrorIs(t, err, mailbox.ErrInvalid)
}

func TestMarkingAnUnknownMessageMarksNone(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	mine, others := send(t, b, user, "writer", "x"), send(t, b, user, "scorer", "y")
	for _, id := range []mailbox.ID{others, "message/3", "message/0", "message/-1", "message/01", "message/+1", "message/", "1", "", "message/99999999999999999999", "Message/1"} {
		err := b.MarkRead("writer", mine, id)
		require.ErrorIs(t, err, mailbox.ErrUnknown, id)
		require.ErrorContains(t, err, `it was not sent to "writer"`)
		require.Len(t, unread(t, b, "writer"), 1)
	}
	take(t, b, "writer", nil)
	require.ErrorIs(t, b.MarkUnread("writer", mine, others), mailbox.ErrUnknown)
	require.Empty(t, unread(t, b, "writer"))
}
