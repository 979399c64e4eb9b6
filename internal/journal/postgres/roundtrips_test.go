package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/record"
)

// answered is the entry of an answer that other runs may reuse.
func answered(n int) record.Entry {
	key := record.Key{1, byte(n)}
	return record.Entry{Exchange: &record.AgentCall{
		CallID: record.CallID{Session: "r1/t/1", Task: "t", Title: "T", Agent: "editor", Attempt: 1},
		Keys:   record.Keys{Key: key, Core: key, Reuse: key, Reusable: true},
		Start:  time.Now(), End: time.Now(), Result: &envelope.Record{Text: "yes"},
	}}
}

// Each thing that a run does often has so many round trips at most.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	w := &world{direct: pgtest.Address(t)}
	w.proxy, w.address = newProxy(t, w.direct)
	w.open(t)
	w.begin(t)
	n := 1
	var runs []*journal.Run
	end := func() {
		_, err := runs[0].End(t.Context())
		require.NoError(t, err)
		runs = runs[1:]
	}
	for _, of := range []struct {
		name string
		most int
		do   func()
	}{
		{"begin", 2, func() {
			n++
			r, err := w.j.Begin(t.Context(), journal.Info{Run: fmt.Sprint("r", n)})
			require.NoError(t, err)
			runs = append(runs, r)
		}},
		{"complete two tasks", 1, func() {
			n += 2
			require.NoError(t, add(w.run, answered(n), ready("a"), answered(n+1), ready("b")))
		}},
		{"end", 1, end},
		{"submit", 2, func() {
			n++
			_, added, err := w.j.Submit(t.Context(), journal.Submission{Info: journal.Info{Run: fmt.Sprint("r", n)}, Spec: "claims", By: "ann", Most: 9})
			require.NoError(t, err)
			require.True(t, added)
		}},
		{"claim", 18, func() {
			c, err := w.j.Claim(t.Context(), journal.Worker{Serves: []journal.Served{{Spec: "claims"}}, MaxRunning: 9})
			require.NoError(t, err)
			runs = append(runs, c.Run)
		}},
		{"release", 1, end},
		{"learn that others set no limits", 1, func() {
			require.NoError(t, w.j.UpdateLimits(t.Context(), "http://a/v1", func(time.Time, []byte) []byte { return nil }))
		}},
		{"renew a share of limits", 6, func() {
			require.NoError(t, w.j.UpdateLimits(t.Context(), "http://a/v1", func(time.Time, []byte) []byte { return []byte("{}") }))
		}},
		{"resume and end", 10, func() {
			r, _, err := w.j.Resume(t.Context(), "r2")
			require.NoError(t, err)
			runs = append(runs, r)
			end()
		}},
	} {
		require.LessOrEqual(t, w.proxy.roundTrips(of.do), of.most, of.name)
	}
	require.Equal(t, 8, w.value(t, "select count(*) from answers"))
}
