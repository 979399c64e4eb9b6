package teammemory_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
)

// stored returns the snapshot as it comes back from a file.
func stored(t *testing.T, s teammemory.Snapshot) (back teammemory.Snapshot) {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back))
	return back
}

func TestSnapshotIsVersion1(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	s, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `{"version": 1, "turn": 0, "entries": []}`, string(data))

	note(t, m, "bob", "gone", "x", 1)
	note(t, m, "ana", "plan", "first", 3)
	result(t, m, "bob", "t1", "0.7", 0)
	s, err = m.Snapshot(t.Context())
	require.NoError(t, err)
	for i := range s.Entries {
		s.Entries[i].Envelope.Digest = strings.Repeat("0", 64)
	}
	data, err = json.Marshal(s)
	require.NoError(t, err)
	const digest = `"digest": "0000000000000000000000000000000000000000000000000000000000000000"`
	require.JSONEq(t, `{"version": 1, "turn": 1, "entries": [
		{"agent": "ana", "key": "plan", "turn": 0, "ttlTurns": 3, "seq": 2, "envelope": {"id": "e/ana", "producer": "ana", "run": "r1",
			"classification": "confidential", "trust": "untrusted", "createdAt": "2026-03-14T12:00:00Z", "text": "first", `+digest+`}},
		{"agent": "bob", "key": "task:t1:result", "task": "t1", "turn": 1, "seq": 3, "envelope": {"id": "e/bob", "producer": "bob", "task": "t1", "run": "r1",
			"classification": "confidential", "trust": "untrusted", "createdAt": "2026-03-14T12:00:00Z", "text": "0.7", `+digest+`}}]}`, string(data))
}

// Requirement: G48.
func TestRestoredEntriesKeepTheirLabels(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	for i, level := range []label.Classification{label.Public, label.Internal, label.Confidential, label.Secret} {
		e, err := envelope.New(envelope.Header{
			ID: "e", Producer: "ana", Run: "r1", Classification: level, Trust: label.Endorsed, CreatedAt: noon.Add(1),
			ExpiresAt: noon.Add(5), Hops: i, DerivedFrom: []envelope.ID{"e0"}, Tags: []string{"facts"},
		}, structured(t, `{"a":1}`).WithText("text"))
		require.NoError(t, err)
		require.NoError(t, m.Writer().Write(t.Context(), "ana", level.String(), e, 0))
	}
	s, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	restored, err := teammemory.FromSnapshot(t.Context(), stored(t, s), nil)
	require.NoError(t, err)
	want, err := m.Reader().Entries(t.Context(), teammemory.Everything())
	require.NoError(t, err)
	got, err := restored.Reader().Entries(t.Context(), teammemory.Everything())
	require.NoError(t, err)
	require.Len(t, got, 4)
	for i := range want {
		require.NoError(t, got[i].Envelope.Genuine())
		require.Equal(t, want[i].Envelope.Header(), got[i].Envelope.Header())
		require.Equal(t, want[i].Envelope.Digest(), got[i].Envelope.Digest())
		require.Equal(t, text(want[i]), text(got[i]))
	}
}

// TestRestoringKeepsTheDigest checks that what was changed in a stored memory
// comes back with its old digest, for the gate to find.
//
// Requirement: G19.
func TestRestoringKeepsTheDigest(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "ana", "k", "true", 0)
	s, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	for name, change := range map[string]func(*envelope.Record){
		"text":  func(r *envelope.Record) { r.Text = "forged" },
		"label": func(r *envelope.Record) { r.Classification = label.Public },
		"run":   func(r *envelope.Record) { r.Run = "r2" },
	} {
		changed := stored(t, s)
		change(&changed.Entries[0].Envelope)
		restored, err := teammemory.FromSnapshot(t.Context(), changed, nil)
		require.NoError(t, err, name)
		list, err := restored.Reader().Entries(t.Context(), teammemory.Everything())
		require.NoError(t, err, name)
		require.ErrorIs(t, list[0].Envelope.Genuine(), envelope.ErrTampered, name)
	}
}

func TestRestoredMemoryContinues(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "zoe", "plan", "1", 0)
	note(t, m, "ana", "short", "2", 3)
	result(t, m, "bob", "t1", "3", 1)
	result(t, m, "bob", "t2", "4", 0)
	s, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	store := teammemory.NewMapStore()
	restored, err := teammemory.FromSnapshot(t.Context(), stored(t, s), store)
	require.NoError(t, err)
	for _, m := range []*teammemory.Memory{m, restored, teammemory.New(store)} {
		require.Equal(t, 2, turn(t, m))
		require.Equal(t, []string{"zoe/plan=1", "ana/short=2", "bob/task:t2:result=4"}, lines(t, m, teammemory.Everything()))
	}
	for _, m := range []*teammemory.Memory{m, restored} {
		note(t, m, "bob", "k", "5", 0)
		note(t, m, "zoe", "plan", "6", 0)
		result(t, m, "zoe", "t3", "7", 0)
		require.Equal(t, 3, turn(t, m))
		require.Equal(t, []string{"zoe/plan=6", "zoe/task:t3:result=7", "bob/task:t2:result=4", "bob/k=5"}, lines(t, m, teammemory.Everything()))
	}
}

func TestRestoredTurnIsKept(t *testing.T) {
	t.Parallel()
	s := teammemory.Snapshot{Version: 1, Turn: 7} // what those tasks wrote is gone, and yet they completed
	m, err := teammemory.FromSnapshot(t.Context(), s, nil)
	require.NoError(t, err)
	require.Equal(t, 7, turn(t, m))
	result(t, m, "ana", "t1", "x", 0)
	require.Equal(t, 8, turn(t, m))
}

func TestFromSnapshotRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(s *teammemory.Snapshot)
		is     error
		want   string
	}{
		{"no version", func(s *teammemory.Snapshot) { s.Version = 0 }, nil, "restore memory: unreadable snapshot: version 0: this program reads 1"},
		{"a later version", func(s *teammemory.Snapshot) { s.Version = 2 }, nil, "version 2"},
		{"a turn before the first", func(s *teammemory.Snapshot) { s.Turn = -1 }, nil, "turn -1: turns count from 0"},
		{"no room for turns", func(s *teammemory.Snapshot) { s.Turn = math.MaxInt }, nil, "turns count from 0"},
		{"no room for places", func(s *teammemory.Snapshot) { s.Entries[1].Seq = math.MaxInt }, teammemory.ErrInvalid, "places count from 1"},
		{"from the future", func(s *teammemory.Snapshot) { s.Turn = 0 }, nil, `entry "bob/task:t1:result": from turn 1, after the last, 0`},
		{"another's name", func(s *teammemory.Snapshot) { s.Entries[0].Agent = "eve" }, teammemory.ErrForeign, `entry "eve/plan": invalid entry: written in another's name`},
		{"bad key", func(s *teammemory.Snapshot) { s.Entries[0].Key = "a\nb" }, teammemory.ErrInvalid, "line break"},
		{"result of another task", func(s *teammemory.Snapshot) { s.Entries[1].Task = "t2" }, teammemory.ErrInvalid, `the result of task "t2"`},
		{"negative life", func(s *teammemory.Snapshot) { s.Entries[0].TTLTurns = -1 }, teammemory.ErrInvalid, "turns to live"},
		{"no envelope", func(s *teammemory.Snapshot) { s.Entries[0].Envelope = envelope.Record{} }, envelope.ErrInvalid, `entry "ana/plan": invalid envelope: no id`},
		{"out of order", func(s *teammemory.Snapshot) { s.Entries[0], s.Entries[1] = s.Entries[1], s.Entries[0] }, nil, `entry "ana/plan": place 1 after place 2`},
		{"no place", func(s *teammemory.Snapshot) { s.Entries[0].Seq = 0 }, nil, `place 0 after place 0`},
		{"there twice", func(s *teammemory.Snapshot) {
			s.Entries = append(s.Entries, s.Entries[0])
			s.Entries[2].Seq = 3
		}, nil, `entry "ana/plan": it is there twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := teammemory.New(nil)
			note(t, m, "ana", "plan", "CANARY", 0)
			result(t, m, "bob", "t1", "CANARY", 0)
			s, err := m.Snapshot(t.Context())
			require.NoError(t, err)
			tt.change(&s)
			store := teammemory.NewMapStore()
			restored, err := teammemory.FromSnapshot(t.Context(), s, store)
			require.Nil(t, restored)
			require.ErrorIs(t, err, teammemory.ErrSnapshot)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "CANARY")
			require.Empty(t, lines(t, teammemory.New(store), teammemory.Everything()), "nothing was put")
		})
	}
}

func TestFromSnapshotTakesAnEmptyStore(t *testing.T) {
	t.Parallel()
	store := teammemory.NewMapStore()
	m := teammemory.New(store)
	note(t, m, "ana", "k", "x", 1)
	s, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	result(t, m, "ana", "t1", "x", 0)
	_, err = teammemory.FromSnapshot(t.Context(), s, store)
	require.EqualError(t, err, "restore memory: the store holds entries already: give an empty one, or go on from it with New")
	require.Equal(t, []string{"ana/task:t1:result=x"}, lines(t, teammemory.New(store), teammemory.Everything()), "nothing was resurrected")
}

// FuzzFromSnapshot checks that data from anywhere is refused or understood: what
// is read can be read and written to, and stored again means the same.
func FuzzFromSnapshot(f *testing.F) {
	m := teammemory.New(nil)
	for _, k := range []string{"a", "b"} {
		note(f, m, "ana", k, k, 2)
	}
	result(f, m, "bob", "t1", "x", 0)
	s, err := m.Snapshot(context.Background())
	require.NoError(f, err)
	data, err := json.Marshal(s)
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(strings.Replace(string(data), `"turn":1`, `"turn":9`, 1)))
	f.Add([]byte(`{"version": 1, "turn": 3, "entries": [{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s teammemory.Snapshot
		if json.Unmarshal(data, &s) != nil {
			return
		}
		m, err := teammemory.FromSnapshot(t.Context(), s, nil)
		if err != nil {
			require.ErrorIs(t, err, teammemory.ErrSnapshot)
			return
		}
		want := lines(t, m, teammemory.Everything())
		next, err := m.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, s.Turn, next.Turn)
		again, err := teammemory.FromSnapshot(t.Context(), stored(t, next), nil)
		require.NoError(t, err)
		require.Equal(t, want, lines(t, again, teammemory.Everything()))
		note(t, again, "zoe", "new", "x", 0)
		result(t, again, "zoe", "t1", "y", 0)
		want = lines(t, again, teammemory.Everything())
		require.Contains(t, want, "zoe/new=x")
		next, err = again.Snapshot(t.Context())
		require.NoError(t, err)
		last, err := teammemory.FromSnapshot(t.Context(), next, nil)
		require.NoError(t, err)
		require.Equal(t, want, lines(t, last, teammemory.Everything()))
	})
}
