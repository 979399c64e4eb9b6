package journals

import (
	"context"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A Viewer narrows a stored run for a viewer. The journal has the run as its caller may see it; a viewer with
// a lower clearance sees less. Of a text above the clearance, the viewer sees its label and the class of
// its size, and nothing else that depends on its words. Texts without a label, such as errors, have
// the highest label of what their task has read; the reason of a command has the clearance of the caller, since
// whoever gives it may write of all that they see. [NewViewer] returns one.
type Viewer struct {
	accepts label.Classification
	narrows bool                 // the caller of the run may see more
	caller  label.Classification // what the caller of the run may see
	levels  map[task.ID]label.Classification
	steps   label.Classification // the highest of the coordinator's
	whole   label.Classification // the highest of the run
}

// NewViewer returns a viewer for a run, with the clearances of the viewer and of the caller of the run. If the
// latter is unknown, pass [label.Secret].
func NewViewer(accepts, caller label.Classification) *Viewer {
	return &Viewer{accepts: accepts, narrows: caller > accepts, caller: caller, levels: map[task.ID]label.Classification{}}
}

// Caller sets the clearance of the caller of the first process of the run, and raises it for the caller of a
// later process. Nil means unknown.
func (v *Viewer) Caller(accepts *label.Classification, first bool) {
	level := label.Secret
	if accepts != nil {
		level = *accepts
	}
	if !first {
		level = level.Join(v.caller)
	}
	v.caller, v.narrows = level, level > v.accepts
}

// Narrows reports whether the viewer may see less than the caller of the run.
func (v *Viewer) Narrows() bool { return v.narrows }

// LoadFor is [Load] for a viewer with a clearance.
func LoadFor(ctx context.Context, con *console.Console, j *journal.Journal, run journal.Summary, name string, accepts label.Classification) (*StoredRun, error) {
	k, err := read(ctx, con, j, run, name)
	if err != nil {
		return nil, err
	}
	k.viewer = NewViewer(accepts, k.History.Clearance())
	k.viewer.run(k)
	k.collect()
	return k, nil
}

// Hides reports whether the viewer may not see a text with a label.
func (v *Viewer) Hides(level label.Classification) bool {
	return v != nil && v.narrows && level > v.accepts
}

// hidesOf reports whether the viewer may not see what a task has read, or one of several.
func (v *Viewer) hidesOf(ids ...task.ID) bool { return v.Hides(v.levelOf(ids...)) }

// levelOf returns the highest label of what tasks have read and made.
func (v *Viewer) levelOf(ids ...task.ID) (level label.Classification) {
	for _, id := range ids {
		level = level.Join(v.levels[id])
	}
	return level
}

// learn raises the label of a task.
func (v *Viewer) learn(id task.ID, level label.Classification) {
	v.levels[id] = v.levels[id].Join(level)
	v.whole = v.whole.Join(level)
	if strings.HasPrefix(string(id), handoff.Coordinator+"/") {
		v.steps = v.steps.Join(level)
	}
}

// LearnHandoff learns the label of a task from a decision. What is decided for the user is what the task
// made, whether it passes or not.
func (v *Viewer) LearnHandoff(h *event.Handoff) {
	if h.Verdict == gate.Passed || h.Verdict == gate.Minimized || h.To == handoff.User {
		v.learn(h.Task, h.Label.Join(h.Delivered))
	}
}

// LearnReceipt learns the label of a task from a prompt.
func (v *Viewer) LearnReceipt(r *prompt.Receipt) {
	v.learn(r.Task, r.Classification)
	for k := range r.Sources {
		v.learn(r.Task, r.Sources[k].Classification)
		if d := r.Sources[k].Decision; d != nil && d.IsDelivered() {
			v.learn(r.Task, d.Before)
		}
	}
}

// learnTrace learns the labels of the tasks of a trace.
func (v *Viewer) learnTrace(t *trace.Trace) {
	for i := range t.Handoffs {
		v.LearnHandoff(&t.Handoffs[i])
	}
	for i := range t.Prompts {
		v.LearnReceipt(t.Prompts[i].Receipt)
	}
	if t.Result != nil {
		for i := range t.Result.Tasks {
			v.learn(t.Result.Tasks[i].ID, t.Result.Tasks[i].Label)
		}
	}
}

// learnHistory learns the labels of the tasks of a history.
func (v *Viewer) learnHistory(h *record.History) {
	for i := range h.Log {
		e := &h.Log[i]
		for _, x := range []*record.AgentCall{e.Exchange, e.Rejected, e.Turn, e.ToolResult, e.Files} {
			if x == nil {
				continue
			}
			v.learn(x.Task, labelOf(x))
			for _, a := range []*record.LabeledText{x.Refused, x.Reasoning} {
				if a != nil {
					v.learn(x.Task, a.Label)
				}
			}
		}
		if e.Question != nil {
			v.learn(e.Question.Task, e.Question.Label)
		}
	}
}

// labelOf returns the label of the result of a call. One that cannot be read may have any.
func labelOf(x *record.AgentCall) label.Classification {
	switch {
	case x.Missing != "":
		return label.Secret
	case x.Result != nil:
		return x.Result.Classification
	}
	return label.Public
}

// run brings a run that was read into the form for the viewer.
func (v *Viewer) run(k *StoredRun) {
	v.learnTrace(k.Trace)
	v.learnHistory(&k.History)
	v.policies(&k.History)
	v.trace(k.Trace)
	if !v.narrows {
		return
	}
	v.info(&k.Info)
	v.history(&k.History)
}

// SeesPolicies reports whether the viewer may see the policies of a run, and their digests. They are part of
// the spec, and so internal.
func (v *Viewer) SeesPolicies() bool { return v == nil || v.accepts >= label.Internal }

// policies takes out the policies.
func (v *Viewer) policies(h *record.History) {
	if v.SeesPolicies() {
		return
	}
	for i := range h.Begins {
		h.Begins[i].Policy = nil
	}
	for i := range h.Log {
		if c := h.Log[i].Command; c != nil {
			c.Policy = nil
		}
	}
}

// info narrows what the run was loaded from.
func (v *Viewer) info(of *journal.Info) {
	for i := range of.Files {
		if f := &of.Files[i]; v.Hides(f.Label) {
			f.Text, f.Missing = "", withheldText(f.Label)
		}
	}
	for i := range of.Tasks {
		of.Tasks[i].Name = ""
	}
	if v.Hides(of.Label) {
		of.Fingerprint = ""
	}
}

// trace narrows a trace, whose labels were learned.
func (v *Viewer) trace(t *trace.Trace) {
	if !v.narrows && v.SeesPolicies() {
		return
	}
	for i := range t.Tasks {
		held := t.Withheld(t.Tasks[i].ID)
		for k := range held {
			held[k] = v.Handoff(&held[k])
		}
	}
	for i := range t.Events {
		t.Events[i] = v.Event(&t.Events[i])
	}
	for i := range t.Handoffs {
		t.Handoffs[i] = v.Handoff(&t.Handoffs[i])
	}
	if !v.narrows {
		return
	}
	for i := range t.Tasks {
		t.Tasks[i].Name = ""
	}
	for i := range t.Prompts {
		v.prompt(&t.Prompts[i].Shown)
	}
	if t.Result == nil {
		return
	}
	for i := range t.Result.Tasks {
		r := &t.Result.Tasks[i]
		if r.Name = ""; v.Hides(r.Label) {
			r.Text, r.Structured, r.Description = withheldText(r.Label), nil, ""
		}
	}
	v.hide(&t.Result.Output, v.steps)
	v.hide(&t.Result.Goal, v.steps)
}

// prompt narrows a prompt.
func (v *Viewer) prompt(s *promptview.Shown) {
	lowered, _ := s.Lower(v.accepts)
	if *s = *lowered; s.Receipt == nil {
		return
	}
	for i := range s.Receipt.Sources {
		if d := s.Receipt.Sources[i].Decision; d != nil && v.Hides(d.Before) {
			d = d.Clone()
			d.Detail = ""
			s.Receipt.Sources[i].Decision = d
		}
	}
}

// Handoff returns a decision in the form for the viewer.
func (v *Viewer) Handoff(h *event.Handoff) event.Handoff {
	low := *h
	if v.Hides(h.Label) {
		low = record.LowerHandoff(h, v.accepts)
		low.Detail = ""
	}
	if !v.SeesPolicies() {
		low.Policy = ""
	}
	return low
}

// Event returns an event in the form for the viewer, by the labels that were learned before it.
func (v *Viewer) Event(of *event.Event) event.Event {
	e := *of
	if e.Handoff != nil {
		e.Handoff = new(v.Handoff(e.Handoff))
	}
	if !v.narrows {
		return e
	}
	e.Name, e.Because, e.Receipt = "", "", nil // names are keys of items, whose label is not known
	level := v.levelOf(e.Task, e.Root)
	switch {
	case e.Type == event.Steered:
		level = v.caller
	case e.Task == "":
		level = v.whole
	}
	v.hide(&e.Message, level)
	if !v.Hides(level) {
		return e
	}
	e.Bytes, e.Input, e.Output = bytesize.Class(e.Bytes), gate.TokenClass(e.Input), gate.TokenClass(e.Output)
	e.Rounded = e.Rounded || e.Input+e.Output > 0
	e.CachedTokens, e.ReasoningTokens = 0, 0
	if e.Call != nil {
		e.Call = new(callinfo.Outline(*e.Call))
	}
	return e
}

// hide replaces a text with a label that the viewer may not see.
func (v *Viewer) hide(text *string, level label.Classification) {
	if *text != "" && v.Hides(level) {
		*text = withheldText(level)
	}
}

// withheldText stands for a text with a label.
func withheldText(level label.Classification) string { return "[withheld: " + level.String() + "]" }

// history narrows a history, whose labels were learned.
func (v *Viewer) history(h *record.History) {
	for i := range h.Begins {
		for k := range h.Begins[i].Inputs {
			if in := &h.Begins[i].Inputs[k]; v.Hides(in.Classification) {
				in.Bytes = bytesize.Class(in.Bytes)
			}
		}
	}
	for i := range h.Log {
		v.entry(&h.Log[i])
	}
	if h.End == nil {
		return
	}
	for i := range h.End.Tasks {
		t := &h.End.Tasks[i]
		v.hide(&t.Reason, v.levelOf(t.Task, t.Root))
	}
	v.hide(&h.End.Answer, v.steps)
	for i := range h.End.Errors {
		v.hide(&h.End.Errors[i].Message, v.steps)
	}
	for i := range h.End.Warnings {
		v.hide(&h.End.Warnings[i], v.whole)
	}
}

// entry narrows an entry of a history.
func (v *Viewer) entry(e *record.Entry) {
	for _, x := range []*record.AgentCall{e.Exchange, e.Rejected, e.Turn, e.ToolResult, e.Files} {
		if x != nil {
			v.call(x)
		}
	}
	for _, s := range []*record.CallStart{e.Asked, e.ToolCall} {
		if s != nil && v.hidesOf(s.Task) {
			s.Bytes = bytesize.Class(s.Bytes)
		}
	}
	switch {
	case e.Sent != nil:
		if m := e.Sent; m.Message != nil && v.Hides(m.Message.Classification) {
			m.Bytes, m.Missing = bytesize.Class(m.Bytes), withheldText(m.Message.Classification)
			m.Message.Text, m.Message.JSON = "", nil
		}
	case e.Question != nil:
		if q := e.Question; v.Hides(q.Label) || v.hidesOf(q.Task) {
			q.Schema = ""
		}
	case e.Answer != nil:
		if a := e.Answer; v.Hides(a.Label) || v.hidesOf(a.Task) {
			a.Text, a.Reason = "", ""
		}
	case e.Command != nil:
		v.hide(&e.Command.Reason, v.caller)
	}
}

// call narrows a call of an agent or a tool.
func (v *Viewer) call(x *record.AgentCall) {
	for _, a := range []*record.LabeledText{x.Refused, x.Reasoning} {
		if a != nil {
			level := a.Label.Join(v.levelOf(x.Task))
			v.hide(&a.Text, level)
			v.hide(&a.Problem, level)
			if v.Hides(level) {
				a.Call = callinfo.Outline(a.Call)
			}
		}
	}
	if level := labelOf(x); v.Hides(level) {
		if x.Shown = nil; x.Result != nil {
			x.Result.Text, x.Result.JSON, x.Result.Tags = "", nil, nil
		}
	}
	level := v.levelOf(x.Task)
	if !v.Hides(level) {
		return
	}
	v.hide(&x.Error, level)
	if len(x.Warnings) > 0 {
		x.Warnings = []string{withheldText(level)}
	}
	if x.Call != (llm.CallInfo{}) {
		x.Call = callinfo.Outline(x.Call)
	}
	x.Spent = record.Spent{Input: gate.TokenClass(x.Input), Output: gate.TokenClass(x.Output), Rounded: true, Turns: x.Turns}
	x.SavedTokens = record.SavedTokens{SavedInput: gate.TokenClass(x.SavedInput), SavedOutput: gate.TokenClass(x.SavedOutput)}
	x.Context = event.Context{Prompts: x.Context.Prompts, Sent: bytesize.Class(x.Context.Sent), Shared: bytesize.Class(x.Context.Shared)}
}

// Question narrows an open question.
func (v *Viewer) Question(q *journal.OpenQuestion) {
	if !v.narrows {
		return
	}
	q.Name = ""
	if v.Hides(q.Label) {
		q.Prompt, q.Schema = withheldText(q.Label), ""
	}
}
