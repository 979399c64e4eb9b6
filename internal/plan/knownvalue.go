package plan

import (
	"slices"
	"strconv"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
)

// A knownValue is the structured value of an input, which is known before a run.
type knownValue struct{ value any }

// known returns the value that a text consists of, if it is an object or an array.
func known(text string) (knownValue, bool) {
	if len(text) > jsonvalue.MaxBytes {
		return knownValue{}, false
	}
	v, err := jsonvalue.FindValue(text)
	switch v.(type) {
	case map[string]any, []any:
		return knownValue{v}, err == nil
	}
	return knownValue{}, false
}

// has says whether there is a value at a path.
func (k knownValue) has(path []string) flow.Answer {
	if hasAt(k.value, path) {
		return flow.Yes
	}
	return flow.No
}

func hasAt(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if (path[0] == "*" || pick.Exact(key) == pick.Exact(path[0])) && hasAt(member, path[1:]) {
				return true
			}
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && strconv.Itoa(i) == path[0] {
			return i >= 0 && i < len(v) && hasAt(v[i], path[1:])
		}
		return path[0] == "*" && slices.ContainsFunc(v, func(item any) bool { return hasAt(item, path[1:]) })
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
func (k knownValue) members() []string { return membersAt(k.value, nil) }

// membersAt returns the names of the members at a path, sorted.
func membersAt(v any, path []string) (names []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if len(path) == 0 {
				names = append(names, name)
			} else if path[0] == "*" || pick.Exact(name) == pick.Exact(path[0]) {
				names = append(names, membersAt(member, path[1:])...)
			}
		}
	case []any:
		for i, item := range v {
			if len(path) > 0 && (path[0] == "*" || strconv.Itoa(i) == path[0]) {
				names = append(names, membersAt(item, path[1:])...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// memberNames adds the names of members at any depth.
func memberNames(v any, names []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			names = memberNames(member, append(names, name))
		}
	case []any:
		for _, item := range v {
			names = memberNames(item, names)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
