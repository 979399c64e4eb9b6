package trace_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// A crashing run is one whose processes die: each numbers its events from 1.
type crashing struct {
	t     require.TestingT
	lines *trace.Lines
	seq   int
}

func crash(t require.TestingT) *crashing {
	return &crashing{t: t, lines: trace.NewLines(of("r1"))}
}

// tell adds events of a task.
func (c *crashing) tell(of *task.Task, attempt int, kinds ...event.Type) {
	for _, kind := range kinds {
		c.seq++
		e := event.Event{Seq: c.seq, Type: kind, Time: noon, Run: "r1"}
		if of != nil {
			e.Task, e.Title, e.Agent, e.Attempt = of.ID, of.Title, of.Assignee, attempt
		}
		require.NoError(c.t, c.lines.Event(e))
	}
}

// send records a prompt with one piece of context, has it sent and answered.
func (c *crashing) send(r record.Prompt, of *task.Task, attempt int) {
	require.NoError(c.t, c.lines.Record(r))
	c.tell(of, attempt, event.AgentStart, event.TaskComplete)
}

// next is the next process.
func (c *crashing) next() {
	require.NoError(c.t, c.lines.Add("begin", "again"))
	c.seq = 0
	c.tell(nil, 0, event.RunStart)
}

func (c *crashing) read() *trace.Trace {
	_, err := c.lines.Close(noon)
	require.NoError(c.t, err)
	tr, err := trace.ReadWith(bytes.NewReader(c.lines.Take()), trace.ReadOptions{Other: other})
	require.NoError(c.t, err)
	return tr
}

// titles tells the results that a prompt could have had.
func titles(tr *trace.Trace, p *trace.Prompt) (out []string) {
	results, _, _ := tr.Absent(p, 0)
	for _, r := range results {
		out = append(out, r.Title)
	}
	return out
}

// answered is the entry of a result.
func answered(of *task.Task, text string) *record.AgentCall {
	return &record.AgentCall{CallID: record.CallID{Task: of.ID, Title: of.Title, Agent: of.Assignee}, Shown: &record.ShownResult{Text: text}}
}

// end adds to a trace that its run ended with these results, as the history of a journal says it.
func end(tr *trace.Trace, results ...*record.AgentCall) {
	ended := &record.RunEnd{Status: "ok"}
	for _, x := range results {
		tr.State.Apply(&record.Entry{Exchange: x})
		ended.Tasks = append(ended.Tasks, record.TaskEnd{Task: x.Task, Title: x.Title, Agent: x.Agent, Status: task.Completed})
	}
	tr.State.Apply(&record.Entry{End: ended})
}

// What completed in the process before came before what this one sends, though
// its event has a higher number.
func TestOrderIsThatOfTheLinesAcrossProcesses(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.next()
	c.tell(&facts, 1, event.TaskReady, event.TaskStart)
	c.tell(&check, 1, event.TaskReady, event.TaskStart)
	c.send(told(&facts, 1, handoff.Input, "claim", "user", "the word"), &facts, 1)
	c.next()
	c.send(told(&check, 1, handoff.Input, "claim", "user", "another"), &check, 1)
	tr := c.read()
	require.Equal(t, []string{"Extract facts"}, titles(tr, &tr.Prompts[1]))
	require.Empty(t, titles(tr, &tr.Prompts[0]))
	end(tr, answered(&check, "of the word"), answered(&facts, "the word it is"))
	s := tr.Contains("the word")
	require.Equal(t, []string{"prompt of Extract facts", "result of Extract facts", "result of Check the blacklist"}, places(s))
	require.Equal(t, []trace.Origin{{By: "user", Kind: trace.FromInput, Name: "claim"}, {By: "security", Kind: trace.FromTask, Name: "Check the blacklist", Task: check.ID}}, s.Origins)
}

// A prompt that was ready first and then waited for a free agent comes after
// those that were sent before it.
func TestPromptsAreInTheOrderInWhichTheyWereSent(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.next()
	c.tell(&facts, 1, event.TaskReady)
	c.tell(&check, 1, event.TaskReady)
	require.NoError(t, c.lines.Record(told(&check, 1, handoff.Input, "claim", "user", "the word is blue")))
	c.send(told(&facts, 1, handoff.Input, "claim", "user", "the word is red"), &facts, 1)
	c.tell(&check, 1, event.AgentStart, event.TaskComplete)
	_, err := c.lines.Close(noon)
	require.NoError(t, err)
	file := c.lines.Take()
	f := trace.NewFinder("the word is blue")
	for _, finder := range []*trace.Finder{nil, f} {
		tr, err := trace.ReadWith(bytes.NewReader(file), trace.ReadOptions{Other: other, Finder: finder})
		require.NoError(t, err)
		require.Equal(t, facts.ID, tr.Prompts[0].Receipt.Task)
		require.Empty(t, titles(tr, &tr.Prompts[0]))
		require.Equal(t, []string{"Extract facts"}, titles(tr, &tr.Prompts[1]))
		if finder != nil {
			require.Equal(t, []string{"prompt of Check the blacklist"}, places(f.Search(tr)))
		} else {
			require.Equal(t, []string{"prompt of Check the blacklist"}, places(tr.Contains("the word is blue")))
		}
	}
}

// A prompt that a crash interrupted is one of its own, also if it was never
// sent and the next process gives its number again.
func TestInterruptedPromptKeepsItsPosition(t *testing.T) {
	t.Parallel()
	for _, began := range []bool{false, true} {
		for _, attempt := range []int{1, 2} {
			c := crash(t)
			c.next()
			require.NoError(t, c.lines.Record(told(&score, 1, handoff.Input, "claim", "user", "first")))
			if began {
				c.tell(&score, 1, event.AgentStart)
			}
			c.next()
			c.send(told(&facts, 1, handoff.Input, "claim", "user", "x"), &facts, 1)
			c.send(told(&score, attempt, handoff.Input, "claim", "user", "second"), &score, attempt)
			tr := c.read()
			require.Equal(t, attempt, tr.Prompts[2].Attempt)
			require.Equal(t, []string{"Extract facts"}, titles(tr, &tr.Prompts[2]))
			require.Empty(t, titles(tr, &tr.Prompts[0]), "began: %t, then attempt %d", began, attempt)
		}
	}
	c := crash(t)
	c.next()
	c.send(told(&facts, 1, handoff.Input, "claim", "user", "x"), &facts, 1)
	require.NoError(t, c.lines.Record(told(&score, 1, handoff.Input, "claim", "user", "x")))
	tr := c.read()
	require.Equal(t, []string{"Extract facts"}, titles(tr, &tr.Prompts[1]), "what was done by then")
}

// A task that ran again has its last result at its end, and had one before.
func TestTaskThatRanAgainHasItsLastResult(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.next()
	c.send(told(&facts, 1, handoff.Input, "claim", "user", "x"), &facts, 1)
	c.next()
	c.send(told(&check, 1, handoff.Input, "claim", "user", "x"), &check, 1)
	c.send(told(&facts, 2, handoff.Input, "policy", "user", "the word"), &facts, 2)
	tr := c.read()
	require.Equal(t, []string{"Extract facts"}, titles(tr, &tr.Prompts[1]))
	end(tr, answered(&facts, "the word"))
	s := tr.Contains("the word")
	require.Equal(t, []string{"prompt of Extract facts", "result of Extract facts"}, places(s))
	require.Equal(t, "policy", s.Origins[0].Name)
	require.Len(t, s.Origins, 1)
}

// What a crash kept from being told: that a task completed whose result is in
// the prompts of the next process.
func TestReadResultImpliesACompletedTask(t *testing.T) {
	t.Parallel()
	memory := "intake/task:" + string(facts.ID) + ":result"
	for kind, name := range map[handoff.SourceKind]string{handoff.Dependency: string(facts.ID), handoff.Memory: memory} {
		c := crash(t)
		c.next()
		require.NoError(t, c.lines.Record(told(&facts, 1, handoff.Input, "claim", "user", "x")))
		c.tell(&facts, 1, event.AgentStart)
		c.next()
		c.send(told(&letter, 1, handoff.Input, "claim", "user", "x"), &letter, 1)
		c.send(told(&score, 1, kind, name, "intake", "the word"), &score, 1)
		c.send(told(&check, 1, handoff.Input, "claim", "user", "x"), &check, 1)
		tr := c.read()
		require.Empty(t, titles(tr, &tr.Prompts[0]))
		require.Empty(t, titles(tr, &tr.Prompts[1]), "nobody knows of it yet")
		require.Equal(t, []string{"Write letter"}, titles(tr, &tr.Prompts[2]))
		require.Equal(t, []string{"Extract facts", "Score fraud", "Write letter"}, titles(tr, &tr.Prompts[3]))
		end(tr, answered(&facts, "the word"))
		require.Equal(t, []string{"result of Extract facts", "prompt of Score fraud"}, places(tr.Contains("the word")), "%s", kind)
	}
}

// Wherever processes die, a run tells the same as if one had gone through.
func TestSplitIntoProcessesReadsEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, many := crash(t), crash(t)
		one.next()
		many.next()
		for i, of := range rapid.Permutation([]*task.Task{&facts, &check, &score, &letter}).Draw(t, "order") {
			r := told(of, 1, handoff.Input, "claim", "user", fmt.Sprintf("the word %d", i))
			if i > 0 {
				r = told(of, 1, handoff.Message, fmt.Sprint("m", i), "someone", fmt.Sprintf("the word %d", i))
			}
			one.send(r, of, 1)
			if rapid.Bool().Draw(t, "dies") {
				many.next()
			}
			many.send(r, of, 1)
		}
		want, got := one.read(), many.read()
		require.Equal(t, places(want.Contains("the word")), places(got.Contains("the word")))
		require.Equal(t, want.Contains("the word").Origins, got.Contains("the word").Origins)
		require.Equal(t, want.Tasks(), got.Tasks())
		for i := range want.Prompts {
			require.Equal(t, titles(want, &want.Prompts[i]), titles(got, &got.Prompts[i]))
		}
	})
}
