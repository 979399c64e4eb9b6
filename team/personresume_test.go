package team_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/stretchr/testify/require"
)

// approval is a graph in which an editor decides about a draft.
func approval(description string) []task.Spec {
	decide := assigned("decide", "editor", "draft")
	decide.Description = description
	decide.OutputSchema = []byte(`{"type":"object","properties":{"choice":{"enum":["send","stop"]}},"required":["choice"]}`)
	return []task.Spec{assigned("draft", "writer"), decide, assigned("send", "writer", "decide")}
}

// suspended runs the tasks with a person who is never there.
func suspended(t testing.TB, j *journal.Journal, specs []task.Spec) {
	res, err := teamWith(t, person.New(later)).RunTasks(t.Context(), specs, &team.RunOptions{RunID: "r1", Journal: j})
	require.NoError(t, err)
	require.Equal(t, team.StatusSuspended, res.Status)
}

// resume resumes the run with a person who counts how often she is asked.
func resume(t testing.TB, j *journal.Journal, specs []task.Spec) (res *team.Result, asked int) {
	tm := teamWith(t, person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		asked++
		return agent.Reply{}, person.ErrLater
	}))
	res, err := tm.Resume(t.Context(), "r1", &team.RunOptions{Tasks: specs, Journal: j})
	require.NoError(t, err)
	return res, asked
}

// answerAs returns a function that gives an answer.
func answerAs(by, text string) func(*runstate.Question) (record.Answer, error) {
	return func(*runstate.Question) (record.Answer, error) {
		return record.Answer{By: by, Text: text, Time: time.Now()}, nil
	}
}

// leave leaves an answer to a question of the run.
func leave(ctx context.Context, j *journal.Journal, id task.ID, answer func(*runstate.Question) (record.Answer, error)) error {
	return errorOf(j.Answer(ctx, "r1", id, answer))
}

func errorOf(_ bool, err error) error { return err }

// idOf returns the ID of a task.
func idOf(title string) task.ID { return task.NewID(title) }

// Requirement: G56.
func TestAnAnswerInTheJournalIsTakenOnResume(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	suspended(t, j, approval("Send it?"))

	list, err := j.Questions(t.Context(), "r1")
	require.NoError(t, err)
	require.Len(t, list, 1)
	q := list[0]
	require.True(t, q.Open())
	require.Equal(t, []any{"decide", "editor", 1, label.Internal}, []any{q.Title, q.Agent, q.Attempt, q.Label})
	require.Contains(t, q.Schema, "stop")
	require.NotZero(t, q.Key)

	require.NoError(t, leave(t.Context(), j, q.Task, answerAs("ann", `{"choice":"send"}`)))
	sum, err := j.Find(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, "suspended", sum.Status, "an answer does not change how the run ended")
	require.Nil(t, sum.Holder)

	res, asked := resume(t, j, approval("Send it?"))
	require.Zero(t, asked)
	require.Equal(t, team.StatusOK, res.Status)
	got, _ := res.Task("decide")
	require.JSONEq(t, `{"choice":"send"}`, got.Structured)
	require.Equal(t, "editor", got.Envelope.Producer())

	list, err = j.Questions(t.Context(), "r1")
	require.NoError(t, err)
	require.False(t, list[0].Open())
	require.Equal(t, "ann", list[0].Answer.By, "an answer that was spent stays recorded")
	res, asked = resume(t, j, approval("Send it?"))
	require.Zero(t, asked, "the result of the task is in the journal now")
	require.Equal(t, team.StatusOK, res.Status)
}

// Requirement: G56.
func TestAnAnswerIsForOneQuestionOnly(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	suspended(t, j, approval("Send it?"))
	q := idOf("decide")
	require.NoError(t, leave(t.Context(), j, q, answerAs("ann", `{"choice":"send"}`)))

	err := leave(t.Context(), j, q, answerAs("bob", `{"choice":"stop"}`))
	require.ErrorIs(t, err, journal.ErrAnswered)
	require.ErrorContains(t, err, "by ann at ")

	res, asked := resume(t, j, approval("Send it to everyone?"))
	require.Equal(t, 1, asked, "another question needs another answer")
	require.Equal(t, team.StatusSuspended, res.Status)
	require.Contains(t, fmt.Sprint(res.Warnings), `task "decide": the question has changed since ann answered it`)

	require.NoError(t, leave(t.Context(), j, q, answerAs("bob", `{"choice":"stop"}`)), "the new question is open")
	res, asked = resume(t, j, approval("Send it to everyone?"))
	require.Zero(t, asked)
	got, _ := res.Task("decide")
	require.JSONEq(t, `{"choice":"stop"}`, got.Structured)

	res, err = teamWith(t, person.New(later)).RunTasks(t.Context(), approval("Send it?"), &team.RunOptions{RunID: "r2", Journal: j, Reuse: true})
	require.NoError(t, err)
	require.Equal(t, team.StatusSuspended, res.Status, "no other run takes an answer")
}

func TestAnswersToWhatWasNotAskedAreRefused(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	suspended(t, j, approval("Send it?"))
	for _, name := range []string{"draft", "send", "nothing"} {
		require.ErrorIs(t, leave(t.Context(), j, idOf(name), answerAs("ann", "x")), journal.ErrNoQuestion, name)
	}
	require.ErrorIs(t, errorOf(j.Answer(t.Context(), "r9", idOf("decide"), answerAs("ann", "x"))), journal.ErrUnknownRun)

	wrong := errors.New("choice: send or stop")
	err := leave(t.Context(), j, idOf("decide"), func(*runstate.Question) (record.Answer, error) { return record.Answer{}, wrong })
	require.ErrorIs(t, err, wrong)
	list, err := j.Questions(t.Context(), "r1")
	require.NoError(t, err)
	require.True(t, list[0].Open(), "a refused answer leaves the question open")

	require.NoError(t, leave(t.Context(), j, idOf("decide"), answerAs("ann", `{"choice":"burn"}`)))
	res, asked := resume(t, j, approval("Send it?"))
	require.Equal(t, 1, asked, "the gate refuses what does not match the schema")
	require.Equal(t, team.StatusSuspended, res.Status)
	require.Contains(t, fmt.Sprint(res.Warnings), "the answer of ann does not fit the task")
}

func TestOneOfTwoAnswersCounts(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	suspended(t, j, approval("Send it?"))
	var all sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		all.Go(func() {
			errs[i] = leave(context.Background(), j, idOf("decide"), answerAs(fmt.Sprint("person ", i), `{"choice":"send"}`))
		})
	}
	all.Wait()
	require.True(t, (errs[0] == nil) != (errs[1] == nil), "%v", errs)
	require.ErrorIs(t, errors.Join(errs...), journal.ErrAnswered)
}

func TestReplayAsksNobody(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	suspended(t, j, approval("Send it?"))
	never := teamWith(t, person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		t.Error("a replay asks nobody")
		return agent.Reply{}, person.ErrLater
	}))
	res, err := never.Replay(t.Context(), "r1", &team.RunOptions{Tasks: approval("Send it?"), Journal: j})
	require.NoError(t, err)
	require.Equal(t, team.StatusSuspended, res.Status)

	require.NoError(t, leave(t.Context(), j, idOf("decide"), answerAs("ann", `{"choice":"send"}`)))
	resume(t, j, approval("Send it?"))
	res, err = never.Replay(t.Context(), "r1", &team.RunOptions{Tasks: approval("Send it?"), Journal: j})
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
}

// A person may be shown what the team knows. What is known when the run is resumed must not
// change the question.
func TestAQuestionWithSharedMemoryStaysTheSame(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	decide := assigned("decide", "editor", "draft")
	decide.MemoryScope = task.ScopeAll
	ask := assigned("ask", "editor")
	ask.MemoryScope = task.ScopeAll
	specs := []task.Spec{ask, assigned("notes", "writer"), assigned("draft", "writer"), decide, assigned("late", "writer", "draft")}
	suspended(t, j, specs)
	for _, title := range []string{"ask", "decide"} {
		require.NoError(t, leave(t.Context(), j, idOf(title), answerAs("ann", "fine")))
	}
	res, asked := resume(t, j, specs)
	require.Zero(t, asked, "%v", res.Warnings)
	require.Equal(t, team.StatusOK, res.Status)
}

// Above confidential, a journal without a key stores no text, so it can hold no answer.
func TestAnswersAboveThePlaintextLimitAreEncrypted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{Key: make([]byte, 32)})
	require.NoError(t, err)
	defer j.Close()
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "editor", Agent: person.New(later), Accepts: label.Secret}}})
	require.NoError(t, err)
	specs := []task.Spec{{Title: "decide", Description: "The launch is at noon. Go?", Assignee: "editor", Classification: label.Secret, OutputSchema: []byte(`{"enum":["canary-go","no"]}`)}}
	o := &team.RunOptions{RunID: "r1", Tasks: specs, Journal: j, UserAccepts: new(label.Secret)}
	_, err = tm.RunTasks(t.Context(), specs, o)
	require.NoError(t, err)
	require.NoError(t, leave(t.Context(), j, idOf("decide"), func(q *runstate.Question) (record.Answer, error) {
		require.Contains(t, q.Schema, "canary-go")
		return record.Answer{By: "ann", Text: `"canary-go"`, Reason: "canary-reason", Time: time.Now()}, nil
	}))
	for line, err := range j.Lines(t.Context(), "r1") {
		require.NoError(t, err)
		require.NotContains(t, string(line), "canary")
	}
	for _, suffix := range []string{"", "-wal"} { // the answer is not in the lines yet
		raw, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "canary-reason")
	}
	res, err := tm.Resume(t.Context(), "r1", o)
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
	require.Equal(t, `"canary-go"`, res.Tasks[0].Structured)
}

// A question shows the files of the workspace too, as a list; their contents are part of its key.
//
// Requirement: G56.
func TestAQuestionAboutChangedFilesIsAskedAnew(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	specs := []task.Spec{{Title: "decide", Description: "Merge it?", Assignee: "editor", Uses: []task.Use{{Name: "repo"}}}}
	options := func(text string) *team.RunOptions {
		files, err := team.ReadFolder(fstest.MapFS{"main.go": {Data: []byte(text)}})
		require.NoError(t, err)
		return &team.RunOptions{RunID: "r1", Tasks: specs, Journal: j, Inputs: []team.Input{{Name: "repo", Folder: files}}}
	}
	asked := 0
	tm := teamWith(t, person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		asked++
		return agent.Reply{}, person.ErrLater
	}))
	_, err := tm.RunTasks(t.Context(), specs, options("package one"))
	require.NoError(t, err)
	require.NoError(t, leave(t.Context(), j, idOf("decide"), answerAs("ann", "yes")))
	res, err := tm.Resume(t.Context(), "r1", options("package two"))
	require.NoError(t, err)
	require.Equal(t, []any{2, team.StatusSuspended}, []any{asked, res.Status}, "the same length, another text")
	res, err = tm.Resume(t.Context(), "r1", options("package one"))
	require.NoError(t, err)
	require.Equal(t, []any{2, team.StatusOK}, []any{asked, res.Status}, "that is what was answered")
}

func TestTheCoordinatorWaitsForPeople(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	answered := 0
	tm, err := team.New(team.Config{
		Agents: []team.Member{{Name: "writer", Agent: answering("hello")}, {Name: "editor", Agent: person.New(later)}},
		Coordinator: &team.Coordinator{Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			answered++
			return agent.Reply{Text: "the answer"}, nil
		})},
	})
	require.NoError(t, err)
	o := &team.RunOptions{RunID: "r1", Journal: j, Answer: &team.Goal{Text: "Settle it."}, Tasks: []task.Spec{assigned("draft", "writer"), assigned("decide", "editor", "draft")}}
	res, err := tm.RunTasks(t.Context(), o.Tasks, o)
	require.NoError(t, err)
	require.Equal(t, []any{0, team.StatusSuspended, ""}, []any{answered, res.Status, res.Output})
	require.NoError(t, leave(t.Context(), j, idOf("decide"), answerAs("ann", "yes")))
	res, err = tm.Resume(t.Context(), "r1", o)
	require.NoError(t, err)
	require.Equal(t, []any{1, team.StatusOK, "the answer"}, []any{answered, res.Status, res.Output})
}
