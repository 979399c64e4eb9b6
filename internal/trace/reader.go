package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// add reads a line that is decoded.
func (r *Reader) add(l *Line) error {
	switch {
	case l.malformed != nil:
		return l.malformed
	case l.Kind == record.KindTrace && r.at > 1:
		return errors.New("a second head: the file holds more than one trace")
	case l.Kind == record.KindTrace:
		return r.head(l.Value, l.members)
	case r.at == 1:
		return errors.New(`the file does not begin with "trace"`)
	case l.Kind == record.KindDecision:
		return r.audited(l)
	case l.members != 1:
		return fmt.Errorf("it has %d kinds where one belongs", l.members)
	}
	return r.member(l)
}

// head reads the first line.
func (r *Reader) head(text json.RawMessage, members int) error {
	var v struct{ Version int }
	if err := json.Unmarshal(text, &v); err != nil || v.Version < 1 {
		return errors.New("its head names no version")
	}
	if v.Version > Version {
		return fmt.Errorf("it was written by a newer runteam, in version %d of the form; this one reads version %d", v.Version, Version)
	}
	var h header
	if err := record.DecodeStrict(text, &h); err != nil {
		return fmt.Errorf("its head cannot be read: %w", err)
	}
	if members != 1 {
		return errors.New("its line has more than the head")
	}
	r.begin(&h)
	return nil
}

// begin sets what the first line has.
func (r *Reader) begin(h *header) {
	t := r.trace
	t.Run, t.Name, t.Time, t.Inputs = h.Run, h.Name, h.Time, h.Inputs
	if len(h.Tasks) > 0 {
		r.AddTasks(h.Tasks)
	}
}

// AddTasks adds the tasks that a process of the run began with. Those of the first are all that can be read alone: if
// [ReadOptions].Task names one of them, the lines that follow about others are skipped. A loop cannot be read alone: its
// result is that of another task.
func (r *Reader) AddTasks(tasks []Task) {
	t := r.trace
	if r.listed {
		t.addSpec(tasks)
		return
	}
	if r.listed = true; len(tasks) > 0 {
		t.Spec, t.head = tasks, len(tasks)
	}
	var only *Task
	if r.o.Task != "" {
		if i, known := Names(t.Spec).Find(r.o.Task); known && t.Spec[i].Rounds == "" {
			only, r.only, t.Partial = &t.Spec[i], []byte(t.Spec[i].ID), true
		}
	}
	if only == nil {
		t.Handoffs = slices.Grow(t.Handoffs, usualDecisions*len(tasks))
	}
	if r.o.Listed != nil {
		r.o.Listed(t, only)
	}
}

// usualDecisions is how many decisions are stored of a task that reads one result, which its caller is given too. To grow
// the list would take as much memory again.
const usualDecisions = 2

// unrelated reports whether a line is only about other tasks than the one that is read, and
// not about their completion.
func (r *Reader) unrelated(text []byte) bool {
	switch {
	case bytes.HasPrefix(text, eventOpener):
		return !bytes.Contains(text, r.only) && !bytes.Contains(text, []byte(`"task_complete"`)) && !bytes.Contains(text, []byte(`"plan_ready"`))
	case bytes.HasPrefix(text, promptOpener), bytes.HasPrefix(text, auditOpener):
		return !bytes.Contains(text, r.only)
	}
	return bytes.HasPrefix(text, partOpener)
}

// The prefixes of lines.
var (
	eventOpener  = record.LinePrefix(record.KindEvent)
	promptOpener = record.LinePrefix(record.KindPrompt)
	auditOpener  = record.LinePrefix(record.KindDecision)
	partOpener   = record.LinePrefix(record.KindPart)
)

// member reads the value of a line of one member.
func (r *Reader) member(l *Line) error {
	switch {
	case r.trace.Ended():
		return fmt.Errorf("%q after the result", l.Kind)
	case l.bad != nil && !ownKind(l.Kind):
		return l.bad
	}
	switch l.Kind {
	case record.KindEvent:
		r.event(l.Event, l.Hidden)
		return nil
	case record.KindPrompt:
		r.prompt(l.Prompt)
		return nil
	case record.KindPart:
		return r.part(l.Value)
	case record.KindResult:
		if bytes.Equal(l.Value, null) {
			return r.result(r.parts.Bytes())
		}
		return r.result(l.Value)
	}
	return r.other(l)
}

// other reads a line of another kind.
func (r *Reader) other(l *Line) error {
	err := ErrKind
	if r.o.Other != nil {
		if err = l.bad; err == nil {
			err = r.o.Other(l)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrKind):
		return fmt.Errorf("its kind %q is unknown; was it written by a newer runteam?", l.Kind)
	}
	return &otherError{err}
}

// An otherError is an error of [ReadOptions].Other.
type otherError struct{ err error }

func (e *otherError) Error() string { return e.err.Error() }

func (r *Reader) event(e *event.Event, hidden json.RawMessage) {
	r.complete()
	if e.Handoff != nil {
		r.ruled = append(r.ruled, *e.Handoff)
	}
	if r.o.Event != nil {
		r.o.Event(e, hidden)
	}
	if e.Task != "" {
		r.trace.State.Task(e.Task, e.Title, e.Agent)
	}
	if c := record.ChangeOf(e); c != nil { // which is smaller than the event
		r.trace.State.Apply(&record.Entry{Change: c})
	}
	if e.Type == event.AgentStart {
		r.started(e.Task, e.Attempt)
		return
	}
	if e.Type == event.TaskComplete {
		r.trace.ended(e.Task, 2*r.events)
	}
	r.events++
}

func (r *Reader) prompt(p *Prompt) {
	r.complete()
	r.trace.State.Task(p.Receipt.Task, p.Title, p.Agent)
	p.at, r.open = 2*r.events-1, len(r.trace.Prompts)
	r.trace.Prompts = append(r.trace.Prompts, *p)
}

// complete completes the prompt that was read last.
func (r *Reader) complete() {
	if r.open < 0 {
		return
	}
	p := &r.trace.Prompts[r.open]
	r.open = -1
	if r.o.Prompt != nil {
		r.o.Prompt(p)
	}
	if p.Withholds() {
		r.hidden[p.Receipt.Task] = true
	}
	if f := r.o.Finder; f != nil {
		f.prompt(p)
		p.forget(len(p.found.found) > 0)
	}
}

// forget drops the words of a prompt, and its sources unless they are needed.
func (p *Prompt) forget(sources bool) {
	lean := &prompt.Receipt{Session: p.Receipt.Session, Run: p.Receipt.Run, Task: p.Receipt.Task, Agent: p.Receipt.Agent}
	if p.sourceTasks = p.results(); sources {
		lean.Sources = p.Receipt.Sources
	}
	p.Receipt, p.System, p.Text = lean, nil, nil
}

func (r *Reader) part(text json.RawMessage) error {
	var part string
	if err := json.Unmarshal(text, &part); err != nil {
		return errors.New("its part of the result is no text")
	}
	r.parts.WriteString(part)
	return nil
}

// audited reads a line of the chain of decisions.
func (r *Reader) audited(l *Line) error {
	if l.Decision != nil {
		r.trace.Handoffs = append(r.trace.Handoffs, *l.Decision)
	}
	return l.bad
}

// result adds the result of the run to the State, as the entries of a history would: the results of the tasks, how they
// ended, and the answer of the coordinator.
func (r *Reader) result(text json.RawMessage) error {
	end, st := &record.RunEnd{}, r.trace.State
	if r.only != nil {
		st.Apply(&record.Entry{End: end})
		return nil
	}
	var res *struct {
		Status, Output string
		Coordinator    []json.RawMessage
		Tasks          []struct {
			Task
			Result     string
			Structured json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &res); err != nil || res == nil { // it has more members
		return errors.New("its result cannot be read")
	}
	end.Status = res.Status
	if len(res.Coordinator) > 0 {
		end.Answer = res.Output
	}
	for i := range res.Tasks {
		of := &res.Tasks[i]
		ended := st.EndOf(st.Task(of.ID, of.Title, of.Assignee)) // with the reason, which the result has in another form
		ended.Task, ended.Title, ended.Agent, ended.Status = of.ID, of.Title, of.Assignee, of.Status
		end.Tasks = append(end.Tasks, ended)
		if of.Status == task.Completed {
			st.Apply(&record.Entry{Exchange: &record.AgentCall{
				CallID: record.CallID{Task: of.ID, Title: of.Title, Agent: of.Assignee}, Shown: &record.ShownResult{Text: of.Result, Structured: string(of.Structured)},
			}})
		}
	}
	st.Apply(&record.Entry{End: end})
	return nil
}
