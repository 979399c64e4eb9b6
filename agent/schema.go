package agent

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// ErrBadSchema reports an output schema that cannot be used.
var ErrBadSchema = errors.New("bad output schema")

// A Schema is a JSON Schema that was read and resolved. It is immutable and
// safe for concurrent use.
type Schema struct {
	resolved  *jsonschema.Resolved
	canonical string
}

// ParseSchema reads a JSON Schema. References to other documents are refused:
// nothing is fetched.
func ParseSchema(raw string) (*Schema, error) {
	v, err := envelope.ParseJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSchema, err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(v.Canonical()), &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSchema, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSchema, err)
	}
	return &Schema{resolved: resolved, canonical: v.Canonical()}, nil
}

// String returns the schema as canonical JSON.
func (s *Schema) String() string { return s.canonical }

// Validate returns nil if the value matches, and an error that says in one
// line where it does not. The line may quote the value.
func (s *Schema) Validate(v envelope.JSON) error {
	if err := s.resolved.Validate(v.Value()); err != nil {
		return errors.New(llm.OneLine(err.Error()))
	}
	return nil
}

// schemaOf returns the schema that the prompt carries, or nil.
func schemaOf(p prompt.Prompt) (*Schema, error) {
	if p.Schema() == "" {
		return nil, nil
	}
	return ParseSchema(p.Schema())
}
