package journal_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// However often a run is interrupted and resumed, the record of its decisions is
// one chain, and every prompt that was sent has its decisions in it.
//
// Requirement: G44.
func TestResumedRunHasOneChain(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{"with a key": oneKey, "without a key": nil, "closed each time": nil} {
		closes := name == "closed each time"
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inStores(t, func(t *testing.T, path string) {
				var specs []task.Spec
				for i := range 8 {
					s := task.Spec{Title: fmt.Sprintf("task %d", i), Description: "Do it.", Assignee: "worker"}
					if i > 0 {
						s.DependsOn = task.On(fmt.Sprintf("task %d", i/2), "task 0")[:min(i, 2)]
						if i == 1 {
							s.DependsOn = task.On("task 0")
						}
					}
					specs = append(specs, s)
				}
				sent := map[string]bool{}
				open := func() *journal.Journal {
					j, err := openAt(path, journal.Options{AuditKey: key})
					require.NoError(t, err)
					return j
				}
				for turn := range 5 {
					j := open()
					o := &engine.RunOptions{RunID: "r1", MaxConcurrency: 1}
					var r *journal.Run
					var err error
					if turn == 0 {
						r, err = j.Begin(t.Context(), journal.Info{Run: "r1"})
					} else {
						r, _, err = j.Resume(t.Context(), "r1")
					}
					require.NoError(t, err)
					o.Tasks, o.Journal = specs, journaltest.Opened(r)
					ctx, cancel := context.WithCancel(t.Context())
					calls := 0
					worker := engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
						sent[p.Receipt().Session] = true
						if calls++; calls == 3 && turn < 4 {
							cancel()
							return agent.Reply{}, ctx.Err()
						}
						return agent.Reply{Text: "done"}, nil
					})
					tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Backend: plan.Backend{Version: "1"}, Agent: worker, Accepts: label.Confidential}}})
					require.NoError(t, err)
					play := func() (*engine.Result, error) { return tm.RunTasks(ctx, specs, o) }
					if turn > 0 {
						play = func() (*engine.Result, error) { return tm.Resume(ctx, "r1", o) }
					}
					res, err := play()
					cancel()
					require.NoError(t, err)
					if turn == 4 || closes {
						require.True(t, turn < 4 || res.Err() == nil)
						_, err = r.Close(t.Context())
						require.NoError(t, err)
					}
					require.NoError(t, j.Close())
				}
				j := open()
				defer j.Close()
				report, err := audit.VerifyLines(j.Lines(t.Context(), "r1"), audit.VerifyOptions{Key: key})
				require.NoError(t, err)
				require.NotContains(t, fmt.Sprint(report), "broken")

				tr, err := j.Trace(t.Context(), "r1")
				require.NoError(t, err)
				recorded := map[string]bool{}
				for i := range tr.Prompts {
					recorded[tr.Prompts[i].Receipt.Session] = true
				}
				for session := range sent {
					require.True(t, recorded[session], session)
				}
				require.Greater(t, len(sent), 8)
				require.False(t, strings.Contains(fmt.Sprint(report), "not anchored: broken"))
			})
		})
	}
}
