package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// canary is in every text of [secretEntries] that is above confidential.
const canary = "CANARY-b1f7-4417"

// Short returns an answer that expires.
func (f *fakeRun) Short(of *task.Task, ttl time.Duration, key record.Key) *record.AgentCall {
	x := f.Answer(of, "", key)
	h := x.Result.Header
	h.ExpiresAt = noon.Add(ttl)
	x.Result = new(stored(must(envelope.New(h, envelope.Text("short"))), "short"))
	return x
}

// secretEntries returns the entries of a run whose caller may see secrets. They have
// values with a label in the prompt, in results and their shown form, in errors, reasons and the answer.
func secretEntries(run string, level label.Classification) []record.Entry {
	t := newFakeRun(run, 3)
	t.Label = level
	done, failed := t.Task(0), t.Task(1)
	asks := t.Ask(done, level)
	answer := t.Answer(done, "It says "+canary, answerKey(0))
	answer.Shown = &record.ShownResult{Text: "shown " + canary}
	answer.Call = llm.CallInfo{Model: canary, Endpoint: "http://localhost:1/v1", RequestID: canary, FinishReason: canary}
	answer.Warnings = []string{"look at " + canary}
	asksAgain := t.Ask(failed, level)
	failure := t.Answer(failed, "", answerKey(1))
	failure.Result, failure.Code, failure.Error = nil, "SCHEMA", "not a number: "+canary
	failure.Call = llm.CallInfo{RequestID: canary}
	failure.Refused = &record.LabeledText{Text: "refused " + canary, Problem: "found " + canary, Label: level}
	answer.Reasoning = &record.LabeledText{Text: "first " + canary, Label: level}
	failedEvents := t.Events(failed, event.Error)
	failedEvents[0].Event.Message = "not a number: " + canary
	warned := event.Event{Seq: failedEvents[0].Event.Seq + 1, Type: event.Warning, Time: t.now(), Run: run, Problem: event.Problem{Message: "answered by " + canary}}
	follows := event.Event{Seq: warned.Seq + 1, Type: event.Error, Time: t.now(), Run: run, Task: "after", Title: "After", Agent: "analyst", Status: task.Failed, Problem: event.Problem{Root: failed.ID, Message: "because of " + canary}}
	failedEvents = append(failedEvents, record.Entry{Event: &warned}, record.Entry{Event: &follows})
	step := *done
	step.ID, step.Title, step.Assignee = "coordinator/synthesis", "synthesis", "coordinator"
	end := &record.RunEnd{
		Time: t.now(), Status: "error", Answer: "In short: " + canary, Warnings: []string{"look at " + canary},
		Errors: []record.Failure{{Code: "X", Message: canary}},
	}
	raise(asks[0].Record.Prompt, level)
	raise(asksAgain[0].Record.Prompt, level)
	list := append(asks, record.Entry{Exchange: answer})
	list = append(append(list, asksAgain...), record.Entry{Rejected: t.Rejected(failed, canary, answerKey(1))}, record.Entry{Exchange: failure})
	return append(append(list, failedEvents...), record.Entry{Exchange: t.Answer(&step, "In short: "+canary, answerKey(2))}, record.Entry{End: end})
}

// secretInfo is an Info with an internal file and one with this label. Its flags, which are internal, have the canary too
// if that is as sensitive at most.
func secretInfo(run string, level label.Classification) journal.Info {
	info := journal.Info{Run: run, Name: "claims", Time: noon, Label: level, Invocation: json.RawMessage(`{"goal":true}`), Files: []journal.File{
		{Path: "team.yaml", Text: "tasks: []"},
		{Path: "claim.md", Text: "of " + canary, Label: level},
	}}
	if level <= label.Internal {
		info.Invocation = json.RawMessage(`{"request":"` + canary + `"}`)
	}
	return info
}

func secretsNeedTheirKey(t *testing.T, open openFunc) {
	for name, o := range map[string]journal.Options{"with": {Key: oneKey}, "without": {}, "from": {Key: oneKey, EncryptFrom: new(label.Public)}} {
		level := label.Secret
		if o.EncryptFrom != nil {
			level = *o.EncryptFrom
		}
		o.Now = func() time.Time { return noon.Add(time.Hour) }
		j, err := open(o)
		if o.Key == nil && errors.Is(err, journal.ErrKeyMissing) {
			continue // there is no journal without one
		}
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), secretInfo(name, level))
		require.NoError(t, err)
		list := secretEntries(name, level)
		require.NoError(t, appendEntries(r, list...))
		endRun(t, r)
		text, err := journaltest.Text(j.Lines(t.Context(), name))
		require.NoError(t, err)
		require.NotContains(t, text, canary)
		s, err := j.Load(t.Context(), name)
		require.NoError(t, err)
		tr, err := j.Trace(t.Context(), name)
		require.NoError(t, err)
		require.Len(t, tr.Prompts, 2)
		if o.Key != nil {
			for i := range list {
				if a := list[i].Asked; a != nil {
					a.Bytes = bytesize.Class(a.Bytes) // with or without the key
				}
			}
			requireHistory(t, list, &s.History)
			require.Equal(t, secretInfo(name, level), s.Info)
			require.Equal(t, list[0].Record.Prompt.Text, tr.Prompts[0].Text)
			require.NotEmpty(t, tr.Contains(canary).Occurrences)
		} else {
			withoutKey(t, s)
			require.Empty(t, tr.Contains(canary).Occurrences)
			require.Positive(t, tr.Prompts[0].Withheld())
		}
		require.NoError(t, j.Close())
	}
}

// raise gives what was granted for a prompt a label, as it is where a policy
// says so, and puts the canary into it.
func raise(s *promptview.Shown, level label.Classification) {
	s.Receipt.Classification = level
	for i := range s.Receipt.Sources {
		if src := &s.Receipt.Sources[i]; src.Decision != nil {
			src.Classification = level
		}
	}
	for i := range s.Text {
		if p := &s.Text[i]; p.Part == brief.PartPayload {
			p.Words = canary + p.Words[len(canary):]
		}
	}
}

// reasonOf returns why a task failed, as the history says.
func reasonOf(h *record.History, id task.ID) string {
	s := runstate.Of(h)
	return s.EndOf(s.Find(id)).Reason
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
	require.Equal(t, "[withheld: secret]", reasonOf(h, "after"))
	require.Empty(t, s.Info.Files[1].Text)
	require.NotEmpty(t, s.Info.Files[1].Missing)
	require.Equal(t, "tasks: []", s.Info.Files[0].Text)
}

func traceIsReadBack(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	fake := newFakeRun("r1", 1)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Name: "claims", Time: noon})
	require.NoError(t, err)
	list := fake.all(2)
	require.NoError(t, appendEntries(r, list[:len(list)-1]...))
	tr, err := j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	require.False(t, tr.Ended(), "it has not come to its end")
	require.NoError(t, appendEntries(r, list[len(list)-1]))
	endRun(t, r)
	tr, err = j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, "claims", tr.Name)
	require.Len(t, tr.Prompts, 2)
	require.Len(t, tr.Handoffs, 4)
	require.Equal(t, "ok", tr.State.End.Status)
	require.Len(t, tr.State.Planned(), 2)
	for _, e := range list {
		if x := e.Exchange; x != nil {
			of, err := tr.Find(x.Title)
			require.NoError(t, err)
			require.Equal(t, task.Completed, of.Status)
			word := strings.Fields(x.Result.Text)[3]
			require.NotEmpty(t, tr.Contains(x.Result.Text).Occurrences, word)
		}
	}
	require.Equal(t, fake.Task(0).Title, tr.Prompts[0].Title)
}

// oneTaskIsReadAlone reads each task of a run, of which each is in rows of its own.
func oneTaskIsReadAlone(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	fake := newFakeRun("r1", 1)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Name: "claims", Time: noon})
	require.NoError(t, err)
	for _, e := range fake.all(6) {
		require.NoError(t, appendEntries(r, e))
	}
	endRun(t, r)
	all, err := j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	whole, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	for n := range 6 {
		of := fake.Task(n)
		requireTraceOf(t, j, "r1", of.ID, all)
		_, one, err := j.LoadTask(t.Context(), "r1", string(of.ID))
		require.NoError(t, err)
		log := slices.DeleteFunc(one.History.Log, func(e record.Entry) bool { return e.Change != nil && e.Change.Task == of.ID })
		require.Equal(t, lean(logOf(&whole.History, of.ID), of.ID), log)
		require.Equal(t, whole.History.End, one.History.End)
		require.Equal(t, whole.Info, one.Info)
		requireResultOf(t, j, "r1", of, one)
	}
	_, search, err := j.Search(t.Context(), "r1", fake.Task(3).Title)
	require.NoError(t, err)
	want := all.Contains(fake.Task(3).Title)
	require.Equal(t, want.Origins, search.Origins)
	require.Len(t, search.Occurrences, len(want.Occurrences))
	require.NotEmpty(t, want.Occurrences)
}

// leanList returns the first element of a list and that of one task.
func leanList[T any](list []T, isOf func(*T) bool) (out []T) {
	for i := range list {
		if i == 0 || isOf(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// lean returns a log whose lists of tasks have only the first one and this one.
func lean(log []record.Entry, id task.ID) []record.Entry {
	log = slices.Clone(log)
	for i := range log {
		if b := log[i].Begin; b != nil {
			log[i].Begin = new(*b)
			log[i].Begin.Tasks = leanList(b.Tasks, func(p *event.Planned) bool { return p.Task == id })
		}
	}
	return log
}

// requireTraceOf fails unless the journal gives of one task what the whole trace
// of its run has of it.
func requireTraceOf(t testing.TB, j *journal.Journal, run string, id task.ID, all *trace.Trace) {
	t.Helper()
	one, err := j.TraceTask(t.Context(), run, string(id))
	require.NoError(t, err)
	require.True(t, one.Partial)
	require.Equal(t, all.Ended(), one.Ended())
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
		return append(out, fmt.Sprint(tr.Withheld(id)))
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
		require.Equal(t, of.ID, got.Header().Task)
		require.Contains(t, []envelope.ID{want.Result.ID, want.Result.ID + "/shown"}, got.ID())
	}
}

// logOf is what a history says of one task.
func logOf(h *record.History, id task.ID) (out []record.Entry) {
	for _, e := range h.Log {
		if e.Begin != nil || e.Asked != nil && e.Asked.Task == id || e.Exchange != nil && e.Exchange.Task == id || e.Rejected != nil && e.Rejected.Task == id || e.Begun != nil && strings.Contains(e.Begun.Session, string(id)) {
			out = append(out, e)
		}
	}
	return out
}
