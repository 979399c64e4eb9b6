// Package toolschema decides in which form the schema of a tool is sent to a provider.
//
//	s := toolschema.New(parameters)
//	form := s.Form(toolschema.Full)
//	description, parameters := form.Function(description)
//	arguments := form.Original(reply.Arguments)
//
// Providers take less than JSON Schema allows: OpenAI wants an object with properties and no
// combination at the top (platform.openai.com/docs/guides/function-calling), Anthropic limits the
// names of properties (docs.anthropic.com/en/docs/agents-and-tools/tool-use), and Gemini knows a
// subset of OpenAPI (ai.google.dev/api/caching#Schema). Whatever a form changes, [Form.Original]
// undoes in the arguments, so that only the wire sees it. A form never allows less than the schema:
// whoever makes the call validates its arguments against the schema itself.
package toolschema

import (
	"encoding/json"
	"sync"
)

// A Schema is the schema of the arguments of a tool. It is safe for concurrent use.
type Schema struct {
	raw   json.RawMessage
	forms [Levels]func() *Form
}

// New returns the forms of a schema. What is no JSON object is taken for a schema without
// keywords. New keeps raw, which must not be changed.
func New(raw json.RawMessage) *Schema {
	s := &Schema{raw: raw}
	for l := range s.forms {
		s.forms[l] = sync.OnceValue(func() *Form { return s.form(Level(l)) })
	}
	return s
}

// Form returns the form of a level from [Full] to [Described]. It is made once.
func (s *Schema) Form(l Level) *Form { return s.forms[l]() }

// form makes a form.
func (s *Schema) form(l Level) *Form {
	root, err := parse(s.raw)
	if err != nil {
		root = &object{}
	}
	switch l {
	case Full:
		b := newBuilder(root, nameOfProviders)
		if b.namesMatter() {
			b.sent, b.original = nil, nil
		}
		f := b.form()
		if f.parameters = s.raw; b.changed || err != nil {
			f.parameters = appendValue(make([]byte, 0, len(s.raw)+64), b.top)
		}
		return f
	case Described:
		return describedForm(root)
	}
	b := newBuilder(root, nameOfVariables)
	f := b.form()
	top := simplify(b.top, l)
	f.parameters = appendValue(nil, top)
	if f.note != "" {
		f.describe(top, f.note)
	}
	return f
}

// Plain returns a schema in the terms of JSON Schema 2020-12: earlier drafts and nullable of OpenAPI
// are written in its keywords, and references by name as pointers. Names, combinations and types at
// the top stay. What is no JSON is returned as it is.
func Plain(raw json.RawMessage) json.RawMessage {
	root, err := parse(raw)
	if err != nil {
		return raw
	}
	b := newBuilder(root, func(string) bool { return true })
	b.build()
	b.setReferences()
	walk(b.top, func(o *object) {
		if isLiteral(o.remove("nullable"), "true") {
			o.allowNull()
		}
	})
	return appendValue(nil, b.top)
}
