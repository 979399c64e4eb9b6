package team

import (
	"slices"
	"strconv"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/flow"
	"github.com/runteam/runteam/pick"
	"github.com/runteam/runteam/task"
)

// A knownValue is the structured value of an input, which is known before a run.
type knownValue struct{ value any }

// known returns the value that a text consists of, if it is an object or an array.
func known(text string) (knownValue, bool) {
	if len(text) > envelope.MaxJSONBytes {
		return knownValue{}, false
	}
	v, err := envelope.FindValue(text)
	switch v.(type) {
	case map[string]any, []any:
		return knownValue{v}, err == nil
	}
	return knownValue{}, false
}

// has says whether there is a value at a path.
func (k knownValue) has(path []string) flow.Answer {
	if standsAt(k.value, path) {
		return flow.Yes
	}
	return flow.No
}

func standsAt(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		if path[0] != "*" {
			member, ok := v[path[0]]
			return ok && standsAt(member, path[1:])
		}
		for _, member := range v {
			if standsAt(member, path[1:]) {
				return true
			}
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil {
			return i >= 0 && i < len(v) && standsAt(v[i], path[1:])
		}
		return path[0] == "*" && slices.ContainsFunc(v, func(item any) bool { return standsAt(item, path[1:]) })
	}
	return false
}

// names says whether a member has this name, at any depth, as blocks compare names.
func (k knownValue) names(name string) flow.Answer {
	s, err := pick.Everything().Except(task.Path("/**/" + name))
	if err != nil {
		return flow.Maybe
	}
	if len(s.Apply(k.value).Dropped) > 0 {
		return flow.Yes
	}
	return flow.No
}

// members returns the names of the outermost members, for hints.
func (k knownValue) members() []string {
	object, _ := k.value.(map[string]any)
	var names []string
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
