package team

import (
	"slices"
	"strconv"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/flow"
	"github.com/runteam/runteam/pick"
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
		for key, member := range v {
			if (path[0] == "*" || pick.Exact(key) == pick.Exact(path[0])) && standsAt(member, path[1:]) {
				return true
			}
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && strconv.Itoa(i) == path[0] {
			return i >= 0 && i < len(v) && standsAt(v[i], path[1:])
		}
		return path[0] == "*" && slices.ContainsFunc(v, func(item any) bool { return standsAt(item, path[1:]) })
	}
	return false
}

// names says whether a member has this name, at any depth, as blocks compare names.
func (k knownValue) names(name string) flow.Answer {
	if namedIn(k.value, pick.Loose(name)) {
		return flow.Yes
	}
	return flow.No
}

// namedIn reports whether a member, at any depth, has this name in its loose form.
func namedIn(v any, name string) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if pick.Loose(key) == name || namedIn(member, name) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return namedIn(item, name) })
	}
	return false
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
