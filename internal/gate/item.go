package gate

import (
	"strconv"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// onlyItem returns a value that has nothing but one item of a list, in its place.
func onlyItem(value any, path []string) (only any, ok bool) {
	if len(path) == 0 {
		return value, true
	}
	switch in := value.(type) {
	case map[string]any:
		next, has := in[path[0]]
		if !has {
			return nil, false
		}
		rest, ok := onlyItem(next, path[1:])
		return map[string]any{path[0]: rest}, ok
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(in) {
			return nil, false
		}
		rest, ok := onlyItem(in[i], path[1:])
		return []any{rest}, ok
	}
	return nil, false
}

// itemOf returns the item of a list as a payload: a text, or a structured value. Nothing else of
// the list has passed, so it is the first.
func itemOf(p envelope.Payload, path task.Path) (item envelope.Payload, ok bool) {
	canonical, structured := p.JSON()
	if !structured {
		return item, false
	}
	parsed, err := jsonvalue.Parse(canonical)
	if err != nil {
		return item, false
	}
	at := parsed.Value()
	for _, token := range pick.Tokens(path) {
		switch in := at.(type) {
		case map[string]any:
			at, ok = in[token]
		case []any:
			if ok = len(in) > 0; ok {
				at = in[0]
			}
		default:
			ok = false
		}
		if !ok {
			return item, false
		}
	}
	if text, is := at.(string); is {
		return envelope.Text(text), true
	}
	value, err := jsonvalue.Encode(at)
	return envelope.Payload{}.WithStructured(value), err == nil
}
