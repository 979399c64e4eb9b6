package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/tool"
)

// A tool that does not know whether its call took effect ends the task, unless the call may be made
// again.
func TestCallWithoutKnownOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		options   tool.Options
		uncertain bool
	}{
		{"external", tool.Options{}, true},
		{"repeatable", tool.Options{Repeatable: true}, false},
		{"without effect", tool.Options{Effect: tool.None}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			pay := newTool(t, "pay", tt.options, func(context.Context, map[string]any) (string, error) {
				calls++
				return "", fmt.Errorf("the session is gone: %w", tool.ErrUncertain)
			})
			next := newCountedTool(t, "next", tool.Options{})
			m := &listening{namedModel: callsFirst(call("pay", `{}`), call("next", `{}`))}
			s := errand()
			s.MaxRetries = 2
			res := run(t, toolTeam(t, m, pay, next.Tool), nil, s)
			if !tt.uncertain {
				require.NoError(t, res.Err())
				require.Contains(t, fmt.Sprint(m.last.Messages), "the session is gone: the call may have taken effect")
				require.EqualValues(t, 1, next.calls.Load())
				return
			}
			require.NotNil(t, res.Tasks[0].Error)
			require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
			require.Contains(t, res.Tasks[0].Error.Message, "pay")
			require.Equal(t, 1, calls)
			require.Zero(t, next.calls.Load())
		})
	}
}

// The agent learns that an external call that timed out may have taken effect.
func TestExternalCallThatTimesOut(t *testing.T) {
	t.Parallel()
	for effect, says := range map[tool.Effect]bool{tool.External: true, tool.None: false} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slow := newTool(t, "slow", tool.Options{Effect: effect, Timeout: time.Minute}, func(ctx context.Context, _ map[string]any) (string, error) {
					<-ctx.Done()
					return "", errors.New("late")
				})
				m := &listening{namedModel: callsFirst(call("slow", `{}`))}
				require.NoError(t, run(t, toolTeam(t, m, slow), nil, errand()).Err())
				require.Contains(t, m.answered(), "the tool timed out after 1m0s")
				if says {
					require.Contains(t, m.answered(), "the call may have taken effect")
				} else {
					require.NotContains(t, m.answered(), "effect")
				}
			})
		})
	}
}

// What a person approved holds for the definition that a server offered then.
func TestApprovalIsForOneDefinition(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{saysYes, saysAlways} {
		for description, asked := range map[string]int{"Pays.": 0, "Pays twice.": 1} {
			t.Run(decision+" "+description, func(t *testing.T) {
				t.Parallel()
				team := func(description string, d *approver) *engine.Team {
					c := newCountedTool(t, "pay", tool.Options{Approve: "ann", Repeatable: true})
					c.Foreign, c.Description = true, description
					return newTeam(t, clerk(callsFirst(call("pay", `{"amount": 5}`)), c.Tool), d.member())
				}
				first := ""
				if decision == saysAlways {
					first = decision
				}
				j, _ := journaled(t, team("Pays.", &approver{decide: always(first)}), errand())
				past := interrupted(j, answerEntry)
				past.Log = dropTurns(past.Log) // the model reads the definition again
				for _, e := range past.Log {
					if q := e.Question; q != nil && decision == saysYes {
						past.Log = append(past.Log, record.Entry{Answer: &record.Answer{Task: q.Task, Key: q.Key, Text: decision, By: "ann"}})
						break
					}
				}
				d := &approver{decide: always("")}
				res := resumed(t, team(description, d), past, errand())
				require.Len(t, d.asked, asked)
				require.Equal(t, asked > 0, res.Status == engine.StatusSuspended)
			})
		}
	}
}
