package specfile

import (
	"fmt"
	"strings"
)

// A Problem is one thing that is wrong with a file, or a warning.
type Problem struct {
	File    string `json:"file,omitempty"`   // path as the user wrote it, without secrets; empty for an option
	Line    int    `json:"line,omitempty"`   // from 1; zero when the problem has no place in a file
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to write instead; may be empty
	Excerpt string `json:"-"`              // the lines around the place, with a caret, without secrets; may be empty
	Err     error  `json:"-"`              // the condition, for errors.Is; may be nil
}

// At returns the place of the problem: "team.yaml:3:5", a file alone, or nothing.
func (p Problem) At() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error returns "file:line:column: message", and excerpt and hint on further lines.
func (p Problem) Error() string {
	var b strings.Builder
	if at := p.At(); at != "" {
		b.WriteString(at + ": ")
	}
	b.WriteString(p.Message)
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	if p.Hint != "" {
		b.WriteString("\n  hint: " + p.Hint)
	}
	return b.String()
}

// Unwrap returns the condition.
func (p Problem) Unwrap() error { return p.Err }

// An Error lists everything that is wrong with a spec, file by file in the
// order of the text. It is never empty.
type Error struct{ Problems []Problem }

// Error lists the problems, one after the other.
func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the problems one by one, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}
