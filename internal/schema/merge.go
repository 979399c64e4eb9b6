package schema

import (
	"maps"
	"slices"
)

// A Merger merges a schema with the schemas that it refers to. It serves programs that
// build values for a schema. The schemas are decoded values and need not be valid.
type Merger struct {
	Root   any  // the document that references point into
	Choose bool // merge the first schema of each anyOf and oneOf too
	Steps  int  // how many schemas may still be merged; further ones allow everything
}

// maxMerged bounds how deep the references of one schema are followed.
const maxMerged = 12

// Merge returns the keywords of a schema, of the target of its $ref and of the schemas in
// its allOf. The outer schema wins where two have one keyword, except that properties and
// required are united. A reference that leads nowhere allows everything.
func (m *Merger) Merge(schema any) map[string]any { return m.merge(schema, maxMerged) }

func (m *Merger) merge(schema any, depth int) map[string]any {
	in, ok := schema.(map[string]any)
	if m.Steps--; !ok || depth < 0 || m.Steps < 0 {
		return map[string]any{}
	}
	out := maps.Clone(in)
	var parts []any
	if ref, ok := in["$ref"].(string); ok {
		delete(out, "$ref")
		parts = append(parts, Target(m.Root, ref))
	}
	if all, ok := in["allOf"].([]any); ok {
		delete(out, "allOf")
		parts = append(parts, all...)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if some, ok := in[key].([]any); ok && m.Choose && len(some) > 0 {
			parts = append(parts, some[0])
		}
	}
	for _, part := range parts {
		join(out, m.merge(part, depth-1))
	}
	return out
}

// join adds the keywords of another schema to those of into.
func join(into, from map[string]any) {
	for key, v := range from {
		switch old := into[key].(type) {
		case nil:
			into[key] = v
		case map[string]any:
			if more, ok := v.(map[string]any); ok && key == "properties" {
				both := maps.Clone(more)
				maps.Copy(both, old)
				into[key] = both
			}
		case []any:
			if more, ok := v.([]any); ok && key == "required" {
				into[key] = append(slices.Clone(old), more...)
			}
		}
	}
}
