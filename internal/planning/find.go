package planning

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// find returns the JSON array or object that a reply consists of or holds. It
// looks at the whole text, then at its json fences, at its bare fences, at the
// outermost array and at the outermost object, and takes the first that is
// strict JSON. Where several fences of one kind are, it takes none: which of
// them is the plan would be a guess.
func find(text string) (any, error) {
	text = strings.TrimSpace(text)
	named, bare := jsonvalue.Fences(text)
	first, second := brackets(text)
	var fault error
	for _, group := range [...][]string{{text}, named, bare, {first}, {second}} {
		found, err := strict(group)
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return nil, fmt.Errorf("%d code fences hold JSON, and only one can be the plan", len(found))
		case fault == nil:
			fault = err // of the first text that could have been the plan
		}
	}
	if fault == nil {
		fault = errors.New("no JSON array is in it")
	}
	return nil, fault
}

// strict returns those of the texts that are strict JSON, arrays or objects,
// and what is wrong with the first one that only begins like it.
func strict(texts []string) (found []any, fault error) {
	for _, text := range texts {
		if text == "" || text[0] != '[' && text[0] != '{' {
			continue
		}
		v, err := jsonvalue.Decode(text)
		if err == nil {
			found = append(found, v)
		} else if fault == nil {
			fault = err
		}
	}
	return found, fault
}

// brackets returns the outermost array of a text and its outermost object, in
// this order, or the object first if the array lies within it. Missing ones
// are empty.
func brackets(text string) (first, second string) {
	start, end := arraySpan(text)
	open, shut := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if 0 <= start && start < end {
		first = text[start : end+1]
	}
	if 0 <= open && open < shut {
		second = text[open : shut+1]
	}
	if first != "" && open < start && end < shut {
		return second, first
	}
	return first, second
}

// arraySpan returns the places of the brackets of the outermost array: those
// around objects, else the first and the last there are, so that a bracket in
// the prose around a plan does not hide it.
func arraySpan(text string) (start, end int) {
	start, end = -1, -1
	for i := 0; i < len(text); i++ {
		if text[i] == '[' && strings.HasPrefix(strings.TrimLeft(text[i+1:], jsonSpace), "{") {
			start = i
			break
		}
	}
	for i := len(text) - 1; i > start; i-- {
		if text[i] == ']' && strings.HasSuffix(strings.TrimRight(text[:i], jsonSpace), "}") {
			end = i
			break
		}
	}
	if start < 0 || end < 0 {
		return strings.IndexByte(text, '['), strings.LastIndexByte(text, ']')
	}
	return start, end
}

// jsonSpace are the spaces of JSON.
const jsonSpace = " \t\r\n"
