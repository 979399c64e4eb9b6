package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// line reads one line.
func (r *Reader) line(text []byte) error {
	if r.only != nil && r.unrelated(text) {
		return nil
	}
	kind, value, members, err := r.split(text)
	switch {
	case err != nil:
		return err
	case kind == record.KindTrace && r.at > 1:
		return errors.New("a second head: the file holds more than one trace")
	case kind == record.KindTrace:
		return r.head(value, members)
	case r.at == 1:
		return errors.New(`the file does not begin with "trace"`)
	case kind == record.KindDecision:
		return r.audited(text)
	case members != 1:
		return fmt.Errorf("it has %d kinds where one belongs", members)
	}
	err = r.member(kind, value)
	if err != nil && r.only == nil && !json.Valid(value) { // the cause may be the line
		if _, _, members, malformed := parseLine(text); malformed != nil || members != 1 {
			return cmp.Or(malformed, fmt.Errorf("it has %d kinds where one belongs", members))
		}
	}
	return err
}

// split returns the kind of a line, its value, and how many members the line has. It parses
// only lines that a [Writer] did not write, to find what is wrong with them. Values that are decoded
// strictly are not parsed twice.
func (r *Reader) split(text []byte) (kind string, value json.RawMessage, members int, err error) {
	kind, value = record.SplitLine(text)
	if kind == record.KindDecision || r.only != nil && ownKind(kind) || kind == record.KindEvent || kind == record.KindPrompt || json.Valid(value) {
		return kind, value, 1, nil
	}
	return parseLine(text)
}

// parseLine does what split does, for any line.
func parseLine(text []byte) (kind string, value json.RawMessage, members int, err error) {
	var all map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return "", nil, 0, errors.New("it is not a JSON object")
	}
	for _, kind := range []string{record.KindTrace, record.KindDecision} {
		if value, ok := all[kind]; ok {
			return kind, value, len(all), nil
		}
	}
	for kind, value = range all {
	}
	return kind, value, len(all), nil
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
// [ReadOptions].Task names one of them, the lines that follow about others are skipped.
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
		if i, known := Names(t.Spec).Find(r.o.Task); known {
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

// member reads the value of a line, by its kind.
func (r *Reader) member(kind string, value json.RawMessage) error {
	switch {
	case r.trace.Ended():
		return fmt.Errorf("%q after the result", kind)
	case kind == "event":
		return r.event(value)
	case kind == "prompt":
		return r.prompt(value)
	case kind == "part":
		return r.part(value)
	case kind == "result" && bytes.Equal(value, null):
		return r.result(r.parts.Bytes())
	case kind == "result":
		return r.result(value)
	}
	return r.other(kind, value)
}

// other reads a line of another kind.
func (r *Reader) other(kind string, value json.RawMessage) error {
	err := ErrKind
	if r.o.Other != nil {
		err = r.o.Other(kind, value)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrKind):
		return fmt.Errorf("its kind %q is unknown; was it written by a newer runteam?", kind)
	}
	return &otherError{err}
}

// An otherError is an error of [ReadOptions].Other.
type otherError struct{ err error }

func (e *otherError) Error() string { return e.err.Error() }

func (r *Reader) event(text json.RawMessage) error {
	e, hidden, err := record.DecodeEvent(text)
	if err != nil {
		return fmt.Errorf("its event cannot be read: %w", err)
	}
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
	if c := record.ChangeOf(&e); c != nil { // which is smaller than the event
		r.trace.State.Apply(&record.Entry{Change: c})
	}
	if e.Type == event.AgentStart {
		r.started(e.Task, e.Attempt)
		return nil
	}
	if e.Type == event.TaskComplete {
		r.trace.ended(e.Task, 2*r.events)
	}
	r.events++
	return nil
}

func (r *Reader) prompt(text json.RawMessage) error {
	var p Prompt
	if err := record.DecodeStrict(text, &p); err != nil {
		return fmt.Errorf("its prompt cannot be read: %w", err)
	}
	complete(&p)
	if err := check(&p); err != nil {
		return err
	}
	r.complete()
	r.trace.State.Task(p.Receipt.Task, p.Title, p.Agent)
	p.at, r.open = 2*r.events-1, len(r.trace.Prompts)
	r.trace.Prompts = append(r.trace.Prompts, p)
	return nil
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
func (r *Reader) audited(text []byte) error {
	var l struct {
		Audit struct{ Handoff json.RawMessage }
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return errors.New("its decision cannot be read")
	}
	if l.Audit.Handoff == nil {
		return nil
	}
	r.trace.Handoffs = append(r.trace.Handoffs, event.Handoff{})
	if err := record.DecodeStrict(l.Audit.Handoff, &r.trace.Handoffs[len(r.trace.Handoffs)-1]); err != nil {
		return fmt.Errorf("its decision cannot be read: %w", err)
	}
	return nil
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
