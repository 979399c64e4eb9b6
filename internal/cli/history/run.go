package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A RunDocument is a stored run, in JSON.
type RunDocument struct {
	Run     string `json:"runId"`
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`
	Status  string `json:"status"`
	runProcesses
	Spec        string `json:"spec,omitempty"` // its path
	Fingerprint string `json:"fingerprint,omitempty"`
	replayOrigin

	Inputs   []record.Input  `json:"inputs"`
	Tasks    []TaskDocument  `json:"tasks"`
	Outcomes record.Outcomes `json:"outcomes"`
	Steps    []TaskDocument  `json:"coordinator,omitempty"`
	Output   string          `json:"output,omitempty"` // the answer: of the coordinator, or the results that form it
	runTokens
	Errors   []record.Failure `json:"errors"`
	Warnings []string         `json:"warnings,omitempty"`

	Commands []commandDocument `json:"commands,omitempty"` // that it has taken while it worked
	Handoffs *sent.Counts      `json:"handoffs,omitempty"` // that agents sent to each other

	runView
}

// runTokens says how many tokens a run took, and how many it did not.
type runTokens struct {
	Usage     llm.Usage `json:"totalTokenUsage"`
	Partial   bool      `json:"partial,omitempty"`     // without what the caller may not see
	Estimated bool      `json:"estimated,omitempty"`   // the tokens of interrupted calls are estimates
	Saved     int       `json:"tokensSaved,omitempty"` // by the gate, in all prompts
}

// runProcesses says when processes worked on a run, and which.
type runProcesses struct {
	Started   time.Time       `json:"startedAt"`
	Ended     time.Time       `json:"endedAt,omitzero"`
	Took      int64           `json:"tookMs,omitempty"` // for which processes worked on it; 0 if it did not end
	Processes int             `json:"processes"`        // how many worked on it, one after another
	Holder    *journal.Holder `json:"holder,omitempty"`
}

// replayOrigin says which run a replay repeated, and what it omitted.
type replayOrigin struct {
	Of            string   `json:"replayed,omitempty"`
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`
}

// A runView holds what the text of a run needs in addition to its JSON.
type runView struct {
	stored     *journals.StoredRun
	journal    *journals.Flags // the journal that has the run
	outlook    journals.Outlook
	titleWidth int
	estimated  bool               // the tokens of an interrupted call are an estimate
	answers    []task.ID          // the tasks whose results form the answer
	titles     map[task.ID]string // of tasks of earlier runs whose results are inputs
}

// nameInputs looks up the titles of the tasks whose results are inputs. It finds none for a run
// that was removed.
func (r *RunDocument) nameInputs(ctx context.Context, j *journal.Journal) {
	r.titles = map[task.ID]string{}
	for _, in := range r.Inputs {
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

// A taskName is what a task is called.
type taskName struct {
	ID    task.ID `json:"id"`
	Key   string  `json:"key,omitempty"`
	Title string  `json:"title"`
	Name  string  `json:"name,omitempty"` // of an instance, by the keys of its items
}

// shownName returns what people know the task by.
func (n *taskName) shownName() string { return cmp.Or(n.Name, n.Title) }

// A TaskDocument is a task of a stored run, in JSON.
type TaskDocument struct {
	taskName
	Agent  string                `json:"assignee"`
	Status task.Status           `json:"status"`
	Label  *label.Classification `json:"label,omitempty"` // of the result
	attemptCounts
	Usage   llm.Usage `json:"tokenUsage"`
	Partial bool      `json:"partial,omitempty"`     // without what the caller may not see
	Saved   int       `json:"tokensSaved,omitempty"` // by the gate, in its prompts
	spanDocument
	Transfers []string       `json:"transferredTo,omitempty"` // the agents that its conversation was transferred to, in their order
	Reused    *reuseDocument `json:"reused,omitempty"`
	resultDocument
	Call      llm.CallInfo     `json:"call,omitzero"` // of the answer
	Error     *ErrorDocument   `json:"error,omitempty"`
	Reason    string           `json:"reason,omitempty"`    // why it was not needed
	Exchanges []promptDocument `json:"exchanges,omitempty"` // only if one task is shown
	teamworkDocument
	questionDocument

	taskView
}

// A resultDocument is the result of a task, in JSON.
type resultDocument struct {
	Result     string          `json:"result,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
}

// A spanDocument is when a task was worked on.
type spanDocument struct {
	Started time.Time `json:"startedAt,omitzero"`
	Ended   time.Time `json:"endedAt,omitzero"`
	Took    int64     `json:"tookMs,omitempty"` // while a process worked on it
}

// A taskView holds what the text of a task needs in addition to its JSON.
type taskView struct {
	isStep    bool
	reasoning bool   // show the reasoning
	heading   string // names the run
}

// attemptCounts counts the attempts of a task.
type attemptCounts struct {
	Attempts    int `json:"attempts"`
	Interrupted int `json:"interrupted,omitempty"`
	Running     int `json:"running,omitempty"`
}

// reuseDocument says which run a cached answer is from, and what it used there.
type reuseDocument struct {
	Run   string    `json:"runId"`
	Saved llm.Usage `json:"tokenUsage"`
}

// An ErrorDocument says why a task has no result, in JSON.
type ErrorDocument struct {
	Code    string  `json:"code,omitempty"`
	Message string  `json:"message"`
	Root    task.ID `json:"root,omitempty"`
}

// promptDocument is one prompt and its answer or error, in JSON.
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
	Estimate bool           `json:"estimated,omitempty"` // whether the tokens are an estimate
	Partial  bool           `json:"partial,omitempty"`   // you may not see all of it
	Turns    int            `json:"turns,omitempty"`
	Context  *event.Context `json:"context,omitempty"`
	Reused   string         `json:"reused,omitempty"`
	Call     llm.CallInfo   `json:"call,omitzero"`
	Warnings []string       `json:"warnings,omitempty"`
	Error    *ErrorDocument `json:"error,omitempty"`

	Rejected  *rejectedDocument `json:"rejected,omitempty"`
	Reasoning string            `json:"reasoning,omitempty"` // only with --reasoning

	named string // the part as the text has it
}

// rejectedDocument is a rejected answer, in JSON.
type rejectedDocument struct {
	Text    string       `json:"text"`
	Problem string       `json:"problem,omitempty"` // the error, as the corrective call describes it
	Call    llm.CallInfo `json:"call,omitzero"`
}

// NewRunDocument returns the document of a stored run.
func NewRunDocument(k *journals.StoredRun) *RunDocument {
	invocation := journals.InvocationOf(&k.Info)
	r := &RunDocument{
		Run: k.Run, Name: k.Name, Command: k.Command, Status: k.Status, Spec: invocation.Found, Fingerprint: k.Info.Fingerprint,
		Inputs: []record.Input{}, Tasks: []TaskDocument{}, Errors: []record.Failure{}, Outcomes: k.Outcomes,
		runProcesses: runProcesses{Started: k.Started, Ended: k.Ended, Took: tookMs(&k.Summary), Processes: len(k.History.Begins), Holder: k.Holder},
		replayOrigin: replayOrigin(invocation.ReplayArguments),
		runView:      runView{stored: k},
	}
	r.Commands, r.Handoffs = commandsOf(k), sent.Count(sent.Of(k))
	if n := len(k.History.Begins); n > 0 {
		r.Inputs = append(r.Inputs, k.History.Begins[n-1].Inputs...)
	}
	if end := k.History.End; end != nil {
		r.Output, r.Warnings = end.Answer, end.Warnings
		r.Errors = append(r.Errors, end.Errors...)
	}
	for _, stored := range k.Tasks {
		t := summarize(k, stored)
		r.Usage, r.Partial = r.Usage.Add(t.Usage), r.Partial || t.Partial
		r.Estimated = r.Estimated || t.Interrupted > 0
		r.Saved += t.Saved
		if t.isStep {
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

// answer joins the results that form the answer, each under its title if there are several.
func (r *RunDocument) answer(output []task.ID) {
	var parts, titled []string
	for _, t := range r.Tasks {
		if t.Status == task.Completed && slices.Contains(output, t.ID) {
			r.answers = append(r.answers, t.ID)
			parts, titled = append(parts, t.Result), append(titled, "# "+t.shownName()+"\n\n"+t.Result)
		}
	}
	if len(parts) > 1 {
		parts = titled
	}
	r.Output = strings.Join(parts, "\n\n")
}

// summarize returns the document of a task without its calls.
func summarize(k *journals.StoredRun, s *runstate.Task) TaskDocument {
	made, ended := k.State.Attempts(s), k.State.EndOf(s)
	t := TaskDocument{
		taskName: taskName{s.ID, k.Key(s.ID), s.Title, s.Name}, Agent: s.Agent, Status: k.State.Shown(s),
		attemptCounts: attemptCounts{Attempts: made.Begun(), Interrupted: len(k.State.Interrupted(s)), Running: k.State.Running(s)},
		Usage:         k.State.Usage(s), Partial: s.IsPartial(), taskView: taskView{isStep: s.Step},
	}
	t.Started, t.Ended = s.Span()
	t.Took = k.State.Worked(s).Milliseconds()
	for _, x := range s.Transfers() {
		t.Transfers = append(t.Transfers, x.TransferredTo)
	}
	t.questionDocument = newQuestionDocument(k.State.QuestionsOf(s))
	t.addTeamwork(k, s)
	calls := s.Answered()
	for _, x := range calls {
		t.Saved += x.Context.TokensSaved
	}
	switch x := s.Accepted(); {
	case t.Status == task.Completed && x != nil:
		r := k.Result(x)
		t.Result, t.Structured, t.Label = r.Text, json.RawMessage(r.Structured), &r.Label
		t.Truncated = x.Result != nil && x.Result.Truncated && !x.Partial
		t.Call = x.Call
		if r.Hidden {
			t.hideReasons()
		}
		if x.From != "" {
			t.Reused = &reuseDocument{x.From, x.Saved()}
		}
	case t.Status == task.NotNeeded:
		t.Reason = k.WhyNoResult(s)
	case t.Status == task.Failed || t.Status == task.Skipped:
		t.Error = &ErrorDocument{ended.Code, k.WhyNoResult(s), ended.Root}
		if n := len(calls); n > 0 {
			t.Call = calls[n-1].Call
		}
	}
	return t
}

// NewTaskDocument returns the document of the task that a name means, with its calls.
func NewTaskDocument(k *journals.StoredRun, name string, reasoning bool) (*TaskDocument, error) {
	s, err := k.FindTask(name)
	if err != nil {
		return nil, err
	}
	t, holders, ran := summarize(k, s), k.Trace.Holders(), journals.InvocationOf(&k.Info)
	for _, x := range s.Answered() {
		e := promptDocument{
			named:   partName(holders, x.Session, x.Part),
			Session: x.Session, Agent: x.Agent, Model: ran.ModelName(x.Model), Attempt: x.Attempt, Part: x.Part, State: stateOf(x), Started: x.Start, Ended: x.End,
			Usage: x.Usage(), Partial: x.Partial, Turns: x.Turns, Reused: x.From, Call: k.FirstCall(x), Warnings: x.Warnings,
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
	for _, call := range k.State.Interrupted(s) {
		_, part, _ := strings.Cut(call.Session, fmt.Sprintf("/%s/%d", call.Task, call.Attempt))
		t.Exchanges = append(t.Exchanges, promptDocument{
			named: partName(holders, call.Session, part), Session: call.Session, Agent: call.Agent, Model: ran.ModelName(call.Model), Attempt: call.Attempt, Part: part, State: "interrupted", Started: call.Time,
			Usage: runstate.Estimate(call), Estimate: true, Partial: call.Partial,
		})
	}
	t.addChildren(k, s)
	t.heading, t.reasoning = journals.Heading(k.Name, k.Run), reasoning
	slices.SortStableFunc(t.Exchanges, func(a, b promptDocument) int { return a.Started.Compare(b.Started) })
	return &t, nil
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

// currentText returns a labeled text, without its text if that has expired.
func currentText(k *journals.StoredRun, a *record.LabeledText) *record.LabeledText {
	if a == nil || a.ExpiresAt.IsZero() || k.Now.Before(a.ExpiresAt) {
		return a
	}
	return &record.LabeledText{Text: "[withheld: expired]", Call: a.Call}
}
