package flow

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// A Finding is the result of checking an assertion. If it does not hold, Path is a
// path of the fewest tasks from the subject to the reader, and Why explains it. If it holds, Why may add a caveat.
type Finding struct {
	Holds bool   `json:"holds"`
	Path  Path   `json:"path,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Check checks an assertion against the graph. What is unknown counts as flowing: an
// assertion holds only if there is no path.
//
// The error is a [task.Problem]. It wraps [task.ErrUnknown] if nothing has the name
// of the subject or the reader, a value at the path or such a property,
// [task.ErrAmbiguous] if several tasks have the name, and [task.ErrInvalid] if the
// assertion is malformed.
func (t *Table) Check(a Assertion) (Finding, error) {
	x, err := t.resolve(a.Subject)
	if err != nil {
		return Finding{}, problem(cmp.Or(a.Text, a.String()), err)
	}
	readers, err := t.readers(a.Reader)
	if err != nil {
		return Finding{}, problem(cmp.Or(a.Text, a.String()), err)
	}
	var way Path
	for _, r := range readers {
		switch {
		case way != nil:
		case a.Claim == Reaches:
			way = t.deliveredPath(&x.subject, r)
		case a.Claim == Derives:
			way = t.derivedPath(&x.subject, r)
		default:
			return Finding{}, problem(cmp.Or(a.Text, a.String()), wrong(fmt.Sprintf("no claim %q", string(a.Claim)), forms))
		}
	}
	if way == nil {
		f := Finding{Holds: true, Why: t.caveat(x, readers)}
		if a.Subject.Kind == Property && f.Why == "" {
			f.Why = t.opaqueCaveat(a.Claim, readers)
		}
		return f, nil
	}
	return Finding{Path: way, Why: t.why(x, way)}, nil
}

// problem returns a problem that [wrong] or [unknown] made as one of an assertion.
func problem(assertion string, err error) error {
	p := err.(task.Problem)
	p.Subject = "assertion " + quoted(assertion, false)
	return p
}

// wrong and unknown return problems that name no assertion yet.
func wrong(message, hint string) error {
	return task.Problem{Message: message, Hint: hint, Err: task.ErrInvalid}
}

func unknown(message, hint string) error {
	return task.Problem{Message: message, Hint: hint, Err: task.ErrUnknown}
}

// readers returns the readers of a name: one, unless the graph lists it several times.
func (w *ways) readers(name string) ([]int, error) {
	var known []string
	var found []int
	for i := range w.g.Readers {
		r := &w.g.Readers[i]
		known = append(known, r.Name)
		if r.Name == name || r.Kind == Endpoint && strings.TrimRight(r.Name, "/") == strings.TrimRight(name, "/") {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		kind, alike := naming.Alike("reader", name, known)
		return nil, unknown("no "+kind+" "+quoted(name, false), naming.Suggest(name, alike))
	}
	return found, nil
}
