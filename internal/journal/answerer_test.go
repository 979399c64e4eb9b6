package journal_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// asked is what a question asks of whom.
type asked struct {
	task, agent string
	approval    string // empty: the result of the task
	users       []string
}

// suspendedRun stores a run of ann that has ended with these questions, and returns their IDs by the names of their tasks.
func suspendedRun(t *testing.T, j *journal.Journal, id string, all ...asked) map[string]string {
	t.Helper()
	r, err := j.Begin(t.Context(), journal.Info{Run: id, Starter: "ann"})
	require.NoError(t, err)
	var entries []record.Entry
	for i, of := range all {
		entries = append(entries, record.Entry{Question: &record.Question{
			Session: id + "/" + of.task + "/1", Task: task.ID(of.task), Title: of.task, Agent: of.agent, Attempt: 1, Time: time.Now(), Approval: of.approval, Users: of.users, Key: answerKey(i),
		}})
	}
	require.NoError(t, appendEntries(r, entries...))
	endRun(t, r)
	list, err := j.Questions(t.Context(), id)
	require.NoError(t, err)
	ids := map[string]string{}
	for _, q := range list {
		ids[string(q.Task)] = q.ID()
	}
	return ids
}

// requireAnswerer fails unless an answer is refused, with this error, because of who gave it.
func requireAnswerer(t *testing.T, err error, want string) {
	t.Helper()
	require.ErrorIs(t, err, record.ErrAnswerer)
	require.EqualError(t, err, want)
}

// A question that names its users takes an answer of nobody else.
func TestOnlyUsersOfAQuestionAnswerIt(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		ids := suspendedRun(t, j, "r1", asked{task: "decide", agent: "editor", users: []string{"bob", "eve"}}, asked{task: "draft", agent: "writer"})
		answer := func(of, by string) error {
			_, err := j.AnswerQuestion(t.Context(), "r1", ids[of], journal.PersonAnswer{By: by, Text: "yes"})
			return err
		}
		requireAnswerer(t, answer("decide", "ann"), "ann may not answer as editor; another person must answer: bob or eve")
		left, err := j.OpenQuestions(t.Context(), "r1")
		require.NoError(t, err)
		require.Len(t, left, 2)
		for _, q := range left {
			if q.Task == "decide" {
				require.Equal(t, []string{"bob", "eve"}, q.Users)
			}
		}
		require.NoError(t, answer("decide", "eve"))
		require.NoError(t, answer("draft", "ann"))
	})
}

// Who started a run approves nothing that it does, where that is asked for.
func TestStartersDoNotApproveTheirOwnRuns(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		ids := suspendedRun(t, j, "r1", asked{task: "send", agent: "editor", approval: "plan"}, asked{task: "draft", agent: "editor"}, asked{task: "pay", agent: "editor", approval: "plan"})
		answer := func(of, by string, not bool) error {
			_, err := j.AnswerQuestion(t.Context(), "r1", ids[of], journal.PersonAnswer{By: by, Text: "yes", NotStarter: not})
			return err
		}
		requireAnswerer(t, answer("send", "ann", true), "ann started the run, and may not approve what it does; another person must answer")
		require.NoError(t, answer("draft", "ann", true), "the result of a task is no approval")
		require.NoError(t, answer("send", "bob", true))
		require.NoError(t, answer("pay", "ann", false))
	})
}

// Nobody answers as two persons of a run, where that is asked for: whether the first answer waits or was taken, and of
// whatever kind the questions are.
func TestOneNameAnswersAsOnePerson(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		ids := suspendedRun(t, j, "r1", asked{task: "draft", agent: "editor"}, asked{task: "pay", agent: "legal", approval: "plan", users: []string{"bob", "eve"}}, asked{task: "proof", agent: "editor"}, asked{task: "sign", agent: "head"})
		answer := func(of, by string, apart bool) error {
			_, err := j.AnswerQuestion(t.Context(), "r1", ids[of], journal.PersonAnswer{By: by, Text: "yes", Apart: apart})
			return err
		}
		const refused = "bob has answered as editor in this run, and may not answer as legal too; another person must answer: eve"
		require.NoError(t, answer("draft", "bob", true))
		requireAnswerer(t, answer("pay", "bob", true), refused)
		require.NoError(t, answer("proof", "bob", true), "he answers as the same person")

		r, _, err := j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		waiting, err := r.Waiting(t.Context())
		require.NoError(t, err)
		require.Len(t, waiting, 2)
		for i := range waiting {
			require.NoError(t, appendEntries(r, record.Entry{Answer: &waiting[i]}))
		}
		endRun(t, r)
		requireAnswerer(t, answer("pay", "bob", true), refused)
		require.NoError(t, answer("pay", "eve", true))
		require.NoError(t, answer("sign", "bob", false), "without the rule, nothing is refused")
	})
}

// Of two answers by one name as two persons at the same moment, through two servers, one is refused.
func TestOneNameAnswersAsOnePersonAtOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		servers := []*journal.Journal{openQueue(t, open, journal.Options{}), openQueue(t, open, journal.Options{})}
		for n := range 12 {
			id := fmt.Sprint("r", n)
			ids := suspendedRun(t, servers[0], id, asked{task: "draft", agent: "editor", approval: "plan"}, asked{task: "pay", agent: "legal", approval: "plan"})
			var all sync.WaitGroup
			errs := make([]error, 2)
			for i, of := range []string{"draft", "pay"} {
				all.Go(func() {
					_, errs[i] = servers[i].AnswerQuestion(t.Context(), id, ids[of], journal.PersonAnswer{By: "bob", Text: "yes", Apart: true})
				})
			}
			all.Wait()
			if errs[0] == nil {
				errs[0], errs[1] = errs[1], errs[0]
			}
			require.ErrorIs(t, errs[0], record.ErrAnswerer)
			require.NoError(t, errs[1])
		}
	})
}
