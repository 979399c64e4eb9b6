// Package tool declares functions that an agent may call while it works on a task.
//
//	type query struct {
//		Words string `json:"words" jsonschema:"what to look for"`
//	}
//	search, err := tool.New("search", "Searches the product catalog.",
//		func(ctx context.Context, q query) ([]string, error) { return catalog.Find(ctx, q.Words) },
//		tool.Options{Accepts: label.Public})
//
// A team calls a tool only for an agent that lists it. What the agent passes to the tool, and
// what the tool returns, goes through the gate like any other context: a tool is a reader
// with a clearance, and a source of results with a label. Results are untrusted.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
)

// A Tool is a function that agents may call. [New] makes one of a Go function with typed
// arguments. A Tool must be safe for concurrent use, and must not change once a team has it.
type Tool struct {
	Name        string          // 1 to 64 letters, digits, _ or -
	Description string          // tells the model what the tool does and when to call it
	Parameters  json.RawMessage // JSON Schema of the arguments; it describes an object

	// Run makes one call. Its error goes to the agent as a result that is marked as an
	// error, with secrets and personal data redacted; it does not fail the task.
	Run func(ctx context.Context, c Call) (Result, error)

	// Foreign says that a server wrote the definition. An agent that reads it has untrusted
	// context.
	Foreign bool

	Options
}

// A Call is what a tool gets.
type Call struct {
	// ID identifies the call. It is unique, and the same if the call is made again after a
	// crash, so it can serve as an idempotency key.
	ID string

	Arguments json.RawMessage // they match Parameters, in the form that passed the gate

	// Workspace returns the folder of the task, which is made for the first call that asks
	// for it and removed when the attempt at the task ends. The tool must not close it. It is
	// nil if nobody provides a folder.
	Workspace func() (*os.Root, error)

	// Shared holds what the calls of one task have in common, such as a connection to a
	// server. It is never nil when a team makes the call.
	Shared *Shared
}

// A Result is what a tool returns to the agent. Text and JSON may both be set.
type Result struct {
	Text    string
	JSON    json.RawMessage       // a structured result
	Label   *label.Classification // nil means what the tool produces; a result above that is withheld
	IsError bool                  // the call failed, and Text says why
}

// Options say what a tool may read, what it returns and what it changes. The zero value is
// the most careful: internal context, and effects that cannot be undone.
type Options struct {
	Accepts  label.Classification  // the most sensitive level of arguments; zero means internal
	Produces *label.Classification // the most sensitive level of results; nil means Accepts

	Effect Effect // empty means External

	// Repeatable says that an external call may be made twice with the same ID, as with a
	// service that takes an idempotency key. Otherwise a task whose call was interrupted by
	// a crash fails, since nobody can know whether the call took effect.
	Repeatable bool

	// Stateful says that the tool keeps something between calls that a later call can read,
	// so that what one task passes to it may reach every other task that calls it. What it
	// produces must then be at least what it accepts.
	Stateful bool

	Timeout   time.Duration // of one call; zero means a minute
	MaxOutput int           // bytes of a result that the agent gets; the rest is cut. Zero means 32 KiB
}

// An Effect is what a call changes.
type Effect string

// The effects.
const (
	None      Effect = "none"      // it only computes: the call can be repeated
	Workspace Effect = "workspace" // it changes files of the task's workspace only
	External  Effect = "external"  // it reaches anything else, the network included
)

// Defaults of [Options].
const (
	DefaultTimeout   = time.Minute
	DefaultMaxOutput = 32 << 10
)

// New returns a tool that calls f. The JSON Schema of its arguments comes from the type In,
// which must be a struct or a map: field names from json tags, descriptions from jsonschema
// tags, and each field without omitempty is required. The result is a text if Out is a
// string, a [Result] as it is, and JSON otherwise.
//
// f finds the [Call] with [CallFrom].
func New[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error), o Options) (*Tool, error) {
	if f == nil {
		return nil, fmt.Errorf("tool %q: the function is nil", name)
	}
	parameters, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", name, err)
	}
	raw, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", name, err)
	}
	t := &Tool{Name: name, Description: description, Parameters: raw, Options: o}
	t.Run = func(ctx context.Context, c Call) (Result, error) {
		var in In
		if err := json.Unmarshal(c.Arguments, &in); err != nil {
			return Result{}, fmt.Errorf("arguments: %w", err)
		}
		out, err := f(context.WithValue(ctx, callKey{}, c), in)
		if err != nil {
			return Result{}, err
		}
		return resultOf(out)
	}
	return t, t.Check()
}

type callKey struct{} // the context value is a Call

// CallFrom returns the call that a function given to [New] serves.
func CallFrom(ctx context.Context) (c Call, ok bool) {
	c, ok = ctx.Value(callKey{}).(Call)
	return c, ok
}

// resultOf returns what a function returned as a result.
func resultOf(out any) (Result, error) {
	switch out := out.(type) {
	case Result:
		return out, nil
	case string:
		return Result{Text: out}, nil
	case json.RawMessage:
		return Result{JSON: out}, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	return Result{JSON: raw}, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Check returns an error that says what is wrong with the tool. A team checks its tools.
func (t *Tool) Check() error {
	if t == nil {
		return errors.New("the tool is nil")
	}
	switch {
	case !nameForm.MatchString(t.Name):
		return fmt.Errorf("tool %q: a name has 1 to 64 letters, digits, _ or -", t.Name)
	case t.Run == nil:
		return fmt.Errorf("tool %q: Run is nil", t.Name)
	case !t.Accepts.Valid():
		return fmt.Errorf("tool %q: Accepts is no level: %v", t.Name, t.Accepts)
	case !t.Level().Valid():
		return fmt.Errorf("tool %q: Produces is no level: %v", t.Name, t.Level())
	case t.Effect != "" && t.Effect != None && t.Effect != Workspace && t.Effect != External:
		return fmt.Errorf("tool %q: unknown effect %q; write none, workspace or external", t.Name, t.Effect)
	case t.Stateful && t.Level() < t.Accepts:
		return fmt.Errorf("tool %q keeps state, accepts %v and produces %v: what it is given could be returned with a lower label; set Produces to %v", t.Name, t.Accepts, t.Level(), t.Accepts)
	}
	s, err := schema.Parse(string(t.Parameters))
	if err != nil {
		return fmt.Errorf("tool %q: parameters: %w", t.Name, err)
	}
	if !s.AllowsType(map[string]any{}) {
		return fmt.Errorf("tool %q: parameters: the schema does not describe an object", t.Name)
	}
	return nil
}

// Level returns the most sensitive level of results.
func (o *Options) Level() label.Classification {
	if o.Produces == nil {
		return o.Accepts
	}
	return *o.Produces
}
