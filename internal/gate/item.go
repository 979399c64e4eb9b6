package gate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// A List decodes a value once for the grants of its items. It may be used concurrently.
type List struct {
	mu    sync.Mutex
	of    string // the canonical value or the text that was decoded
	value any    // never changed
}

// decoded returns the value of a structured payload, which is decoded once.
func (l *List) decoded(p envelope.Payload) (any, bool) {
	of, structured := p.JSON()
	if !structured {
		of = p.Text()
	}
	if l == nil || of == "" {
		return decoded(p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != of {
		value, ok := decoded(p)
		if !ok {
			return nil, false
		}
		l.of, l.value = of, value
	}
	return l.value, true
}

// onlyItem returns a value that has nothing but one item of a list. If inPlace, items that no
// selection takes stand before it, so that a block of a numbered item means the one that it names.
func onlyItem(value any, path []string, inPlace bool) (only any, ok bool) {
	if len(path) == 0 {
		return value, true
	}
	switch in := value.(type) {
	case map[string]any:
		next, has := in[path[0]]
		if !has {
			return nil, false
		}
		rest, ok := onlyItem(next, path[1:], inPlace)
		return map[string]any{path[0]: rest}, ok
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(in) {
			return nil, false
		}
		rest, ok := onlyItem(in[i], path[1:], inPlace)
		var list []any
		if inPlace {
			list = slices.Repeat([]any{otherItem{}}, i)
		}
		return append(list, rest), ok
	}
	return nil, false
}

// CountItems counts the items of a list in a structured result, also those of which rules block
// every part; none if there is no value. It is not ok if there is another value.
func CountItems(result *envelope.Envelope, path task.Path) (items int, ok bool) {
	canonical, _ := result.Open().JSON()
	parsed, err := jsonvalue.Parse(canonical)
	if err != nil {
		return 0, false
	}
	at, _ := pick.First(parsed.Value(), path)
	list, ok := at.([]any)
	return len(list), ok || at == nil
}

// ItemKeys returns the texts and numbers at a path in each item of a list that were delivered as they
// are. It is nil for an item of which a part was redacted, and for all of them if a rule blocks some:
// then it is not clear whose the others are.
func ItemKeys(of *envelope.Envelope, delivered envelope.Payload, list, key task.Path) []any {
	keys, seen := itemKeys(of.Open(), list, key), itemKeys(delivered, list, key)
	if len(seen) != len(keys) {
		return nil
	}
	for i := range keys {
		if keys[i] != seen[i] {
			keys[i] = nil
		}
	}
	return keys
}

// itemKeys returns the text or the number at a path in each item of a list, and nil for an item that
// has none there.
func itemKeys(p envelope.Payload, list, key task.Path) (keys []any) {
	value, _ := decoded(p)
	at, _ := pick.First(value, list)
	items, _ := at.([]any)
	for _, item := range items {
		of, _ := jsonvalue.At(item, pick.Tokens(key))
		switch of.(type) {
		case string, json.Number:
		default:
			of = nil
		}
		keys = append(keys, of)
	}
	return keys
}

// An otherItem stands for an item of a list. It is no value of JSON, so it is never selected.
type otherItem struct{}

// numbers reports whether a selection may block an item of a list by its number.
func numbers(s pick.Selection) bool {
	_, blocks := s.Paths()
	return slices.ContainsFunc(blocks, func(p task.Path) bool { return strings.ContainsFunc(string(p), unicode.IsNumber) })
}

// itemOf returns the item of a list as a payload: a text, or a structured value. Nothing else of
// the list has passed, so it is the first.
func itemOf(p envelope.Payload, path task.Path) (item envelope.Payload, ok bool) {
	canonical, structured := p.JSON()
	if !structured {
		return item, false
	}
	value, found, err := FirstAt(canonical, path)
	if err != nil || !found {
		return item, false
	}
	if text, is := value.Value().(string); is && text != "" { // a prompt leaves out an empty text
		return envelope.Text(text), true
	}
	return envelope.Payload{}.WithStructured(value), true
}

// FirstAt returns the value at a path of a value that was delivered, given as canonical JSON. In
// lists it is that of their first item.
func FirstAt(canonical string, path task.Path) (value jsonvalue.Value, found bool, err error) {
	parsed, err := jsonvalue.Parse(canonical)
	if err != nil {
		return value, false, err
	}
	at, found := pick.First(parsed.Value(), path)
	if !found {
		return value, false, nil
	}
	value, err = jsonvalue.Encode(at)
	return value, true, err
}
