package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/task"
)

func TestOnTimeoutIsForPeople(t *testing.T) {
	t.Parallel()
	decide, draft := by("editor", spec("decide")), by("writer", spec("draft"))
	decide.OnTimeout = "fail"
	draft.OnTimeout, draft.Timeout = "fail", time.Minute
	r := newTeam(t, member("writer"), plan.Member{Name: "editor", Agent: person.New(unused)})
	_, err := r.plan([]task.Spec{draft}, nil)
	require.ErrorContains(t, err, `task "draft": onTimeout: agent "writer" is not a person`)
	_, err = r.plan([]task.Spec{decide}, nil)
	require.ErrorContains(t, err, "onTimeout: the task has no time limit: set timeoutMs too")
	decide.OnTimeout = "ask"
	_, err = r.plan([]task.Spec{decide}, nil)
	require.ErrorContains(t, err, `unknown word "ask": write one of suspend, fail`)
}

func TestSettingsOfModelsAreRefusedForPeople(t *testing.T) {
	t.Parallel()
	_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "editor", Agent: person.New(unused), SystemPrompt: "Be kind."}}})
	require.ErrorContains(t, err, "a person has no system prompt")
	_, err = newRoster(plan.Config{Agents: []plan.Member{{Name: "editor", Agent: person.New(nil)}}})
	require.ErrorContains(t, err, "pass a function to person.New")
	_, err = newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: unused}}, Coordinator: &plan.Coordinator{Agent: person.New(unused)}})
	require.ErrorContains(t, err, "a person cannot be the coordinator")
}
