package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/task"
)

// An Assertion says that something never comes to a reader.
//
// As a text it is `X never reaches B` or `X never derives into B`. X is one of
//
//	input NAME, input NAME/path      a named input, or a part of it
//	task REF, task REF/path          the result of a task, by title, key or id, or a part of it
//	NAME                             a property of this name, at any depth of any source
//
// and B is an agent, coordinator, user or the URL of an endpoint. A path is an
// RFC 6901 pointer in which * stands for any element or member; it means what
// is there with all that is in it. A name that has spaces, slashes or the word never
// stands in quotes, written as in JSON; a name of an input or a reader may have
// spaces without them, and ends at the first slash or at never.
//
// What the two claims mean is said at [Reaches] and [Derives].
type Assertion struct {
	Text    string  `json:"text"`           // as it was written
	Line    string  `json:"line,omitempty"` // where, for people
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

// A SubjectKind says what the name of a subject names.
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
	// Reaches denies that an edge delivers the subject to a task of the reader,
	// or shows it to the reader. An input or a task without a path counts as
	// delivered with any part of it, a path where the edge may pass anything at it
	// or in it, a property where a source may have it and the edge may pass that
	// name. An opaque text has no properties, and what a reader itself wrote is not
	// delivered to it.
	Reaches Claim = "reaches"

	// Derives denies that, and that anything comes to the reader which was
	// written by a task that the subject was delivered to, or by one that was
	// delivered what such a task wrote, and so on. Who wrote the subject (the task,
	// or every task whose result may have the property) knows it too, and may
	// tell it in anything that it writes, whatever paths an edge lets through.
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
		path += "/**" // a blank at the end would not be read as its
	}
	return string(s.Kind) + " " + quoted(s.Name, plainName(s.Name)) + path
}

// quoted returns a name as it may be written: as it is if it is plain, or else in quotes.
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

// plainName reports whether a name is read as itself without quotes.
func plainName(name string) bool {
	return name != "" && name[0] != '"' && strings.TrimSpace(name) == name && !strings.ContainsRune(name, '/') && !slices.Contains(strings.Fields(name), never)
}

func plainReader(name string) bool {
	return name != "" && name[0] != '"' && strings.TrimSpace(name) == name
}

func plainProperty(name string) bool {
	return plainName(name) && !strings.ContainsFunc(name, isBlank) && name != string(OfInput) && name != string(OfTask)
}
