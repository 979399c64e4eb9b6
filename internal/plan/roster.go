// Package plan decides what a run would do, and what forbids it.
//
// [New] checks a roster of agents. [Roster.Check] checks the tasks of a run against it
// and returns a [Plan]: the graph with its assignees, the label that each prompt and
// result can have at most, and the grants that the gate will rule on.
package plan

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// A Roster is a checked team. It is immutable and safe for concurrent runs.
type Roster struct {
	Config       Config
	Log          *slog.Logger
	Capabilities []gate.Capabilities // of each member
	Schemas      []*schema.Schema    // of each member; nil without one
	Rules        *gate.Rulebook      // the compiled policy; nil without one
	Warnings     []task.Problem      // nothing that keeps a run from starting

	byName map[string]int // lower-cased name to index
}

// New returns a roster, or [task.Problems] that list everything wrong with cfg.
func New(cfg Config) (*Roster, error) {
	cfg.Agents, cfg.Endpoints, cfg.Prices = slices.Clone(cfg.Agents), maps.Clone(cfg.Endpoints), maps.Clone(cfg.Prices)
	if cfg.Coordinator != nil {
		cfg.Coordinator = new(*cfg.Coordinator)
	}
	t := &Roster{
		Config:       cfg,
		Log:          cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		Capabilities: make([]gate.Capabilities, len(cfg.Agents)),
		Schemas:      make([]*schema.Schema, len(cfg.Agents)),
		byName:       make(map[string]int, len(cfg.Agents)),
	}
	var found task.Problems
	if len(cfg.Agents) == 0 {
		found = append(found, task.Problem{Pointer: "/agents", Message: "a team needs at least one agent", Hint: "add one with a name", Err: ErrNoAgents})
	}
	for i := range cfg.Agents {
		found = append(found, t.enroll(i)...)
	}
	found = append(found, checkLimits("", "", cfg.MaxContextBytes, cfg.MaxPromptBytes)...)
	found = append(found, t.checkCoordinator()...)
	found = append(found, t.checkEndpoints()...)
	found = append(found, t.checkPrices()...)
	found = append(found, t.govern()...)
	if len(found) > 0 {
		return nil, found
	}
	return t, nil
}

// A noAgentError says why an agent cannot work. It wraps [agent.ErrNone].
type noAgentError struct {
	message string
	cause   error // what the agent says of itself, with what to do; nil if there is no agent
}

func (e *noAgentError) Error() string { return e.message }

func (e *noAgentError) Unwrap() []error {
	if e.cause == nil {
		return []error{agent.ErrNone}
	}
	return []error{agent.ErrNone, e.cause}
}

// noAgentHint says what to do about a [noAgentError] that does not say so itself.
func noAgentHint(e *noAgentError) string {
	if e.cause != nil {
		return ""
	}
	return "set Agent, for instance to agent.New(model, agent.Options{})"
}

// ready returns why an agent cannot work: it is nil, also as a typed nil, or says
// so itself. An [agent.LLM] does if it has no model.
func ready(a agent.Agent) *noAgentError {
	if a == nil {
		return &noAgentError{message: "it has no Agent that does the work"}
	}
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		if v.IsNil() {
			return &noAgentError{message: fmt.Sprintf("it has no Agent that does the work: it is a nil %T", a)}
		}
	}
	if asked, ok := a.(interface{ Check() error }); ok {
		if err := asked.Check(); err != nil {
			return &noAgentError{message: "its Agent cannot work: " + err.Error(), cause: err}
		}
	}
	return nil
}

// enroll checks one member and fills its place in the roster.
func (t *Roster) enroll(i int) (found task.Problems) {
	m := &t.Config.Agents[i]
	m.SystemParams, m.OutputTags = slices.Clone(m.SystemParams), slices.Clone(m.OutputTags)
	at := fmt.Sprintf("/agents/%d", i)
	subject := fmt.Sprintf("agent %q", m.Name)
	add := func(key, message, hint string, err error) {
		found = append(found, task.Problem{Pointer: at + key, Subject: subject, Message: message, Hint: hint, Err: err})
	}
	if err := naming.CheckName(m.Name); err != nil {
		add("/name", err.Error(), "", err)
	}
	folded := strings.ToLower(m.Name)
	if first, twice := t.byName[folded]; twice {
		add("/name", fmt.Sprintf("there already is an agent %q", t.Config.Agents[first].Name), "give each agent a name of its own; letter case does not tell names apart", task.ErrDuplicate)
	} else {
		t.byName[folded] = i
	}
	if err := ready(m.Agent); err != nil {
		add("", err.Error(), noAgentHint(err), err)
		m.Agent = nil // so that nothing more is asked of it
	}
	if !m.Accepts.Valid() {
		found = append(found, unknownLabel(at+"/accepts", subject))
	}
	if m.Produces == nil {
		m.Produces = &m.Accepts
	} else if !m.Produces.Valid() {
		found = append(found, unknownLabel(at+"/produces", subject))
	}
	if m.MaxParallel < 0 {
		add("/maxParallel", "must not be negative", "leave it out for no limit", task.ErrInvalid)
	}
	if m.MaxSession < 0 {
		add("/maxSessionMs", "must not be negative", "leave it out for no limit", task.ErrInvalid)
	}
	found = append(found, checkLimits(at, subject, m.MaxContextBytes, m.MaxPromptBytes)...)
	for j, tag := range m.OutputTags {
		if err := naming.CheckName(tag); err != nil {
			add(fmt.Sprintf("/outputTags/%d", j), err.Error(), "", err)
		}
	}
	if m.OutputSchema != nil {
		s, err := schema.Parse(string(m.OutputSchema))
		if err != nil {
			add("/outputSchema", err.Error(), "write a JSON Schema", err)
		}
		t.Schemas[i] = s
	}
	t.Capabilities[i] = gate.Capabilities{Agent: m.Name, Accepts: m.Accepts, Produces: *m.Produces, OutputTags: m.OutputTags, MaxSession: m.MaxSession, Endpoints: t.endpoints(m)}
	return found
}
