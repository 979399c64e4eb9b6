package flowtest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// PlantEverywhere plants a canary in every input, in every message of the spec and in every
// result, also of tasks that a coordinator plans: in each text that the schema leaves free,
// or in the text of a task without a schema. It also plants one in the handoffs of each task that
// sends some. These canaries need not reach a reader.
func (f *Flow) PlantEverywhere() {
	f.everywhere = true
	for _, in := range f.file.Run.Inputs {
		paths := []task.Path{""}
		if v, err := jsonvalue.Decode(in.Text); err == nil {
			paths = textPaths(v, "", nil)
		}
		for _, p := range paths {
			f.plantOptional(func() { f.PlantInput(in.Name, p) })
		}
	}
	f.plantOptional(f.plantMessages)
}

// plantMessages plants a canary at the start of each message of the spec.
func (f *Flow) plantMessages() {
	messages := slices.Clone(f.file.Run.Messages)
	for i := range messages {
		p := &canary{message: i + 1}
		f.plant(p)
		messages[i].Text = p.word + " " + messages[i].Text
	}
	f.file.Run.Messages = messages
}

// plantOptional plants canaries that need not reach a reader.
func (f *Flow) plantOptional(plant func()) {
	before := len(f.canaries)
	plant()
	for _, x := range f.canaries[before:] {
		x.optional = true
	}
}

// textPaths returns the paths of all texts in a decoded JSON value.
func textPaths(v any, at task.Path, out []task.Path) []task.Path {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = textPaths(v[k], at+task.Path(naming.Pointer(k)), out)
		}
	case []any:
		for i := range v {
			out = textPaths(v[i], at+task.Path(naming.Pointer(i)), out)
		}
	case string:
		out = append(out, at)
	}
	return out
}

// plantResults plants canaries in the results and the handoffs of all tasks of the plan.
func (r *run) plantResults() error {
	for i := range r.flow.plan.Tasks {
		t := &r.flow.plan.Tasks[i]
		if t.Loop { // its result is that of another task
			continue
		}
		name := t.Title
		if first, _ := r.flow.find(name); first != i {
			name = string(t.ID)
		}
		paths := []task.Path{""}
		if raw := r.schema(i); raw != "" {
			root, err := decodeSchema(raw)
			if err != nil {
				return fmt.Errorf("the schema of %q: %w", t.Title, err)
			}
			paths = freeTexts(&schema.Merger{Root: root, Steps: maxSchemas}, root, "", 0)
		}
		for _, p := range paths {
			if !r.isPlanted(i, p, false) {
				r.plantOptional(func() { r.PlantResult(name, p) })
			}
		}
		if h := (&canary{task: name, handoff: true, row: i}); r.flow.source(h) >= 0 && !r.isPlanted(i, "", true) {
			r.plantOptional(func() { r.plant(h) })
		}
	}
	return nil
}

// isPlanted reports whether a canary is already planted in a result at a path, or in handoffs.
func (r *run) isPlanted(row int, p task.Path, handoffs bool) bool {
	return slices.ContainsFunc(r.canaries, func(x *canary) bool {
		other, ok := r.flow.find(x.task)
		return x.isOfTask() && x.handoff == handoffs && ok && other == row && x.path == p
	})
}
