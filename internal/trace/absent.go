package trace

import (
	"fmt"
	"maps"
	"math"
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
	sent := t.order[p]
	count, _ := slices.BinarySearch(t.completions(), sent) // tasks that completed before
	for id := range own {
		if end, done := t.ends[id]; done && end.first < sent {
			count--
		}
	}
	take := count
	if most > 0 {
		take = min(count, most)
	}
	for i := 0; len(results) < take && i < len(t.tasks); i++ {
		if t.completed[i] < sent && !own[t.tasks[i].ID] {
			results = append(results, t.tasks[i])
		}
	}
	return results, count - len(results), inputs
}

// completions returns the times at which tasks first completed, sorted.
func (t *Trace) completions() []int {
	tasks := t.Tasks()
	if len(t.completed) == len(tasks) {
		return t.sorted
	}
	t.completed, t.sorted = make([]int, len(tasks)), nil
	for i := range tasks {
		end, done := t.ends[tasks[i].ID]
		if t.completed[i] = math.MaxInt; done {
			t.completed[i] = end.first
			t.sorted = append(t.sorted, end.first)
		}
	}
	slices.Sort(t.sorted)
	return t.sorted
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
