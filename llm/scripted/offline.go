package scripted

import (
	"encoding/json"
	"strings"
)

// mark says in an answer that no model wrote it.
const mark = "OFFLINE"

// schemaHeading opens the part of a system prompt that holds the schema of the
// answer: one JSON document, to the end of the part.
const schemaHeading = "## Output schema"

// offline is the answer to a prompt that no reply matches.
func (r *received) offline() string {
	if schema, ok := r.schema(); ok {
		if text, err := json.Marshal(instance(schema)); err == nil {
			return string(text)
		}
	}
	var b strings.Builder
	b.WriteString(mark + ": no model wrote this.")
	if r.Task != "" {
		b.WriteString(" Task: " + r.Task + ".")
	}
	sections := r.sections()
	if len(sections) == 0 {
		b.WriteString(" The prompt had no sections.")
		return b.String()
	}
	b.WriteString(" Sections received:\n")
	for _, s := range sections {
		b.WriteString("- " + s + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// schema returns the schema in the system prompt, if it has one.
func (r *received) schema() (any, bool) {
	at := strings.LastIndex("\n"+r.System, "\n"+schemaHeading+"\n")
	if at < 0 {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(r.System[at+len(schemaHeading):]))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	switch v.(type) {
	case map[string]any, bool:
		return v, true
	}
	return nil, false
}
