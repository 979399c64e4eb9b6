package flowtest

import (
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// A stand-in answers so that as much as possible runs: every round of a loop, which ends in the last
// one, and several items of a list.

// listItems is how many items stand-ins write into a list. The middle one has neighbors.
const listItems = 3

// A decision is a part of a result that decides what runs.
type decision struct {
	path  []string
	value json.RawMessage // at the path; nil for a list, and for any value
	items int             // of a list
}

// decisionsOf returns the decisions of each task and round.
func decisionsOf(plan *engine.Plan) map[task.ID][]decision {
	d := decider{plan: plan, all: map[task.ID][]decision{}}
	for i := range plan.Graph.Len() {
		in := plan.Graph.Task(i).Instance
		switch {
		case in == nil:
		case in.Joins:
			for n, until := range in.Until {
				d.decide(until, n == len(in.Until)-1)
			}
		default:
			for _, list := range in.Lists {
				if list.Input == "" && list.Index == 0 {
					d.add(list.Task, decision{path: pick.Tokens(list.Path), items: min(list.Most, listItems)})
				}
			}
		}
	}
	return d.all
}

// A decider finds decisions.
type decider struct {
	plan *engine.Plan
	all  map[task.ID][]decision
}

// add adds a decision of the task that writes the result of a task: of a loop, that of its last round,
// and of a verdict, the judges.
func (d *decider) add(id string, of decision) {
	i, _ := d.plan.Graph.Index(task.ID(id))
	for d.plan.Graph.Task(i).Instance != nil && d.plan.Graph.Task(i).Instance.Joins {
		i = int(d.plan.Graph.Upstream(i)[0])
	}
	writer := d.plan.Graph.Task(i)
	if writer.Instance == nil || writer.Instance.Quorum == 0 {
		d.all[writer.ID] = append(d.all[writer.ID], of)
		return
	}
	for _, judge := range d.plan.Graph.Upstream(i) { // it counts what they say
		of.path = []string{"accept"}
		id := d.plan.Graph.Task(int(judge)).ID
		d.all[id] = append(d.all[id], of)
	}
}

// A comparedValue is what a condition compares.
type comparedValue struct {
	task, path string
}

// maxChoices bounds how many combinations of values are tried for one condition.
const maxChoices = 10_000

// decide adds values for which a condition holds, or does not. If there are none, stand-ins answer
// with any value.
func (d *decider) decide(until *task.Condition, holds bool) {
	var all []comparedValue
	cases := map[comparedValue][]condition.Case{}
	until.Leaves(func(c *task.Condition) {
		v := comparedValue{c.Task, c.Path}
		if i, ok := d.plan.Graph.Index(task.ID(c.Task)); ok && cases[v] == nil {
			domain := d.plan.Schemas[i].Domain(pick.Tokens(task.Path(c.Path)))
			all, cases[v] = append(all, v), domain.Cases([]*task.Condition{until})
		}
	})
	chosen, left := map[comparedValue]condition.Case{}, maxChoices
	var search func(n int) bool
	search = func(n int) bool {
		if left--; left < 0 {
			return false
		}
		if n == len(all) {
			return until.Holds(func(c *task.Condition) string { return chosen[comparedValue{c.Task, c.Path}].Value }) == holds
		}
		for _, one := range cases[all[n]] {
			if chosen[all[n]] = one; search(n + 1) {
				return true
			}
		}
		return false
	}
	if !search(0) {
		return
	}
	for _, v := range all {
		of := decision{path: pick.Tokens(task.Path(v.path))}
		switch one := chosen[v]; {
		case one.Value == "": // results are small, and have only what is required
			continue
		case one.Value == one.Name:
			of.value = json.RawMessage(one.Value)
		}
		d.add(v.task, of)
	}
}

// require returns a schema whose values have what the decisions say.
func (d *decision) require(root map[string]any) (map[string]any, error) {
	shape, _, err := requireAt(root, d.path, func(s map[string]any) (map[string]any, error) {
		switch {
		case d.items > 0:
			s["type"], s["minItems"] = "array", json.Number(fmt.Sprint(atLeast(s, d.items)))
		case d.value != nil:
			return map[string]any{"const": d.value}, nil
		}
		return s, nil
	})
	return shape, err
}

// atLeast returns how many items an array has, if at least n of them are wanted.
func atLeast(s map[string]any, n int) int {
	number := func(key string, other int) int {
		written, ok := s[key].(json.Number)
		if k, err := written.Int64(); ok && err == nil {
			return int(k)
		}
		return other
	}
	return max(number("minItems", 0), min(n, number("maxItems", n)))
}
