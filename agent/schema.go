package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/prompt"
)

// ErrBadSchema reports an output schema that cannot be used.
var ErrBadSchema = errors.New("bad output schema")

// A Schema is a JSON Schema that was read and resolved. It is immutable and
// safe for concurrent use.
type Schema struct {
	resolved  *jsonschema.Resolved
	canonical string
	source    any // the schema as a decoded value
	root      *node
	nodes     []*node // all that root can reach

	relaxed func() *Schema // the schema without its guards; nil if it has none
}

// ParseSchema reads a JSON Schema (2020-12, or draft 7). Unknown keywords and
// references to other documents are refused: a keyword without effect would
// let everything through, and nothing is fetched. Errors wrap [ErrBadSchema].
func ParseSchema(raw string) (*Schema, error) {
	v, err := envelope.ParseJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSchema, err)
	}
	if err := checkKeywords(v.Value(), ""); err != nil {
		return nil, err
	}
	if err := checkRecursion(v.Value()); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(v.Canonical()), &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSchema, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSchema, err)
	}
	root, nodes, err := compile(v.Canonical())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSchema, err)
	}
	made := &Schema{resolved: resolved, canonical: v.Canonical(), source: v.Value(), root: root, nodes: nodes}
	made.relaxed = sync.OnceValue(func() *Schema {
		text := made.unguarded()
		if text == made.canonical {
			return nil
		}
		r, err := ParseSchema(text)
		if err != nil {
			return nil
		}
		return r
	})
	return made, nil
}

// String returns the schema as canonical JSON.
func (s *Schema) String() string { return s.canonical }

// Validate returns nil if the value matches, and an error that says where it
// does not and by which keyword. The error quotes neither the value nor its keys.
// A value with a number of more than [MaxNumber] characters, or one that needs
// more than maxChecks checks, matches no schema.
func (s *Schema) Validate(v envelope.JSON) error {
	return s.ValidateContext(context.Background(), v)
}

// ValidateContext does what Validate does, until ctx ends; then it returns its
// cause. The work after that is bounded by maxChecks. It panics if ctx is nil.
func (s *Schema) ValidateContext(ctx context.Context, v envelope.JSON) error {
	switch err := s.check(ctx, v.Value()); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &mismatch{schema: s, value: v.Value(), text: err.Error()}
	}
	if err := s.resolved.Validate(native(v.Value())); err != nil {
		return s.mismatch(v.Value(), err)
	}
	return nil
}

// native returns a decoded value with int64 and float64 in place of
// json.Number, which the validator would take for a string. An integer beyond
// int64 becomes a float64: it still is an integer, and near enough to any bound.
func native(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[key] = native(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = native(item)
		}
		return out
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// schemaOf returns the schema that the prompt carries, or nil.
func schemaOf(p prompt.Prompt) (*Schema, error) {
	if p.Schema() == "" {
		return nil, nil
	}
	return ParseSchema(p.Schema())
}

// replySchema returns the schema that is sent to the endpoint, or nil for text: the output
// schema without its guards, or the prompt's own format schema, which only the endpoint checks.
func replySchema(p prompt.Prompt, s *Schema) json.RawMessage {
	switch schema := p.FormatSchema(); {
	case s != nil:
		return json.RawMessage(s.unguarded())
	case schema != "":
		return json.RawMessage(schema)
	}
	return nil
}
