// Package trace records the prompts of a run, and finds where a text in them comes from.
//
// A [Writer] writes the record during the run: every decision of the gate and every prompt
// before it is sent, the events, and the result at the end. [Lines] are the same lines for
// programs that store them elsewhere than in a file, and can be continued by another process.
// [Read] reads a record, and [Trace.Contains] traces a text to its origins. A record has the
// form that the caller of the run may see: pieces above the caller's clearance have a source,
// a label and a length, and no words.
package trace

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Version is the version of the lines that a [Writer] writes.
const Version = 1

// A Trace is the record of one run. Nothing in it is above the clearance of the caller of
// the run.
type Trace struct {
	Run      string          // ID of the run; empty if nothing happened
	Name     string          // of the team
	Time     time.Time       // of the beginning of the record
	Tasks    []Task          // of the spec in its order, then those known from events, prompts and the result
	Inputs   []Input         // that tasks could be granted
	Prompts  []Prompt        // in the order in which they were sent
	Events   []event.Event   // without receipts, which the prompts have
	Handoffs []event.Handoff // every decision of the gate, in the order in which it was recorded
	Result   *Result         // nil if the run did not end, or it was not recorded
	Torn     bool            // the last line was cut off, and was ignored
	Partial  bool            // only one task was read, see [ReadOptions].Task

	head  int                         // how many of Tasks are in the first line
	index map[task.ID]int             // of Tasks
	order map[*Prompt]int             // when each prompt was sent
	ends  map[task.ID]period          // when a task completed
	held  map[task.ID][]event.Handoff // decisions that withheld context from attempts without a prompt

	completed []int // when each of Tasks first completed; set by completions
	sorted    []int // the same in this order, of those that did
}

// A Task is a task of the run, or a step of the coordinator.
type Task struct {
	ID       task.ID     `json:"id"`
	Key      string      `json:"key,omitempty"`
	Title    string      `json:"title"`
	Name     string      `json:"name,omitempty"` // of an instance, by the keys of its items
	Assignee string      `json:"assignee,omitempty"`
	Line     string      `json:"line,omitempty"` // position in the spec
	Status   task.Status `json:"status,omitempty"`
	Rounds   string      `json:"rounds,omitempty"` // of a loop, the title of the task whose rounds have its result
}

// An Input is a text that the caller gave the run, by its name alone.
type Input struct {
	Name           string               `json:"name"`
	Classification label.Classification `json:"classification"`
	Line           string               `json:"line,omitempty"` // position in the spec
}

// A Prompt is the record of one prompt.
type Prompt struct {
	promptview.Shown
	Agent   string `json:"agent"`
	Title   string `json:"title,omitempty"`   // of the task, or the coordinator's step
	Attempt int    `json:"attempt,omitempty"` // from 1

	sourceTasks map[task.ID]bool // tasks whose results are sources; only of a prompt without its words
}

// A Result is the part of the result of a run that a trace needs.
type Result struct {
	Run    string       `json:"runId"`
	Status string       `json:"status"`
	Goal   string       `json:"goal,omitempty"`
	Output string       `json:"output"`
	Tasks  []TaskResult `json:"tasks"`
	Steps  []Step       `json:"coordinator,omitempty"`
}

// A TaskResult is a task at the end of a run.
type TaskResult struct {
	Task
	Description string               `json:"description,omitempty"`
	Label       label.Classification `json:"label"`
	Text        string               `json:"result,omitempty"`
	Structured  json.RawMessage      `json:"structured,omitempty"` // canonical JSON
}

// A Step is a step of the coordinator.
type Step struct {
	Kind string `json:"step"`
}

// Bytes returns the length of both texts of the prompt.
func (p *Prompt) Bytes() int { return length(p.System) + length(p.Text) }

// length returns the length of the text of these pieces.
func length(pieces []promptview.Piece) int {
	if len(pieces) == 0 {
		return 0
	}
	return int(pieces[len(pieces)-1].End)
}

// Withheld counts the pieces without words, whose source is above the reader's clearance. It
// does not count names in headings.
func (p *Prompt) Withheld() (n int) {
	for _, pieces := range [...][]promptview.Piece{p.System, p.Text} {
		for i := range pieces {
			if pieces[i].Withheld && pieces[i].Part != brief.PartHeading {
				n++
			}
		}
	}
	return n
}

// Withheld returns the decisions that withheld context from attempts of a task for which no
// prompt was recorded.
func (t *Trace) Withheld(id task.ID) []event.Handoff { return t.held[id] }

// SetResult sets the result of the run, which the trace keeps. Call it first on the trace of a
// run whose result is not in a line.
func (t *Trace) SetResult(r *Result) {
	t.Result = r
	if r == nil {
		return
	}
	for i := range r.Tasks {
		t.learn(r.Tasks[i].Task)
	}
}

// task returns the entry of a task, and adds one for a new task.
func (t *Trace) task(id task.ID) *Task {
	i, ok := t.index[id]
	if !ok {
		i = len(t.Tasks)
		t.index[id] = i
		t.Tasks = append(t.Tasks, Task{ID: id})
	}
	return &t.Tasks[i]
}

// learn updates a task by the fields of another that are set.
func (t *Trace) learn(of Task) {
	tk := t.task(of.ID)
	for _, known := range [...]struct{ old, now *string }{{&tk.Key, &of.Key}, {&tk.Title, &of.Title}, {&tk.Name, &of.Name}, {&tk.Assignee, &of.Assignee}, {&tk.Line, &of.Line}} {
		if *known.now != "" {
			*known.old = *known.now
		}
	}
	if of.Status != "" {
		tk.Status = of.Status
	}
}

// InHead reports whether the first line of the trace has a task: only such a task can be read alone.
func (t *Trace) InHead(id task.ID) bool {
	i, ok := t.index[id]
	return ok && i < t.head
}

// ItemName returns the name of an instance by the keys of its items; empty if a task has none.
func (t *Trace) ItemName(id task.ID) string {
	if i, ok := t.index[id]; ok {
		return t.Tasks[i].Name
	}
	return ""
}

// Title returns what people know a task by: its name, else its title; for one that the trace does not
// have, its ID.
func (t *Trace) Title(id task.ID) string {
	if i, ok := t.index[id]; ok {
		return cmp.Or(t.Tasks[i].Name, t.Tasks[i].Title, string(id))
	}
	return string(id)
}
