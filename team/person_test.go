package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// later is a person who is never there.
func later(context.Context, prompt.Prompt) (agent.Reply, error) {
	return agent.Reply{}, person.ErrLater
}

// answering answers every prompt with the same text.
func answering(text string) agent.Func {
	return func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: text}, nil }
}

// teamWith returns a team of a writer, who answers hello, and an editor.
func teamWith(t testing.TB, editor *person.Agent) *team.Team {
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "writer", Agent: answering("hello")},
		{Name: "editor", Agent: editor, Accepts: label.Confidential},
	}})
	require.NoError(t, err)
	return tm
}

func assigned(title, agent string, after ...string) task.Spec {
	s := task.Spec{Title: title, Description: "Do " + title + ".", Assignee: agent}
	for _, up := range after {
		s.DependsOn = append(s.DependsOn, task.Ref{Task: up})
	}
	return s
}

func TestAPersonAnswersLikeAnyAgent(t *testing.T) {
	t.Parallel()
	tm := teamWith(t, person.New(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		require.Contains(t, p.Text(), "hello")
		return agent.Reply{Text: `{"choice": "send"}`}, nil
	}))
	decide := assigned("decide", "editor", "draft")
	decide.OutputSchema = []byte(`{"type":"object","properties":{"choice":{"enum":["send","stop"]}},"required":["choice"]}`)
	res, err := tm.RunTasks(t.Context(), []task.Spec{assigned("draft", "writer"), decide}, nil)
	require.NoError(t, err)
	got, _ := res.Task("decide")
	require.JSONEq(t, `{"choice":"send"}`, got.Structured)
	require.Len(t, got.Receipts, 1)
	require.Zero(t, got.Usage)
}

func TestAnAnswerOutsideTheSchemaFailsTheTask(t *testing.T) {
	t.Parallel()
	tm := teamWith(t, person.New(answering(`{"choice": "burn"}`)))
	decide := assigned("decide", "editor")
	decide.OutputSchema = []byte(`{"type":"object","properties":{"choice":{"enum":["send","stop"]}}}`)
	res, err := tm.RunTasks(t.Context(), []task.Spec{decide}, nil)
	require.ErrorContains(t, err, "choice")
	require.Equal(t, "OUTPUT_SCHEMA_INVALID", res.Tasks[0].Error.Code)
}

// Two equal items are two questions, also if the run was interrupted between the answers.
//
// Requirement: G56.
func TestAnAnswerIsForOneOfTwoEqualItems(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	asked := 0
	tm := teamWith(t, person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		if asked++; asked == 2 {
			return agent.Reply{}, person.ErrLater
		}
		return agent.Reply{Text: "pay"}, nil
	}))
	pay := assigned("pay", "editor")
	pay.ForEach = &task.ForEach{Input: "bills", MaxItems: 2}
	o := &team.RunOptions{RunID: "r1", Journal: j, MaxConcurrency: 1, Tasks: []task.Spec{pay}, Inputs: []team.Input{{Name: "bills", Text: `["ann: 5", "ann: 5"]`}}}
	res, err := tm.RunTasks(t.Context(), o.Tasks, o)
	require.NoError(t, err)
	require.Equal(t, []any{2, team.StatusSuspended}, []any{asked, res.Status})
	res, err = tm.Resume(t.Context(), "r1", o)
	require.NoError(t, err)
	require.Equal(t, []any{3, team.StatusOK}, []any{asked, res.Status})
}

func TestARunSuspendsWhenOnlyPeopleAreLeft(t *testing.T) {
	t.Parallel()
	var types []string
	var mu sync.Mutex
	observe := func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		types = append(types, e.Type)
	}
	res, err := teamWith(t, person.New(later)).RunTasks(t.Context(), []task.Spec{
		assigned("draft", "writer"), assigned("decide", "editor", "draft"), assigned("send", "writer", "decide"), assigned("tidy", "writer", "draft"),
	}, &team.RunOptions{Subscribers: []func(event.Event){observe}})
	require.NoError(t, err, "a suspended run has not failed")
	require.Equal(t, team.StatusSuspended, res.Status)
	status := map[string]task.Status{}
	for _, one := range res.Tasks {
		status[one.Title] = one.Status
	}
	require.Equal(t, map[string]task.Status{"draft": task.Completed, "decide": task.InProgress, "send": task.Blocked, "tidy": task.Completed}, status)
	require.Equal(t, "editor", res.WaitingFor("decide"))
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, types, "task_waiting")
	require.NotContains(t, types, "all_complete")
	raw, err := res.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(raw), `"status":"suspended","success":false`)
	require.Contains(t, string(raw), `"outcomes":{"completed":2,"failed":0,"cancelled":0,"notRun":0}`)
	require.Contains(t, string(raw), `"waitingFor":"editor"`)
}

func TestASuspendedRunReportsTasksThatFailed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "writer", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, broken })},
		{Name: "editor", Agent: person.New(later)},
	}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{assigned("draft", "writer"), assigned("decide", "editor")}, nil)
	require.ErrorIs(t, err, broken)
	require.Equal(t, team.StatusSuspended, res.Status)
}

func TestAPersonHoldsNoSlotWhileAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tm := teamWith(t, person.New(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			select {
			case <-time.After(time.Hour):
				return agent.Reply{Text: "yes"}, nil
			case <-ctx.Done():
				return agent.Reply{}, ctx.Err()
			}
		}))
		ended := map[string]time.Duration{}
		res, err := tm.RunTasks(t.Context(), []task.Spec{
			assigned("first", "editor"), assigned("second", "editor"), assigned("draft", "writer"), assigned("tidy", "writer", "draft"),
		}, &team.RunOptions{MaxConcurrency: 1})
		require.NoError(t, err)
		for _, one := range res.Tasks {
			ended[one.Title] = one.End.Sub(start)
		}
		require.Equal(t, map[string]time.Duration{"first": time.Hour, "second": time.Hour, "draft": 0, "tidy": 0}, ended)
	})
}

func TestTheTimeLimitOfATaskBoundsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tm := teamWith(t, person.New(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		}))
		decide := assigned("decide", "editor")
		decide.Timeout, decide.MaxRetries = time.Minute, 3
		res, err := tm.RunTasks(t.Context(), []task.Spec{decide}, nil)
		require.NoError(t, err)
		require.Equal(t, team.StatusSuspended, res.Status, "the question stays open")
		require.Equal(t, time.Minute, time.Since(start))

		res, err = tm.RunTasks(t.Context(), []task.Spec{assigned("decide", "editor")}, &team.RunOptions{Timeout: time.Hour})
		require.Error(t, err)
		require.Equal(t, team.StatusTimeout, res.Status, "the time limit of the run ends it")
		require.Equal(t, task.Skipped, res.Tasks[0].Status)
		require.Empty(t, res.WaitingFor("decide"))
	})
}

func TestACanceledRunIsNotSuspended(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	tm := teamWith(t, person.New(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		if strings.Contains(p.Text(), "second") {
			cancel()
			<-ctx.Done()
		}
		return agent.Reply{}, person.ErrLater
	}))
	res, err := tm.RunTasks(ctx, []task.Spec{assigned("first", "editor"), assigned("second", "editor")}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, team.StatusCanceled, res.Status)
	require.Equal(t, []task.Status{task.Skipped, task.Skipped}, []task.Status{res.Tasks[0].Status, res.Tasks[1].Status})
}

func TestAPersonWhoPanicsFailsTheTask(t *testing.T) {
	t.Parallel()
	tm := teamWith(t, person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { panic("oops") }))
	res, err := tm.RunTasks(t.Context(), []task.Spec{assigned("decide", "editor"), assigned("draft", "writer")}, &team.RunOptions{MaxConcurrency: 1})
	require.Error(t, err)
	require.Equal(t, "AGENT_PANIC", res.Tasks[0].Error.Code)
	require.Equal(t, task.Completed, res.Tasks[1].Status)
}

// TestOpenQuestionsNeedNoGoroutines runs alone, since it counts goroutines.
func TestOpenQuestionsNeedNoGoroutines(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	release := make(chan struct{})
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "editor", Agent: person.New(later), MaxParallel: 1},
		{Name: "writer", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			<-release
			return agent.Reply{Text: "done"}, nil
		})},
	}})
	require.NoError(t, err)
	specs := []task.Spec{assigned("long", "writer")}
	for i := range 100 {
		specs = append(specs, assigned(fmt.Sprint("question ", i), "editor"))
	}
	asked := make(chan struct{}, len(specs))
	go func() {
		for range 100 {
			<-asked
		}
		close(release)
	}()
	res, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{MaxConcurrency: 2, Subscribers: []func(event.Event){func(e event.Event) {
		if e.Type == "task_waiting" {
			asked <- struct{}{}
		}
	}}})
	require.NoError(t, err)
	require.Equal(t, team.StatusSuspended, res.Status)
}

func TestOnTimeoutFailsATaskThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.InMemory()
		defer j.Close()
		asked := 0
		tm := teamWith(t, person.New(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			if asked++; asked < 3 {
				return agent.Reply{}, person.ErrLater
			}
			<-ctx.Done()
			return agent.Reply{}, ctx.Err()
		}))
		decide := assigned("decide", "editor")
		decide.Timeout, decide.OnTimeout, decide.MaxRetries = time.Hour, "fail", 3
		options := &team.RunOptions{RunID: "r1", Journal: j, Tasks: []task.Spec{decide}}
		first := time.Now()
		res, err := tm.RunTasks(t.Context(), options.Tasks, &team.RunOptions{RunID: "r1", Journal: j})
		require.NoError(t, err)
		require.Equal(t, team.StatusSuspended, res.Status)

		time.Sleep(40 * time.Minute)
		res, err = tm.Resume(t.Context(), "r1", options)
		require.NoError(t, err)
		require.Equal(t, team.StatusSuspended, res.Status, "20 minutes are left")

		time.Sleep(10 * time.Minute)
		res, err = tm.Resume(t.Context(), "r1", options)
		require.Equal(t, time.Hour, time.Since(first), "the time passes from the first question on")
		require.ErrorContains(t, err, "there was no answer within 1h0m0s")
		require.Equal(t, team.StatusError, res.Status)
		require.Equal(t, "TIMEOUT", res.Tasks[0].Error.Code)
		require.Equal(t, 3, asked, "a failure of this kind is not retried")
	})
}
