package engine_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A rule that lets parts of the answer through to the caller leaves them to read.
//
// Requirement: G47.
func TestAnswerHasOnlyWhatRulesDeliver(t *testing.T) {
	t.Parallel()
	made := by("a", spec("made"))
	made.OutputSchema = []byte(`{"type":"object","properties":{"k":{"type":"string"},"h":{"type":"string"}}}`)
	tm := governed(t, &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: handoff.User, Block: []task.Path{"h"}}}}, member("a", says(`{"k":"KEPT","h":"CANARY"}`)))
	res := run(t, tm, nil, made)
	require.NoError(t, res.Err())
	require.Equal(t, `{"k":"KEPT"}`, res.Output)
	require.Equal(t, `{"k":"KEPT"}`, res.Tasks[0].Result)
}

// What an agent said when it failed is a text for the caller too, though it be JSON.
//
// Requirement: G6.
func TestErrorOfJSONHasNoPartsForTheCaller(t *testing.T) {
	t.Parallel()
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: handoff.User, Allow: []task.Path{"/k"}}}}
	made := by("a", spec("made"))
	made.OutputSchema = []byte(`{"type":"object"}`)
	tm := governed(t, policy, member("a", fails(errors.New(`{"k":"CANARY"}`))))
	res := run(t, tm, nil, made)
	require.NotContains(t, res.Tasks[0].Error.Message, "CANARY")
}

// Events show only the size class of a value above the caller.
//
// Requirement: G50.
func TestEventsShowSizeClassesAboveTheCaller(t *testing.T) {
	t.Parallel()
	sizes := func(answer string) (list []int) {
		var a audience
		o := a.options()
		o.UserAccepts = new(label.Internal)
		one, two := by("a", spec("one")), by("b", spec("two", "one"))
		one.Classification = label.Confidential
		three := by("c", spec("three")) // an answer that the caller may see
		tm := newTeam(t, cleared("a", label.Confidential, says(answer)), cleared("b", label.Confidential, says(answer)), member("c", says("z")))
		require.NoError(t, run(t, tm, o, one, two, three).Err())
		for _, e := range a.events {
			if e.Type == event.Handed {
				list = append(list, e.Handoff.Before.Bytes, e.Handoff.After.Bytes)
			}
			if e.Type == event.AgentComplete || e.Type == event.AgentStart {
				list = append(list, e.Bytes)
			}
		}
		slices.Sort(list) // tasks run side by side
		return list
	}
	require.Equal(t, sizes("true"), sizes("false"))
}
