package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/task"
)

// An Assertion claims that a reader never gets something.
//
// As a text it is `X never reaches B` or `X never derives into B`. X is one of
//
//	input NAME, input NAME/path      a named input, or a part of it
//	task REF, task REF/path          the result of a task, by title, key or id, or a part of it
//	NAME                             a property of this name, at any depth of any source
//
// and B is an agent, coordinator, user or the URL of an endpoint. A path is an
// RFC 6901 pointer in which * is any element or member; it means the value there
// and everything in it. Write a name with spaces, slashes or the word never in
// quotes, as in JSON. Names of inputs and readers may have spaces without quotes,
// and end at the first slash or at never.
//
// [Reaches] and [Derives] explain the two claims.
type Assertion struct {
	Text    string  `json:"text"`           // as it was written
	Line    string  `json:"line,omitempty"` // location, for messages
	Subject Subject `json:"subject"`
	Claim   Claim   `json:"claim"`
	Reader  string  `json:"reader"`
}

// A Subject is what an assertion is about.
type Subject struct {
	Kind SubjectKind `json:"kind"`
	Name string      `json:"name"`           // of the input or the property; the task's title, key or id
	Path task.Path   `json:"path,omitempty"` // within an input or a result; the empty path means all of it
}

// A SubjectKind is the kind of thing that a subject names.
type SubjectKind string

// The kinds of subjects. The zero value is none of them.
const (
	OfInput  SubjectKind = "input"
	OfTask   SubjectKind = "task"
	Property SubjectKind = "property"
)

// A Claim is what an assertion denies.
type Claim string

// The two claims. The zero value is none of them.
const (
	// Reaches denies that the subject is delivered to a task of the reader, or shown
	// to the reader. An input or a task without a path counts as delivered with any
	// part of it, a path if the edge may pass anything at it or in it, and a property
	// if a source may have it and the edge may pass that name. An opaque text has no
	// properties, and what a reader itself wrote is not delivered to it.
	Reaches Claim = "reaches"

	// Derives denies what Reaches denies, and also that the reader gets output of a
	// task to which the subject was delivered, of a task that read such output, and so
	// on. The writer of the subject (its task, or every task whose result may have the
	// property) knows it too, so that all of its output derives from the subject,
	// whatever paths an edge lets pass.
	Derives Claim = "derives into"
)

// String returns the assertion in its canonical form, which [ParseAssertion] reads.
func (a Assertion) String() string {
	return a.Subject.String() + " never " + string(a.Claim) + " " + quoted(a.Reader, plainReader(a.Reader))
}

// String returns the subject as an assertion writes it.
func (s Subject) String() string {
	if s.Kind == Property {
		return quoted(s.Name, plainProperty(s.Name))
	}
	path := string(s.Path)
	if strings.TrimSpace(path) != path {
		path += "/**" // a trailing space would not be read as part of the path
	}
	return string(s.Kind) + " " + quoted(s.Name, plainName(s.Name)) + path
}

// quoted returns a name as it is if it is plain, or else in quotes.
func quoted(name string, plain bool) string {
	if plain {
		return name
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(name); err != nil {
		return fmt.Sprintf("%q", name) // no string fails to encode
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plainName reports whether a name needs no quotes.
func plainName(name string) bool {
	return name != "" && name[0] != '"' && strings.TrimSpace(name) == name && !strings.ContainsRune(name, '/') && !slices.Contains(strings.Fields(name), never)
}

func plainReader(name string) bool {
	return name != "" && name[0] != '"' && strings.TrimSpace(name) == name
}

func plainProperty(name string) bool {
	return plainName(name) && !strings.ContainsFunc(name, isSpace) && name != string(OfInput) && name != string(OfTask)
}
