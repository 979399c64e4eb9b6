// Package people is how the command asks the people of a team: on the terminal of a run, and
// with the commands questions and answer.
package people

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/workdir"
)

// A form is what a question asks for: a text, one value, or the fields of an object.
type form struct {
	schema *schema.Schema // nil for a text
	value  field          // of a schema that describes no object
	fields []field        // of one that does
}

// newForm returns the form of a JSON Schema; empty is a text.
func newForm(raw string) (*form, error) {
	if raw == "" {
		return &form{value: field{kind: kindText}}, nil
	}
	s, err := schema.Parse(raw)
	if err != nil {
		return nil, err
	}
	f := &form{schema: s}
	var described map[string]any
	if json.Unmarshal([]byte(raw), &described) != nil { // true
		f.value = field{kind: kindJSON, required: true}
		return f, nil
	}
	f.value = newField("", described, true)
	properties, _ := described["properties"].(map[string]any)
	if described["type"] != "object" || len(properties) == 0 {
		return f, nil
	}
	var names []string
	required, _ := described["required"].([]any)
	for _, name := range required {
		if text, ok := name.(string); ok && properties[text] != nil {
			names = append(names, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		of, _ := properties[name].(map[string]any)
		one := newField(name, of, slices.Contains(required, any(name)))
		one.bounds = boundsOf(of)
		f.fields = append(f.fields, one)
	}
	f.setOnly(described)
	return f, nil
}

// readFrom makes the paths of files, as @FILE, start from a folder.
func (f *form) readFrom(dir workdir.Dir) {
	f.value.dir = dir
	for i := range f.fields {
		f.fields[i].dir = dir
	}
}

// setOnly finds the fields that are for one choice of the first field: a schema requires them "then",
// and refuses them "else".
func (f *form) setOnly(described map[string]any) {
	var rule struct {
		If struct {
			Properties map[string]struct{ Const any }
		}
		Then struct{ Required []string }
		Else struct{ Properties map[string]any }
	}
	raw, err := json.Marshal(described)
	if err != nil || json.Unmarshal(raw, &rule) != nil || len(rule.If.Properties) != 1 {
		return
	}
	choice, ok := rule.If.Properties[f.fields[0].name].Const.(string)
	for i := range f.fields {
		one := &f.fields[i]
		if ok && slices.Contains(rule.Then.Required, one.name) && rule.Else.Properties[one.name] == false {
			one.only = choice
		}
	}
}

// omitReasonToApprove has the terminal ask for the reason of an approval only if something is refused
// or changed.
func (f *form) omitReasonToApprove() {
	for i := range f.fields {
		if one := &f.fields[i]; one.name == reasonName {
			one.unasked = []string{"yes", "always"}
		}
	}
}

// reasonName is the field for the reason of an answer.
const reasonName = "reason"

// fits returns an error if the texts have a field that is for another choice of the first one, or
// lack one that is for this choice.
func (f *form) fits(texts map[string]string) error {
	for i := range f.fields {
		one, first := &f.fields[i], &f.fields[0]
		_, given := texts[one.name]
		switch chosen := strings.TrimSpace(texts[first.name]) == one.only; {
		case one.only == "" || given == chosen:
		case given:
			return exit.Errorf(exit.KindValidation, "%s is only for %s=%s", one.name, first.name, one.only)
		default:
			return exit.Errorf(exit.KindValidation, "%s is missing: %s=%s needs --set %s=%s", one.name, first.name, one.only, one.name, one.example())
		}
	}
	return nil
}

// set returns the answer whose fields have these texts.
func (f *form) set(texts map[string]string) (string, error) {
	if len(f.fields) == 0 {
		return "", exit.Usagef("--set is for an answer with fields, and this one is %s: write it as an argument", f.value.article())
	}
	values := map[string]any{}
	names := make([]string, len(f.fields))
	for i := range f.fields {
		names[i] = f.fields[i].name
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		i := slices.Index(names, name)
		if i < 0 {
			hint := "the fields are " + format.List(names, len(names))
			if near, ok := naming.Nearest(name, names); ok {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			return "", exit.Errorf(exit.KindValidation, "--set %s: there is no such field; %s", name, hint)
		}
		v, err := f.fields[i].fitting(texts[name])
		if err != nil {
			return "", exit.Errorf(exit.KindValidation, "--set %w", err)
		}
		values[name] = v
	}
	for i := range f.fields {
		one := &f.fields[i]
		if _, given := values[one.name]; one.required && !given { // null may be a choice
			return "", exit.Errorf(exit.KindValidation, "%s is missing: write --set %s=%s", one.name, one.name, one.example())
		}
	}
	if err := f.fits(texts); err != nil {
		return "", err
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	return string(raw), f.check(string(raw))
}

// text returns the answer that a text is: as it is, or the value that it means.
func (f *form) text(given string) (string, error) {
	switch {
	case f.schema == nil && strings.TrimSpace(given) == "":
		return "", exit.Errorf(exit.KindValidation, "the answer is empty")
	case f.schema == nil && !utf8.ValidString(given):
		return "", exit.Errorf(exit.KindValidation, "the answer is not valid UTF-8; write it as text")
	case f.schema == nil:
		return given, nil
	case len(f.fields) > 0 || f.value.kind == kindJSON:
		v, err := jsonvalue.Parse(given)
		switch {
		case err != nil && len(f.fields) > 0 && !strings.HasPrefix(strings.TrimSpace(given), "{"):
			return "", exit.Errorf(exit.KindValidation, "this question has fields: write %s", f.fields[0].setting())
		case err != nil:
			return "", exit.Errorf(exit.KindValidation, "the answer is not JSON: %w", err)
		}
		var texts map[string]json.RawMessage
		if json.Unmarshal([]byte(v.Canonical()), &texts) == nil { // else it does not match the schema
			if err := f.fits(wordsOf(texts)); err != nil {
				return "", err
			}
		}
		return given, f.check(given)
	}
	v, err := f.value.read(given)
	if err != nil {
		return "", exit.Errorf(exit.KindValidation, "%w", err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return string(raw), f.check(string(raw))
}

// wordsOf returns the members of an object as they are written.
func wordsOf(members map[string]json.RawMessage) map[string]string {
	texts := map[string]string{}
	for name, raw := range members {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			texts[name] = wordOf(v)
		}
	}
	return texts
}

// withReason returns the answer with the reason that is given for the record, if it is an object
// whose form has a text for a reason, and it has none.
func (f *form) withReason(answer, reason string) (string, error) {
	isReason := func(one field) bool { return one.name == reasonName && one.kind == kindText }
	if reason == "" || !slices.ContainsFunc(f.fields, isReason) {
		return answer, nil
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(answer), &values); err != nil {
		return "", err
	}
	if _, given := values[reasonName]; given {
		return answer, nil
	}
	values[reasonName], _ = json.Marshal(reason) // a text
	raw, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	return string(raw), f.check(string(raw))
}

// check returns an error if an answer does not match the schema.
func (f *form) check(raw string) error {
	v, err := jsonvalue.Parse(raw)
	if err == nil {
		err = f.schema.Validate(v)
	}
	if err != nil {
		return exit.Errorf(exit.KindValidation, "%w: %s", journal.ErrAnswerForm, schema.Problem(err))
	}
	return nil
}

// arguments returns an example of the arguments that answer the question.
func (f *form) arguments() []string {
	if len(f.fields) == 0 {
		return []string{f.value.example()}
	}
	var args []string
	for i := range f.fields {
		if one := &f.fields[i]; one.required || i == 0 {
			args = append(args, "--set", one.name+"="+one.example())
		}
	}
	return args
}
