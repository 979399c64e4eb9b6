package teammemory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

// A disordered store returns its entries in another order at each read.
type disordered struct {
	teammemory.Store
	random *rand.Rand
}

func (s disordered) All(ctx context.Context) ([]teammemory.Entry, error) {
	list, err := s.Store.All(ctx)
	s.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, err
}

// A model is a memory written as plainly as possible.
type model struct {
	turn int
	list []fact // in the order of their places
}

type fact struct {
	agent, key, value string
	task              task.ID
	turn, ttl         int
}

func (m *model) expired(f fact) bool { return f.ttl > 0 && m.turn-f.turn >= f.ttl }

func (m *model) write(f fact) {
	f.turn = m.turn
	i := slices.IndexFunc(m.list, func(g fact) bool { return g.agent == f.agent && g.key == f.key })
	switch {
	case i >= 0 && !m.expired(m.list[i]):
		m.list[i] = f
	case i >= 0:
		m.list = append(slices.Delete(m.list, i, i+1), f)
	default:
		m.list = append(m.list, f)
	}
}

// read returns what lines would, agents found one by one.
func (m *model) read(show func(fact) bool) []string {
	out := []string{}
	seen := map[string]bool{}
	for _, first := range m.list {
		if seen[first.agent] || m.expired(first) || !show(first) {
			continue
		}
		seen[first.agent] = true
		for _, f := range m.list {
			if f.agent == first.agent && !m.expired(f) && show(f) {
				out = append(out, f.agent+"/"+f.key+"="+f.value)
			}
		}
	}
	return out
}

// TestMemoryAgreesWithItsModel compares writing, reading, expiry, continuing from a
// store and restoring with a plain list, whatever the order of the store.
func TestMemoryAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		open := func() teammemory.Store {
			return disordered{teammemory.NewMapStore(), rand.New(rand.NewPCG(1, 2))}
		}
		store := open()
		m, want := teammemory.New(store), &model{}
		agent := rapid.SampledFrom([]string{"ana", "bob", "zoe", handoff.User})
		ttl := rapid.SampledFrom([]int{0, 0, 1, 2, 3})
		value := rapid.StringMatching(`[a-z]{0,3}`)
		t.Repeat(map[string]func(*rapid.T){
			"note": func(t *rapid.T) {
				f := fact{agent: agent.Draw(t, "agent"), key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), value: value.Draw(t, "value"), ttl: ttl.Draw(t, "ttl")}
				note(t, m, f.agent, f.key, f.value, f.ttl)
				want.write(f)
			},
			"result": func(t *rapid.T) {
				id := rapid.SampledFrom([]task.ID{"t1", "t2", "t3", "t4"}).Draw(t, "id")
				f := fact{agent: agent.Draw(t, "agent"), key: teammemory.ResultKey(id), task: id, value: value.Draw(t, "value"), ttl: ttl.Draw(t, "ttl")}
				result(t, m, f.agent, id, f.value, f.ttl)
				want.turn++
				want.write(f)
			},
			"refused": func(t *rapid.T) {
				e := said(t, "ana", "t1", envelope.Text("forged"))
				require.Error(t, m.Writer().WriteResult(context.Background(), "bob", e, 0))
				require.Error(t, m.Writer().Write(context.Background(), "ana", teammemory.ResultKey("t1"), e, 0))
			},
			"go on": func(*rapid.T) { m = teammemory.New(store) },
			"restore": func(t *rapid.T) {
				s, err := m.Snapshot(context.Background())
				require.NoError(t, err)
				require.Equal(t, want.turn, s.Turn)
				store = open()
				m, err = teammemory.FromSnapshot(context.Background(), s, store)
				require.NoError(t, err)
			},
			"": func(t *rapid.T) {
				require.Equal(t, want.read(func(fact) bool { return true }), lines(t, m, teammemory.Everything()))
				ids := rapid.SliceOfDistinct(rapid.SampledFrom([]task.ID{"t1", "t2", "t3", "t4"}), rapid.ID).Draw(t, "ids")
				listed := func(f fact) bool { return slices.Contains(ids, f.task) }
				require.Equal(t, want.read(listed), lines(t, m, teammemory.Only(ids...)))
				require.Equal(t, want.read(func(f fact) bool { return f.task == "" || listed(f) }), lines(t, m, func(id task.ID) bool { return id == "" || slices.Contains(ids, id) }))
				requireDigest(t, m, want, ids)
			},
		})
	})
}

// requireDigest holds a summary without some entries to what a reader of the rest would write.
func requireDigest(t *rapid.T, m *teammemory.Memory, want *model, held []task.ID) {
	var text, agent string
	shown := want.read(func(f fact) bool { return !slices.Contains(held, f.task) })
	for _, line := range shown {
		name, rest, _ := strings.Cut(line, "/")
		if name != agent {
			agent = name
			text += "\n\n### " + agent
		}
		text += "\n- " + strings.Replace(rest, "=", ": ", 1)
	}
	if text != "" {
		text = "## Shared Team Memory" + text
	}
	got, err := m.Reader().Summary(context.Background(), teammemory.Everything(), func(e teammemory.Entry) (string, bool, error) {
		text, ok, err := pass(e)
		return text, ok && !slices.Contains(held, e.Task), err
	})
	require.NoError(t, err)
	require.Equal(t, text, got)
}

// TestEntryCanBeReadForItsTurns holds: written at turn w to be read for n turns,
// an entry can be read at turn now if and only if n is 0 or now-w < n.
func TestEntryCanBeReadForItsTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := teammemory.New(nil)
		before, ttl := rapid.IntRange(0, 4).Draw(t, "before"), rapid.IntRange(0, 5).Draw(t, "ttl")
		turns := 0
		next := func() {
			turns++
			result(t, m, "bob", task.ID(fmt.Sprint("t", turns)), "x", 0)
		}
		for range before {
			next()
		}
		written := turns
		if rapid.Bool().Draw(t, "result") {
			turns++
			written = turns
			result(t, m, "ana", "own", "x", ttl)
		} else {
			note(t, m, "ana", "own", "x", ttl)
		}
		for range 7 {
			readable := slices.ContainsFunc(lines(t, m, teammemory.Everything()), func(line string) bool { return line[:3] == "ana" })
			require.Equal(t, ttl == 0 || turns-written < ttl, readable, "written at %d for %d, read at %d", written, ttl, turns)
			next()
		}
	})
}

// TestLongMemoryAgreesWithItsModel goes on for so long that the memory tidies up.
func TestLongMemoryAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(2)
	if slowtest.Enabled() {
		seeds = 8
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		store := teammemory.NewMapStore()
		m, want := teammemory.New(store), &model{}
		for step := range 1500 {
			f := fact{agent: []string{"ana", "bob", "zoe"}[random.IntN(3)], value: fmt.Sprint(step), ttl: []int{0, 1, 5, 40}[random.IntN(4)]}
			if id := random.IntN(200); random.IntN(2) == 0 {
				f.task = task.ID(fmt.Sprint("t", id))
				f.key = teammemory.ResultKey(f.task)
				result(t, m, f.agent, f.task, f.value, f.ttl)
				want.turn++
			} else {
				f.key = fmt.Sprint("k", id)
				note(t, m, f.agent, f.key, f.value, f.ttl)
			}
			want.write(f)
			if step%100 == 99 {
				all := want.read(func(fact) bool { return true })
				require.Equal(t, all, lines(t, m, teammemory.Everything()))
				require.Equal(t, all, lines(t, teammemory.New(store), teammemory.Everything()), "the store holds the same")
			}
		}
		require.Equal(t, want.turn, turn(t, m))
	}
}

// TestExpiredAndReplacedEntriesAreFreed checks that entries whose turns are over, or whose
// place was taken, do not stay in memory for as long as the run.
func TestExpiredAndReplacedEntriesAreFreed(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	var gone []weak.Pointer[envelope.Envelope]
	for i := range 50 {
		e := said(t, "ana", "", envelope.Text("x"))
		gone = append(gone, weak.Make(e))
		require.NoError(t, m.Writer().Write(t.Context(), "ana", fmt.Sprint("k", i%40), e, 1))
	}
	for i := range 500 {
		result(t, m, "bob", task.ID(fmt.Sprint("t", i)), "x", 0)
	}
	runtime.GC()
	for i, p := range gone {
		require.Nil(t, p.Value(), "entry %d", i)
	}
	require.Len(t, lines(t, m, teammemory.Everything()), 500)
}
