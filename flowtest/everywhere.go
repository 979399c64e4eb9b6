package flowtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// PlantEverywhere plants a canary in every input, in every message of the spec and in every
// result, also of tasks that a coordinator plans: in each text that the schema leaves free,
// or in the text of a task without a schema. These canaries need not reach a reader.
func (f *Flow) PlantEverywhere() {
	f.everywhere = true
	for _, in := range f.file.Run.Inputs {
		paths := []task.Path{""}
		if v, err := jsonvalue.Decode(in.Text); err == nil {
			paths = leaves(v, "", nil)
		}
		for _, p := range paths {
			f.quietly(func() { f.PlantInput(in.Name, p) })
		}
	}
	f.quietly(f.plantMessages)
}

// plantMessages plants at the start of each message that the spec sends.
func (f *Flow) plantMessages() {
	messages := slices.Clone(f.file.Run.Messages)
	for i := range messages {
		p := &planted{message: i + 1}
		f.plant(p)
		messages[i].Text = p.word + " " + messages[i].Text
	}
	f.file.Run.Messages = messages
}

// quietly plants canaries that need not reach a reader.
func (f *Flow) quietly(plant func()) {
	before := len(f.canaries)
	plant()
	for _, x := range f.canaries[before:] {
		x.quiet = true
	}
}

// leaves returns the paths of all texts in a decoded JSON value.
func leaves(v any, at task.Path, out []task.Path) []task.Path {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = leaves(v[k], at+task.Path(naming.Pointer(k)), out)
		}
	case []any:
		for i := range v {
			out = leaves(v[i], at+task.Path(naming.Pointer(i)), out)
		}
	case string:
		out = append(out, at)
	}
	return out
}

// plantResults plants in the results of all tasks of the plan.
func (r *run) plantResults() error {
	specs := r.chart.plan.Specs()
	for i := range specs {
		paths := []task.Path{""}
		if raw := r.schema(&specs[i]); raw != "" {
			s, err := decoded(raw)
			if err != nil {
				return fmt.Errorf("the schema of %q: %w", specs[i].Title, err)
			}
			d := demander{root: s}
			paths = d.texts(s, "", 0)
		}
		for _, p := range paths {
			if !r.taken(specs[i].Title, p) {
				r.quietly(func() { r.PlantResult(specs[i].Title, p) })
			}
		}
	}
	return nil
}

// taken reports whether a canary is planted there already.
func (r *run) taken(title string, p task.Path) bool {
	id, _ := r.chart.find(title)
	return slices.ContainsFunc(r.canaries, func(x *planted) bool {
		other, ok := r.chart.find(x.task)
		return x.made() && ok && other == id && x.path == p
	})
}

// deepest is how far schemas that refer to themselves are followed.
const deepest = 6

// texts returns the paths of the texts that a schema leaves free.
func (d *demander) texts(schema any, at task.Path, level int) (out []task.Path) {
	s := d.resolved(schema, 0)
	if level > deepest {
		return nil
	}
	if kind := s["type"]; kind == "string" || isOneOf(kind, "string") {
		if roomy(s) {
			return []task.Path{at}
		}
		return nil
	}
	if s["items"] != nil {
		return d.texts(s["items"], at+"/0", level+1)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		out = append(out, d.texts(properties[name], at+task.Path(naming.Pointer(name)), level+1)...)
	}
	return out
}

func isOneOf(kinds any, kind string) bool {
	list, _ := kinds.([]any)
	return slices.Contains(list, any(kind))
}

// roomy reports whether a text may be a canary.
func roomy(s map[string]any) bool {
	for _, key := range []string{"const", "enum", "pattern", "format", "anyOf", "oneOf", "not", "if"} {
		if s[key] != nil {
			return false
		}
	}
	longest, bounded := s["maxLength"].(json.Number)
	n, err := longest.Int64()
	least, _ := s["minLength"].(json.Number)
	m, _ := least.Int64()
	return (!bounded || err == nil && n >= 2*syllables) && m <= 2*syllables && !strings.Contains(fmt.Sprint(s["contentEncoding"]), "base64")
}
