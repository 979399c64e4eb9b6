// Package trace decides what a run writes down about its prompts, and where a
// text in them comes from.
//
// A [Writer] keeps the record while the run goes on: every decision of the
// gate and every prompt before it is sent, the events, and the result at last.
// [Lines] are the same for whoever stores them in another way than in a file,
// and go on when another process takes the run up.
// [Read] reads it back, and [Trace.Contains] follows a text to whoever wrote
// it. All of it is in the form that the caller of the run may see: what is
// above the caller's clearance has a source, a label and a length, no words.
package trace

import (
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Version is the version of the form that a [Writer] writes.
const Version = 1

// A Trace is the record of one run. Nothing in it is above the clearance of
// whoever the run was for.
type Trace struct {
	Run      string          // id of the run; empty if nothing happened
	Name     string          // of the team
	Time     time.Time       // when the record was begun
	Tasks    []Task          // in the order written, then what is known from events, prompts and the result
	Inputs   []Input         // that tasks could be granted
	Prompts  []Prompt        // in the order in which they were sent
	Events   []event.Event   // without receipts, which the prompts have
	Handoffs []event.Handoff // every decision of the gate, in the order in which it was recorded
	Result   *Result         // nil if the run did not come to its end, or nobody wrote it down
	Torn     bool            // the last line was cut off, and is left out
	Partial  bool            // only one task was read, see [ReadOptions].Task

	index map[task.ID]int             // of Tasks
	order map[*Prompt]int             // when each prompt was sent
	ends  map[task.ID]period          // when a task completed
	held  map[task.ID][]event.Handoff // what kept an attempt from having a prompt

	completed []int // when each of Tasks first completed; set by completions
	sorted    []int // the same in this order, of those that did
}

// A Task is a task of the run, or a step of the coordinator.
type Task struct {
	ID       task.ID     `json:"id"`
	Key      string      `json:"key,omitempty"`
	Title    string      `json:"title"`
	Assignee string      `json:"assignee,omitempty"`
	Line     string      `json:"line,omitempty"` // where it is written
	Status   task.Status `json:"status,omitempty"`
}

// An Input is a text that the caller gave the run, by its name alone.
type Input struct {
	Name           string               `json:"name"`
	Classification label.Classification `json:"classification"`
	Line           string               `json:"line,omitempty"` // where it is written
}

// A Prompt is one prompt as it was recorded before it was sent.
type Prompt struct {
	promptview.Shown
	Agent   string `json:"agent"`
	Title   string `json:"title,omitempty"`   // of the task, or the coordinator's step
	Attempt int    `json:"attempt,omitempty"` // from 1

	rests map[task.ID]bool // whose results are sources; only of a prompt whose words were not kept
}

// A Result is what of the result of a run tells where texts come from.
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

// length returns the length of a text of which these are the pieces.
func length(pieces []promptview.Piece) int {
	if len(pieces) == 0 {
		return 0
	}
	return int(pieces[len(pieces)-1].End)
}

// Withheld counts the pieces without words, since their source is above the
// reader's clearance. The names in headings are not counted.
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

// Held returns the decisions that kept an attempt of a task from having a
// prompt at all: those held under a session of which no prompt was recorded.
func (t *Trace) Held(id task.ID) []event.Handoff { return t.held[id] }

// SetResult makes r the result of the run, and its tasks known. It completes
// what [ReadWith] returned of a run whose result stands elsewhere than in a
// line of its own, before anything is asked of the trace; r is kept.
func (t *Trace) SetResult(r *Result) {
	t.Result = r
	if r == nil {
		return
	}
	for i := range r.Tasks {
		t.learn(r.Tasks[i].Task)
	}
}

// task returns the place of a task, which it makes if it is new.
func (t *Trace) task(id task.ID) *Task {
	i, ok := t.index[id]
	if !ok {
		i = len(t.Tasks)
		t.index[id] = i
		t.Tasks = append(t.Tasks, Task{ID: id})
	}
	return &t.Tasks[i]
}

// learn adds what is known of a task by now.
func (t *Trace) learn(of Task) {
	tk := t.task(of.ID)
	for _, known := range [...]struct{ old, now *string }{{&tk.Key, &of.Key}, {&tk.Title, &of.Title}, {&tk.Assignee, &of.Assignee}, {&tk.Line, &of.Line}} {
		if *known.now != "" {
			*known.old = *known.now
		}
	}
	if of.Status != "" {
		tk.Status = of.Status
	}
}

// Title returns what a task is called; of one that the trace does not know, its id.
func (t *Trace) Title(id task.ID) string {
	if i, ok := t.index[id]; ok && t.Tasks[i].Title != "" {
		return t.Tasks[i].Title
	}
	return string(id)
}
