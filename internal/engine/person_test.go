package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// approvers are a worker and an editor, a person who is asked through the function.
func approvers(t testing.TB, worker engine.Agent, ask func() (agent.Reply, error)) *engine.Team {
	tm, err := engine.New(engine.Config{Agents: []engine.Member{
		{Name: "worker", Agent: worker, Accepts: label.Confidential},
		{Name: "editor", Accepts: label.Confidential, Agent: person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return ask() })},
	}})
	require.NoError(t, err)
	return tm
}

func notNow() (agent.Reply, error) { return agent.Reply{}, person.ErrLater }

// After a crash at any commit, a person is asked again only if there is no answer yet, and
// what follows from an answer happens once.
//
// Requirement: G56.
func TestRunWithAPersonResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{by("worker", spec("draft")), by("editor", spec("decide", "draft")), by("worker", spec("send", "decide")), by("worker", spec("tidy"))}
	options := func(m *memory) *engine.RunOptions { return &engine.RunOptions{RunID: "r", Journal: m} }

	first := &memory{}
	res, err := approvers(t, &counter{}, notNow).RunTasks(t.Context(), specs, options(first))
	require.NoError(t, err)
	require.Equal(t, engine.StatusSuspended, res.Status)
	past := first.history(first.len())
	var question *record.Question
	for i := range past.Log {
		if q := past.Log[i].Question; q != nil {
			require.Nil(t, question, "one question is asked once")
			question = q
		}
	}
	require.NotNil(t, question)
	given := record.Entry{Answer: &record.Answer{Session: question.Session, Task: question.Task, Agent: "editor", By: "ann", Key: question.Key, Text: "send it"}}

	second := (&memory{}).after(past)
	past.Log = append(past.Log, given)
	want, err := start(t.Context(), approvers(t, &counter{}, notNow), specs, options(second))
	require.NoError(t, err)
	require.Equal(t, engine.StatusOK, want.Status)

	for n := range first.len() + 1 {
		h := first.history(n)
		asked := 0
		res, err := start(t.Context(), approvers(t, &counter{}, func() (agent.Reply, error) {
			asked++
			return agent.Reply{}, person.ErrLater
		}), specs, options((&memory{}).after(h)))
		require.NoError(t, err)
		require.Equal(t, 1, asked, "after %d commits without an answer", n)
		require.Equal(t, engine.StatusSuspended, res.Status)
	}
	for n := range second.len() + 1 {
		h := second.history(n)
		h.Begins, h.Log = append(past.Begins[:1:1], h.Begins...), append(past.Log[:len(past.Log):len(past.Log)], h.Log...)
		sent := 0
		for i := range h.Log {
			if x := h.Log[i].Exchange; x != nil && x.Title == "send" {
				sent++
			}
		}
		again := &counter{}
		res, err := start(t.Context(), approvers(t, again, func() (agent.Reply, error) {
			t.Errorf("asked after %d commits, although there is an answer", n)
			return notNow()
		}), specs, options((&memory{}).after(h)))
		require.NoError(t, err)
		require.Equal(t, answers(want), answers(res), "after %d commits", n)
		require.Equal(t, 1, sent+again.count()["send"], "the answer takes effect once")
	}
}

// BenchmarkResumeOpenQuestions is a resume of a run with 100 open questions, until all of
// them have been asked again.
func BenchmarkResumeOpenQuestions(b *testing.B) {
	j, err := journal.Open(b.TempDir()+"/runs.db", journal.Options{})
	require.NoError(b, err)
	defer j.Close() //nolint:errcheck // it is in a temporary folder
	specs := make([]task.Spec, 100)
	for i := range specs {
		specs[i] = by("editor", spec(fmt.Sprint("question ", i)))
	}
	tm := approvers(b, &counter{}, notNow)
	_, err = tm.RunTasks(b.Context(), specs, &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(b, err)
	for b.Loop() {
		res, err := tm.Resume(b.Context(), "r", &engine.RunOptions{Tasks: specs, Journal: j})
		if err != nil || res.Status != engine.StatusSuspended {
			b.Fatal(res.Status, err)
		}
	}
}

// An answer that waits when the spec has come to name who can answer is not taken if somebody else gave it.
func TestAnAnswerOfSomebodyElseIsNotTaken(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close() //nolint:errcheck // it is in memory
	tasks := []task.Spec{by("editor", spec("decide"))}
	team := func(users ...string) *engine.Team {
		editor := person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return notNow() }).For(users...)
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "editor", Agent: editor}}})
		require.NoError(t, err)
		return tm
	}
	options := func() *engine.RunOptions { return &engine.RunOptions{RunID: "r", Journal: j, Tasks: tasks} }
	_, err := team().RunTasks(t.Context(), tasks, options())
	require.NoError(t, err)
	answer := func(by string) {
		t.Helper()
		list, err := j.OpenQuestions(t.Context(), "r")
		require.NoError(t, err)
		require.Len(t, list, 1)
		_, err = j.AnswerQuestion(t.Context(), "r", list[0].ID, journal.PersonAnswer{By: by, Text: "send it"})
		require.NoError(t, err)
	}
	answer("eve")
	res, err := team("ann", "bob").Resume(t.Context(), "r", options())
	require.NoError(t, err)
	require.Equal(t, engine.StatusSuspended, res.Status)
	list, err := j.OpenQuestions(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, []string{"ann", "bob"}, list[0].Users)
	answer("bob")
	res, err = team("ann", "bob").Resume(t.Context(), "r", options())
	require.NoError(t, err)
	require.Equal(t, "send it", res.Output)
}
