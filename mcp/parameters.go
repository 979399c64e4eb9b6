package mcp

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/toolschema"
)

// parametersOf returns the schema that a server gives a tool. Servers write earlier drafts, keywords
// of OpenAPI and of their own, and patterns of JavaScript: of those, what arguments can be checked
// against is kept.
func parametersOf(raw json.RawMessage) json.RawMessage {
	if _, err := schema.Parse(string(raw)); err == nil {
		return raw
	}
	return json.RawMessage(schema.Tolerant(string(toolschema.Plain(raw))))
}
