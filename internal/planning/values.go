package planning

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/task"
)

// Values of decoded JSON, read strictly. A path leads from the task to the value.

// text reads a text that is not empty, without surrounding spaces.
func (r *reader) text(v any, path ...any) (string, bool) {
	text, ok := v.(string)
	text = strings.TrimSpace(text)
	switch {
	case !ok:
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: %s where a text belongs", name(path), describe(v)), "write one text in quotes", path...)
	case text == "":
		r.bad(task.ErrInvalid, name(path)+": it is empty", "write one, or leave it out", path...)
	default:
		return text, true
	}
	return "", false
}

// texts reads a list of texts. One that is none keeps its place, empty.
func (r *reader) texts(v any, path ...any) []string {
	list, ok := v.([]any)
	if !ok {
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: %s where a list of texts belongs", name(path), describe(v)), `write ["…"]`, path...)
		return nil
	}
	var texts []string
	for i, item := range list {
		if r.full() {
			break
		}
		text, _ := r.text(item, append(slices.Clip(path), i)...)
		texts = append(texts, text)
	}
	return texts
}

// number reads a number within bounds.
func (r *reader) number(v any, low, high float64, hint string, path ...any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: %s where a number belongs", name(path), describe(v)), hint, path...)
		return 0, false
	}
	f, err := n.Float64()
	if err != nil || f < low || f > high {
		r.bad(task.ErrInvalid, fmt.Sprintf("%s: %s is out of bounds", name(path), cut(string(n), maxWord)), hint, path...)
		return 0, false
	}
	return f, true
}

// name writes the last part of a path: a key, or a key and an index.
func name(path []any) string {
	last := path[len(path)-1]
	if i, ok := last.(int); ok {
		return fmt.Sprintf("%v[%d]", path[len(path)-2], i)
	}
	return fmt.Sprint(last)
}

// describe says what a decoded value is.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	}
	return "an object"
}
