package mailbox_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func TestSnapshotIsPlainJSON(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{Run: "run-1"})
	broadcast(t, b, "analyst", "hello")
	require.NoError(t, b.MarkRead("writer", "message/1"))
	data, err := json.Marshal(b.Snapshot())
	require.NoError(t, err)
	digest := unread(t, b, "scorer")[0].Envelope.Digest()
	require.JSONEq(t, `{"version": 1, "messages": [{"from": "analyst", "to": "*", "unread": ["scorer"], "read": ["writer"], "envelope": {
		"id": "message/1", "producer": "analyst", "run": "run-1", "classification": "internal", "trust": "untrusted",
		"createdAt": "2026-03-14T12:00:00Z", "hops": 1, "text": "hello", "digest": "`+digest+`"}}]}`, string(data))

	data, err = json.Marshal(newBus(t, mailbox.Options{}).Snapshot())
	require.NoError(t, err)
	require.JSONEq(t, `{"version": 1, "messages": []}`, string(data))
}

// Requirement: G48.
func TestRestoredBusContinues(t *testing.T) {
	t.Parallel()
	o := mailbox.Options{Run: "run-1", MaxUnread: 2, Now: time.Now} // with a monotonic reading
	b := newBus(t, o)
	_, err := b.Send(mailbox.Draft{From: user, To: "writer", Content: "secret", Classification: label.Secret, TTL: time.Hour})
	require.NoError(t, err)
	broadcast(t, b, user, "to all")
	take(t, b, "writer", func(m mailbox.Message) bool { return m.ID == "message/2" })

	again := restored(t, b, o)
	require.Equal(t, []string{"secret"}, texts(unread(t, again, "writer")))
	require.Equal(t, []string{"secret", "to all"}, texts(all(t, again, "writer")))
	want, got := unread(t, b, "writer")[0], unread(t, again, "writer")[0]
	require.NoError(t, got.Envelope.Genuine())
	require.Equal(t, want.Envelope.Digest(), got.Envelope.Digest())
	require.Equal(t, label.Secret, got.Envelope.Classification())
	require.True(t, want.Envelope.ExpiresAt().Equal(got.Envelope.ExpiresAt()))
	require.True(t, want.At.Equal(got.At))

	require.Equal(t, mailbox.ID("message/3"), send(t, again, user, "writer", "more"))
	_, err = again.Send(mailbox.Draft{From: user, To: "writer", Content: "too much"})
	require.ErrorIs(t, err, mailbox.ErrFull, "what was unread counts")
	require.NoError(t, again.MarkUnread("writer", "message/2"))
	require.Equal(t, []string{"secret", "to all", "more"}, texts(unread(t, again, "writer")))
}

func TestRestoredTimeIsInUTC(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	send(t, b, user, "writer", "x")
	s := b.Snapshot()
	s.Messages[0].Envelope.CreatedAt = at.In(time.FixedZone("CET", 3600)) // the same instant
	again, err := mailbox.FromSnapshot(s, team, withEdges(mailbox.Options{}))
	require.NoError(t, err)
	m := unread(t, again, "writer")[0]
	require.Equal(t, at, m.At)
	require.NoError(t, m.Envelope.Genuine())
}

func TestSnapshotDoesNotChange(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	broadcast(t, b, user, "one")
	s := b.Snapshot()
	s.Messages[0].Unread[0], s.Messages[0].Envelope.Text = "changed", "changed"
	require.Equal(t, []string{"one"}, texts(unread(t, b, "analyst")))

	s = b.Snapshot()
	take(t, b, "writer", nil)
	send(t, b, user, "writer", "two")
	again, err := mailbox.FromSnapshot(s, team, withEdges(mailbox.Options{}))
	require.NoError(t, err)
	s.Messages[0].Unread[0], s.Messages[0].Envelope.Text = "changed", "changed"
	require.Equal(t, []string{"one"}, texts(unread(t, again, "writer")))
}

func TestSnapshotIsRestoredForALargerTeam(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{MaxUnread: 5})
	for range 3 {
		broadcast(t, b, user, "before")
	}
	grown := append([]string{"newcomer"}, team...)
	again, err := mailbox.FromSnapshot(stored(t, b.Snapshot()), grown, withEdges(mailbox.Options{MaxUnread: 1, Now: still}))
	require.NoError(t, err)
	require.Empty(t, all(t, again, "newcomer"), "it was not there then")
	require.Len(t, unread(t, again, "writer"), 3, "above the limit, and yet nothing is lost")
	_, err = again.Broadcast(mailbox.Draft{From: user, Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrFull)
	send(t, again, user, "newcomer", "x")
	_, err = mailbox.FromSnapshot(again.Snapshot(), team, withEdges(mailbox.Options{}))
	require.ErrorIs(t, err, mailbox.ErrUnknown)
}

// TestAlteredMessageIsNotGenuine alters each part of a stored message
// that its digest covers.
//
// Requirement: G19.
func TestAlteredMessageIsNotGenuine(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*mailbox.Stored){
		"text":   func(s *mailbox.Stored) { s.Envelope.Text = "Hello" },
		"label":  func(s *mailbox.Stored) { s.Envelope.Classification = label.Public },
		"trust":  func(s *mailbox.Stored) { s.Envelope.Trust = label.Endorsed },
		"expiry": func(s *mailbox.Stored) { s.Envelope.ExpiresAt = time.Time{} },
		"later":  func(s *mailbox.Stored) { s.Envelope.ExpiresAt = s.Envelope.ExpiresAt.Add(1) },
		"time":   func(s *mailbox.Stored) { s.Envelope.CreatedAt = s.Envelope.CreatedAt.Add(-1) },
		"hops":   func(s *mailbox.Stored) { s.Envelope.Hops = 0 },
		"tags":   func(s *mailbox.Stored) { s.Envelope.Tags = []string{"score"} },
		"digest": func(s *mailbox.Stored) { s.Envelope.Digest = s.Envelope.Digest[1:] + "0" },
		"none":   func(s *mailbox.Stored) { s.Envelope.Digest = "" },
		"sender": func(s *mailbox.Stored) { s.From, s.Envelope.Producer = "scorer", "scorer" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t, mailbox.Options{})
			_, err := b.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "hello", TTL: time.Hour})
			require.NoError(t, err)
			s := stored(t, b.Snapshot())
			change(&s.Messages[0])
			again, err := mailbox.FromSnapshot(stored(t, s), team, withEdges(mailbox.Options{}))
			require.NoError(t, err)
			require.ErrorIs(t, unread(t, again, "writer")[0].Envelope.Genuine(), envelope.ErrTampered)
		})
	}
}

func TestFromSnapshotRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*mailbox.Snapshot)
		want   error
		says   string
	}{
		{"no version", func(s *mailbox.Snapshot) { s.Version = 0 }, nil, "version 0: this program reads 1"},
		{"another version", func(s *mailbox.Snapshot) { s.Version = 2 }, nil, "version 2"},
		{"an unknown sender", func(s *mailbox.Snapshot) {
			s.Messages[0].From, s.Messages[0].Envelope.Producer = "analist", "analist"
		}, mailbox.ErrUnknown, `message 1: unknown agent "analist": did you mean "analyst"?`},
		{"an unknown reader", func(s *mailbox.Snapshot) { s.Messages[0].To = "riter" }, mailbox.ErrUnknown, `did you mean "writer"?`},
		{"the caller as reader", func(s *mailbox.Snapshot) { s.Messages[0].To, s.Messages[0].Unread = user, []string{user} }, mailbox.ErrUnknown, "no inbox"},
		{"an unknown name among the readers", func(s *mailbox.Snapshot) { s.Messages[1].Read = []string{"riter"} }, mailbox.ErrUnknown, "message 2: "},
		{"a reader of another's message", func(s *mailbox.Snapshot) { s.Messages[0].Read = []string{"scorer"} }, mailbox.ErrInvalid, `reader "scorer": the message is from "analyst" to "writer"`},
		{"the sender among the readers", func(s *mailbox.Snapshot) { s.Messages[1].Read = []string{"scorer"} }, mailbox.ErrInvalid, `reader "scorer"`},
		{"to oneself", func(s *mailbox.Snapshot) { s.Messages[0].To, s.Messages[0].Unread = "analyst", []string{"analyst"} }, mailbox.ErrInvalid, `reader "analyst"`},
		{"a reader twice", func(s *mailbox.Snapshot) { s.Messages[1].Read = []string{"writer"} }, task.ErrDuplicate, `duplicate reader "writer"`},
		{"nobody", func(s *mailbox.Snapshot) { s.Messages[0].Unread = nil }, mailbox.ErrInvalid, "nobody has read it"},
		{"a wrong producer", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.Producer = "scorer" }, mailbox.ErrInvalid, `producer "scorer": the sender is "analyst"`},
		{"a duplicate id", func(s *mailbox.Snapshot) { s.Messages[1].Envelope.ID = "message/1" }, task.ErrDuplicate, `message 2: duplicate id "message/1"`},
		{"a missing message", func(s *mailbox.Snapshot) { s.Messages = slices.Delete(s.Messages, 0, 1) }, mailbox.ErrInvalid, `message 1: invalid id "message/2": ids count up, and this one is "message/1"`},
		{"another order", func(s *mailbox.Snapshot) { slices.Reverse(s.Messages) }, mailbox.ErrInvalid, `id "message/2"`},
		{"a foreign id", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.ID = "input/claim" }, mailbox.ErrInvalid, `id "input/claim"`},
		{"an id before the first", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.ID = "message/0" }, mailbox.ErrInvalid, `invalid id "message/0"`},
		{"another run", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.Run = "run-2" }, mailbox.ErrInvalid, `run "run-2": the bus is of run "run-1"`},
		{"a task's result", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.Task = "t" }, mailbox.ErrInvalid, `no task's result`},
		{"no such envelope", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.Hops = 17 }, envelope.ErrInvalid, "17 hops"},
		{"no strict JSON", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.JSON = json.RawMessage(`{`) }, jsonvalue.ErrInvalid, "message 1"},
		{"no text", func(s *mailbox.Snapshot) { s.Messages[0].Envelope.Text = "" }, mailbox.ErrInvalid, "it has no text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := mailbox.Options{Run: "run-1"}
			b := newBus(t, o)
			send(t, b, "analyst", "writer", canary)
			broadcast(t, b, "scorer", canary)
			s := b.Snapshot()
			tt.change(&s)
			again, err := mailbox.FromSnapshot(s, team, withEdges(o))
			require.Nil(t, again)
			require.ErrorIs(t, err, mailbox.ErrSnapshot)
			require.ErrorContains(t, err, tt.says)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
			requireNoCanary(t, err.Error())
		})
	}
}

func TestSnapshotsAreReadStrictly(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, says string }{
		{"another version", `{"version": 2, "letters": []}`, "version 2: this program reads 1"},
		{"no version", `{"messages": []}`, "version 0"},
		{"null", `null`, "version 0"},
		{"a key of nobody", `{"version": 1, "messages": [{"form": "analyst"}]}`, `unknown field "form"`},
		{"a key of no envelope", `{"version": 1, "messages": [{"envelope": {"txt": ""}}]}`, `unknown field "txt"`},
		{"no list", `{"version": 1, "messages": {}}`, "cannot unmarshal object"},
		{"no number", `{"version": "1"}`, "cannot unmarshal string"},
		{"an unknown label", `{"version": 1, "messages": [{"envelope": {"classification": "open"}}]}`, `unknown label "open"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s mailbox.Snapshot
			err := json.Unmarshal([]byte(tt.give), &s)
			require.ErrorIs(t, err, mailbox.ErrSnapshot)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// FuzzFromSnapshot checks that whatever is read can be gone on with, and comes
// back from a snapshot as it was.
func FuzzFromSnapshot(f *testing.F) {
	b := newBus(f, mailbox.Options{})
	send(f, b, "analyst", "writer", "one")
	broadcast(f, b, user, "two")
	require.NoError(f, b.MarkRead("writer", "message/2"))
	data, err := json.Marshal(b.Snapshot())
	require.NoError(f, err)
	f.Add(data)
	for old, new := range map[string]string{
		`"to":"writer"`: `"to":"*"`, `"text":"one"`: `"text":"tow"`, `"read":["writer"]`: `"read":["writer","writer"]`,
		`"id":"message/2"`: `"id":"message/1"`, `"classification":"internal"`: `"classification":"secret"`, `"hops":1`: `"json":1`,
		`"createdAt":"2026-03-14T12:00:00Z"`: `"createdAt":"2026-03-14T12:00:00.5+01:30"`, `"version":1`: `"version":2`,
	} {
		require.Contains(f, string(data), old)
		f.Add([]byte(strings.Replace(string(data), old, new, 1)))
	}
	genuine := map[string]mailbox.Message{}
	for _, m := range all(f, b, "writer") {
		genuine[m.Envelope.Digest()] = m
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s mailbox.Snapshot
		if json.Unmarshal(data, &s) != nil {
			return
		}
		b, err := mailbox.FromSnapshot(s, team, withEdges(mailbox.Options{Now: still, MaxUnread: 1 << 20}))
		if err != nil {
			require.ErrorIs(t, err, mailbox.ErrSnapshot)
			return
		}
		again := restored(t, b, mailbox.Options{})
		n := 0
		for _, agent := range team {
			require.Equal(t, ids(unread(t, b, agent)), ids(unread(t, again, agent)))
			require.Equal(t, ids(all(t, b, agent)), ids(all(t, again, agent)))
			for i, m := range all(t, b, agent) {
				n++
				require.Equal(t, m.From, m.Envelope.Producer())
				other := all(t, again, agent)[i]
				require.Equal(t, m.String(), other.String())
				require.Equal(t, m.Envelope.Open(), other.Envelope.Open())
				if m.Envelope.Genuine() == nil { // nobody but the bus of the seed makes a digest that fits
					want, ok := genuine[m.Envelope.Digest()]
					require.True(t, ok)
					require.Equal(t, want.Envelope.Open(), m.Envelope.Open())
					require.Equal(t, want.Envelope.Classification(), m.Envelope.Classification())
					require.NoError(t, other.Envelope.Genuine())
				}
			}
		}
		require.GreaterOrEqual(t, n, len(s.Messages), "each has a reader")
		require.Equal(t, mailbox.ID("message/"+strconv.Itoa(len(s.Messages)+1)), broadcast(t, b, user, "x"))
		for _, agent := range team {
			take(t, b, agent, nil)
			require.Empty(t, unread(t, b, agent))
		}
	})
}
