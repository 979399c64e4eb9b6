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
	"slices"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/runstate"
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
	Spec     []Task          // the tasks of the first process, then those that later ones added
	Inputs   []Input         // that tasks could be granted
	Prompts  []Prompt        // in the order in which they were sent
	Handoffs []event.Handoff // every decision of the gate, in the order in which it was recorded
	State    *runstate.State // of the tasks, by the events and the result; the owner of a history may set that of its entries before it asks for tasks
	Torn     bool            // the last line was cut off, and was ignored
	Partial  bool            // only one task was read, see [ReadOptions].Task

	head  int                         // how many of Spec the first process had
	tasks []Task                      // see Tasks
	index map[task.ID]int             // of these
	ends  map[task.ID]period          // when a task completed
	over  int                         // behind all that happened
	held  map[task.ID][]event.Handoff // decisions that withheld context from attempts without a prompt

	completions []int // when each task that completed first did so, sorted; see Absent
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

// Planned returns tasks of a run that has not begun them.
func Planned(list []event.Planned) []Task {
	tasks := make([]Task, len(list))
	for i := range list {
		p := &list[i]
		tasks[i] = Task{ID: p.Task, Key: p.Key, Title: p.Title, Assignee: p.Agent, Line: p.Line, Rounds: p.Rounds}
	}
	return tasks
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

	at          int              // where it is among the lines; once all are read, when it was sent
	found       *finding         // of a Finder
	sourceTasks map[task.ID]bool // tasks whose results are sources; only of a prompt without its words
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

// Ended reports whether the trace has the end of the run.
func (t *Trace) Ended() bool { return t.State.End != nil }

// Tasks returns the tasks of the spec in its order, then those that the State has: planned tasks, and steps of the
// coordinator. The caller must not change the list.
func (t *Trace) Tasks() []Task {
	if t.index != nil {
		return t.tasks
	}
	t.tasks, t.index = slices.Clone(t.Spec), make(map[task.ID]int, len(t.Spec))
	for i := range t.tasks {
		t.index[t.tasks[i].ID] = i
	}
	for _, of := range t.State.Tasks() {
		i, known := t.index[of.ID]
		if !known {
			i = len(t.tasks)
			t.index[of.ID], t.tasks = i, append(t.tasks, Task{ID: of.ID})
		}
		tk := &t.tasks[i]
		tk.Title, tk.Name, tk.Assignee = cmp.Or(of.Title, tk.Title), cmp.Or(of.Name, tk.Name), cmp.Or(of.Agent, tk.Assignee)
		tk.Rounds = cmp.Or(tk.Rounds, t.State.Rounds(of))
		if now := t.State.Status(of); now.Terminal() || t.Ended() && t.State.IsTask(of) {
			tk.Status = now
		}
	}
	return t.tasks
}

// Task returns what is known of a task; nil if the trace does not have it.
func (t *Trace) Task(id task.ID) *Task {
	tasks := t.Tasks()
	if i, ok := t.index[id]; ok {
		return &tasks[i]
	}
	return nil
}

// addSpec adds the tasks of another process, and what it says of those that are known.
func (t *Trace) addSpec(tasks []Task) {
	places := make(map[task.ID]int, len(t.Spec))
	for i := range t.Spec {
		places[t.Spec[i].ID] = i
	}
	t.Spec = slices.Clone(t.Spec)
	for _, tk := range tasks {
		i, known := places[tk.ID]
		if !known {
			t.Spec = append(t.Spec, tk)
			continue
		}
		of := &t.Spec[i]
		of.Key, of.Line, of.Rounds = cmp.Or(tk.Key, of.Key), cmp.Or(tk.Line, of.Line), cmp.Or(tk.Rounds, of.Rounds)
	}
}

// InHead reports whether the run began with a task: only such a task can be read alone.
func (t *Trace) InHead(id task.ID) bool {
	return slices.ContainsFunc(t.Spec[:t.head], func(tk Task) bool { return tk.ID == id })
}

// Title returns what people know a task by: its name, else its title; for one that the trace does not
// have, its ID.
func (t *Trace) Title(id task.ID) string {
	if tk := t.Task(id); tk != nil {
		return cmp.Or(tk.Name, tk.Title, string(id))
	}
	return string(id)
}
