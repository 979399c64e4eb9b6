package people

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
)

// boundsOf returns the schema of a field; nil for one that refers to other parts of the schema, by
// which only the whole answer is checked.
func boundsOf(of map[string]any) *schema.Schema {
	raw, err := json.Marshal(of)
	if err != nil || of == nil {
		return nil
	}
	s, err := schema.Parse(string(raw))
	if err != nil {
		return nil
	}
	return s
}

// fitting returns the value that a text means, if it is within the bounds of the field.
func (f *field) fitting(text string) (any, error) {
	value, err := f.read(text)
	if err != nil || f.bounds == nil {
		return value, err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	v, err := jsonvalue.Parse(string(raw))
	if err != nil {
		return nil, err
	}
	if err := f.bounds.Validate(v); err != nil {
		return nil, fmt.Errorf("%s: %s", f.name, strings.TrimPrefix(schema.Problem(err), "the whole value: "))
	}
	return value, nil
}
