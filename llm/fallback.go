package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/oneline"
)

// Fallback returns a model that calls the first of models, and the next one when the
// call fails because of the endpoint: with an [*Error] that is retryable, or one of kind
// "timeout" or "no credit". Any other error ends the call, because it means that the
// request or a setting is wrong, which the answer of another model would hide.
//
// To retry at one endpoint before the next one is called, wrap each model in [Retry].
// The usage of failed calls is added to that of the response or the error. A response
// of a model other than the first has a warning that lists the failed calls. If all
// calls fail, the error lists all failures.
//
// The returned model has the endpoints of all models. Without a model, every call fails
// with [ErrNoModel].
func Fallback(models ...Model) Model {
	models = slices.Clone(models)
	for i, m := range models {
		if m == nil {
			models[i] = ModelFunc(nil)
		}
	}
	switch len(models) {
	case 0:
		return ModelFunc(nil)
	case 1:
		return models[0]
	}
	return &chain{models}
}

// A chain is a model that calls several models in order.
type chain struct{ models []Model }

// Endpoint returns the base URL of all calls if there is only one, else "".
func (c *chain) Endpoint() string {
	all := c.Endpoints()
	if slices.ContainsFunc(all, func(one string) bool { return one != all[0] }) {
		return ""
	}
	return all[0]
}

// Endpoints returns the base URL of each model, in order.
func (c *chain) Endpoints() (all []string) {
	for _, m := range c.models {
		all = append(all, endpoint.All(m)...)
	}
	return all
}

// Call calls the models in order until one answers. A nil ctx is an error.
func (c *chain) Call(ctx context.Context, req Request, emit func(Delta) error) (Response, error) {
	if ctx == nil {
		return Response{}, errNoContext
	}
	var failed chainError
	var spent Usage
	s := &restarts{emit: emit}
	for i, m := range c.models {
		res, err := m.Call(ctx, req, s.begin())
		if err == nil {
			res.Usage = res.Usage.Add(spent)
			res.Endpoint = cmp.Or(res.Endpoint, endpoint.Of(m))
			if i > 0 {
				res.Warnings = append([]string{failed.answeredBy(&res)}, res.Warnings...)
			}
			return res, nil
		}
		e, ok := errors.AsType[*Error](err)
		if ok {
			spent = spent.Add(e.Usage)
		}
		if failed.add(err); !ok || !e.fallsBack() || s.refused != nil || ctx.Err() != nil {
			break
		}
	}
	return Response{}, failed.result(spent)
}

// fallsBack reports whether another endpoint may answer the same request.
func (e *Error) fallsBack() bool {
	return e.Retryable() || e.Kind == callfault.Timeout || e.Kind == callfault.NoCredit
}

// restarts numbers the attempts at several models in one sequence.
type restarts struct {
	emit    func(Delta) error
	last    int // the highest number so far
	refused error
}

// begin returns the emit function for the next model; nil if the call has none.
func (s *restarts) begin() func(Delta) error {
	if s.emit == nil {
		return nil
	}
	before := s.last
	return func(d Delta) error {
		d.Attempt = before + max(d.Attempt, 1)
		s.last = max(s.last, d.Attempt)
		s.refused = s.emit(d)
		return s.refused
	}
}

// A chainError lists the failures of models that were called in order.
type chainError struct {
	errs    []error
	decides error // the failure that errors.Is and errors.As find
}

// add appends a failure.
func (c *chainError) add(err error) { c.errs = append(c.errs, err) }

// result returns the error of the call, whose attempts took spent: the only failure, or
// c if there are several.
func (c *chainError) result(spent Usage) error {
	last := c.errs[len(c.errs)-1]
	if len(c.errs) == 1 {
		return last
	}
	c.decides = last
	if _, ok := errors.AsType[*Error](last); !ok {
		return c // not an error of an endpoint, for instance a canceled context
	}
	// The same call may succeed later if one of the models may answer it then, so the last
	// failure that is not terminal decides.
	var decides *Error
	for _, err := range c.errs {
		if e, _ := errors.AsType[*Error](err); decides == nil || callfault.IsTerminal(decides.Kind) || !callfault.IsTerminal(e.Kind) {
			decides = e
		}
	}
	decides = new(*decides)
	decides.Usage = spent
	c.decides = decides
	return c
}

// Error lists the failures in order.
func (c *chainError) Error() string {
	words := make([]string, len(c.errs))
	for i, err := range c.errs {
		words[i] = err.Error()
	}
	return strings.Join(words, "; fallback: ")
}

// Unwrap returns the failure that decides how callers treat c.
func (c *chainError) Unwrap() error { return c.decides }

// answeredBy returns the warning that says which calls failed and which model answered.
// It does not quote any server.
func (c *chainError) answeredBy(res *Response) string {
	var b strings.Builder
	for _, err := range c.errs {
		e, _ := errors.AsType[*Error](err)
		brief := &Error{Kind: e.Kind, Status: e.Status, Endpoint: e.Endpoint, Model: e.Model}
		b.WriteString(brief.subject() + brief.summary() + "; ")
	}
	switch name, at := oneline.Of(res.Model), oneline.Of(res.Endpoint); {
	case name != "" && at != "":
		fmt.Fprintf(&b, "answered by model %q at %s", name, at)
	case name != "":
		fmt.Fprintf(&b, "answered by model %q", name)
	case at != "":
		fmt.Fprintf(&b, "answered by %s", at)
	default:
		b.WriteString("answered by a fallback model")
	}
	return b.String()
}
