package pick

import (
	"encoding/json"

	"github.com/runteam/runteam/task"
)

// kind is what a value is to a path.
type kind uint8

const (
	foreign kind = iota // no JSON value
	scalar
	empty // object or array without parts
	object
	array
)

func kindOf(v any) kind {
	switch v := v.(type) {
	case nil, bool, string, json.Number, float64:
		return scalar
	case map[string]any:
		if len(v) == 0 {
			return empty
		}
		return object
	case []any:
		if len(v) == 0 {
			return empty
		}
		return array
	}
	return foreign
}

// clone copies a value deeply; not ok means that part of it is no JSON value.
func clone(v any) (out any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			if out[name], ok = clone(one); !ok {
				return nil, false
			}
		}
		return out, true
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			if out[i], ok = clone(one); !ok {
				return nil, false
			}
		}
		return out, true
	}
	return v, kindOf(v) == scalar
}

// First returns the value at a path, in lists that of their first item: after a selection of
// one item, a list has no other. If there is none, it returns the scalar at which the path ends
// early, or nil.
func First(value any, p task.Path) (first any, found bool) {
	for _, token := range Tokens(p) {
		switch in := value.(type) {
		case map[string]any:
			if value, found = in[token]; !found {
				return nil, false
			}
		case []any:
			if len(in) == 0 {
				return nil, false
			}
			value = in[0]
		default:
			return value, false
		}
	}
	return value, true
}
