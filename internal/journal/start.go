package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// beginLine is the stored form of a record.RunStart. It is the one line that lists the tasks of the run.
type beginLine struct {
	record.RunStart
	Tasks  []taskLine  `json:"tasks,omitempty"`
	Inputs []inputLine `json:"inputs,omitempty"`
	Hidden *hidden     `json:"hidden,omitempty"` // the text of the policy, if it is above the plaintext limit
}

// taskLine is the stored form of a task of the run.
type taskLine struct {
	ID        task.ID   `json:"task,omitempty"` // empty if its title gives it
	Title     string    `json:"title"`
	Key       string    `json:"key,omitempty"`
	Line      string    `json:"line,omitempty"`
	Rounds    string    `json:"rounds,omitempty"`
	Written   string    `json:"written,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Assigned  bool      `json:"assigned,omitempty"`
	After     []int     `json:"after,omitempty"`     // the places in the list of the tasks that it depends on
	DependsOn []task.ID `json:"dependsOn,omitempty"` // their IDs, if the list does not have all of them, and in files before version 10
}

type inputLine struct {
	record.Input
	Key *record.Digest `json:"key,omitempty"`
}

// begin returns a RunStart with masked keys, and without a policy and exact sizes of values above the
// plaintext limit.
func (e *encoder) begin(b *record.RunStart) (*beginLine, error) {
	if b.Run != e.run {
		return nil, fmt.Errorf("an entry of run %q was appended to run %q of the journal: give both the same ID", b.Run, e.run)
	}
	e.lines.Learn(b.Tasks)
	x := &beginLine{RunStart: *b, Tasks: taskLines(b.Tasks)}
	x.Version = version
	if e.vault.hides(unlabeled) { // a path is one of those texts, and the host is enough to find the workspaces
		x.Workspaces.Folder = ""
	}
	var err error
	if x.Policy, x.Hidden, err = e.vault.hidePolicy(b.Policy, record.KindRunStart, e.run); err != nil {
		return nil, err
	}
	for _, in := range b.Inputs {
		in.Bytes = e.vault.sizeAt(in.Classification, in.Bytes)
		x.Inputs = append(x.Inputs, inputLine{Input: in, Key: e.key(in.Key)})
	}
	return x, nil
}

// taskLines returns the stored form of the tasks of a run.
func taskLines(tasks []event.Planned) []taskLine {
	places, edges := make(map[task.ID]int, len(tasks)), 0
	for i := range tasks {
		places[tasks[i].Task] = i
		edges += len(tasks[i].DependsOn)
	}
	out, all := make([]taskLine, len(tasks)), make([]int, 0, edges)
	for i := range tasks {
		t, first := &tasks[i], len(all)
		for _, id := range t.DependsOn {
			if place, ok := places[id]; ok {
				all = append(all, place)
			}
		}
		l := taskLine{Title: t.Title, Key: t.Key, Line: t.Line, Rounds: t.Rounds, Written: t.Written, Agent: t.Agent, Assigned: t.Assigned, After: all[first:]}
		if len(l.After) < len(t.DependsOn) {
			l.After, l.DependsOn = nil, t.DependsOn
		}
		if t.Task != task.NewID(t.Title) {
			l.ID = t.Task
		}
		out[i] = l
	}
	return out
}

// titleMember is what the title of a task begins with.
var titleMember = []byte(`"title":`)

// start decodes a RunStart, with its policy or the reason why that cannot be read.
func (d *decoder) start(value []byte) (*record.RunStart, error) {
	b, h, err := decodeBegin(value)
	if err == nil {
		d.vault.showPolicy(b.Policy, h, record.KindRunStart, d.run)
	}
	return b, err
}

// decodeBegin returns a RunStart of its stored form, and the text of its policy if that is hidden.
func decodeBegin(value []byte) (*record.RunStart, *hidden, error) {
	x := beginLine{Tasks: make([]taskLine, 0, bytes.Count(value, titleMember))} // growing it would take as long as the rest
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, nil, err
	}
	b, edges := &x.RunStart, 0
	for i := range x.Tasks {
		edges += len(x.Tasks[i].After)
	}
	if len(x.Tasks) > 0 {
		b.Tasks = make([]event.Planned, len(x.Tasks))
	}
	for i := range x.Tasks {
		l := &x.Tasks[i]
		if l.ID == "" {
			l.ID = task.NewID(l.Title)
		}
		b.Tasks[i] = event.Planned{Task: l.ID, Title: l.Title, Written: l.Written, Agent: l.Agent, Assigned: l.Assigned, DependsOn: l.DependsOn, Key: l.Key, Line: l.Line, Rounds: l.Rounds}
	}
	all := make([]task.ID, 0, edges)
	for i := range x.Tasks {
		first := len(all)
		for _, place := range x.Tasks[i].After {
			if place < 0 || place >= len(b.Tasks) {
				return nil, nil, fmt.Errorf("task %q depends on one that the list does not have", b.Tasks[i].Title)
			}
			all = append(all, b.Tasks[place].Task)
		}
		if len(all) > first {
			b.Tasks[i].DependsOn = all[first:len(all):len(all)]
		}
	}
	for _, in := range x.Inputs {
		in.Input.Key = keyOf(in.Key)
		b.Inputs = append(b.Inputs, in.Input)
	}
	return b, x.Hidden, nil
}

// FindTask returns the task of a run, which is named as for [Journal.Find], that a person means by a name; see
// [naming.TaskList.Find]. It reads only how the processes of the run began, unless none of them began with the task. The
// error about a name that no task has is a [*naming.UnknownTaskError].
func FindTask(ctx context.Context, j *Journal, run, name string) (trace.Task, error) {
	s, err := j.LoadStart(ctx, run)
	if err != nil {
		return trace.Task{}, err
	}
	for _, b := range slices.Backward(s.History.Begins) {
		tasks := trace.Planned(b.Tasks)
		if i, known := trace.Names(tasks).Find(name); known {
			return tasks[i], nil
		}
	}
	t, err := j.Trace(ctx, run)
	if err != nil {
		return trace.Task{}, err
	}
	return t.Find(name)
}
