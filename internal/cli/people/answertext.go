package people

import (
	"encoding/json"
	"maps"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/runstate"
)

// AnswerText returns the text of the answer to a question: its fields as a program has them, or a text
// if fields is nil. It reads no file.
func AnswerText(q *runstate.Question, fields map[string]any, text, reason string) (string, error) {
	return answerOf(q, reason, func(f *form) (string, error) {
		if fields == nil {
			return f.text(text)
		}
		values, err := f.values(fields)
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(values)
		if err != nil {
			return "", err
		}
		return f.text(string(raw))
	})
}

// values returns the values of fields, which may be written as texts, as by a page.
func (f *form) values(given map[string]any) (map[string]any, error) {
	values := maps.Clone(given)
	for i := range f.fields {
		one := &f.fields[i]
		text, isText := values[one.name].(string)
		if !isText || one.kind == kindText {
			continue
		}
		if one.kind == kindJSON {
			if v, err := jsonvalue.Parse(text); err == nil { // never the file that @FILE names
				values[one.name] = json.RawMessage(v.Canonical())
			}
			continue
		}
		v, err := one.read(text)
		if err != nil {
			return nil, exit.Errorf(exit.KindValidation, "%w", err)
		}
		values[one.name] = v
	}
	return values, nil
}
