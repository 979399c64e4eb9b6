package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// shownRun is a stored run, in JSON.
type shownRun struct {
	Run         string          `json:"runId"`
	Name        string          `json:"name"`
	Command     string          `json:"command,omitempty"`
	Status      string          `json:"status"`
	Started     time.Time       `json:"startedAt"`
	Ended       time.Time       `json:"endedAt,omitzero"`
	Processes   int             `json:"processes"` // that worked on it, one after another
	Holder      *journal.Holder `json:"holder,omitempty"`
	Spec        string          `json:"spec,omitempty"` // where it was
	Fingerprint string          `json:"fingerprint,omitempty"`

	// Without and WithoutInputs are what replay left out of the run Of that it made again.
	Of            string   `json:"replayed,omitempty"`
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`

	Inputs   []record.Input   `json:"inputs"`
	Tasks    []shownTask      `json:"tasks"`
	Outcomes event.Outcomes   `json:"outcomes"`
	Steps    []shownTask      `json:"coordinator,omitempty"`
	Output   string           `json:"output,omitempty"` // the answer: of the coordinator, or the results that make it
	Usage    llm.Usage        `json:"totalTokenUsage"`
	Rounded  bool             `json:"rounded,omitempty"` // the tokens of a task are
	Errors   []record.Failure `json:"errors"`
	Warnings []string         `json:"warnings,omitempty"`

	summary *journal.Summary
	info    *journal.Info
	journal *journaling // the journal that it is in

	took    string
	room    int                // for titles; 0 for any length
	short   string             // of Run, what tells it apart
	answers []task.ID          // whose results make the answer
	titles  map[task.ID]string // of tasks of earlier runs whose results are inputs
}

// nameInputs looks up the titles of the tasks whose results are inputs. A run that was
// removed gives none.
func (r *shownRun) nameInputs(ctx context.Context, j *journal.Journal) {
	r.titles = map[task.ID]string{}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		if in.FromRun == "" {
			continue
		}
		info, err := j.LoadInfo(ctx, in.FromRun)
		if err != nil {
			continue
		}
		for n := range info.Tasks {
			if info.Tasks[n].ID == in.FromTask {
				r.titles[in.FromTask] = info.Tasks[n].Title
			}
		}
	}
}

// shownTask is a task of a stored run, in JSON.
type shownTask struct {
	ID          task.ID               `json:"id"`
	Key         string                `json:"key,omitempty"`
	Title       string                `json:"title"`
	Agent       string                `json:"assignee"`
	Status      task.Status           `json:"status"`
	Label       *label.Classification `json:"label,omitempty"` // of the result
	Attempts    int                   `json:"attempts"`
	Interrupted int                   `json:"interrupted,omitempty"` // of the attempts
	Running     int                   `json:"running,omitempty"`
	Usage       llm.Usage             `json:"tokenUsage"`
	Rounded     bool                  `json:"rounded,omitempty"` // the tokens are estimates or classes
	Started     time.Time             `json:"startedAt,omitzero"`
	Ended       time.Time             `json:"endedAt,omitzero"`
	Reused      *shownReuse           `json:"reused,omitempty"`
	Result      string                `json:"result,omitempty"`
	Structured  json.RawMessage       `json:"structured,omitempty"`
	Truncated   bool                  `json:"truncated,omitempty"`
	Call        llm.CallInfo          `json:"call,omitzero"` // of the answer
	Error       *shownError           `json:"error,omitempty"`
	Exchanges   []shownExchange       `json:"exchanges,omitempty"` // of one task that was asked for

	step      bool
	reasoning bool   // show the reasoning
	name      string // of the run
}

// shownReuse says where a result was taken from, and what it had taken there.
type shownReuse struct {
	Run   string    `json:"runId"`
	Saved llm.Usage `json:"tokenUsage"`
}

type shownError struct {
	Code    string  `json:"code,omitempty"`
	Message string  `json:"message"`
	Root    task.ID `json:"root,omitempty"`
}

// shownExchange is one prompt and what came of it.
type shownExchange struct {
	Session  string         `json:"sessionId"`
	Agent    string         `json:"agent"`
	Model    string         `json:"model,omitempty"`
	Attempt  int            `json:"attempt"`
	Part     string         `json:"part,omitempty"`
	State    string         `json:"state"` // completed, failed, interrupted, reused
	Started  time.Time      `json:"startedAt,omitzero"`
	Ended    time.Time      `json:"endedAt,omitzero"`
	Usage    llm.Usage      `json:"tokenUsage"`
	Estimate bool           `json:"estimated,omitempty"` // the tokens were not counted, or are rounded
	Turns    int            `json:"turns,omitempty"`
	Context  *event.Context `json:"context,omitempty"`
	Reused   string         `json:"reused,omitempty"`
	Call     llm.CallInfo   `json:"call,omitzero"`
	Warnings []string       `json:"warnings,omitempty"`
	Error    *shownError    `json:"error,omitempty"`

	Rejected  *shownRejected `json:"rejected,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"` // if it was asked for
}

// shownRejected is an answer that was not accepted, in JSON.
type shownRejected struct {
	Text    string       `json:"text"`
	Problem string       `json:"problem,omitempty"` // what is wrong with it, as the corrective call says it
	Call    llm.CallInfo `json:"call,omitzero"`
}

// show says what became of a run.
func (k *storedRun) show() *shownRun {
	asked := k.asked()
	r := &shownRun{
		Of: asked.Of, short: k.begins, Without: asked.Without, WithoutInputs: asked.WithoutInputs,
		Run: k.Run, Name: k.Name, Command: k.Command, Status: k.Status, Started: k.Started, Ended: k.Ended, Processes: len(k.history.Begins), Holder: k.Holder,
		Spec: asked.Found, Fingerprint: k.info.Fingerprint, Inputs: []record.Input{}, Tasks: []shownTask{}, Errors: []record.Failure{}, took: tookOf(&k.Summary, k.now),
		Outcomes: k.Outcomes, summary: &k.Summary, info: &k.info,
	}
	if n := len(k.history.Begins); n > 0 {
		r.Inputs = append(r.Inputs, k.history.Begins[n-1].Inputs...)
	}
	if end := k.history.End; end != nil {
		r.Output, r.Warnings = end.Answer, end.Warnings
		r.Errors = append(r.Errors, end.Errors...)
	}
	for i := range k.tasks {
		t := k.short(&k.tasks[i])
		r.Usage, r.Rounded = r.Usage.Add(t.Usage), r.Rounded || t.Rounded
		if t.step {
			r.Steps = append(r.Steps, t)
		} else {
			r.Tasks = append(r.Tasks, t)
		}
	}
	if end := k.history.End; end != nil && end.Answer == "" {
		r.answer(end.Output)
	}
	return r
}

// answer makes the answer of the results that are it, each under its title if
// there are several.
func (r *shownRun) answer(output []task.ID) {
	var parts, titled []string
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Status == task.Completed && slices.Contains(output, t.ID) {
			r.answers = append(r.answers, t.ID)
			parts, titled = append(parts, t.Result), append(titled, "# "+t.Title+"\n\n"+t.Result)
		}
	}
	if len(parts) > 1 {
		parts = titled
	}
	r.Output = strings.Join(parts, "\n\n")
}

// short says what became of a task.
func (k *storedRun) short(s *storedTask) shownTask {
	t := shownTask{
		ID: s.id, Key: s.key, Title: s.title, Agent: s.agent, Status: s.status, Attempts: s.attempts(), Interrupted: len(s.interrupted), Running: s.running,
		Usage: s.usage(), step: s.step, name: k.title(),
	}
	t.Started, t.Ended = s.took()
	t.Rounded = len(s.interrupted) > 0 || slices.ContainsFunc(s.exchanges, func(x *record.AgentCall) bool { return x.Rounded && x.From == "" })
	x := s.answer()
	if s.step {
		t.Status = s.stepStatus(x)
	}
	switch {
	case t.Status == task.Completed && x != nil:
		r := k.read(x)
		t.Result, t.Structured, t.Label = r.text, json.RawMessage(r.structured), &r.label
		t.Truncated = x.Result != nil && x.Result.Truncated
		t.Call = lastCall(x)
		if x.From != "" {
			t.Reused = &shownReuse{x.From, x.Saved()}
		}
	case t.Status == task.Failed || t.Status == task.Skipped:
		t.Error = &shownError{s.ended.Code, k.because(s), s.ended.Root}
		if n := len(s.exchanges); n > 0 {
			t.Call = lastCall(s.exchanges[n-1])
		}
		if s.step {
			last := s.exchanges[len(s.exchanges)-1]
			t.Error = &shownError{Code: last.Code, Message: last.Error}
		}
	}
	return t
}

// stepStatus is how a step of the coordinator stands.
func (t *storedTask) stepStatus(answer *record.AgentCall) task.Status {
	switch {
	case answer != nil:
		return task.Completed
	case t.running > 0 || len(t.exchanges) == 0:
		return task.InProgress
	}
	return task.Failed
}

// task returns all of one task, with or without the reasoning of its models.
func (k *storedRun) task(id task.ID, reasoning bool) *shownTask {
	i, ok := k.byID[id]
	if !ok {
		i = len(k.tasks)
		k.of(id, k.trace.Title(id), "")
	}
	s := &k.tasks[i]
	t := k.short(s)
	for _, x := range s.exchanges {
		e := shownExchange{
			Session: x.Session, Agent: x.Agent, Model: x.Model, Attempt: x.Attempt, Part: x.Part, State: stateOf(x), Started: x.Start, Ended: x.End,
			Usage: x.Usage(), Estimate: x.Rounded, Turns: x.Turns, Reused: x.From, Call: x.Call, Warnings: x.Warnings,
		}
		if x.Part == "" {
			e.Context = &x.Context
		}
		if !x.Completed() {
			e.Error = &shownError{Code: x.Code, Message: x.Error}
		}
		if a := k.current(x.Refused); a != nil {
			e.Rejected = &shownRejected{a.Text, a.Problem, a.Call}
		}
		if a := k.current(x.Reasoning); a != nil && reasoning {
			e.Reasoning = a.Text
		}
		t.Exchanges = append(t.Exchanges, e)
	}
	for _, asked := range s.interrupted {
		t.Exchanges = append(t.Exchanges, shownExchange{
			Session: asked.Session, Agent: asked.Agent, Model: asked.Model, Attempt: asked.Attempt, State: "interrupted", Started: asked.Time,
			Usage: llm.Usage{InputTokens: estimated(asked)}, Estimate: true,
		})
	}
	t.reasoning = reasoning
	slices.SortStableFunc(t.Exchanges, func(a, b shownExchange) int { return a.Started.Compare(b.Started) })
	return &t
}

func stateOf(x *record.AgentCall) string {
	switch {
	case !x.Completed():
		return string(task.Failed)
	case x.From != "":
		return "reused"
	}
	return string(task.Completed)
}

// lastCall returns the last model call that answered in an exchange.
func lastCall(x *record.AgentCall) llm.CallInfo {
	if x.Corrected != nil {
		return *x.Corrected
	}
	return x.Call
}

// current returns a side text as it may be read now: without the text if it has expired.
func (k *storedRun) current(a *record.SideText) *record.SideText {
	if a == nil || a.ExpiresAt.IsZero() || k.now.Before(a.ExpiresAt) {
		return a
	}
	return &record.SideText{Text: "[withheld: expired]", Call: a.Call}
}
