package journal_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// never is a person who does not answer in the process of the run.
var never = person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater })

// suspend runs a list of two equal items, about which a person decides, until it is suspended. The
// person reads a note that the caller may not see.
func suspend(t testing.TB, j *journal.Journal) (*team.Team, *team.RunOptions) {
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "editor", Agent: never, Accepts: label.Confidential}, {Name: "writer", Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "so"}, nil })}}})
	require.NoError(t, err)
	o := &team.RunOptions{
		RunID: "run-1", Journal: j, UserAccepts: new(label.Internal),
		Inputs: []team.Input{{Name: "letters", Text: `["Dear Ann","Dear Ann"]`}, {Name: "note", Text: "hidden words", Classification: label.Confidential}},
		Tasks: []task.Spec{{
			Title: "Decide", Assignee: "editor", Description: "May it be sent?",
			Uses:         []task.Use{{Name: "letter"}, {Name: "note"}},
			ForEach:      &task.ForEach{Input: "letters", As: "letter", MaxItems: 2},
			OutputSchema: []byte(`{"type":"object","properties":{"choice":{"enum":["send","stop"]}},"required":["choice"]}`),
		}, {Title: "End", Assignee: "writer", Description: "Say so."}},
	}
	res, err := tm.RunTasks(t.Context(), o.Tasks, &team.RunOptions{RunID: o.RunID, Journal: j, UserAccepts: o.UserAccepts, Inputs: o.Inputs})
	require.NoError(t, err)
	require.Equal(t, team.StatusSuspended, res.Status)
	return tm, o
}

// Requirement: G50, G56.
func TestAProgramAnswersTheQuestionsOfASuspendedRun(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the test
	tm, o := suspend(t, j)
	open, err := j.Questions(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 2)
	require.NotEqual(t, open[0].ID, open[1].ID, "equal items are two questions")
	for i, choice := range []string{"send", "stop"} {
		q := open[i]
		require.Equal(t, []any{"run-1", "editor", "", "", label.Confidential}, []any{q.Run, q.Agent, q.Tool, q.Call, q.Label})
		require.Regexp(t, `^Decide\[[12]\]$`, q.Title)
		require.WithinDuration(t, time.Now(), q.Asked, time.Minute)
		require.Contains(t, q.Schema, `"stop"`)
		require.Contains(t, q.Prompt, "Dear Ann")
		require.Contains(t, q.Prompt, "[withheld: confidential]")
		require.NotContains(t, q.Prompt, "hidden words")
		taken, err := j.Answer(t.Context(), q.Run, q.ID, journal.Answer{By: "ann", Text: `{"choice":"` + choice + `"}`})
		require.NoError(t, err)
		require.False(t, taken, "no process works on the run")
	}
	left, err := j.Questions(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)

	res, err := tm.Resume(t.Context(), "run-1", o)
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
	for i, choice := range []string{"send", "stop"} {
		got, _ := res.Task(open[i].Title)
		require.Equal(t, task.Completed, got.Status, choice)
	}
}

// Requirement: G56.
func TestAnswersOfProgramsThatAreRefused(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the test
	suspend(t, j)
	open, err := j.Questions(t.Context())
	require.NoError(t, err)
	q := open[0]
	answer := func(run, id string, a journal.Answer) error {
		_, err := j.Answer(t.Context(), run, id, a)
		return err
	}
	tests := []struct {
		name, run, id string
		give          journal.Answer
		is            error
		want          string
	}{
		{"no such choice", q.Run, q.ID, journal.Answer{By: "ann", Text: `{"choice":"burn"}`}, journal.ErrAnswerForm, "send"},
		{"a member is missing", q.Run, q.ID, journal.Answer{By: "ann", Text: `{}`}, journal.ErrAnswerForm, "choice"},
		{"no JSON", q.Run, q.ID, journal.Answer{By: "ann", Text: "send"}, journal.ErrAnswerForm, `text is not JSON: a text needs quotes, such as "\"send\""`},
		{"broken JSON", q.Run, q.ID, journal.Answer{By: "ann", Text: `{"choice":`}, journal.ErrAnswerForm, "it is not JSON: "},
		{"no UTF-8", q.Run, q.ID, journal.Answer{By: "ann", Text: "{\"choice\":\"\xff\"}"}, journal.ErrAnswerForm, "not valid UTF-8"},
		{"a name that is no UTF-8", q.Run, q.ID, journal.Answer{By: "\xff", Text: `{"choice":"send"}`}, journal.ErrAnswerForm, "the name of who answers is not valid UTF-8"},
		{"a reason that is no UTF-8", q.Run, q.ID, journal.Answer{By: "ann", Text: `{"choice":"send"}`, Reason: "\xff"}, journal.ErrAnswerForm, "the reason is not valid UTF-8"},
		{"nobody", q.Run, q.ID, journal.Answer{Text: `{"choice":"send"}`}, nil, "set By"},
		{"no such question", q.Run, "f00d", journal.Answer{By: "ann", Text: "x"}, journal.ErrNoQuestion, `question "f00d" of run "run-1"`},
		{"no such run", "run-9", q.ID, journal.Answer{By: "ann", Text: "x"}, journal.ErrUnknownRun, "run-9"},
	}
	for _, tt := range tests {
		err := answer(tt.run, tt.id, tt.give)
		require.ErrorContains(t, err, tt.want, tt.name)
		if tt.is != nil {
			require.ErrorIs(t, err, tt.is, tt.name)
		}
	}
	open, err = j.Questions(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 2, "both are still open")

	require.NoError(t, answer(q.Run, q.ID, journal.Answer{By: "ann", Text: `{"choice":"send"}`}))
	err = answer(q.Run, q.ID, journal.Answer{By: "bob", Text: `{"choice":"stop"}`})
	require.ErrorIs(t, err, journal.ErrAnswered)
	require.ErrorContains(t, err, "by ann at ")

	removed, err := j.Remove(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, []string{"run-1"}, removed)
	require.ErrorIs(t, answer(q.Run, open[1].ID, journal.Answer{By: "ann", Text: "x"}), journal.ErrUnknownRun)
	open, err = j.Questions(t.Context())
	require.NoError(t, err)
	require.Empty(t, open)
}

// Requirement: G56.
func TestAQuestionThatHasChangedTakesNoAnswer(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the test
	tm, o := suspend(t, j)
	before, err := j.Questions(t.Context())
	require.NoError(t, err)
	o.Tasks[0].Description = "May it be sent to everyone?"
	_, err = tm.Resume(t.Context(), "run-1", o)
	require.NoError(t, err)
	_, err = j.Answer(t.Context(), before[0].Run, before[0].ID, journal.Answer{By: "ann", Text: `{"choice":"send"}`})
	require.ErrorIs(t, err, journal.ErrNoQuestion)
	after, err := j.Questions(t.Context())
	require.NoError(t, err)
	require.Len(t, after, 2)
	require.Contains(t, after[0].Prompt, "to everyone")
}

// A task that the spec has no more asks nothing, and asks again once the spec has it.
//
// Requirement: G56.
func TestATaskThatWasRemovedTakesNoAnswer(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the test
	tm, o := suspend(t, j)
	before, err := j.Questions(t.Context())
	require.NoError(t, err)
	removed := *o
	removed.Tasks = []task.Spec{{Title: "Review", Assignee: "editor", Description: "Fine?"}, o.Tasks[1]}
	_, err = tm.Resume(t.Context(), "run-1", &removed)
	require.NoError(t, err)
	open, err := j.Questions(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, "Review", open[0].Title)
	_, err = j.Answer(t.Context(), before[0].Run, before[0].ID, journal.Answer{By: "ann", Text: `{"choice":"send"}`})
	require.ErrorIs(t, err, journal.ErrNoQuestion)
	require.ErrorContains(t, err, "the run does not need it any more")

	_, err = tm.Resume(t.Context(), "run-1", o)
	require.NoError(t, err)
	open, err = j.Questions(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 2)
	require.ElementsMatch(t, []string{before[0].ID, before[1].ID}, []string{open[0].ID, open[1].ID})
}
