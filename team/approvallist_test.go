package team_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A till pays what a clerk asks for, once an editor has approved it.
type till struct {
	mu    sync.Mutex // guards the rest
	done  []string   // the calls that were made, in their order
	turns int
	got   []string // the results that the clerk got
}

// pays returns a team whose clerk makes these calls in its first turn, and answers in its second.
func (p *till) pays(t testing.TB, editor agent.Func, calls ...llm.ToolCall) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{Agents: p.members(t, editor, calls...)})
	require.NoError(t, err)
	return tm
}

func (p *till) members(t testing.TB, editor agent.Func, calls ...llm.ToolCall) []team.Member {
	t.Helper()
	type in struct{ Amount int }
	makeTool := func(name string, o tool.Options) *tool.Tool {
		f, err := tool.New(name, "Works.", func(_ context.Context, in in) (string, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.done = append(p.done, fmt.Sprint(name, in.Amount))
			return fmt.Sprint(name, in.Amount, " done"), nil
		}, o)
		require.NoError(t, err)
		return f
	}
	model := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turns++
		if len(r.Messages) < 3 {
			return llm.Response{ToolCalls: calls, CallInfo: llm.CallInfo{FinishReason: "tool_calls"}}, nil
		}
		p.got = nil
		for _, m := range r.Messages[2:] {
			p.got = append(p.got, m.Text)
		}
		return llm.Response{Text: "done"}, nil
	})
	return []team.Member{
		{
			Name: "clerk", Agent: agent.New(named{model}, agent.Options{}), AllowUntrusted: []string{"pay", "look", "note"},
			Tools: []*tool.Tool{makeTool("pay", tool.Options{Approve: "editor"}), makeTool("look", tool.Options{Effect: tool.None}), makeTool("note", tool.Options{})},
		},
		{Name: "editor", Agent: person.New(editor)},
	}
}

func amounts(name string, list ...int) (calls []llm.ToolCall) {
	for _, n := range list {
		calls = append(calls, llm.ToolCall{ID: fmt.Sprint(name, n), Name: name, Arguments: fmt.Sprintf(`{"Amount":%d}`, n)})
	}
	return calls
}

// openIn returns the open questions of a run.
func openIn(t testing.TB, j *journal.Journal) []journal.OpenQuestion {
	t.Helper()
	list, err := j.OpenQuestions(t.Context(), "r1")
	require.NoError(t, err)
	return list
}

// Three calls that need an approval are three questions, three decisions and one wait. No process that ends
// between two answers loses one.
//
// Requirement: G56.
func TestCallsOfATurnAreApprovedTogether(t *testing.T) {
	t.Parallel()
	calls := slices.Concat(amounts("look", 9), amounts("note", 8), amounts("pay", 1), amounts("note", 7), amounts("pay", 2, 3), amounts("look", 6))
	for _, between := range []bool{false, true} { // a process runs between two answers
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		defer j.Close()
		specs := []task.Spec{assigned("refund", "clerk")}
		var of till
		asked := 0
		editor := func(context.Context, prompt.Prompt) (agent.Reply, error) {
			asked++
			return agent.Reply{}, person.ErrLater
		}
		res, err := of.pays(t, editor, calls...).RunTasks(t.Context(), specs, &team.RunOptions{RunID: "r1", Journal: j})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusSuspended, "editor", 3, 1}, []any{res.Status, res.WaitingFor("refund"), asked, of.turns})
		require.Equal(t, []string{"look9", "note8"}, of.done, "what comes before the first of them is made")

		list := openIn(t, j)
		require.Len(t, list, 3)
		ids := map[string]bool{}
		for i, q := range list {
			require.Contains(t, q.Prompt, fmt.Sprintf(`{"Amount":%d}`, i+1), "in the order of the calls")
			ids[q.ID] = true
		}
		require.Len(t, ids, 3)
		for i, answer := range []string{`{"decision":"no","reason":"too much"}`, `{"decision":"always"}`, `{"decision":"yes"}`} {
			_, err := j.AnswerQuestion(t.Context(), "r1", list[i].ID, journal.PersonAnswer{By: "ann", Text: answer})
			require.NoError(t, err)
			require.Len(t, openIn(t, j), 2-i)
			if between && i < 2 {
				asked = 0
				res, err = of.pays(t, editor, calls...).Resume(t.Context(), "r1", &team.RunOptions{Tasks: specs, Journal: j})
				require.NoError(t, err)
				require.Equal(t, []any{team.StatusSuspended, 2 - i, 1}, []any{res.Status, asked, of.turns}, "the others are asked again")
				require.Equal(t, []string{"look9", "note8"}, of.done)
				require.Equal(t, list[i+1:], sameTime(openIn(t, j), list[i+1:]))
			}
		}
		res, err = of.pays(t, editor, calls...).Resume(t.Context(), "r1", &team.RunOptions{Tasks: specs, Journal: j})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusOK, 2}, []any{res.Status, of.turns})
		require.Equal(t, []string{"look9", "note8", "note7", "pay2", "pay3", "look6"}, of.done)
		require.Len(t, of.got, len(calls))
		require.Contains(t, of.got[2], "Call refused by editor: too much")
		require.Contains(t, of.got[4], "pay2 done")

		answered, err := j.Questions(t.Context(), "r1")
		require.NoError(t, err)
		require.Len(t, answered, 3)
		for _, q := range answered {
			require.True(t, q.Ended)
			require.Equal(t, "ann", q.Answer.By)
		}
	}
}

// sameTime returns the questions with the times at which others were asked.
func sameTime(list, others []journal.OpenQuestion) []journal.OpenQuestion {
	for i := range list {
		list[i].Asked = others[i].Asked
	}
	return list
}

// An answer for all further calls of a tool does not decide about those that the person is asked about already.
//
// Requirement: G56.
func TestNoAnswerDecidesAboutAnotherCallOfItsTurn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answers []string
		done    []string
	}{
		{[]string{`{"decision":"always"}`, `{"decision":"no"}`, `{"decision":"yes"}`}, []string{"pay1", "pay3"}},
		{[]string{`{"decision":"no"}`, `{"decision":"no"}`, `{"decision":"always"}`}, []string{"pay3"}},
	} {
		var of till
		asked := 0
		tm := of.pays(t, func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			asked++
			require.Contains(t, p.Text(), fmt.Sprintf(`{"Amount":%d}`, asked), "one after the other, in the order of the calls")
			require.Empty(t, of.done, "no call is made before all are answered")
			return agent.Reply{Text: tt.answers[asked-1]}, nil
		}, amounts("pay", 1, 2, 3)...)
		res, err := tm.RunTasks(t.Context(), []task.Spec{assigned("refund", "clerk")}, &team.RunOptions{RunID: "r1"})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusOK, 3}, []any{res.Status, asked})
		require.Equal(t, tt.done, of.done)
	}
}

// A person who has answered one question and leaves the rest for later is not asked about the first again.
func TestSomeCallsAreApprovedNowAndOthersLater(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	var of till
	asked := 0
	editor := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		if asked++; asked == 2 {
			return agent.Reply{Text: `{"decision":"yes"}`}, nil
		}
		return agent.Reply{}, person.ErrLater
	}
	specs := []task.Spec{assigned("refund", "clerk")}
	res, err := of.pays(t, editor, amounts("pay", 1, 2, 3)...).RunTasks(t.Context(), specs, &team.RunOptions{RunID: "r1", Journal: j})
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusSuspended, 3}, []any{res.Status, asked})
	list := openIn(t, j)
	require.Len(t, list, 2)
	require.Contains(t, list[0].Prompt, `{"Amount":1}`)
	require.Contains(t, list[1].Prompt, `{"Amount":3}`)
	require.Empty(t, of.done)

	var texts []string
	res, err = of.pays(t, func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		texts = append(texts, p.Text())
		return agent.Reply{Text: `{"decision":"yes"}`}, nil
	}, amounts("pay", 1, 2, 3)...).Resume(t.Context(), "r1", &team.RunOptions{Tasks: specs, Journal: j})
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusOK, 2, 2}, []any{res.Status, len(texts), of.turns})
	require.Equal(t, []string{"pay1", "pay2", "pay3"}, of.done)
}

// A run that works takes the answers in any order, and makes the calls once the last one has come.
func TestALiveRunTakesTheApprovalsOfATurn(t *testing.T) {
	t.Parallel()
	for _, function := range []agent.Func{later, silent} { // which returns, or waits
		synctest.Test(t, func(t *testing.T) {
			j := journal.InMemory(journal.Options{})
			defer j.Close()
			var of till
			release := make(chan bool)
			slow := team.Member{Name: "slow", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				<-release
				return agent.Reply{Text: "at last"}, nil
			})}
			tm, err := team.New(team.Config{Agents: append(of.members(t, function, amounts("pay", 1, 2, 3)...), slow)})
			require.NoError(t, err)
			ended := make(chan *team.Result, 1)
			go func() {
				res, _ := tm.RunTasks(t.Context(), []task.Spec{assigned("refund", "clerk"), assigned("work", "slow")}, &team.RunOptions{RunID: "r1", Journal: j})
				ended <- res
			}()
			open(t, j, "refund")
			synctest.Wait()
			list := openIn(t, j)
			require.Len(t, list, 3)
			for _, i := range []int{2, 0, 1} {
				require.Empty(t, of.done)
				_, err := j.AnswerQuestion(t.Context(), "r1", list[i].ID, journal.PersonAnswer{By: "ann", Text: `{"decision":"perhaps"}`})
				require.ErrorIs(t, err, journal.ErrAnswerForm)
				_, err = j.AnswerQuestion(t.Context(), "r1", list[i].ID, journal.PersonAnswer{By: "ann", Text: `{"decision":"yes"}`})
				require.NoError(t, err)
			}
			release <- true
			res := <-ended
			require.Equal(t, team.StatusOK, res.Status)
			require.Equal(t, []string{"pay1", "pay2", "pay3"}, of.done)
			require.Empty(t, res.WaitingFor("refund"))
		})
	}
}
