package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// An approver answers the questions about calls, and counts them.
type approver struct {
	decide func(n int, p prompt.Prompt) string // for the nth question, from 1; empty means later

	mu    sync.Mutex // guards asked
	asked []string
}

func (d *approver) member() engine.Member {
	return engine.Member{Name: "ann", Agent: person.New(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.asked = append(d.asked, p.Text())
		if text := d.decide(len(d.asked), p); text != "" {
			return agent.Reply{Text: text}, nil
		}
		return agent.Reply{}, person.ErrLater
	})}
}

func always(text string) func(int, prompt.Prompt) string {
	return func(int, prompt.Prompt) string { return text }
}

const (
	saysYes    = `{"decision":"yes"}`
	saysAlways = `{"decision":"always"}`
)

// Requirement: G56.
func TestAPersonDecidesAboutCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		decision string
		calls    int32
		asked    int
		want     string
	}{
		{saysYes, 2, 2, "\nok\n"},
		{saysAlways, 2, 2, "\nok\n"}, // it asks about both at once
		{`{"decision":"no","reason":"too much; write to bob@example.org"}`, 0, 2, "\nCall refused by ann: too much; write to [REDACTED:email]\n"},
		{`{"decision":"no"}`, 0, 2, "\nCall refused by ann.\n"},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			t.Parallel()
			pay := newCountedTool(t, "pay", tool.Options{Approve: "ann"})
			m := &listening{namedModel: callsFirst(call("pay", `{"amount": 5}`), call("pay", `{"amount": 6}`))}
			d := &approver{decide: always(tt.decision)}
			res := run(t, newTeam(t, clerk(m, pay.Tool), d.member()), nil, errand())
			require.NoError(t, res.Err())
			require.Equal(t, tt.calls, pay.calls.Load())
			require.Len(t, d.asked, tt.asked)
			require.Contains(t, d.asked[0], "# Task: Approve pay")
			require.Contains(t, d.asked[0], `{"amount":5}`)
			require.Contains(t, m.answered(), tt.want)
		})
	}
}

// A person approves what she sees, so what she may not see is not called.
func TestACallThatItsApproverMayNotSeeIsNotMade(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]handoff.PairRule{
		"a part":  {From: "clerk", To: "ann", Block: []task.Path{"/to"}},
		"nothing": {From: "clerk", To: "ann", Mode: handoff.Scoped, Allow: []task.Path{"/other"}},
		"without personal data that the tool gets": {From: "clerk", To: "tool:pay", Mode: handoff.Full, Reveal: map[redact.Kind][]task.Path{redact.Email: {"/to"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pay := newCountedTool(t, "pay", tool.Options{Approve: "ann"})
			m := &listening{namedModel: callsFirst(call("pay", `{"amount": 5, "to": "bob@example.org"}`))}
			d := &approver{decide: always(saysYes)}
			tm, err := engine.New(engine.Config{Agents: []engine.Member{clerk(m, pay.Tool), d.member()}, Policy: &handoff.Policy{Rules: []handoff.PairRule{rule}}})
			require.NoError(t, err)
			res := run(t, tm, nil, errand())
			require.NoError(t, res.Err())
			require.Zero(t, pay.calls.Load())
			require.Empty(t, d.asked)
			require.Regexp(t, "Call refused: ann may not see .*its arguments, and so cannot approve it", m.answered())
		})
	}
}

// Whatever a process had made durable when it died: a call is made only with an approval that no
// call has spent, an external call at most once, and nobody is asked again about an approval that
// is in the journal and not spent.
//
// Requirement: G56, G58.
func TestApprovalsAreSpentOnceAfterEveryCommit(t *testing.T) {
	t.Parallel()
	settings := map[string]tool.Options{"external": {Approve: "ann"}, "repeatable": {Repeatable: true, Approve: "ann"}, "none": {Effect: tool.None, Approve: "ann"}}
	for _, name := range []string{"external", "repeatable", "none", "external at once", "repeatable at once", "none at once"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name, atOnce := strings.CutSuffix(name, " at once")
			o := settings[name]
			first, d := &loop{turns: 4, options: o, atOnce: atOnce}, &approver{decide: always(saysYes)}
			whole, want := journaled(t, first.approvedBy(t, d), errand())
			require.NoError(t, want.Err())
			require.Equal(t, []int{3, 3}, []int{len(first.added), len(d.asked)})
			uncertain := 0
			for n := range whole.len() + 1 {
				past := whole.history(n)
				before, approved := durableIn(past), 0
				for _, e := range past.Log {
					if e.Answer != nil {
						approved++
					}
				}
				again, d := &loop{turns: 4, options: o, atOnce: atOnce}, &approver{decide: always(saysYes)}
				res := resumed(t, again.approvedBy(t, d), past, errand())
				for id, calls := range again.added {
					require.Equal(t, 1, calls)
					require.False(t, before.ended[id], "call %s was made again", id)
					require.False(t, before.started[id] && name == "external", "call %s was made twice", id)
				}
				interrupted := len(before.started) - len(before.ended)
				if interrupted > 0 && name == "external" {
					uncertain++
					require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code, "after %d commits", n)
					require.Empty(t, d.asked)
					continue
				}
				require.NoError(t, res.Err(), "after %d commits", n)
				require.Equal(t, answers(want), answers(res))
				require.Len(t, d.asked, 3-approved+interrupted, "after %d commits", n)
			}
			require.Equal(t, name == "external", uncertain > 0)
		})
	}
}

// Whatever a process had made durable when it died, a call that a person refused is not made, also if the person
// approved all further calls of its tool in the answer to another question of the turn.
//
// Requirement: G56.
func TestARefusalCountsAfterEveryCommit(t *testing.T) {
	t.Parallel()
	decide := func(_ int, p prompt.Prompt) string {
		switch {
		case strings.Contains(p.Text(), `{"N":1}`):
			return saysAlways
		case strings.Contains(p.Text(), `{"N":2}`):
			return `{"decision":"no"}`
		}
		return saysYes
	}
	o := tool.Options{Effect: tool.None, Approve: "ann"}
	first := &loop{turns: 4, options: o, atOnce: true}
	whole, want := journaled(t, first.approvedBy(t, &approver{decide: decide}), errand())
	require.NoError(t, want.Err())
	require.Len(t, first.added, 2)
	for n := range whole.len() + 1 {
		again := &loop{turns: 4, options: o, atOnce: true}
		res := resumed(t, again.approvedBy(t, &approver{decide: decide}), whole.history(n), errand())
		require.NoError(t, res.Err(), "after %d commits", n)
		require.Equal(t, answers(want), answers(res), "after %d commits", n)
		for id := range again.added {
			require.Contains(t, first.added, id, "after %d commits", n)
		}
	}
}

// approvedBy is the team of the loop, with a person who approves its calls.
func (l *loop) approvedBy(t testing.TB, d *approver) *engine.Team {
	t.Helper()
	l.more = []engine.Member{d.member()}
	return l.team(t)
}

// A run waits for an approval, and uses it for the call that it is about.
//
// Requirement: G56.
func TestAnApprovalIsForOneCall(t *testing.T) {
	t.Parallel()
	const left = `{"decision":"yes","reason":""}`
	for _, tt := range []struct {
		name      string
		arguments string
		options   tool.Options
		key       func(*record.Question) record.Key
		calls     int32
	}{
		{"the same", `{"amount": 5}`, tool.Options{Approve: "ann"}, nil, 1},
		{"other arguments", `{"amount": 6}`, tool.Options{Approve: "ann"}, nil, 0},
		{"another effect", `{"amount": 5}`, tool.Options{Approve: "ann", Effect: tool.None}, nil, 0},
		{"another question", `{"amount": 5}`, tool.Options{Approve: "ann"}, func(*record.Question) record.Key { return record.Key{1} }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &approver{decide: always("")}
			pay := newCountedTool(t, "pay", tool.Options{Approve: "ann"})
			j, res := journaled(t, newTeam(t, clerk(callsFirst(call("pay", `{"amount": 5}`)), pay.Tool), d.member()), errand())
			require.Equal(t, engine.StatusSuspended, res.Status)
			require.Equal(t, "ann", res.Tasks[0].WaitingFor)
			require.Zero(t, pay.calls.Load())
			past := j.history(j.len())
			var q *record.Question
			for _, e := range past.Log {
				if e.Question != nil {
					q = e.Question
				}
			}
			require.NotEmpty(t, q.Call)
			a := &record.Answer{Task: q.Task, Key: q.Key, Text: left, By: "ann"}
			if tt.key != nil {
				a.Key = tt.key(q)
			}
			past.Log = append(past.Log, record.Entry{Answer: a})
			if tt.arguments != `{"amount": 5}` { // the model is asked again, and wants something else
				past.Log = dropTurns(past.Log)
			}
			again := newCountedTool(t, "pay", tt.options)
			d = &approver{decide: always("")}
			res = resumed(t, newTeam(t, clerk(callsFirst(call("pay", tt.arguments)), again.Tool), d.member()), past, errand())
			require.Equal(t, tt.calls, again.calls.Load())
			if tt.calls == 0 {
				require.Equal(t, engine.StatusSuspended, res.Status)
				require.Len(t, d.asked, 1)
				return
			}
			require.NoError(t, res.Err())
			require.Empty(t, d.asked)
		})
	}
}

// An approval is for a call behind the calls that the agent made before it in its turn, whether they need one or not.
//
// Requirement: G56.
func TestAnApprovalIsForACallAfterOthers(t *testing.T) {
	t.Parallel()
	pay := func(amount string) llm.ToolCall { return call("pay", `{"amount": `+amount+`}`) }
	note := func(text string) llm.ToolCall { return call("note", `{"text": "`+text+`"}`) }
	approved := []llm.ToolCall{pay("5"), note("hello"), pay("6"), note("bye")}
	for name, tt := range map[string]struct {
		calls []llm.ToolCall
		asked int
	}{
		"the same":                 {approved, 0},
		"another call after it":    {[]llm.ToolCall{pay("5"), note("hello"), pay("6"), note("hello")}, 0},
		"another call between":     {[]llm.ToolCall{pay("5"), note("bye"), pay("6")}, 1},
		"another first call":       {[]llm.ToolCall{pay("4"), note("hello"), pay("6")}, 2},
		"another tool first":       {[]llm.ToolCall{note("hello"), note("hello"), pay("6")}, 1},
		"the other way round":      {[]llm.ToolCall{pay("6"), note("hello"), pay("5")}, 2},
		"without the call between": {[]llm.ToolCall{pay("5"), pay("6")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := []*tool.Tool{newCountedTool(t, "pay", tool.Options{Approve: "ann"}).Tool, newCountedTool(t, "note", tool.Options{}).Tool}
			j, res := journaled(t, newTeam(t, clerk(callsFirst(approved...), tools...), (&approver{decide: always("")}).member()), errand())
			require.Equal(t, engine.StatusSuspended, res.Status)
			past := j.history(j.len())
			for _, e := range past.Log {
				if q := e.Question; q != nil {
					past.Log = append(past.Log, record.Entry{Answer: &record.Answer{Task: q.Task, Key: q.Key, Text: saysYes, By: "ann"}})
				}
			}
			past.Log = dropTurns(past.Log) // the model is asked again
			d := &approver{decide: always("")}
			res = resumed(t, newTeam(t, clerk(callsFirst(tt.calls...), tools...), d.member()), past, errand())
			require.Len(t, d.asked, tt.asked)
			require.Equal(t, tt.asked > 0, res.Status == engine.StatusSuspended)
		})
	}
}

// dropTurns returns a log without what the model said.
func dropTurns(log []record.Entry) (out []record.Entry) {
	for _, e := range log {
		if e.Turn == nil && e.Exchange == nil {
			out = append(out, e)
		}
	}
	return out
}
