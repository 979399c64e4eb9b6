package planning

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/runteam/runteam/task"
)

// Draft returns a plan that [ParsePlan] has read as a person reads and edits it: the JSON array,
// indented, with the keys of each task in the order in which they are listed, and with the assignee
// that specs name. The specs are those of the tasks, in their order.
func Draft(text string, specs []task.Spec) (string, error) {
	items, problem := plan(text)
	if problem != nil {
		return "", *problem
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(drafts(items, specs))
	return b.String(), err
}

// drafts returns tasks with their assignees.
func drafts(items []any, specs []task.Spec) []any {
	list := make([]any, len(items))
	for i, item := range items {
		members, _ := item.(map[string]any)
		if loop, ok := members["repeat"].(map[string]any); ok && specs[i].Repeat != nil {
			inner, _ := loop["tasks"].([]any)
			loop["tasks"] = drafts(inner, specs[i].Repeat.Tasks)
		} else {
			members["assignee"] = specs[i].Assignee
		}
		list[i] = draft(members)
	}
	return list
}

// A draft is a task whose JSON has its keys in the order in which they are listed. A key that is not
// listed follows them: whatever the task has, the person sees.
type draft map[string]any

// MarshalJSON writes the task.
func (d draft) MarshalJSON() ([]byte, error) {
	var order []string
	for _, k := range keysOf(Constructs{When: true, Repeat: true, ForEach: true, Verify: true}) {
		if _, ok := d[k.name]; ok {
			order = append(order, k.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, name := range order {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(d[name]); err != nil {
			return nil, err
		}
	}
	return append(append([]byte{'{'}, b.Bytes()...), '}'), nil
}
