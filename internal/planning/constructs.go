package planning

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/runteam/runteam/task"
)

// constructKeys are the keys of the tasks of a plan that may have these constructs. What
// task.Unroll checks is left to it.
func constructKeys(c Constructs) (list []key) {
	if c == (Constructs{}) {
		return nil
	}
	if c.When || c.Repeat || c.ForEach {
		list = append(list, key{"outputSchema", "a JSON Schema of its result, of the keywords " + strings.Join(schemaWords, ", "), nil, (*reader).outputSchema, always(ofType("object"))})
	}
	if c.When {
		list = append(list, key{"when", "a condition: the task runs if it holds", nil, func(r *reader, v any) { r.spec.When = r.condition(v, "when") }, always(anyOf(oneOf([]string{"else"}), conditionSchema))})
	}
	if c.Repeat {
		list = append(list, key{"repeat", "an object that makes the task a loop of other tasks", nil, (*reader).repeat, repeatSchema})
	}
	if c.ForEach {
		list = append(list, key{"forEach", "an object that makes the task run once for each item of a list", nil, (*reader).forEach, forEachSchema})
	}
	if c.Verify {
		list = append(list, key{"verify", "an object that lets other agents judge its result before it counts", nil, (*reader).verify, verifySchema})
	}
	return list
}

// conditionSchema is the schema of a condition but else.
var conditionSchema = anyOf(ofType("object"), listOf(ofType("object")))

// keysInLoop returns the keys of the tasks of a loop, which hold no loops.
func keysInLoop(c Constructs) []key {
	return slices.DeleteFunc(keysOf(c), func(k key) bool { return k.name == "repeat" })
}

func repeatSchema(r *Rules) any {
	return object{
		Properties: map[string]any{
			"maxRounds": ofType("integer"), "until": conditionSchema, "output": ofType("string"), "onLimit": oneOf([]string{"last", "fail"}), "onRepeat": oneOf([]string{"fail", "continue"}), "tasks": tasksSchema(r, keysInLoop(r.MayPlan)),
		},
		Required: []string{"maxRounds", "until", "output", "tasks"},
	}
}

func forEachSchema(r *Rules) any {
	o := object{
		Properties: map[string]any{
			"task": ofType("string"), "path": ofType("string"), "as": ofType("string"), "maxItems": ofType("integer"), "onOverflow": oneOf([]string{"fail", "first"}), "maxParallel": ofType("integer"),
		},
		Required: []string{"task", "path", "maxItems"},
	}
	if r.MayGrant.Inputs {
		o.Properties["input"], o.Properties["files"] = oneOf(r.Inputs), listOf(ofType("string"))
		o.Required = []string{"maxItems"} // and a task with a path, or an input
	}
	return o
}

// references returns the keys of a dependency that is no title.
func (c Constructs) references() []string {
	names := []string{"task", "optional"}
	for _, one := range []struct {
		allowed bool
		name    string
	}{{c.When, "oneOf"}, {c.Repeat, "round"}, {c.ForEach, "each"}} {
		if one.allowed {
			names = append(names, one.name)
		}
	}
	return names
}

// dependsOnSchema is the schema of the dependencies of a task.
func dependsOnSchema(r *Rules) any {
	if r.MayPlan == (Constructs{}) {
		return listOf(ofType("string"))
	}
	reference := object{Properties: map[string]any{}}
	for _, key := range r.MayPlan.references() {
		reference.Properties[key] = map[string]any{"task": ofType("string"), "each": ofType("string"), "round": oneOf([]string{task.Previous}), "oneOf": listOf(ofType("string")), "optional": ofType("boolean")}[key]
	}
	return listOf(anyOf(ofType("string"), reference))
}

// dependencies reads a list of dependencies.
func (r *reader) dependencies(v any, path ...any) (refs []task.Ref) {
	list, ok := v.([]any)
	if !ok || r.rules.MayPlan == (Constructs{}) {
		for _, title := range r.texts(v, path...) {
			refs = append(refs, task.Ref{Task: title})
		}
		return refs
	}
	for i, item := range list {
		if r.full() {
			break
		}
		refs = append(refs, r.reference(item, append(slices.Clip(path), i)...))
	}
	return refs
}

// reference reads a dependency: a title or an object.
func (r *reader) reference(item any, path ...any) (ref task.Ref) {
	if _, is := item.(map[string]any); !is {
		ref.Task, _ = r.text(item, path...)
		return ref
	}
	members, keys := r.object(item, r.rules.MayPlan.references(), "", path...)
	for _, key := range keys {
		v, at := members[key], append(slices.Clip(path), key)
		switch key {
		case "task":
			ref.Task, _ = r.text(v, at...)
		case "each":
			ref.Each, _ = r.text(v, at...)
		case "round":
			ref.Round, _ = r.text(v, at...)
		case "oneOf":
			ref.OneOf = r.texts(v, at...)
		case "optional":
			is, ok := v.(bool)
			if ref.Optional = is; !ok {
				r.bad(task.ErrInvalid, "optional: "+describe(v)+" where true or false belongs", "write true, or leave it out", at...)
			}
		}
	}
	if ref.Task == "" && ref.Each == "" && len(ref.OneOf) == 0 {
		r.bad(task.ErrInvalid, name(path)+": it names no task", `write {"task": title}`, path...)
	}
	return ref
}

// conditionHint is the hint for a value that is no condition.
const conditionHint = `write {"task": title, "path": "/team", "equals": "billing"}`

// condition reads a condition as spec files have it.
func (r *reader) condition(v any, path ...any) *task.Condition {
	raw, _ := json.Marshal(v) // it was JSON
	c := &task.Condition{}
	if err := json.Unmarshal(raw, c); err != nil {
		message := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "condition: "), "json: ")
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			message = describe(v) + " where a condition belongs, or one with a wrong type in it"
		}
		r.bad(task.ErrInvalid, name(path)+": "+message, conditionHint, path...)
		return nil
	}
	compared := 0
	c.Leaves(func(leaf *task.Condition) {
		compared += max(len(leaf.Values), 1)
		r.words(leaf.Path, name(path), path...)
		for _, value := range leaf.Values {
			var text string
			if json.Unmarshal([]byte(value), &text) == nil && text != "" {
				r.words(text, name(path), path...)
			}
		}
	})
	if compared > maxCompared {
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: it compares with %d values, at most %d", name(path), compared, maxCompared), "compare with fewer values", path...)
		return nil
	}
	return c
}

func (r *reader) forEach(v any) {
	list := &task.ForEach{}
	r.spec.ForEach = list
	members, keys := r.object(v, []string{"task", "input", "path", "files", "as", "maxItems", "onOverflow", "maxParallel"}, `write {"task": title, "path": "/items", "maxItems": 20}`, "forEach")
	for _, key := range keys {
		v, at := members[key], []any{"forEach", key}
		switch key {
		case "task":
			list.Task, _ = r.text(v, at...)
		case "input":
			if list.Input, _ = r.text(v, at...); list.Input != "" {
				r.checkInput(list.Input, "name a task whose result has the list", at...)
			}
		case "path":
			if path, ok := r.text(v, at...); ok {
				list.Path = task.Path(path)
				r.words(path, key, at...)
			}
		case "files":
			list.Files = r.short(v, maxTools, at...)
			for i, glob := range list.Files {
				r.words(glob, key, append(slices.Clip(at), i)...)
			}
		case "as":
			if list.As, _ = r.text(v, at...); list.As != "" {
				r.words(list.As, key, at...)
			}
		case "maxItems":
			list.MaxItems = r.integer(v, 1, MaxTasks, fmt.Sprintf("write how many items there may be, from 1 to %d", MaxTasks), at...)
		case "onOverflow":
			list.OnOverflow, _ = r.text(v, at...)
		case "maxParallel":
			list.MaxParallel = r.integer(v, 1, MaxTasks, "write how many tasks may run at the same time, or leave it out", at...)
		}
	}
}

// repeat reads a loop and its tasks.
func (r *reader) repeat(v any) {
	loop := &task.Repeat{}
	r.spec.Repeat, r.spec.Tools = loop, nil // a loop calls no agent
	members, keys := r.object(v, []string{"maxRounds", "until", "output", "onLimit", "onRepeat", "tasks"}, `write {"maxRounds": 3, "until": …, "output": title, "tasks": […]}`, "repeat")
	for _, key := range keys {
		v, at := members[key], []any{"repeat", key}
		switch key {
		case "maxRounds":
			loop.MaxRounds = r.integer(v, 1, 100, "write how many rounds there may be, from 1 to 100", at...)
		case "until":
			loop.Until = r.condition(v, at...)
		case "output":
			loop.Output, _ = r.text(v, at...)
		case "onLimit":
			loop.OnLimit, _ = r.text(v, at...)
		case "onRepeat":
			loop.OnRepeat, _ = r.text(v, at...)
		case "tasks":
			r.loopTasks(v, loop, at)
		}
	}
}

// loopTasks reads the tasks of a loop.
func (r *reader) loopTasks(v any, loop *task.Repeat, path []any) {
	list, ok := v.([]any)
	if !ok {
		r.bad(task.ErrInvalid, "tasks: "+describe(v)+" where a list of tasks belongs", `write [{"title": …, "description": …}]`, path...)
		return
	}
	outer := *r
	r.keys = keysInLoop(r.rules.MayPlan)
	for i, item := range list {
		if r.full() {
			break
		}
		var s task.Spec
		r.task(item, &s, slices.Concat(outer.path, path, []any{i})...)
		loop.Tasks = append(loop.Tasks, s)
	}
	r.keys, r.spec, r.path = outer.keys, outer.spec, outer.path
}

// schemaWords are the keywords of the schemas of a plan.
var schemaWords = []string{"type", "properties", "required", "items", "enum", "additionalProperties", "minItems", "maxItems", "minimum", "maximum"}

// outputSchema reads a whole schema. A prompt has it without a fence, so it has no texts but
// harmless words.
func (r *reader) outputSchema(v any) {
	r.schemaPart(v, "outputSchema")
	raw, _ := json.Marshal(v) // it was JSON
	if len(raw) > MaxDescription {
		r.bad(task.ErrInvalid, fmt.Sprintf("outputSchema: %d bytes, at most %d", len(raw), MaxDescription), "ask for fewer values", "outputSchema")
	}
	r.spec.OutputSchema = raw
}

// schemaPart checks the words of a schema.
func (r *reader) schemaPart(v any, path ...any) {
	if _, is := v.(bool); is && path[len(path)-1] == "additionalProperties" {
		return
	}
	members, keys := r.object(v, schemaWords, `write {"type": "object", "properties": {…}, "required": […]}`, path...)
	for _, key := range keys {
		v, at := members[key], append(slices.Clip(path), key)
		switch key {
		case "items", "additionalProperties":
			r.schemaPart(v, at...)
		case "properties":
			properties, _ := v.(map[string]any)
			for _, property := range slices.Sorted(maps.Keys(properties)) {
				if r.full() {
					return
				}
				r.words(property, "outputSchema", at...)
				r.schemaPart(properties[property], append(slices.Clip(at), oneLine(property, maxWord))...)
			}
		default:
			r.schemaValue(v, at)
		}
	}
}

// schemaValue checks the words of a keyword without schemas in it.
func (r *reader) schemaValue(v any, path []any) {
	switch v := v.(type) {
	case string:
		r.words(v, "outputSchema", path...)
	case []any:
		for _, item := range v {
			if text, is := item.(string); is {
				r.words(text, "outputSchema", path...)
			}
		}
	case map[string]any:
		r.bad(task.ErrInvalid, name(path)+": an object where none belongs", "remove it", path...)
	}
}

// integer reads a whole number within bounds.
func (r *reader) integer(v any, low, high float64, hint string, path ...any) int {
	n, ok := r.number(v, low, high, hint, path...)
	if ok && n != math.Trunc(n) {
		r.bad(task.ErrInvalid, name(path)+": it is not a whole number", hint, path...)
		return 0
	}
	return int(n)
}

// object reads an object and returns its keys in order, those that are null left out. It refuses
// keys that are not known.
func (r *reader) object(v any, known []string, hint string, path ...any) (map[string]any, []string) {
	members, ok := v.(map[string]any)
	switch {
	case !ok:
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: %s where an object belongs", name(path), describe(v)), hint, path...)
		return nil, nil
	case len(members) > maxKeys:
		r.bad(ErrUnknownKey, fmt.Sprintf("%s: %d keys, more than there are", name(path), len(members)), "write only "+strings.Join(known, ", "), path...)
		return nil, nil
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		switch {
		case !slices.Contains(known, key):
			r.bad(ErrUnknownKey, fmt.Sprintf("%s: unknown key %s", name(path), quote(key)), r.nearest(key, known), append(slices.Clip(path), oneLine(key, maxWord))...)
		case members[key] != nil:
			keys = append(keys, key)
		}
	}
	return members, keys
}
