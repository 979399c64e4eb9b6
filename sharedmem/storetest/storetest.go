// Package storetest tests implementations of [sharedmem.Store].
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) sharedmem.Store { return newStore(t) })
//	}
package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/task"
)

// Run tests a store against the contract of [sharedmem.Store], with a subtest for each
// clause. Each call of open must return a new, empty store; open may close it with
// t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) sharedmem.Store) {
	for _, clause := range []struct {
		name string
		test func(t *testing.T, s sharedmem.Store)
	}{
		{"a new store is empty", empty},
		{"an entry comes back whole", whole},
		{"an envelope comes back genuine", genuine},
		{"a later entry replaces an earlier one", replaces},
		{"places differ by every byte", distinct},
		{"the caller may change the slice", ownSlice},
		{"nothing happens after the context has ended", ended},
		{"writes and reads at the same time", concurrent},
		{"many entries are kept", many},
	} {
		t.Run(clause.name, func(t *testing.T) { clause.test(t, open(t)) })
	}
}

// made is the creation time of the envelopes. Stores must keep its nanoseconds.
var made = time.Date(2026, 3, 14, 12, 0, 0, 123456789, time.UTC)

// note returns an entry with a text by an agent.
func note(t *testing.T, agent, key, text string) sharedmem.Entry {
	t.Helper()
	e, err := envelope.New(envelope.Header{ID: envelope.ID("note/" + key), Producer: agent, CreatedAt: made}, envelope.Text(text))
	require.NoError(t, err)
	return sharedmem.Entry{Agent: agent, Key: key, Envelope: e, Seq: 1}
}

func put(t *testing.T, s sharedmem.Store, entries ...sharedmem.Entry) {
	t.Helper()
	for _, e := range entries {
		require.NoError(t, s.Put(t.Context(), e), e.FullKey())
	}
}

// requireHolds fails unless the store holds these entries and no others, in any order.
func requireHolds(t *testing.T, s sharedmem.Store, want ...sharedmem.Entry) {
	t.Helper()
	got, err := s.All(t.Context())
	require.NoError(t, err)
	requireSame(t, want, got)
}

func requireSame(t *testing.T, want, got []sharedmem.Entry) {
	t.Helper()
	byKey := map[string]sharedmem.Entry{}
	for _, e := range got {
		require.NotContains(t, byKey, e.FullKey(), "it is stored twice")
		byKey[e.FullKey()] = e
	}
	require.Len(t, byKey, len(want))
	for _, w := range want {
		g, ok := byKey[w.FullKey()]
		require.True(t, ok, "%s is missing", w.FullKey())
		require.NotNil(t, g.Envelope, "%s lost its envelope", w.FullKey())
		require.NoError(t, g.Envelope.Genuine(), "%s was changed", w.FullKey())
		require.Equal(t, w.Envelope.Digest(), g.Envelope.Digest(), "%s has another envelope", w.FullKey())
		w.Envelope, g.Envelope = nil, nil
		require.Equal(t, w, g)
	}
}

func empty(t *testing.T, s sharedmem.Store) { requireHolds(t, s) }

func whole(t *testing.T, s sharedmem.Store) {
	e, err := envelope.New(envelope.Header{ID: "e1", Producer: "ana", Task: "t1", CreatedAt: made}, envelope.Text("done"))
	require.NoError(t, err)
	result := sharedmem.Entry{Agent: "ana", Key: resultKey("t1"), Task: "t1", Envelope: e, Turn: 7, TTLTurns: 3, Seq: 12}
	user := note(t, handoff.User, "wish", "soon")
	user.Turn, user.TTLTurns, user.Seq = 1<<40, 1<<41, 1<<42
	put(t, s, result, user)
	requireHolds(t, s, result, user)
}

// genuine stores envelopes that use all fields. Equal digests, which the envelopes still
// match, show that no byte has changed.
func genuine(t *testing.T, s sharedmem.Store) {
	payloads := map[string]envelope.Payload{
		"empty": {},
		"text":  envelope.Text("two\nlines, a \x00, <tags> & \u2028, ü and \U0001f600"),
	}
	for name, raw := range map[string]string{"object": `{"b":[1,2.5,null,true],"a":{"<&>":"\u2028"}}`, "number": `1e300`, "null": `null`, "string": `""`} {
		p, err := envelope.Structured(raw)
		require.NoError(t, err)
		payloads[name], payloads[name+" and text"] = p, p.WithText(raw)
	}
	var want []sharedmem.Entry
	for name, p := range payloads {
		e, err := envelope.New(envelope.Header{
			ID: envelope.ID("e/" + name), Producer: "ana", Task: "t1", Run: "r1",
			Classification: label.Secret, Trust: label.Endorsed,
			CreatedAt: made.In(time.FixedZone("", -3*60*60)), ExpiresAt: made.Add(time.Hour),
			Hops: 2, DerivedFrom: []envelope.ID{"e0", "i0"}, Tags: []string{"facts", "score"},
		}, p)
		require.NoError(t, err)
		want = append(want, sharedmem.Entry{Agent: "ana", Key: name, Envelope: e, Seq: len(want) + 1})
	}
	put(t, s, want...)
	requireHolds(t, s, want...)
}

func replaces(t *testing.T, s sharedmem.Store) {
	first, other := note(t, "ana", "plan", "first"), note(t, "ana", "facts", "other")
	first.TTLTurns = 4
	second := note(t, "ana", "plan", "second")
	second.Turn, second.Seq = 2, 9
	put(t, s, first, other, second)
	requireHolds(t, s, other, second)
	put(t, s, first) // its turn is older, and it still replaces the entry
	requireHolds(t, s, other, first)
}

func distinct(t *testing.T, s sharedmem.Store) {
	var want []sharedmem.Entry
	for _, agent := range []string{"ana", "Ana", "ana.", "ana b", "an_", "an-", "ań", "한", "\u1112\u1161\u11ab"} {
		for _, key := range []string{"b", "B", "b/c", "/b", "../b", "%", "_", "b'; --", `b"`, `\b`, "b: c", "é", "e\u0301", "*", "0", "00", "NULL"} {
			want = append(want, note(t, agent, key, agent+"|"+key))
		}
	}
	put(t, s, want...)
	requireHolds(t, s, want...)
}

func ownSlice(t *testing.T, s sharedmem.Store) {
	want := []sharedmem.Entry{note(t, "ana", "a", "1"), note(t, "bob", "b", "2")}
	put(t, s, want...)
	got, err := s.All(t.Context())
	require.NoError(t, err)
	clear(got)
	_ = append(got[:0], note(t, "eve", "e", "3"))
	requireHolds(t, s, want...)
	got, err = s.All(t.Context())
	require.NoError(t, err)
	put(t, s, note(t, "ana", "a", "changed"), note(t, "bob", "c", "new"))
	requireSame(t, want, got)
}

func ended(t *testing.T, s sharedmem.Store) {
	there := note(t, "ana", "a", "1")
	put(t, s, there)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Put(ctx, note(t, "ana", "a", "2")), context.Canceled)
	require.ErrorIs(t, s.Put(ctx, note(t, "ana", "b", "2")), context.Canceled)
	_, err := s.All(ctx)
	require.ErrorIs(t, err, context.Canceled)
	requireHolds(t, s, there)
}

func concurrent(t *testing.T, s sharedmem.Store) {
	const writers, each = 8, 12
	var want []sharedmem.Entry
	var all sync.WaitGroup
	faults := make(chan error, 2*writers*each)
	for w := range writers {
		var own []sharedmem.Entry
		for i := range each {
			own = append(own, note(t, fmt.Sprintf("agent %d", w), fmt.Sprintf("key %d", i), fmt.Sprint(w, i)))
		}
		want = append(want, own...)
		all.Go(func() {
			for i, e := range own {
				faults <- s.Put(t.Context(), e)
				faults <- readsAtLeast(t.Context(), s, i+1)
			}
		})
	}
	all.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
	requireHolds(t, s, want...)
}

// readsAtLeast returns an error unless at least n entries can be read.
func readsAtLeast(ctx context.Context, s sharedmem.Store, n int) error {
	got, err := s.All(ctx)
	if err == nil && len(got) < n {
		err = fmt.Errorf("%d entries after %d were put", len(got), n)
	}
	return err
}

func many(t *testing.T, s sharedmem.Store) {
	var want []sharedmem.Entry
	for i := range 600 {
		e := note(t, fmt.Sprintf("agent %d", i%7), fmt.Sprintf("key %d", i), fmt.Sprint(i))
		e.Seq = i + 1
		put(t, s, e)
		if i%3 == 0 { // every third entry is written twice
			e.Turn = i
			put(t, s, e)
		}
		want = append(want, e)
	}
	requireHolds(t, s, want...)
}

// resultKey returns the key of a task's result.
func resultKey(id task.ID) string { return "task:" + string(id) + ":result" }
