package event_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/event"
	run "github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

func TestJSONOfAnEventIsThatOfTheEngine(t *testing.T) {
	t.Parallel()
	given := run.Event{
		Seq: 3, Type: run.TaskComplete, Time: time.Unix(0, 0).UTC(), Run: "r", Task: "t", Title: "T", Agent: "a", Attempt: 2,
		Status: task.Completed, Bytes: 7, Work: run.Work{Duration: time.Second, Input: 5, CachedTokens: 2},
	}
	e := event.New(given)
	require.Equal(t, event.TaskComplete{Bytes: 7, Work: event.Work{Usage: llm.Usage{InputTokens: 5, CachedTokens: 2}, Duration: time.Second}}, e.Data)
	want, err := json.Marshal(given)
	require.NoError(t, err)
	got, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestEachTypeHasDataOfItsOwn(t *testing.T) {
	t.Parallel()
	for typ, want := range map[run.Type]any{
		run.RunStart: event.RunStart{}, run.RunComplete: event.RunComplete{}, run.PlanReady: event.PlanReady{Tasks: []event.Planned{}},
		run.TaskReady: event.TaskReady{}, run.TaskStart: event.TaskStart{}, run.TaskComplete: event.TaskComplete{},
		run.TaskSkipped: event.TaskSkipped{}, run.TaskRetry: event.TaskRetry{}, run.AgentStart: event.AgentStart{},
		run.AgentComplete: event.AgentComplete{}, run.AllComplete: event.AllComplete{}, run.Message: event.Message{}, run.MessageSent: event.MessageSent{},
		run.Budget: event.BudgetExceeded{}, run.Handed: event.Handoff{}, run.Lowered: event.EntryUsed{},
		run.Endorsed: event.EntryUsed{}, run.Renewed: event.EntryUsed{}, run.Reveal: event.Reveal{},
		run.Warning: event.Warning{}, run.Limited: event.RateLimited{}, run.Error: event.TaskFailed{},
	} {
		require.Equal(t, want, event.New(run.Event{Type: typ}).Data, typ)
	}
}

func TestSpawnOfAChild(t *testing.T) {
	t.Parallel()
	given := run.Event{Type: run.AgentSpawn, To: "helper", Child: "c", Bytes: 3, Spawn: &run.Spawn{Tools: []string{"grep"}, TimeoutMs: 1500}}
	want := event.AgentSpawn{Child: "c", Agent: "helper", Bytes: 3, Tools: []string{"grep"}, Timeout: 1500 * time.Millisecond}
	require.Equal(t, want, event.New(given).Data)
	given.Spawn, want.Tools, want.Timeout = nil, nil, 0 // of an earlier version
	require.Equal(t, want, event.New(given).Data)
}

func TestTimesAreMilliseconds(t *testing.T) {
	t.Parallel()
	given := run.Event{Seq: 3, Type: run.TaskRetry, Time: time.Unix(0, 0).UTC(), Run: "r", Task: "t", Attempt: 1, Problem: run.Problem{Wait: 1500 * time.Millisecond}}
	for _, e := range []any{given, event.New(given)} {
		got, err := json.Marshal(e)
		require.NoError(t, err)
		require.JSONEq(t, `{"seq":3,"type":"task_retry","time":"1970-01-01T00:00:00Z","runId":"r","task":"t","attempt":1,"waitMs":1500}`, string(got))
	}
}

func TestJSONOfAnEventOfTheProgram(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(event.Event{Type: "task_start", Title: "T", Data: event.TaskStart{}})
	require.NoError(t, err)
	require.JSONEq(t, `{"seq":0,"type":"task_start","time":"0001-01-01T00:00:00Z","runId":"","title":"T"}`, string(got))
}
