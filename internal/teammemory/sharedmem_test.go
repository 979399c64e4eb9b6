package teammemory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// noon is when the envelopes of these tests are made.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// said returns an envelope of an agent's; with a task it is that task's result.
func said(t require.TestingT, agent string, id task.ID, p envelope.Payload) *envelope.Envelope {
	e, err := envelope.New(envelope.Header{
		ID: envelope.ID("e/" + agent), Producer: agent, Task: id, Run: "r1", CreatedAt: noon, Classification: label.Confidential,
	}, p)
	require.NoError(t, err)
	return e
}

// text returns the payload of an entry as the gate would write it if it held nothing.
func text(e teammemory.Entry) string {
	p := e.Envelope.Open()
	if canonical, ok := p.JSON(); ok && p.Text() == "" {
		return canonical
	}
	return p.Text()
}

// note writes a text.
func note(t require.TestingT, m *teammemory.Memory, agent, key, value string, ttl int) {
	require.NoError(t, m.Writer().Write(context.Background(), agent, key, said(t, agent, "", envelope.Text(value)), ttl))
}

// result writes the result of a task, which begins a turn.
func result(t require.TestingT, m *teammemory.Memory, agent string, id task.ID, value string, ttl int) {
	require.NoError(t, m.Writer().WriteResult(context.Background(), agent, said(t, agent, id, envelope.Text(value)), ttl))
}

// lines reads a memory and returns "agent/key=value" for each entry.
func lines(t require.TestingT, m *teammemory.Memory, f teammemory.Filter) []string {
	list, err := m.Reader().Entries(context.Background(), f)
	require.NoError(t, err)
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.FullKey() + "=" + text(e)
	}
	return out
}

// turn returns how many turns have begun.
func turn(t require.TestingT, m *teammemory.Memory) int {
	s, err := m.Snapshot(context.Background())
	require.NoError(t, err)
	return s.Turn
}

func TestResultIsStoredUnderItsTask(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	id := task.NewID("Score fraud")
	e := said(t, "ana", id, envelope.Text("0.7"))
	require.NoError(t, m.Writer().WriteResult(t.Context(), "ana", e, 5))
	list, err := m.Reader().Entries(t.Context(), teammemory.Everything())
	require.NoError(t, err)
	require.Equal(t, []teammemory.Entry{{
		Agent: "ana", Key: "task:" + string(id) + ":result", Task: id, Envelope: e, Turn: 1, TTLTurns: 5, Seq: 1,
	}}, list)
	require.Equal(t, "ana/"+teammemory.ResultKey(id), list[0].FullKey())
	require.Same(t, e, list[0].Envelope, "nothing made another of it")
}

func TestEntriesAreInWriteOrder(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "zoe", "b", "1", 0)
	note(t, m, "ana", "a", "2", 0)
	note(t, m, "zoe", "a", "3", 0)
	note(t, m, handoff.User, "wish", "4", 0)
	result(t, m, "ana", "t1", "5", 0)
	require.Equal(t, []string{"zoe/b=1", "zoe/a=3", "ana/a=2", "ana/task:t1:result=5", "user/wish=4"}, lines(t, m, teammemory.Everything()))
}

func TestWritingAgainReplacesInPlace(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "zoe", "b", "1", 0)
	note(t, m, "ana", "b", "2", 0)
	note(t, m, "zoe", "a", "3", 0)
	note(t, m, "zoe", "b", "new", 0)
	result(t, m, "ana", "t1", "4", 0)
	note(t, m, "ana", "b", "new too", 3)
	require.Equal(t, []string{"zoe/b=new", "zoe/a=3", "ana/b=new too", "ana/task:t1:result=4"}, lines(t, m, teammemory.Everything()))
	list, err := m.Reader().Entries(t.Context(), teammemory.Everything())
	require.NoError(t, err)
	require.Equal(t, 1, list[2].Turn, "a replaced entry is of the turn at which it was written again")
	require.Equal(t, 3, list[2].TTLTurns)
	require.Equal(t, 2, list[2].Seq)
}

func TestExpiredEntryIsGone(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "zoe", "short", "1", 1)
	note(t, m, "ana", "long", "2", 2)
	result(t, m, "ana", "t1", "3", 1)
	require.Equal(t, []string{"ana/long=2", "ana/task:t1:result=3"}, lines(t, m, teammemory.Everything()))
	note(t, m, "zoe", "short", "again", 0) // a new entry: it goes last, and so does its agent
	require.Equal(t, []string{"ana/long=2", "ana/task:t1:result=3", "zoe/short=again"}, lines(t, m, teammemory.Everything()))
	result(t, m, "ana", "t1", "4", 1) // the old one ends with the turn that the new one begins
	require.Equal(t, []string{"zoe/short=again", "ana/task:t1:result=4"}, lines(t, m, teammemory.Everything()))
	result(t, m, "bob", "t2", "5", 0)
	require.Equal(t, []string{"zoe/short=again", "bob/task:t2:result=5"}, lines(t, m, teammemory.Everything()))
}

func TestNotesBeginNoTurn(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "zoe", "short", "1", 1)
	for i := range 5 {
		note(t, m, "ana", fmt.Sprint(i), "x", 0)
	}
	require.Zero(t, turn(t, m))
	require.Contains(t, lines(t, m, teammemory.Everything()), "zoe/short=1")
	result(t, m, "ana", "t1", "x", 0)
	require.Equal(t, 1, turn(t, m))
}

// TestNothingRenewsAnEnvelope checks that writing again, reading and
// restoring leave the expiry of an envelope where it was.
//
// Requirement: G16.
func TestNothingRenewsAnEnvelope(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	e, err := envelope.New(envelope.Header{ID: "e", Producer: "ana", CreatedAt: noon, ExpiresAt: noon.Add(time.Minute)}, envelope.Text("x"))
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, m.Writer().Write(t.Context(), "ana", "k", e, 0))
	}
	s, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	restored, err := teammemory.FromSnapshot(t.Context(), s, nil)
	require.NoError(t, err)
	for _, m := range []*teammemory.Memory{m, restored} {
		list, err := m.Reader().Entries(t.Context(), teammemory.Everything())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, list[0].Envelope.Fresh(noon.Add(time.Minute-1)))
		require.ErrorIs(t, list[0].Envelope.Fresh(noon.Add(time.Minute)), envelope.ErrExpired)
	}
}

func TestMemoryContinuesFromAUsedStore(t *testing.T) {
	t.Parallel()
	store := teammemory.NewMapStore()
	first := teammemory.New(store)
	note(t, first, "zoe", "short", "1", 2)
	note(t, first, "ana", "a", "2", 0)
	result(t, first, "ana", "t1", "3", 0)

	next := teammemory.New(store) // reads before it writes
	require.Equal(t, []string{"zoe/short=1", "ana/a=2", "ana/task:t1:result=3"}, lines(t, next, teammemory.Everything()))
	note(t, next, "ana", "a", "new", 0)
	note(t, next, "zoe", "more", "4", 0)
	require.Equal(t, []string{"zoe/short=1", "zoe/more=4", "ana/a=new", "ana/task:t1:result=3"}, lines(t, next, teammemory.Everything()))

	last := teammemory.New(store) // writes before it reads
	result(t, last, "bob", "t2", "5", 0)
	require.Equal(t, 2, turn(t, last))
	require.Equal(t, []string{"ana/a=new", "ana/task:t1:result=3", "zoe/more=4", "bob/task:t2:result=5"}, lines(t, last, teammemory.Everything()))
}
