package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// The conversation of the benchmarks: an agent with 8 dependencies of 8 KiB calls a tool in
// each turn, which returns 4 KiB.
const (
	turnDependencies    = 8
	turnDependencyBytes = 8 << 10
	turnResultBytes     = 4 << 10
)

// randomProse returns random words of a vocabulary, which compress about as English does.
func randomProse(seed uint64, bytes int) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < bytes {
		word := rand.New(rand.NewPCG(uint64(rng.IntN(4000)), 2))
		for range 2 + word.IntN(8) {
			b.WriteByte('a' + byte(word.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()[:bytes]
}

// longConversation is a team whose agent has a conversation of so many turns, and its tasks.
func longConversation(t testing.TB, turns int) (*engine.Team, []task.Spec) {
	t.Helper()
	text, results := randomProse(0, turnDependencyBytes), make([]string, turns)
	for i := range results {
		results[i] = randomProse(uint64(i+1), turnResultBytes)
	}
	look := newTool(t, "look", noEffect, func(_ context.Context, in struct{ N int }) (string, error) { return results[in.N], nil })
	does := versioned{engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		n := len(p.Messages()) / 2
		if n == turns-1 {
			return agent.Reply{Text: "done"}, nil
		}
		return agent.Reply{ToolCalls: []llm.ToolCall{call("look", fmt.Sprintf(`{"N":%d}`, n))}}, nil
	})}
	specs := []task.Spec{errand()}
	for i := range turnDependencies {
		title := fmt.Sprintf("source %d", i)
		specs = append(specs, by("source", spec(title)))
		specs[0].DependsOn = append(specs[0].DependsOn, task.Ref{Task: title})
	}
	return newTeam(t, member("source", says(text)), engine.Member{Name: "clerk", Agent: does, Tools: []*tool.Tool{look}}), specs
}

// BenchmarkTurn measures a turn without its model, its tool and its commit. A turn of a long
// conversation should cost what one of a short conversation does.
func BenchmarkTurn(b *testing.B) {
	for _, turns := range []int{2, 10, 50, 100} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			tm, specs := longConversation(b, turns)
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				res, err := tm.RunTasks(b.Context(), specs, nil)
				if err != nil || !res.Success() {
					b.Fatal(err, res.Err())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(turns*b.N), "ns/turn")
			b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(turns*b.N), "cpu-ns/turn")
		})
	}
}

// BenchmarkTurnFloor is the redaction of one result, without which no turn can do.
func BenchmarkTurnFloor(b *testing.B) {
	text, r := randomProse(1, turnResultBytes), redact.Default()
	for b.Loop() {
		if _, _, err := r.Text(text); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/turn")
}

// The journal of a conversation grows with the results of its tools, by about three times their
// bytes: a result is part of the call and of the prompt, and rows fill pages.
func TestJournalOfAConversationIsLinear(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	size := func(turns int) int64 {
		tm, specs := longConversation(t, turns)
		path := filepath.Join(t.TempDir(), "runs.db")
		j, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r"})
		require.NoError(t, err)
		require.NoError(t, run(t, tm, &engine.RunOptions{RunID: "r", Journal: journaltest.Opened(r)}, specs...).Err())
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		require.NoError(t, j.Close())
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Size()
	}
	const more = 50
	grown := size(2+more) - size(2)
	require.Less(t, grown, int64(13*more*turnResultBytes/4), "%.2f times the results", float64(grown)/(more*turnResultBytes))
}
