// Package schema decides which values a JSON Schema allows, and how much text a
// value that it allows can carry.
//
// [Parse] reads a schema strictly. [Schema.Validate] checks a value; [Schema.Has],
// [Schema.Blocks] and [Schema.Bounded] answer before a run which parts any value
// can have and whether they are too small for free text.
package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// ErrInvalid reports a schema that cannot be used.
var ErrInvalid = errors.New("bad output schema")

// maxReading bounds the bytes of a schema times its levels: the library reads each level again for those
// above it, and cannot be stopped.
const maxReading = 16 << 20

// A Schema is a JSON Schema that was read and resolved. It is immutable and
// safe for concurrent use.
type Schema struct {
	resolved  *jsonschema.Resolved
	canonical string
	source    any // the schema as a decoded value
	root      *node
	nodes     []*node // of all schemas in it

	relaxed func() *Schema // the schema without its guards; nil if it has none
}

// Parse reads a JSON Schema (2020-12, or draft 7). It refuses unknown keywords, which would
// have no effect, and references to other documents, since it fetches nothing. Errors wrap
// [ErrInvalid].
func Parse(raw string) (*Schema, error) {
	v, err := jsonvalue.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	source := v.Value()
	if depth := depthOf(source); depth*len(v.Canonical()) > maxReading {
		return nil, fmt.Errorf("%w: it has %d bytes and %d levels, which together takes too long to read; nest less deeply, or write a shorter one", ErrInvalid, len(v.Canonical()), depth)
	}
	if err := checkKeywords(source, ""); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(v.Canonical()), &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	root, nodes, err := compile(&s)
	if err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	made := &Schema{resolved: resolved, canonical: v.Canonical(), source: source, root: root, nodes: nodes}
	made.relaxed = sync.OnceValue(func() *Schema {
		text := made.Unguarded()
		if text == made.canonical {
			return nil
		}
		r, err := Parse(text)
		if err != nil {
			return nil
		}
		return r
	})
	return made, nil
}

// depthOf returns how deeply a decoded value is nested.
func depthOf(v any) (depth int) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			depth = max(depth, depthOf(member))
		}
	case []any:
		for _, item := range v {
			depth = max(depth, depthOf(item))
		}
	default:
		return 0
	}
	return depth + 1
}

// String returns the schema as canonical JSON.
func (s *Schema) String() string { return s.canonical }

// Validate returns nil if the value matches, or an error with the place and the keyword
// that do not. The error quotes neither the value nor its keys.
// A value with a number of more than [MaxNumber] characters, or one that needs
// more than maxChecks checks, matches no schema. A value on which patterns would take too much work, or to
// which one applies that is too large, cannot be checked; the error names the pattern.
func (s *Schema) Validate(v jsonvalue.Value) error {
	return s.ValidateContext(context.Background(), v)
}

// ValidateContext is Validate with a context. When ctx ends, it returns the cause after at
// most maxChecks checks. It panics if ctx is nil.
func (s *Schema) ValidateContext(ctx context.Context, v jsonvalue.Value) error {
	switch err := s.check(ctx, v.Value()); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case is[*uncheckedError](err):
		return err
	case err != nil:
		return &mismatch{schema: s, value: v.Value(), text: err.Error()}
	}
	err := s.resolved.Validate(native(v.Value()))
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return s.mismatch(v.Value(), err)
	}
	return nil
}

// AllowsType reports whether the schema allows the type of a decoded value at its root.
func (s *Schema) AllowsType(value any) bool { return s.root.types.has(kindOf(value)) }

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
