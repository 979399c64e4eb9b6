// Package view is what people see of a stored run: one document, which show -o json prints. The API, the page, exports,
// comparisons and the texts of commands are made from it.
package view

import (
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A Run is a stored run, in JSON.
type Run struct {
	ID        string          `json:"runId"`
	Name      string          `json:"name"`
	Command   string          `json:"command,omitempty"`
	Status    string          `json:"status"`
	Started   time.Time       `json:"startedAt"`
	Ended     time.Time       `json:"endedAt,omitzero"`
	Took      int64           `json:"tookMs,omitempty"` // for which processes worked on it; 0 if it did not end
	Processes int             `json:"processes"`        // how many worked on it, one after another
	Holder    *journal.Holder `json:"holder,omitempty"`

	Queue *journal.QueuePlace `json:"queue,omitempty"` // nil unless it was submitted, and needs a worker

	Spec        string `json:"spec,omitempty"` // its path
	Fingerprint string `json:"fingerprint,omitempty"`

	Of            string   `json:"replayed,omitempty"` // the run that it repeats
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`

	Inputs   []record.Input   `json:"inputs"`
	Tasks    []*Task          `json:"tasks"`
	Outcomes record.Outcomes  `json:"outcomes"`
	Steps    []*Task          `json:"coordinator,omitempty"`
	Output   string           `json:"output,omitempty"` // the answer: of the coordinator, or the results that form it
	Answers  []*Task          `json:"-"`                // the tasks whose results form the answer
	Titled   bool             `json:"-"`                // each of these results is under the title of its task
	Usage    llm.Usage        `json:"totalTokenUsage"`
	Partial  bool             `json:"partial,omitempty"`     // without what the caller may not see
	Estimate bool             `json:"estimated,omitempty"`   // the tokens of interrupted calls are estimates
	Saved    int              `json:"tokensSaved,omitempty"` // by the gate, in all prompts
	Withheld int              `json:"withheld,omitempty"`    // values and parts of values that were granted or requested, in all prompts
	Redacted int              `json:"redacted,omitempty"`    // values that a placeholder replaced, in all prompts
	Errors   []record.Failure `json:"errors"`
	Warnings []string         `json:"warnings,omitempty"`

	Commands []Command    `json:"commands,omitempty"` // that it has taken while it worked
	Handoffs *sent.Counts `json:"handoffs,omitempty"` // that agents sent to each other
	Terms    Terms        `json:"-"`
}

// Terms are what the calls of a run cost, and what they may cost.
type Terms struct {
	Prices journals.Prices
	Budget *UsageBudget // nil if it has none
}

// Of returns the document of a stored run.
func Of(k *journals.StoredRun) *Run {
	invocation := journals.InvocationOf(&k.Info)
	r := &Run{
		ID: k.Run, Name: k.Name, Command: k.Command, Status: k.Status, Spec: invocation.Found, Fingerprint: k.Info.Fingerprint,
		Started: k.Started, Ended: k.Ended, Took: TookMs(&k.Summary), Processes: len(k.History.Begins), Holder: k.Holder, Queue: k.Queue,
		Of: invocation.Of, Without: invocation.Without, WithoutInputs: invocation.WithoutInputs,
		Inputs: []record.Input{}, Tasks: []*Task{}, Errors: []record.Failure{}, Outcomes: k.Outcomes,
		Commands: commandsOf(k), Handoffs: sent.Count(sent.Of(k)), Terms: Terms{Prices: k.Prices()},
	}
	if n := len(k.History.Begins); n > 0 {
		last := &k.History.Begins[n-1]
		r.Inputs = append(r.Inputs, last.Inputs...)
		if last.Budget != (record.Budget{}) {
			r.Terms.Budget = &UsageBudget{last.Budget.Tokens, last.Budget.Cost.Dollars()}
		}
	}
	for _, s := range k.Tasks {
		t := newTask(k, &invocation, s)
		r.Usage, r.Partial, r.Estimate, r.Saved = r.Usage.Add(t.Usage), r.Partial || t.Partial, r.Estimate || t.Estimate, r.Saved+t.Saved
		context := s.Context()
		r.Withheld, r.Redacted = r.Withheld+context.Withheld, r.Redacted+context.Redacted
		if t.IsStep() {
			r.Steps = append(r.Steps, t)
		} else {
			r.Tasks = append(r.Tasks, t)
		}
	}
	if end := k.History.End; end != nil {
		r.Warnings, r.Errors = end.Warnings, append(r.Errors, end.Errors...)
		if r.Output = end.Answer; r.Output == "" {
			r.answer(end.Output)
		}
	}
	return r
}

// All returns the tasks, then the steps of the coordinator.
func (r *Run) All() []*Task { return slices.Concat(r.Tasks, r.Steps) }

// answer joins the results that form the answer, each under its title unless the run needed only one of them.
func (r *Run) answer(output []task.ID) {
	var parts, titled []string
	needed := 0
	for _, t := range r.Tasks {
		if !slices.Contains(output, t.ID) || t.Status == task.NotNeeded {
			continue
		}
		needed++
		if t.Status == task.Completed && t.Result != "" {
			r.Answers = append(r.Answers, t)
			parts, titled = append(parts, t.Result), append(titled, "# "+t.ShownName()+"\n\n"+t.Result)
		}
	}
	if r.Titled = needed > 1; r.Titled {
		parts = titled
	}
	r.Output = strings.Join(parts, "\n\n")
}

// TookMs returns for how long processes worked on a run that ended.
func TookMs(s *journal.Summary) int64 {
	if s.Ended.IsZero() {
		return 0
	}
	took, _ := s.Took(s.Ended)
	return took.Milliseconds()
}
