package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
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

// duplicate finds an object with a name twice, at any depth of a JSON value.
func duplicate(value []byte) (name string, twice bool) {
	_, err := jsontext.NewDecoder(bytes.NewReader(value)).ReadValue()
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(err, jsontext.ErrDuplicateName) {
		return wrong.JSONPointer.LastToken(), true
	}
	return "", false
}
