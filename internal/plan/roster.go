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
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// A Roster is a checked team. It is immutable and safe for concurrent runs.
type Roster struct {
	Config       Config
	Log          *slog.Logger
	Capabilities []gate.Capabilities       // of each member
	Schemas      []*schema.Schema          // of each member; nil without one
	Parameters   map[string]*schema.Schema // of each tool, by its name
	Rules        *gate.Rulebook            // the compiled policy; nil without one
	Network      Network                   // who may send to whom
	Warnings     task.Problems             // a run starts despite them

	byName map[string]int // lower-cased name to index
	agents *Roster        // without the last member, which performs the tasks without an agent; nil if there is no such member
}

// New returns a roster, or [task.Problems] that list everything wrong with cfg.
func New(cfg Config) (*Roster, error) {
	cfg.Agents, cfg.Endpoints, cfg.Prices, cfg.Edges = slices.Clone(cfg.Agents), maps.Clone(cfg.Endpoints), maps.Clone(cfg.Prices), slices.Clone(cfg.Edges)
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
		subject{found: &found, pointer: "/agents"}.report("a team needs at least one agent", "add one with a name", ErrNoAgents)
	}
	for i := range cfg.Agents {
		t.enroll(i, &found)
	}
	subject{found: &found}.checkLimits(cfg.Limits)
	subject{found: &found}.checkSize("maxMessageBytes", "the message limit", cfg.MaxMessageBytes, mailbox.MaxContent)
	t.Config.MaxMessageBytes = cmp.Or(cfg.MaxMessageBytes, DefaultMessageBytes)
	t.checkCoordinator(&found)
	t.checkEndpoints(&found)
	t.checkPrices(&found)
	t.Parameters = t.Config.checkTools(&found)
	t.Config.checkProcesses(&found)
	t.Config.checkPeople(&found)
	t.Config.checkApprovers(&found)
	t.Network = newNetwork(t, &found)
	found = append(found, t.govern()...)
	checkTransferNames(t, &found)
	if len(found) > 0 {
		return nil, found
	}
	equip(t)
	for i := range t.Capabilities {
		t.Capabilities[i].Tools = slices.Concat(t.Capabilities[i].Tools, t.Network.toolNames(i), t.Network.otherNames(i))
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

// checkAgent reports an agent that cannot work, and sets it to nil, so that nothing more is
// asked of it.
func (s subject) checkAgent(a *agent.Agent) {
	err := ready(*a)
	if err == nil {
		return
	}
	*a = nil
	hint := "set Agent, for instance to agent.New(model, agent.Options{})"
	if err.cause != nil {
		hint = "" // the cause says what to do
	}
	s.report(err.Error(), hint, err)
}

// ready returns why an agent cannot work: it is nil, also as a typed nil, or its method
// Check returns an error. An [agent.LLM] without a model does.
func ready(a agent.Agent) *noAgentError {
	if a == nil {
		return &noAgentError{message: "its Agent is nil"}
	}
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		if v.IsNil() {
			return &noAgentError{message: fmt.Sprintf("its Agent is a nil %T", a)}
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
func (t *Roster) enroll(i int, found *task.Problems) {
	m := &t.Config.Agents[i]
	m.SystemParams, m.OutputTags = slices.Clone(m.SystemParams), slices.Clone(m.OutputTags)
	about := subject{found, naming.Pointer("agents", i), fmt.Sprintf("agent %q", m.Name)}
	if err := naming.CheckName(m.Name); err != nil {
		about.at("name").report(err.Error(), "", err)
	}
	folded := strings.ToLower(m.Name)
	if folded == handoff.Computed {
		about.at("name").report(fmt.Sprintf("%v %s: choose another", naming.ErrReserved, m.Name), "", naming.ErrReserved)
	}
	if first, twice := t.byName[folded]; twice {
		about.at("name").report(fmt.Sprintf("there is already an agent %q", t.Config.Agents[first].Name), "give each agent its own name; names are not case-sensitive", task.ErrDuplicate)
	} else {
		t.byName[folded] = i
	}
	if m.Process() != nil {
		about.at("backend", "command").checkAgent(&m.Agent)
	} else {
		about.checkAgent(&m.Agent)
	}
	about.at("accepts").checkLabel(m.Accepts)
	if m.Produces == nil {
		m.Produces = &m.Accepts
	} else {
		about.at("produces").checkLabel(*m.Produces)
	}
	about.at("maxParallel").checkSign("the limit of parallel attempts", int64(m.MaxParallel))
	about.at("maxSessionMs").checkSign("the session time", int64(m.MaxSession))
	about.checkLimits(m.Limits)
	about.at("maxContextTokens").checkSign("the limit of its context", int64(m.MaxContextTokens))
	about.checkLoops(m.LoopDetection)
	about.checkSpawning(m)
	for j, tag := range m.OutputTags {
		if err := naming.CheckName(tag); err != nil {
			about.at("outputTags", j).report(err.Error(), "", err)
		}
	}
	if m.OutputSchema != nil {
		s, err := schema.Parse(string(m.OutputSchema))
		if err == nil {
			err = s.Unusable()
		}
		if err != nil {
			about.at("outputSchema").report(err.Error(), "write a JSON Schema", err)
		}
		t.Schemas[i] = s
	}
	t.Capabilities[i] = gate.Capabilities{Agent: m.Name, Accepts: m.Accepts, Produces: *m.Produces, OutputTags: m.OutputTags, Tools: m.toolNames(), MaxSession: m.MaxSession, Endpoints: t.endpoints(m)}
}
