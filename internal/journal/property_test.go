package journal_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

var (
	labels = rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential, label.Secret})
	counts = rapid.IntRange(0, 1<<40)
	moment = rapid.Custom(func(t *rapid.T) time.Time { return time.Unix(0, rapid.Int64Range(0, 1<<61).Draw(t, "ns")).UTC() })
	key    = rapid.Custom(func(t *rapid.T) record.Key {
		return record.Key(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
	})
)

// An exchange that was answered, with a text of any bytes, or failed.
var exchange = rapid.Custom(func(t *rapid.T) record.Entry {
	x := &record.AgentCall{
		Start:   moment.Draw(t, "start"),
		End:     moment.Draw(t, "end"),
		From:    rapid.String().Draw(t, "from"),
		Context: event.Context{Prompts: counts.Draw(t, "prompts")},
		CallID:  record.CallID{Session: rapid.String().Draw(t, "session"), Task: task.ID(rapid.String().Draw(t, "task")), Title: rapid.String().Draw(t, "title"), Agent: rapid.String().Draw(t, "agent"), Model: rapid.String().Draw(t, "model"), Attempt: counts.Draw(t, "attempt"), Part: rapid.String().Draw(t, "part")},
		Keys:    record.Keys{Key: key.Draw(t, "key"), Core: key.Draw(t, "core"), Reusable: rapid.Bool().Draw(t, "reusable")},
		Spent:   record.Spent{Input: counts.Draw(t, "input"), Output: counts.Draw(t, "output"), Turns: counts.Draw(t, "turns")},
	}
	for range rapid.IntRange(0, 2).Draw(t, "messages") {
		x.Messages = append(x.Messages, rapid.String().Draw(t, "message"))
		x.Memory = append(x.Memory, task.ID(rapid.String().Draw(t, "memory")))
	}
	if rapid.Bool().Draw(t, "failed") {
		x.Code, x.Error = "CODE", rapid.String().Draw(t, "error")
		return record.Entry{Exchange: x}
	}
	x.Result = result(t)
	if rapid.Bool().Draw(t, "shown") {
		x.Shown = &record.ShownResult{Text: rapid.String().Draw(t, "text"), Structured: rapid.String().Draw(t, "structured")}
	}
	return record.Entry{Exchange: x}
})

// result draws the stored form of an envelope.
func result(t *rapid.T) *envelope.Record {
	made := moment.Draw(t, "made")
	h := envelope.Header{
		ID: "e" + envelope.ID(rapid.String().Draw(t, "id")), Producer: "p" + rapid.String().Draw(t, "producer"), Run: rapid.String().Draw(t, "run"), Classification: labels.Draw(t, "label"),
		CreatedAt: made, ExpiresAt: made.Add(time.Duration(rapid.Int64Range(1, 1<<60).Draw(t, "ttl"))), Hops: rapid.IntRange(0, envelope.MaxHops).Draw(t, "hops"),
		DerivedFrom: []envelope.ID{"a"}, Tags: []string{rapid.String().Draw(t, "tag")},
	}
	r := &envelope.Record{Header: h, Text: string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))}
	p := envelope.Text(r.Text)
	if rapid.Bool().Draw(t, "structured") {
		v, err := jsonvalue.Parse(fmt.Sprintf(`{"n":[%d,"<&> "]}`, rapid.Int32().Draw(t, "n")))
		require.NoError(t, err)
		r.JSON, p = []byte(v.Canonical()), p.WithStructured(v)
	}
	e, err := envelope.New(h, p)
	require.NoError(t, err)
	r.Digest = e.Digest()
	return r
}

// Everything that is appended is read back, however it is divided into pieces and
// processes.
func TestAppendedEntriesAreReadBack(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	asked := rapid.Custom(func(t *rapid.T) record.Entry {
		return record.Entry{Asked: &record.CallStart{Session: rapid.String().Draw(t, "session"), Task: task.ID(rapid.String().Draw(t, "task")), Attempt: counts.Draw(t, "attempt"), Time: moment.Draw(t, "time")}}
	})
	started := rapid.Custom(func(t *rapid.T) record.Entry {
		return record.Entry{Begun: &record.PrefetchStart{Session: rapid.String().Draw(t, "session"), Time: moment.Draw(t, "time")}}
	})
	begin := rapid.Custom(func(t *rapid.T) record.Entry {
		return record.Entry{Begin: &record.RunStart{
			Run: "r1", Time: moment.Draw(t, "time"), Goal: rapid.Bool().Draw(t, "goal"),
			Tasks:  []event.Planned{{Task: "t", Title: rapid.String().Draw(t, "title"), DependsOn: []task.ID{"a"}}},
			Inputs: []record.Input{{Name: rapid.String().Draw(t, "name"), Classification: labels.Draw(t, "label"), Key: key.Draw(t, "key")}},
		}}
	})
	sent := rapid.Custom(func(t *rapid.T) record.Entry {
		m := &record.SentMessage{
			ID: rapid.String().Draw(t, "id"), From: rapid.String().Draw(t, "from"), To: rapid.String().Draw(t, "to"), Session: rapid.String().Draw(t, "session"),
			Given: counts.Draw(t, "given"), Time: moment.Draw(t, "time"), Message: result(t),
			Shown: rapid.Bool().Draw(t, "shown"),
		}
		if m.Shown {
			m.Bytes = cmp.Or(len(m.Message.Text), len(m.Message.JSON))
		}
		return record.Entry{Sent: m}
	})
	end := rapid.Custom(func(t *rapid.T) record.Entry {
		return record.Entry{End: &record.RunEnd{Time: moment.Draw(t, "time"), Status: "ok", Answer: rapid.String().Draw(t, "answer"), Warnings: []string{rapid.String().Draw(t, "warning")}}}
	})
	inStores(t, func(t *testing.T, path string) {
		if inPostgres(path) {
			slowtest.Only(t)
		}
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			path := path
			if n++; inPostgres(path) {
				path = pgtest.Address(t)
			} else {
				path += fmt.Sprint(n)
			}
			o := journal.Options{Key: oneKey, Now: func() time.Time { return noon }}
			j, err := openAt(path, o)
			require.NoError(rt, err)
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(rt, err)
			var all []record.Entry
			begun := false // a run of a team begins once
			for range rapid.IntRange(1, 4).Draw(rt, "appends") {
				entries := rapid.SliceOfN(rapid.OneOf(exchange, exchange, asked, started, sent, end), 1, 5).Draw(rt, "entries")
				if !begun && rapid.Bool().Draw(rt, "begins") {
					entries, begun = append([]record.Entry{begin.Draw(rt, "begin")}, entries...), true
				}
				require.NoError(rt, appendEntries(r, entries...))
				all = append(all, entries...)
				if rapid.Bool().Draw(rt, "closed") {
					require.NoError(rt, j.Close())
					j, err = openAt(path, o)
					require.NoError(rt, err)
					r, _, err = j.Resume(t.Context(), "r1")
					require.NoError(rt, err)
					begun = false
				}
			}
			s, err := j.Load(t.Context(), "r1")
			require.NoError(rt, err)
			requireHistory(rt, all, &s.History)
			head, err := r.End(t.Context())
			require.NoError(rt, err)
			require.EqualValues(rt, "verified", requireVerified(t, j, "r1", nil, head).Status)
			require.NoError(rt, j.Close())
		})
	})
}
