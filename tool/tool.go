// Package tool declares functions that an agent may call while it works on a task.
//
//	type query struct {
//		Words string `json:"words" jsonschema:"what to look for"`
//	}
//	search, err := tool.New("search", "Searches the product catalog.",
//		func(ctx context.Context, q query) ([]string, error) { return catalog.Find(ctx, q.Words) },
//		tool.Options{Accepts: label.Public})
//
// A team calls a tool only for agents that list it. The gate checks every call: Accepts is
// the clearance for arguments, and Produces the label of results. Results are untrusted. A
// tool raises the label of each task of its agents to at least Produces, whether or not it is
// called.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/toolschema"
	"github.com/runteam/runteam/label"
)

// A Tool is a function that agents may call. [New] makes one from a typed Go function. Run
// must be safe for concurrent use: tasks run in parallel, and so do the calls of one turn if
// Effect is [None]. Do not change a Tool after you pass it to a team.
type Tool struct {
	Name        string          // 1 to 64 letters, digits, _ or -
	Description string          // tells the model what the tool does and when to call it
	Parameters  json.RawMessage // JSON Schema of the arguments; required, and must allow an object; models may get a simpler form of it

	// Run makes one call. It must return when ctx ends; a call that does not is abandoned and
	// keeps running. The agent gets an error as a failed result, with secrets and personal
	// data redacted, and the task continues. A panic is such an error too.
	Run func(ctx context.Context, c Call) (Result, error)

	// Foreign says that the program did not write Name, Description and Parameters, as with
	// an MCP server. Any agent that has such a tool has untrusted context.
	Foreign bool

	// Definition identifies all that the author of a Foreign tool says about it, if Description and Parameters
	// leave out some of that, such as a digest of it. An approval of a call is for one definition.
	Definition string

	// Program is the program of this machine that makes the calls, such as an MCP server over stdio. Nil
	// means that this process makes them, or something on another machine.
	Program *Program

	// ReadsWorkspace says that an agent can read any text file of the workspace with the tool.
	// Results that are longer than MaxOutput are then kept there, and so is what no longer fits
	// into the conversation.
	ReadsWorkspace bool

	Options
}

// A Program is a program of this machine that makes the calls of tools.
type Program struct {
	Name     string // what messages call it, such as the MCP server
	Confined bool   // the kernel keeps it from other programs, from files and from the network
	Reason   string // why one that is not confined may run where a person approves something; empty if nobody said why
}

// ErrUncertain reports an external call that may have taken effect and has no result. If the error of
// [Tool.Run] wraps it and the tool is not Repeatable, the task fails with EFFECTS_UNCERTAIN and is
// not retried.
var ErrUncertain = errors.New("the call may have taken effect")

// A Call is one call of a tool by an agent.
type Call struct {
	// ID can serve as an idempotency key. It is unique to the arguments at one place of a
	// task's conversation: a call that is made again, after a crash or by another attempt at
	// the task, has the same ID. It tells nothing about the arguments.
	ID string

	Arguments json.RawMessage // validated against Parameters, and redacted by the gate

	// Workspace returns the folder of the attempt. The first call creates it, and it is
	// removed when the attempt ends. It is an error if the tool may not read the whole
	// conversation, which is in there. Do not close the Root. The function is safe for
	// concurrent use, and nil outside a team, as in tests.
	Workspace func() (*os.Root, error)

	// Shared holds resources that the calls of one attempt share, such as a connection. It is
	// nil outside a team.
	Shared *Shared
}

// A Result is what a tool returns. The agent gets Text and JSON if both are set.
type Result struct {
	Text    string
	JSON    json.RawMessage       // a structured result
	Label   *label.Classification // level that the tool claims; above Produces, the result is withheld; it never lowers the label
	IsError bool                  // the call failed, and Text says why
}

// Options say what a tool may read, what it returns and what it changes. The zero value
// accepts and produces internal context, and treats every call as an external effect that
// must not be repeated.
type Options struct {
	Accepts  label.Classification  // the most sensitive level of arguments; zero means internal
	Produces *label.Classification // label of results, joined with that of the arguments; nil means Accepts

	Effect Effect // empty means External

	// Repeatable says that an external call may be made again with the same [Call].ID, because
	// the service recognizes the ID or the call is idempotent. Without it, a task whose call
	// was interrupted fails with EFFECTS_UNCERTAIN, and a task that made the call is not
	// retried.
	Repeatable bool

	// Stateful says that a later call, by another task too, may return what an earlier call
	// passed in. Produces must then not be below Accepts.
	Stateful bool

	// State names what a stateful tool keeps. Tools with an equal State share it, as those of
	// one server do, and none may produce less than another accepts. Empty means the name of
	// the tool.
	State string

	// Approve names the member of the team, a person, who is asked before each call; if it is
	// empty, calls need no approval. The person sees the arguments, and the call is made only with
	// exactly these.
	Approve string

	// Readable are files and folders outside the workspace that a confined command of bash of package
	// builtin, or a confined MCP server, may read and execute; absolute paths. Plans show them.
	Readable []string

	Timeout time.Duration // of one call; zero means a minute

	// MaxOutput limits a result in bytes; zero means 32 KiB. An agent that can read its workspace
	// gets the head and the tail of a longer one, and the whole in a file. For any other agent a
	// longer text is cut at the end, and a longer JSON withheld.
	MaxOutput int
}

// An Effect is what a call changes.
type Effect string

// The effects.
const (
	None      Effect = "none"      // reads or computes only, and sends nothing out; calls run in parallel and may be repeated
	Workspace Effect = "workspace" // changes files of the workspace only
	External  Effect = "external"  // anything else, including network reads, which can carry data out; also the empty value
)

// Defaults of [Options].
const (
	DefaultTimeout   = time.Minute
	DefaultMaxOutput = 32 << 10
)

// New returns a tool that calls f. It derives Parameters from In, which must be a struct or a
// map (struct{} for no arguments): json tags name the fields, jsonschema tags describe them,
// and fields without omitempty are required. A string is returned as Text, a [Result] and a
// [json.RawMessage] as they are, and anything else as JSON. f gets its [Call] from [CallFrom].
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
	raw = toolschema.Plain(raw) // with properties, even if there are none
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
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

type callKey struct{} // the context value is a Call

// CallFrom returns the Call that a function passed to [New] is handling. ok is false for any
// other ctx.
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

var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
})

// Check reports what is wrong with t. [New] and the constructor of a team call it.
func (t *Tool) Check() error {
	if t == nil {
		return errors.New("the tool is nil")
	}
	switch {
	case !nameForm().MatchString(t.Name):
		return fmt.Errorf("tool %q: invalid name; use 1 to 64 letters, digits, _ or -", t.Name)
	case t.Run == nil:
		return fmt.Errorf("tool %q: Run is nil", t.Name)
	case !t.Accepts.Valid():
		return fmt.Errorf("tool %q: Accepts: unknown level %v", t.Name, t.Accepts)
	case !t.Level().Valid():
		return fmt.Errorf("tool %q: Produces: unknown level %v", t.Name, t.Level())
	case t.Effect != "" && t.Effect != None && t.Effect != Workspace && t.Effect != External:
		return fmt.Errorf("tool %q: unknown effect %q; use none, workspace or external", t.Name, t.Effect)
	case t.Stateful && t.Level() < t.Accepts:
		return fmt.Errorf("tool %q: Stateful, and Produces (%v) is below Accepts (%v): results could lower the label of arguments; set Produces to %v", t.Name, t.Level(), t.Accepts, t.Accepts)
	case len(t.Readable) > 0 && t.Effect != Workspace && (t.Program == nil || !t.Program.Confined):
		return fmt.Errorf("tool %q: Readable is only for confined commands, whose effect is workspace, and for confined servers; leave it out", t.Name)
	case t.Timeout < 0 || t.MaxOutput < 0:
		return fmt.Errorf("tool %q: Timeout and MaxOutput must not be negative; use zero for the default", t.Name)
	}
	s, err := schema.Parse(string(t.Parameters))
	if err != nil {
		return fmt.Errorf("tool %q: parameters: %w", t.Name, err)
	}
	if err := s.Unusable(); err != nil && !t.Foreign { // calls of a foreign tool fail, which say why
		return fmt.Errorf("tool %q: parameters: %w", t.Name, err)
	}
	if !s.AllowsType(map[string]any{}) {
		return fmt.Errorf("tool %q: parameters: the schema must have type object", t.Name)
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
