package agent

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/prompt"
)

// schemaOf returns the schema that the prompt carries, or nil.
func schemaOf(p prompt.Prompt) (*schema.Schema, error) {
	if p.Schema() == "" {
		return nil, nil
	}
	return schema.Parse(p.Schema())
}

// replySchema returns the schema that is sent to the endpoint, or nil for text: the output
// schema without its guards, or the prompt's own format schema, which only the endpoint checks.
func replySchema(p prompt.Prompt, s *schema.Schema) json.RawMessage {
	switch format := p.FormatSchema(); {
	case s != nil:
		return json.RawMessage(s.Unguarded())
	case format != "":
		return json.RawMessage(format)
	}
	return nil
}
