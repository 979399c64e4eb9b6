package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// Absent returns the context that existed when a prompt was sent and that nothing grants to
// it: inputs, and results of completed tasks, at most so many of them (0 means all), and how
// many more there are. Prompts of the coordinator have no absent results, since results reach
// the coordinator in digests too, and neither have later turns of a conversation.
func (t *Trace) Absent(p *Prompt, most int) (results []Task, more int, inputs []Input) {
	if p.continues() {
		return nil, 0, nil
	}
	for _, in := range t.Inputs {
		if !p.has(handoff.Input, in.Name) {
			inputs = append(inputs, in)
		}
	}
	if p.Agent == handoff.Coordinator {
		return nil, 0, inputs
	}
	own := maps.Clone(p.results())
	own[p.Receipt.Task] = true
	tasks := t.Tasks()
	if t.completions == nil {
		t.completions = make([]int, 0, len(t.ends))
		for i := range tasks {
			if end, done := t.ends[tasks[i].ID]; done {
				t.completions = append(t.completions, end.first)
			}
		}
		slices.Sort(t.completions)
	}
	count, _ := slices.BinarySearch(t.completions, p.at) // tasks that completed before
	for id := range own {
		if end, done := t.ends[id]; done && end.first < p.at {
			count--
		}
	}
	take := count
	if most > 0 {
		take = min(count, most)
	}
	for i := 0; len(results) < take && i < len(tasks); i++ {
		if end, done := t.ends[tasks[i].ID]; done && end.first < p.at && !own[tasks[i].ID] {
			results = append(results, tasks[i])
		}
	}
	return results, count - len(results), inputs
}

// continues reports whether a prompt is a later turn of a conversation, whose first prompt says
// what was granted.
func (p *Prompt) continues() bool {
	return strings.Contains(p.Receipt.Session, fmt.Sprintf("/%s/%d/turn/", p.Receipt.Task, p.Attempt))
}

// has reports whether a prompt has a source of this kind and name.
func (p *Prompt) has(kind handoff.SourceKind, name string) bool {
	return slices.ContainsFunc(p.Receipt.Sources, func(s prompt.Source) bool {
		return s.Decision != nil && s.Decision.Source.Kind == kind && s.Decision.Source.Name == name
	})
}

// results returns the tasks whose results are sources of a prompt, as dependencies or as
// entries of the shared memory.
func (p *Prompt) results() map[task.ID]bool {
	if p.sourceTasks != nil {
		return p.sourceTasks
	}
	all := map[task.ID]bool{}
	for i := range p.Receipt.Sources {
		if id, ok := resultOf(p.Receipt.Sources[i].Decision); ok {
			all[id] = true
		}
	}
	return all
}
