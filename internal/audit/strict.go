package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// isChained reports whether a line belongs to the chain, or why no file with a chain may have
// it. A name that differs only in case counts, since readers of JSON differ about it.
func isChained(line []byte) (chained bool, why string) {
	if bytes.HasPrefix(line, []byte(before)) {
		return true, ""
	}
	if !json.Valid(line) || bytes.TrimLeft(line, " \t\r")[0] != '{' {
		return false, "it is not a JSON object"
	}
	d := json.NewDecoder(bytes.NewReader(line))
	_, _ = d.Token() // the brace; the line is valid
	for d.More() {
		name, _ := d.Token()
		if text, _ := name.(string); strings.EqualFold(text, "audit") {
			return true, ""
		}
		var skipped json.RawMessage
		_ = d.Decode(&skipped)
	}
	return false, ""
}

// entryOf returns the bytes of the entry in a line that parse accepted.
func entryOf(line []byte) []byte {
	return line[len(before) : len(line)-frame+len(before)]
}

// parse parses a line strictly: only the bytes that encode writes.
func parse(line []byte) (e *entry, sum [sha256.Size]byte, why string) {
	const form = "it does not have the form of a line of the record"
	if len(line) < frame || !bytes.HasPrefix(line, []byte(before)) || !utf8.Valid(line) {
		return nil, sum, form
	}
	tail := line[len(line)-frame+len(before):]
	digits, ok := bytes.CutPrefix(tail, []byte(between))
	digits, closed := bytes.CutSuffix(digits, []byte(after))
	if n, err := hex.Decode(sum[:], digits[:min(len(digits), 2*len(sum))]); !ok || !closed || err != nil || n != len(sum) || !bytes.Equal(bytes.ToLower(digits), digits) {
		return nil, sum, form
	}
	e = &entry{}
	text := entryOf(line)
	if json.Unmarshal(text, e) != nil {
		return nil, sum, form
	}
	if again, err := json.Marshal(e); err != nil || !bytes.Equal(again, text) || !e.isComplete() {
		return nil, sum, form
	}
	if name, twice := duplicate(e.Handoff); twice {
		return nil, sum, fmt.Sprintf("%q occurs twice in its decision", name)
	}
	return e, sum, ""
}

// isComplete reports whether an entry has exactly the members of its kind.
func (e *entry) isComplete() bool {
	opens := e.Run != "" || e.Keyed
	switch e.Kind {
	case opening:
		return e.Seq == 1 && e.Handoff == nil && e.Counts == nil
	case decision:
		return !opens && e.Time.IsZero() && e.Handoff != nil && e.Counts == nil
	case closing:
		return !opens && e.Handoff == nil && e.Counts != nil
	}
	return false
}

// verdictOf returns the verdict and the rule of a decision, by their exact names.
func verdictOf(handoff json.RawMessage) (verdict, rule string, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(handoff, &members) != nil {
		return "", "", false
	}
	if json.Unmarshal(members["verdict"], &verdict) != nil || json.Unmarshal(members["governanceRuleId"], &rule) != nil {
		return "", "", false
	}
	return verdict, rule, true
}

// duplicate finds an object with a name twice, at any depth of a valid JSON value in UTF-8.
// It is not recursive, since the writer chooses the depth.
func duplicate(value []byte) (name string, twice bool) {
	var stack []map[string]bool // the names of each open object; nil of an array
	named := false              // the name of a member of the innermost object was read
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '{':
			stack, named = append(stack, map[string]bool{}), false
		case '[':
			stack = append(stack, nil)
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			named = false
		case '"':
			from := i
			i = endOfString(value, from)
			if top := len(stack) - 1; top >= 0 && stack[top] != nil && !named {
				name, named = unquoted(value[from:i+1]), true
				if stack[top][name] {
					return name, true
				}
				stack[top][name] = true
			}
		}
	}
	return "", false
}

// endOfString returns the index of the closing quotation mark of a string in a valid JSON
// value.
func endOfString(value []byte, open int) int {
	i := open + 1
	for ; value[i] != '"'; i++ {
		if value[i] == '\\' {
			i++
		}
	}
	return i
}

// unquoted returns the value of a valid string.
func unquoted(text []byte) (s string) {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1])
	}
	_ = json.Unmarshal(text, &s) // it is valid
	return s
}
