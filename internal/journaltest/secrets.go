package journaltest

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Canary stands in every text of [Secrets] that is above confidential.
const Canary = "CANARY-b1f7-4417"

// Short returns an answer that expires.
func (t *Teller) Short(of *task.Task, ttl time.Duration, key record.Key) *record.AgentCall {
	x := t.Answer(of, "", key)
	h := x.Result.Header
	h.ExpiresAt = Noon.Add(ttl)
	x.Result = new(stored(must(envelope.New(h, envelope.Text("short"))), "short"))
	return x
}

// Secrets returns what a run tells whose caller may see secrets, and which has
// them wherever it can: in a prompt, results and what is shown of them, errors,
// reasons and the answer.
func Secrets(run string) []record.Entry {
	t := NewTeller(run, 3)
	t.Label = label.Secret
	done, failed := t.Task(0), t.Task(1)
	asks := t.Ask(done, label.Secret)
	answer := t.Answer(done, "It says "+Canary, Key(0))
	answer.Shown = &record.ShownResult{Text: "shown " + Canary}
	answer.Call = llm.CallInfo{Model: Canary, Endpoint: "http://localhost:1/v1", RequestID: Canary, FinishReason: "stop"}
	answer.Corrected, answer.Warnings = &llm.CallInfo{FinishReason: Canary}, []string{"look at " + Canary}
	asksAgain := t.Ask(failed, label.Secret)
	failure := t.Answer(failed, "", Key(1))
	failure.Result, failure.Code, failure.Error = nil, "SCHEMA", "not a number: "+Canary
	failure.Call = llm.CallInfo{RequestID: Canary}
	failure.Refused = &record.SideText{Text: "refused " + Canary, Problem: "found " + Canary, Label: label.Secret}
	answer.Reasoning = &record.SideText{Text: "first " + Canary, Label: label.Secret}
	told := t.Events(failed, event.Error)
	told[0].Event.Message = "not a number: " + Canary
	warned := event.Event{Seq: told[0].Event.Seq + 1, Type: event.Warning, Time: t.now(), Run: run, Problem: event.Problem{Message: "answered by " + Canary}}
	told = append(told, record.Entry{Event: &warned})
	step := *done
	step.ID, step.Title, step.Assignee = "coordinator/synthesis", "synthesis", "coordinator"
	end := &record.RunEnd{
		Time: t.now(), Status: "error", Answer: "In short: " + Canary, Warnings: []string{"look at " + Canary},
		Tasks: []record.TaskEnd{
			{Task: done.ID, Title: done.Title, Agent: "analyst", Status: task.Completed},
			{Task: failed.ID, Title: failed.Title, Agent: "analyst", Status: task.Failed, Reason: Canary, Code: "SCHEMA"},
			{Task: "after", Title: "After", Agent: "analyst", Status: task.Failed, Reason: "because of " + Canary, Root: failed.ID},
		},
		Errors: []record.Failure{{Code: "X", Message: Canary}},
	}
	raise(asks[0].Record.Prompt)
	raise(asksAgain[0].Record.Prompt)
	list := append(asks, record.Entry{Exchange: answer})
	list = append(append(list, asksAgain...), record.Entry{Rejected: t.Rejected(failed, Canary, Key(1))}, record.Entry{Exchange: failure})
	return append(append(list, told...), record.Entry{Exchange: t.Answer(&step, "In short: "+Canary, Key(2))}, record.Entry{End: end})
}

// SecretInfo is an Info with a file above confidential.
func SecretInfo(run string) journal.Info {
	return journal.Info{Run: run, Name: "claims", Time: Noon, Label: label.Secret, Files: []journal.File{
		{Path: "team.yaml", Text: "tasks: []"},
		{Path: "claim.md", Text: "of " + Canary, Label: label.Secret},
	}}
}

func secrets(t *testing.T, open Open) {
	key := []byte("0123456789abcdef0123456789abcdef")
	for name, k := range map[string][]byte{"with": key, "without": nil} {
		j := opened(t, open, journal.Options{Key: k})
		r, err := j.Begin(t.Context(), SecretInfo(name))
		require.NoError(t, err)
		list := Secrets(name)
		require.NoError(t, Append(r, list...))
		closed(t, r)
		lines, err := j.Lines(t.Context(), name)
		require.NoError(t, err)
		text, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.NotContains(t, string(text), Canary)
		s, err := j.Load(t.Context(), name)
		require.NoError(t, err)
		tr, err := j.Trace(t.Context(), name)
		require.NoError(t, err)
		require.Len(t, tr.Prompts, 2)
		if k != nil {
			for i := range list {
				if a := list[i].Asked; a != nil {
					a.Bytes = bytesize.Class(a.Bytes) // with or without the key
				}
			}
			RequireHistory(t, list, &s.History)
			require.Equal(t, SecretInfo(name), s.Info)
			require.Equal(t, list[0].Record.Prompt.Text, tr.Prompts[0].Text)
			require.NotEmpty(t, tr.Contains(Canary).Occurrences)
		} else {
			withoutKey(t, s)
			require.Empty(t, tr.Contains(Canary).Occurrences)
			require.Positive(t, tr.Prompts[0].Withheld())
		}
		require.NoError(t, j.Close())
	}
}

// raise makes what was granted for a prompt secret, as it is where a policy
// says so, and puts the canary into it.
func raise(s *promptview.Shown) {
	s.Receipt.Classification = label.Secret
	for i := range s.Receipt.Sources {
		if src := &s.Receipt.Sources[i]; src.Decision != nil {
			src.Classification = label.Secret
		}
	}
	for i := range s.Text {
		if p := &s.Text[i]; p.Part == brief.PartPayload {
			p.Words = Canary + p.Words[len(Canary):]
		}
	}
}

func withoutKey(t *testing.T, s *journal.Stored) {
	h := &s.History
	var done []*record.AgentCall
	for _, e := range h.Log {
		if e.Exchange != nil {
			done = append(done, e.Exchange)
		}
	}
	require.Len(t, done, 3)
	require.Nil(t, done[0].Result)
	require.Contains(t, done[0].Missing, "no journal key")
	require.False(t, journal.Locked(done[0].Missing), "no key gives it back")
	require.Equal(t, "[withheld: secret]", done[0].Shown.Text)
	require.True(t, done[0].Completed())
	require.Equal(t, "[withheld: secret]", done[1].Error)
	require.Empty(t, done[1].Missing, "it had no result")
	require.Equal(t, "[withheld: secret]", h.End.Answer)
	require.Equal(t, "[withheld: secret]", h.End.Tasks[2].Reason)
	require.Empty(t, s.Info.Files[1].Text)
	require.NotEmpty(t, s.Info.Files[1].Missing)
	require.Equal(t, "tasks: []", s.Info.Files[0].Text)
}

func traced(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	story := NewTeller("r1", 1)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Name: "claims", Time: Noon})
	require.NoError(t, err)
	list := story.all(2)
	require.NoError(t, Append(r, list[:len(list)-1]...))
	tr, err := j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	require.Nil(t, tr.Result, "it has not come to its end")
	require.NoError(t, Append(r, list[len(list)-1]))
	closed(t, r)
	tr, err = j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, "claims", tr.Name)
	require.Len(t, tr.Prompts, 2)
	require.Len(t, tr.Events, 10)
	require.Len(t, tr.Handoffs, 4)
	require.Equal(t, "ok", tr.Result.Status)
	require.Len(t, tr.Result.Tasks, 2)
	for _, e := range list {
		if x := e.Exchange; x != nil {
			of, err := tr.Find(x.Title)
			require.NoError(t, err)
			require.Equal(t, task.Completed, of.Status)
			word := strings.Fields(x.Result.Text)[3]
			require.NotEmpty(t, tr.Contains(x.Result.Text).Occurrences, word)
		}
	}
	require.Equal(t, story.Task(0).Title, tr.Prompts[0].Title)
}

// tracedAlone reads each task of a run, of which each is in rows of its own.
func tracedAlone(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	story := NewTeller("r1", 1)
	info := journal.Info{Run: "r1", Name: "claims", Time: Noon}
	for n := range 6 {
		of := story.Task(n)
		info.Tasks = append(info.Tasks, trace.Task{ID: of.ID, Title: of.Title, Assignee: of.Assignee})
	}
	r, err := j.Begin(t.Context(), info)
	require.NoError(t, err)
	for _, e := range story.all(6) {
		require.NoError(t, Append(r, e))
	}
	closed(t, r)
	all, err := j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	whole, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	for n := range 6 {
		of := story.Task(n)
		RequireTraceOf(t, j, "r1", of.ID, all)
		_, one, err := j.LoadTask(t.Context(), "r1", string(of.ID))
		require.NoError(t, err)
		require.Equal(t, logOf(&whole.History, of.ID), one.History.Log)
		require.Equal(t, whole.History.End, one.History.End)
		require.Equal(t, whole.Info, one.Info)
		requireResultOf(t, j, "r1", of, one)
	}
	_, search, err := j.Search(t.Context(), "r1", story.Task(3).Title)
	require.NoError(t, err)
	want := all.Contains(story.Task(3).Title)
	require.Equal(t, want.Origins, search.Origins)
	require.Len(t, search.Occurrences, len(want.Occurrences))
	require.NotEmpty(t, want.Occurrences)
}

// RequireTraceOf fails unless the journal gives of one task what the whole trace
// of its run has of it.
func RequireTraceOf(t testing.TB, j *journal.Journal, run string, id task.ID, all *trace.Trace) {
	t.Helper()
	one, err := j.TraceTask(t.Context(), run, string(id))
	require.NoError(t, err)
	require.True(t, one.Partial)
	require.Equal(t, all.Result != nil, one.Result != nil)
	of := func(tr *trace.Trace) (out []string) {
		for i := range tr.Prompts {
			if p := &tr.Prompts[i]; p.Receipt.Task == id {
				results, more, inputs := tr.Absent(p, 0)
				for i := range results {
					out = append(out, results[i].Title)
				}
				out = append(out, fmt.Sprint(p.Text, more, inputs))
			}
		}
		return append(out, fmt.Sprint(tr.Held(id)))
	}
	require.Greater(t, len(of(all)), 1)
	require.Equal(t, of(all), of(one))
}

// requireResultOf fails unless the journal gives the last result of a task by its
// title and by its ID, or says that there is none.
func requireResultOf(t *testing.T, j *journal.Journal, run string, of *task.Task, stored *journal.Stored) {
	var want *record.AgentCall
	for _, e := range stored.History.Log {
		if e.Exchange != nil && e.Exchange.Part == "" && e.Exchange.Completed() {
			want = e.Exchange
		}
	}
	for _, name := range []string{of.Title, string(of.ID)} {
		got, err := j.Result(t.Context(), run, name)
		if want == nil || want.Missing != "" || want.Result == nil {
			require.ErrorContains(t, err, "no stored result")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, of.ID, got.Task())
		require.Contains(t, []envelope.ID{want.Result.ID, want.Result.ID + "/shown"}, got.ID())
	}
}

// logOf is what a history says of one task.
func logOf(h *record.History, id task.ID) (out []record.Entry) {
	for _, e := range h.Log {
		if e.Asked != nil && e.Asked.Task == id || e.Exchange != nil && e.Exchange.Task == id || e.Rejected != nil && e.Rejected.Task == id || e.Begun != nil && strings.Contains(e.Begun.Session, string(id)) {
			out = append(out, e)
		}
	}
	return out
}
