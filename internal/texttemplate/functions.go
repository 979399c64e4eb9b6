package texttemplate

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
)

// functions replaces the functions of text/template that make texts by bounded ones, and index
// by one for which a missing key is an error.
func (e *execution) functions() template.FuncMap {
	bounded := func(factor int, f func(args ...any) string) func(args ...any) (string, error) {
		return func(args ...any) (string, error) {
			if err := e.spend(factor * sizeOf(args)); err != nil {
				return "", err
			}
			return f(args...), nil
		}
	}
	const most = 6 // of an escaped character, as in \u003C
	return template.FuncMap{
		"print":    bounded(1, fmt.Sprint),
		"println":  bounded(1, fmt.Sprintln),
		"html":     bounded(most, template.HTMLEscaper),
		"js":       bounded(most, template.JSEscaper),
		"urlquery": bounded(most, template.URLQueryEscaper),
		"printf":   e.printf,
		"index":    index,
	}
}

// spend counts bytes that a function is about to make.
func (e *execution) spend(n int) error {
	if n > maxMade-e.made {
		return errMade
	}
	e.made += n
	return nil
}

// width matches a number in a format: a width, a precision or the index of an argument.
var width = regexp.MustCompile(`\d+|\*`)

// maxWidth is the largest width that package fmt accepts, and what a * counts.
const maxWidth = 1_000_000

// printf formats its arguments. Each verb counts as one that writes all of them.
func (e *execution) printf(format string, args ...any) (string, error) {
	each := sizeOf(args)
	for _, n := range width.FindAllString(format, -1) {
		wide, err := strconv.Atoi(n)
		if err != nil || wide > maxWidth {
			wide = maxWidth
		}
		if each += wide; each > maxMade {
			return "", errMade
		}
	}
	verbs := 1 + strings.Count(format, "%")
	if each > maxMade/verbs {
		return "", errMade
	}
	if err := e.spend(len(format) + verbs*each); err != nil {
		return "", err
	}
	return fmt.Sprintf(format, args...), nil
}

// sizeOf returns about how many bytes package fmt writes for values, at least.
func sizeOf(v any) int {
	const small = 32
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		n := small
		for _, item := range v {
			n += 1 + sizeOf(item)
		}
		return n
	case map[string]any:
		n := small
		for key, member := range v {
			n += 2 + len(key) + sizeOf(member)
		}
		return n
	}
	return small
}

// index returns a part of a value: of a mapping by its key, of a list by its position from 0.
func index(item any, keys ...any) (any, error) {
	for _, key := range keys {
		switch v := item.(type) {
		case map[string]any:
			name, ok := key.(string)
			if !ok {
				return nil, fmt.Errorf("the key %v is no text", key)
			}
			if item, ok = v[name]; !ok {
				return nil, fmt.Errorf("there is no entry %q", name)
			}
		case []any:
			i, ok := key.(int)
			if !ok || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("a list of %d values has no entry %v", len(v), key)
			}
			item = v[i]
		default:
			return nil, errors.New("only a mapping or a list has entries")
		}
	}
	return item, nil
}
