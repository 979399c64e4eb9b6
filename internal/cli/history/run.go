package history

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// RunDocument is a stored run, in JSON.
type RunDocument struct {
	Run     string `json:"runId"`
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`
	Status  string `json:"status"`
	runProcesses
	Spec        string `json:"spec,omitempty"` // where it was
	Fingerprint string `json:"fingerprint,omitempty"`
	replayOrigin

	Inputs   []record.Input   `json:"inputs"`
	Tasks    []TaskDocument   `json:"tasks"`
	Outcomes record.Outcomes  `json:"outcomes"`
	Steps    []TaskDocument   `json:"coordinator,omitempty"`
	Output   string           `json:"output,omitempty"` // the answer: of the coordinator, or the results that make it
	Usage    llm.Usage        `json:"totalTokenUsage"`
	Rounded  bool             `json:"rounded,omitempty"` // the tokens of a task are
	Errors   []record.Failure `json:"errors"`
	Warnings []string         `json:"warnings,omitempty"`

	runView
}

// runProcesses is when a run was worked on, and by which processes.
type runProcesses struct {
	Started   time.Time       `json:"startedAt"`
	Ended     time.Time       `json:"endedAt,omitzero"`
	Processes int             `json:"processes"` // that worked on it, one after another
	Holder    *journal.Holder `json:"holder,omitempty"`
}

// replayOrigin is the run that a replay repeated, and what it left out of it.
type replayOrigin struct {
	Of            string   `json:"replayed,omitempty"`
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`
}

// A runView is what the text of a run needs and its JSON does not have.
type runView struct {
	summary *journal.Summary
	info    *journal.Info
	journal *journals.Flags // the journal that it is in

	took    string
	room    int                // for titles; 0 for any length
	short   string             // of Run, what tells it apart
	answers []task.ID          // whose results make the answer
	titles  map[task.ID]string // of tasks of earlier runs whose results are inputs
}

// nameInputs looks up the titles of the tasks whose results are inputs. A run that was
// removed gives none.
func (r *RunDocument) nameInputs(ctx context.Context, j *journal.Journal) {
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

// TaskDocument is a task of a stored run, in JSON.
type TaskDocument struct {
	ID     task.ID               `json:"id"`
	Key    string                `json:"key,omitempty"`
	Title  string                `json:"title"`
	Agent  string                `json:"assignee"`
	Status task.Status           `json:"status"`
	Label  *label.Classification `json:"label,omitempty"` // of the result
	attemptCounts
	Usage      llm.Usage        `json:"tokenUsage"`
	Rounded    bool             `json:"rounded,omitempty"` // the tokens are estimates or classes
	Started    time.Time        `json:"startedAt,omitzero"`
	Ended      time.Time        `json:"endedAt,omitzero"`
	Reused     *reuseDocument   `json:"reused,omitempty"`
	Result     string           `json:"result,omitempty"`
	Structured json.RawMessage  `json:"structured,omitempty"`
	Truncated  bool             `json:"truncated,omitempty"`
	Call       llm.CallInfo     `json:"call,omitzero"` // of the answer
	Error      *ErrorDocument   `json:"error,omitempty"`
	Exchanges  []promptDocument `json:"exchanges,omitempty"` // of one task that was asked for

	taskView
}

// A taskView is what the text of a task needs and its JSON does not have.
type taskView struct {
	step      bool
	reasoning bool   // show the reasoning
	name      string // of the run
}

// attemptCounts counts the attempts of a task.
type attemptCounts struct {
	Attempts    int `json:"attempts"`
	Interrupted int `json:"interrupted,omitempty"`
	Running     int `json:"running,omitempty"`
}

// reuseDocument says where a result was taken from, and what it had taken there.
type reuseDocument struct {
	Run   string    `json:"runId"`
	Saved llm.Usage `json:"tokenUsage"`
}

// An ErrorDocument is why a task has no result, in JSON.
type ErrorDocument struct {
	Code    string  `json:"code,omitempty"`
	Message string  `json:"message"`
	Root    task.ID `json:"root,omitempty"`
}

// promptDocument is one prompt and what came of it.
type promptDocument struct {
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
	Error    *ErrorDocument `json:"error,omitempty"`

	Rejected  *rejectedDocument `json:"rejected,omitempty"`
	Reasoning string            `json:"reasoning,omitempty"` // if it was asked for
}

// rejectedDocument is an answer that was not accepted, in JSON.
type rejectedDocument struct {
	Text    string       `json:"text"`
	Problem string       `json:"problem,omitempty"` // what is wrong with it, as the corrective call says it
	Call    llm.CallInfo `json:"call,omitzero"`
}

// newRunDocument returns a stored run as show prints it.
func newRunDocument(k *journals.StoredRun) *RunDocument {
	asked := k.Invocation()
	r := &RunDocument{
		Run: k.Run, Name: k.Name, Command: k.Command, Status: k.Status, Spec: asked.Found, Fingerprint: k.Info.Fingerprint,
		Inputs: []record.Input{}, Tasks: []TaskDocument{}, Errors: []record.Failure{}, Outcomes: k.Outcomes,
		runProcesses: runProcesses{Started: k.Started, Ended: k.Ended, Processes: len(k.History.Begins), Holder: k.Holder},
		replayOrigin: replayOrigin{Of: asked.Of, Without: asked.Without, WithoutInputs: asked.WithoutInputs},
		runView:      runView{summary: &k.Summary, info: &k.Info, short: k.ShortID, took: durationText(&k.Summary, k.Now)},
	}
	if n := len(k.History.Begins); n > 0 {
		r.Inputs = append(r.Inputs, k.History.Begins[n-1].Inputs...)
	}
	if end := k.History.End; end != nil {
		r.Output, r.Warnings = end.Answer, end.Warnings
		r.Errors = append(r.Errors, end.Errors...)
	}
	for i := range k.Tasks {
		t := newTaskDocument(k, &k.Tasks[i])
		r.Usage, r.Rounded = r.Usage.Add(t.Usage), r.Rounded || t.Rounded
		if t.step {
			r.Steps = append(r.Steps, t)
		} else {
			r.Tasks = append(r.Tasks, t)
		}
	}
	if end := k.History.End; end != nil && end.Answer == "" {
		r.answer(end.Output)
	}
	return r
}

// answer makes the answer of the results that are it, each under its title if
// there are several.
func (r *RunDocument) answer(output []task.ID) {
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

// newTaskDocument returns a task as the list of tasks has it.
func newTaskDocument(k *journals.StoredRun, s *journals.StoredTask) TaskDocument {
	t := TaskDocument{
		ID: s.ID, Key: s.Key, Title: s.Title, Agent: s.Agent, Status: s.Status,
		attemptCounts: attemptCounts{Attempts: s.Attempts(), Interrupted: len(s.Interrupted), Running: s.Running},
		Usage:         s.Usage(), taskView: taskView{step: s.Step, name: k.Heading()},
	}
	t.Started, t.Ended = s.Span()
	t.Rounded = len(s.Interrupted) > 0 || slices.ContainsFunc(s.Exchanges, func(x *record.AgentCall) bool { return x.Rounded && x.From == "" })
	x := s.Accepted()
	if s.Step {
		t.Status = s.StepStatus(x)
	}
	switch {
	case t.Status == task.Completed && x != nil:
		r := k.Result(x)
		t.Result, t.Structured, t.Label = r.Text, json.RawMessage(r.Structured), &r.Label
		t.Truncated = x.Result != nil && x.Result.Truncated
		t.Call = lastCall(x)
		if x.From != "" {
			t.Reused = &reuseDocument{x.From, x.Saved()}
		}
	case t.Status == task.Failed || t.Status == task.Skipped:
		t.Error = &ErrorDocument{s.Ended.Code, k.WhyNoResult(s), s.Ended.Root}
		if n := len(s.Exchanges); n > 0 {
			t.Call = lastCall(s.Exchanges[n-1])
		}
		if s.Step {
			last := s.Exchanges[len(s.Exchanges)-1]
			t.Error = &ErrorDocument{Code: last.Code, Message: last.Error}
		}
	}
	return t
}

// newFullTaskDocument returns all of one task, with or without the reasoning of its models.
func newFullTaskDocument(k *journals.StoredRun, id task.ID, reasoning bool) *TaskDocument {
	i, ok := k.ByID[id]
	if !ok {
		i = len(k.Tasks)
		k.TaskOf(id, k.Trace.Title(id), "")
	}
	s := &k.Tasks[i]
	t := newTaskDocument(k, s)
	for _, x := range s.Exchanges {
		e := promptDocument{
			Session: x.Session, Agent: x.Agent, Model: x.Model, Attempt: x.Attempt, Part: x.Part, State: stateOf(x), Started: x.Start, Ended: x.End,
			Usage: x.Usage(), Estimate: x.Rounded, Turns: x.Turns, Reused: x.From, Call: x.Call, Warnings: x.Warnings,
		}
		if x.Part == "" {
			e.Context = &x.Context
		}
		if !x.Completed() {
			e.Error = &ErrorDocument{Code: x.Code, Message: x.Error}
		}
		if a := currentText(k, x.Refused); a != nil {
			e.Rejected = &rejectedDocument{a.Text, a.Problem, a.Call}
		}
		if a := currentText(k, x.Reasoning); a != nil && reasoning {
			e.Reasoning = a.Text
		}
		t.Exchanges = append(t.Exchanges, e)
	}
	for _, asked := range s.Interrupted {
		t.Exchanges = append(t.Exchanges, promptDocument{
			Session: asked.Session, Agent: asked.Agent, Model: asked.Model, Attempt: asked.Attempt, State: "interrupted", Started: asked.Time,
			Usage: llm.Usage{InputTokens: journals.EstimatedTokens(asked)}, Estimate: true,
		})
	}
	t.reasoning = reasoning
	slices.SortStableFunc(t.Exchanges, func(a, b promptDocument) int { return a.Started.Compare(b.Started) })
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

// currentText returns a side text as it may be read now: without the text if it has expired.
func currentText(k *journals.StoredRun, a *record.SideText) *record.SideText {
	if a == nil || a.ExpiresAt.IsZero() || k.Now.Before(a.ExpiresAt) {
		return a
	}
	return &record.SideText{Text: "[withheld: expired]", Call: a.Call}
}
