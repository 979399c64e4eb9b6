package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An answer that was altered in the file is not used.
func TestAlteredAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{})
	defer j.Close() //nolint:errcheck // it ends with the test
	e, d := &encoder{run: "r", vault: j.vault}, &decoder{run: "r", vault: j.vault}
	given := &record.Answer{Session: "r/t/1", Task: "t", Title: "T", Agent: "editor", By: "ann", Time: time.Now(), Reason: "because", Label: label.Confidential, Key: record.Key{1}, Text: "send"}
	line, err := e.answer(given)
	require.NoError(t, err)
	raw, err := json.Marshal(line)
	require.NoError(t, err)
	got, err := d.answer(raw)
	require.NoError(t, err)
	require.Equal(t, "send", got.Text)
	require.Empty(t, got.Missing)
	require.Equal(t, given.Key, got.Key)
	for _, change := range [][2]string{{`"send"`, `"stop"`}, {`"ann"`, `"bob"`}, {`"because"`, `"why"`}, {"r/t/1", "r/t/2"}, {`"key":"01`, `"key":"02`}, {`"editor"`, `"editor2"`}} {
		altered := strings.Replace(string(raw), change[0], change[1], 1)
		require.NotEqual(t, string(raw), altered, change[0])
		got, err := d.answer([]byte(altered))
		require.NoError(t, err)
		require.Equal(t, ErrAltered.Error(), got.Missing, change[0])
		require.Empty(t, got.Text)
	}
	other, err := (&decoder{run: "r2", vault: j.vault}).answer(raw)
	require.NoError(t, err)
	require.NotEmpty(t, other.Missing, "an answer is for its run")
}

// An answer that was altered while it waits gives way to another one, or its question could never be
// answered. One that can be read does not.
func TestAnAlteredAnswerGivesWay(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{})
	defer j.Close() //nolint:errcheck // it ends with the test
	r, err := j.Begin(t.Context(), Info{Run: "r", Command: "run", Time: time.Now()})
	require.NoError(t, err)
	stored := make(chan error, 1)
	r.Append([]record.Entry{{Question: &record.Question{Session: "r/t/1", Task: "t", Title: "T", Agent: "editor", Attempt: 1, Time: time.Now(), Key: record.Key{1}}}}, func(err error) { stored <- err })
	require.NoError(t, <-stored)
	_, err = r.End(t.Context()) // suspended
	require.NoError(t, err)
	list, err := j.Questions(t.Context(), "r")
	require.NoError(t, err)
	answer := func(by string) error {
		_, err := j.AnswerQuestion(t.Context(), "r", list[0].ID(), PersonAnswer{By: by, Text: "send"})
		return err
	}
	require.NoError(t, answer("ann"))
	require.ErrorIs(t, answer("bob"), ErrAnswered)
	for _, change := range [][2]string{{`"send"`, `"stop"`}, {`"task":"t"`, `"task":"u"`}, {`{`, `x`}} { // the last one is no line
		require.NoError(t, j.store.db.Write(t.Context(), func(tx Tx, _ bool) error {
			done, err := tx.ExecContext(t.Context(), "update commands set line = cast(replace(cast(line as text), ?, ?) as blob) where outcome = ''", change[0], change[1])
			require.NoError(t, err)
			changed, err := done.RowsAffected()
			require.EqualValues(t, 1, changed)
			return err
		}))
		list, err = j.Questions(t.Context(), "r")
		require.NoError(t, err)
		require.True(t, list[0].Open(), change[0])
		require.NoError(t, answer("cid"), change[0])
		require.ErrorIs(t, answer("bob"), ErrAnswered)
	}
	list, err = j.Questions(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, "cid", list[0].Answer.By)
}

// Open questions are in the order of the tasks of a run, such as the items of a list, whichever was
// asked first.
func TestOpenQuestionsAreInTheOrderOfTasks(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{})
	defer j.Close() //nolint:errcheck // it ends with the test
	b := &record.RunStart{Run: "r", Time: time.Now()}
	for k := range 12 {
		title := fmt.Sprintf("Mail[%d]", k+1)
		b.Tasks = append(b.Tasks, event.Planned{Task: task.NewID(title), Title: title})
	}
	r, err := j.Begin(t.Context(), Info{Run: "r", Command: "run", Time: time.Now()})
	require.NoError(t, err)
	stored := make(chan error, 1)
	r.Append([]record.Entry{{Begin: b}}, func(err error) { stored <- err })
	require.NoError(t, <-stored)
	for k := range b.Tasks {
		of := &b.Tasks[(k*5+3)%len(b.Tasks)]
		r.Append([]record.Entry{{Question: &record.Question{Session: "r/" + string(of.Task) + "/1", Task: of.Task, Title: of.Title, Agent: "editor", Attempt: 1, Time: time.Now(), Key: record.Key{byte(k)}}}}, func(err error) { stored <- err })
		require.NoError(t, <-stored)
	}
	_, err = r.End(t.Context())
	require.NoError(t, err)
	list, err := j.OpenQuestions(t.Context(), "r")
	require.NoError(t, err)
	require.Len(t, list, len(b.Tasks))
	for k := range list {
		require.Equal(t, b.Tasks[k].Title, list[k].Title)
	}
}
