package trace

import "github.com/runteam/runteam/handoff"

// Absent returns what had come to be when a prompt was sent and is no source
// of it, neither passed nor withheld, since nothing grants it: the results of
// completed tasks, and the inputs. Of a coordinator's prompts it tells no
// results, since they come to it in digests too.
func (t *Trace) Absent(p *Prompt) (results []Task, inputs []Input) {
	for _, tk := range t.Tasks {
		end, done := t.ends[tk.ID]
		if done && end.first < t.order[p] && p.Agent != handoff.Coordinator && tk.ID != p.Receipt.Task && !p.has(handoff.Dependency, string(tk.ID)) {
			results = append(results, tk)
		}
	}
	for _, in := range t.Inputs {
		if !p.has(handoff.Input, in.Name) {
			inputs = append(inputs, in)
		}
	}
	return results, inputs
}

// has reports whether a prompt has a source of this kind. The result of a task
// may also come as an entry of the shared memory.
func (p *Prompt) has(kind handoff.SourceKind, name string) bool {
	for i := range p.Receipt.Sources {
		d := p.Receipt.Sources[i].Decision
		if d == nil {
			continue
		}
		if d.Source.Kind == kind && d.Source.Name == name {
			return true
		}
		if id, ok := resultOf(d); ok && kind == handoff.Dependency && string(id) == name {
			return true
		}
	}
	return false
}
