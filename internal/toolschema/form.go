package toolschema

import "encoding/json"

// A Level says how simple a form is.
type Level int

// The levels, from the usual form to the simplest.
const (
	Full      Level = iota // an object with properties, and no combination at its top
	Known                  // and only keywords that all providers know, without references
	Unbounded              // and without format, pattern, bounds and nullable
	Described              // any object; the description has the schema
	Levels                 // how many levels there are
)

// A Form is a schema as it is sent, and how arguments are written for it. It is immutable.
type Form struct {
	parameters json.RawMessage
	note       string            // what the description adds; empty if the parameters say all
	described  json.RawMessage   // the parameters with the note
	wrapper    string            // the property that holds the arguments; empty if they are the object itself
	sent       map[string]string // the names of members that differ, by the original name
	original   map[string]string // the same by the name that is sent
}

// maxFunctionDescription is how many bytes of a description of a function OpenAI takes
// (platform.openai.com/docs/api-reference/chat/create). Descriptions in a schema may be longer.
const maxFunctionDescription = 1024

// Function returns the description and the parameters of a function that has this description.
// The parameters must not be changed.
func (f *Form) Function(description string) (string, json.RawMessage) {
	switch {
	case f.note == "":
		return description, f.parameters
	case description == "" && len(f.note) <= maxFunctionDescription:
		return f.note, f.parameters
	case len(description)+2+len(f.note) <= maxFunctionDescription:
		return description + "\n\n" + f.note, f.parameters
	}
	return description, f.described
}

// describe adds a note to the description.
func (f *Form) describe(top *object, note string) {
	f.note = note
	with := &object{append([]member(nil), top.members...)}
	if text, ok := textOf(top.get("description")); ok && text != "" {
		note = text + "\n\n" + note
	}
	with.set("description", text(note))
	f.described = appendValue(nil, with)
}

// Sent returns arguments for the schema as they are written for the form. What is no JSON is
// returned as it is.
func (f *Form) Sent(arguments string) string {
	if f.wrapper == "" && len(f.sent) == 0 {
		return arguments
	}
	v, err := parse([]byte(arguments))
	if err != nil {
		return arguments
	}
	v = renamed(v, f.sent)
	if f.wrapper != "" {
		v = &object{[]member{{f.wrapper, v}}}
	}
	return string(appendValue(nil, v))
}

// Original returns the arguments that a model wrote for the form as they are for the schema.
// Models do not always follow a form, so arguments that are not in it are returned as they are.
func (f *Form) Original(arguments string) string {
	if f.wrapper == "" && len(f.sent) == 0 {
		return arguments
	}
	v, err := parse([]byte(arguments))
	if err != nil {
		return arguments
	}
	if o := objectOf(v); f.wrapper != "" && o != nil && len(o.members) == 1 && o.members[0].name == f.wrapper {
		v = o.members[0].value
	}
	return string(appendValue(nil, renamed(v, f.original)))
}
