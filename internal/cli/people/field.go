package people

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/workdir"
)

// A field is a value that a person gives.
type field struct {
	name     string
	about    string // from the schema
	kind     string // text, number, yes or no, choice, or JSON
	choices  []any
	of       string // what a list of JSON has, from the schema
	list     bool
	required bool
	bounds   *schema.Schema // of the value, such as its length; nil if it has none of its own
	only     string         // the choice of the first field that the field is for, and needs; empty for all
	unasked  []string       // the choices of the first field after which the terminal does not ask for the field
	dir      workdir.Dir    // where the path of a file starts
}

// The kinds of fields.
const (
	kindText   = "text"
	kindNumber = "number"
	kindYesNo  = "yes or no"
	kindChoice = "choice"
	kindJSON   = "JSON"
)

// newField returns the field that a schema describes.
func newField(name string, of map[string]any, required bool) field {
	f := field{name: name, kind: kindJSON, required: required}
	f.about, _ = of["description"].(string)
	if fixed, ok := of["const"]; ok {
		f.kind, f.choices = kindChoice, []any{fixed}
		return f
	}
	if f.choices, _ = of["enum"].([]any); len(f.choices) > 0 {
		f.kind = kindChoice
		return f
	}
	switch of["type"] {
	case "array":
		items, _ := of["items"].(map[string]any)
		f.list = true
		f.of, _ = items["title"].(string)
	case "string":
		f.kind = kindText
	case "boolean":
		f.kind = kindYesNo
	case "number", "integer":
		f.kind = kindNumber
	}
	return f
}

// hint says what may be written for a field.
func (f *field) hint() string {
	switch f.kind {
	case kindChoice:
		return strings.Join(f.words(), ", ")
	case kindYesNo:
		return "yes or no"
	case kindNumber:
		return "a number"
	case kindJSON:
		text := "JSON"
		if f.list {
			text = "a JSON list"
		}
		if f.of != "" {
			text += " of " + f.of
		}
		return text
	}
	return "text"
}

// words returns the choices as they are written.
func (f *field) words() []string {
	words := make([]string, len(f.choices))
	for i, c := range f.choices {
		words[i] = wordOf(c)
	}
	return words
}

// wordOf returns how a value is written.
func wordOf(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	raw, _ := json.Marshal(v) // of a value that was JSON
	return string(raw)
}

// example returns a value for a suggested command.
func (f *field) example() string {
	switch f.kind {
	case kindChoice:
		return f.words()[0]
	case kindYesNo:
		return "yes"
	case kindNumber:
		return "1"
	case kindJSON:
		if f.name != "" {
			return "@" + f.name + ".json"
		}
	}
	return "…"
}

// contents returns the text of a field of JSON, which @FILE has read from a file. A text of another kind
// can begin with @.
func (f *field) contents(text string) (string, error) {
	path, isFile := strings.CutPrefix(strings.TrimSpace(text), "@")
	if !isFile {
		return text, nil
	}
	file, err := f.dir.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(io.LimitReader(file, journal.MaxAnswer+1))
	return string(raw), err
}

// read returns the value that a text means.
func (f *field) read(text string) (any, error) {
	wrong := func() error {
		if f.name == "" {
			return fmt.Errorf("%q is not %s", text, f.article())
		}
		return fmt.Errorf("%s: %q is not %s", f.name, text, f.article())
	}
	switch f.kind {
	case kindText:
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%s: the text is not valid UTF-8", cmp.Or(f.name, "the answer"))
		}
		return text, nil
	case kindChoice:
		if i := slices.Index(f.words(), strings.TrimSpace(text)); i >= 0 {
			return f.choices[i], nil
		}
		return nil, wrong()
	case kindYesNo:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "yes", "y", "true":
			return true, nil
		case "no", "n", "false":
			return false, nil
		}
		return nil, wrong()
	}
	words, err := f.contents(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	v, err := jsonvalue.Parse(words)
	switch {
	case err != nil:
		return nil, wrong()
	case f.list && !strings.HasPrefix(v.Canonical(), "["):
		return nil, fmt.Errorf("%s must be %s", cmp.Or(f.name, "the answer"), f.hint())
	}
	return json.RawMessage(v.Canonical()), nil
}

// article says what a value must be.
func (f *field) article() string {
	if f.kind == kindChoice {
		return "one of " + f.hint()
	}
	return f.hint()
}

// setting says how the field is set: with its first choice after "no", and the others.
func (f *field) setting() string {
	text, rest := "--set "+f.name+"="+f.example(), []string(nil)
	if f.kind == kindChoice {
		words := f.words()
		if i := slices.Index(words, "yes"); i > 0 {
			words[0], words[i] = words[i], words[0]
		}
		text, rest = "--set "+f.name+"="+words[0], words[1:]
	}
	if len(rest) > 0 {
		text += " (or " + strings.Join(rest, ", ") + ")"
	}
	return text
}
