package synth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/envelope"
)

// find returns the JSON array or object that a reply consists of or holds. It
// looks at the whole text, then at its json fences, at its bare fences, at the
// outermost array and at the outermost object, and takes the first that is
// strict JSON. Where several fences of one kind are, it takes none: which of
// them is the plan would be a guess.
func find(text string) (any, error) {
	text = strings.TrimSpace(text)
	named, bare := fences(text)
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
		v, err := envelope.DecodeJSON(text)
		if err == nil {
			found = append(found, v)
		} else if fault == nil {
			fault = err
		}
	}
	return found, fault
}

// fences returns what stands in the code fences of a text: in those marked
// json, and in those without a mark. A fence is opened and closed by lines
// that begin with three backquotes or more, so backquotes within a JSON string,
// which has no line breaks, close none. One that is not closed runs to the end.
func fences(text string) (named, bare []string) {
	if !strings.Contains(text, "```") {
		return nil, nil
	}
	ticks, info, start := 0, "", 0 // of the open fence
	put := func(end int) {
		switch body := strings.TrimSpace(text[start:end]); info {
		case "json":
			named = append(named, body)
		case "":
			bare = append(bare, body)
		}
	}
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		next := min(at+len(line)+1, len(text))
		n, mark := fenceLine(line)
		switch {
		case ticks == 0 && n > 0:
			ticks, info, start = n, mark, next
		case ticks > 0 && n >= ticks && mark == "":
			put(at)
			ticks = 0
		}
		at = next
	}
	if ticks > 0 {
		put(len(text))
	}
	return named, bare
}

// fenceLine returns the number of backquotes, three or more, that a line
// begins with, and what follows them in lower case; 0 if it is no fence.
func fenceLine(line string) (ticks int, info string) {
	line = strings.TrimSpace(line)
	rest := strings.TrimLeft(line, "`")
	ticks = len(line) - len(rest)
	if ticks < 3 || strings.Contains(rest, "`") {
		return 0, ""
	}
	return ticks, strings.ToLower(strings.TrimSpace(rest))
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
		if text[i] == '[' && strings.HasPrefix(strings.TrimLeft(text[i+1:], jsonBlanks), "{") {
			start = i
			break
		}
	}
	for i := len(text) - 1; i > start; i-- {
		if text[i] == ']' && strings.HasSuffix(strings.TrimRight(text[:i], jsonBlanks), "}") {
			end = i
			break
		}
	}
	if start < 0 || end < 0 {
		return strings.IndexByte(text, '['), strings.LastIndexByte(text, ']')
	}
	return start, end
}

// jsonBlanks are the blanks of JSON.
const jsonBlanks = " \t\r\n"
