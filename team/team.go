// Package team carries a goal or a graph of tasks to a result.
//
// A [Team] is a roster of agents. [Team.Plan] says before anything runs which
// agent will read what at which label, or everything that is wrong;
// [Team.RunTasks] runs the same plan. Each attempt at a task follows one road:
// a handshake fixes a contract, the gate seals what the contract grants,
// [prompt.Build] writes the prompt from what was sealed, the agent answers,
// and the gate turns the answer into an envelope.
package team

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// Agent is what a team needs from whatever does the work. Run must return when
// ctx ends and be safe for concurrent use: one agent may work on several tasks
// at once. For an agent written in Go it is a contract, not something the team
// can enforce, that the reply depends on the prompt alone.
//
// An [agent.LLM] pays its model calls from the budgets of the run. An agent written in
// Go should call models through [agent.Metered]. The usage in its reply covers all its
// calls, including metered ones; usage beyond those is paid afterwards. Calls that are
// neither metered nor reported are in no usage and no budget.
type Agent interface {
	Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error)
}

// AgentFunc lets a function be an [Agent]. A function that calls a model calls it as
// agent.Metered(ctx, model), see [agent.Metered], so that budgets hold for the call.
type AgentFunc func(ctx context.Context, p prompt.Prompt) (agent.Reply, error)

// Run calls f.
func (f AgentFunc) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	if f == nil {
		return agent.Reply{}, ErrNoAgent
	}
	return f(ctx, p)
}

// A Member is an agent and what the gate must know of it. Name and Agent are required.
type Member struct {
	Name  string
	Agent Agent

	SystemPrompt string
	SystemParams []task.Param    // which bytes of SystemPrompt came from parameters
	OutputSchema json.RawMessage // for tasks without one of their own; nil means free text

	Accepts    label.Classification  // the most sensitive level that it may read
	Produces   *label.Classification // the most sensitive level that it may write; nil means Accepts
	OutputTags []string              // tags that its results may carry

	// Handoff is what it gets of what other agents make where no rule of the
	// policy states a mode. It may narrow [handoff.Policy].Default, and not widen
	// it; empty narrows nothing.
	Handoff handoff.Mode

	MaxContextBytes int // as of [Config]; zero means the team's
	MaxPromptBytes  int // as of [Config]; zero means the team's

	MaxSession  time.Duration // longest time that the agent may work on one attempt, and that a task may ask for; zero means no limit
	MaxParallel int           // attempts at the same time; zero means as many as the run allows

	// MaxTokenBudget and MaxCostBudget bound the model calls of this agent in a run, in
	// addition to the budgets of [RunOptions]; zero means no bound. A task whose call does
	// not fit into a budget of its agent fails, and the run continues.
	MaxTokenBudget int
	MaxCostBudget  llm.Money

	// Endpoint is the base URL that its prompts are sent to. Empty means what
	// the Agent's own method Endpoint() string says. An agent that has one but
	// does not know, such as an [agent.LLM] over a model that names no endpoint,
	// counts as one of unknown clearance, up to confidential. An agent without
	// such a method, such as an [AgentFunc], counts as one that sends its
	// prompts nowhere.
	//
	// An agent with several endpoints, such as an [agent.LLM] with a fallback, has a
	// method Endpoints() []string that lists them. Each of them is a reader, and the
	// lowest of their clearances applies. Endpoint then replaces the first one.
	Endpoint string

	// EndpointName is what plans, decisions and records call that endpoint, for a
	// base URL that should not be shown. Empty means the base URL itself.
	EndpointName string

	// FallbackNames are the EndpointNames of the endpoints after the first, in the order
	// of the agent's method Endpoints.
	FallbackNames []string

	// Version names everything beside the prompt that the answers depend on: the
	// model, its endpoint, the parameters of a call, the program. Empty means what
	// the Agent's own method Version() string says. Without one, what it answers is
	// taken by no other run; see [RunOptions].Reuse.
	Version string
	Reuse   task.Reuse // whether its answers may be those of earlier runs

	// What an agent is known by: to people, to whoever picks an agent for a task
	// without an assignee (see [RunOptions].Strategy), and to the coordinator.
	Model        string
	Provider     string // such as openai; matched by a task's requires
	Description  string
	Capabilities []string
	Origin       task.Position
}

// Config is what a team is made of.
type Config struct {
	Name   string
	Agents []Member // at least one; the order is the roster's

	Coordinator *Coordinator // who plans and answers goals; nil for a team that only runs tasks

	// Endpoints are the clearances of endpoints by base URL. One that is not
	// named here accepts what is secret if it is on this machine, and else what
	// is confidential.
	Endpoints map[string]label.Classification

	// Policy governs what crosses between the members; nil narrows nothing. It
	// grants nothing that tasks do not.
	Policy *handoff.Policy

	// Prices are the prices of models, by the name that their endpoints know. A model
	// without a name has the price of [Member].Model. Only cost budgets need prices.
	Prices map[string]llm.Price

	// MaxContextBytes limits one piece of context in a prompt: the result of a
	// dependency, an input or a message. A longer text is cut, which the prompt and
	// the run's result say; a longer structured value is withheld. The limit that
	// is set nearest to the piece counts: on the dependency or the input, on the
	// agent, here. Zero means 256 KiB, and 64 KiB for a dependency that is
	// delivered as structured or both. At most 4 MiB.
	MaxContextBytes int

	// MaxPromptBytes limits the user message of a prompt. In a longer one all texts
	// are cut to one common length. An agent's own limit counts first. Zero means
	// 512 KiB. At most 4 MiB.
	MaxPromptBytes int

	Logger *slog.Logger // nil discards; receives names and counts, never payloads
}

// A Team is a checked roster. It is immutable and safe for concurrent runs.
type Team struct {
	config Config
	byName map[string]int // lower-cased name to index
	caps   []handoff.Capabilities
	schema []*agent.Schema // of each member; nil without one
	log    *slog.Logger
	edges  *termbook

	warnings []task.Problem // nothing that keeps a run from starting
}

// New returns a team, or [task.Problems] that list everything wrong with cfg.
func New(cfg Config) (*Team, error) {
	cfg.Agents, cfg.Endpoints, cfg.Prices = slices.Clone(cfg.Agents), maps.Clone(cfg.Endpoints), maps.Clone(cfg.Prices)
	if cfg.Coordinator != nil {
		cfg.Coordinator = new(*cfg.Coordinator)
	}
	t := &Team{
		config: cfg,
		byName: make(map[string]int, len(cfg.Agents)),
		caps:   make([]handoff.Capabilities, len(cfg.Agents)),
		schema: make([]*agent.Schema, len(cfg.Agents)),
		log:    cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
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

// A noAgentError says why an agent cannot work. It wraps [ErrNoAgent].
type noAgentError struct {
	message string
	cause   error // what the agent says of itself, with what to do; nil if there is no agent
}

func (e *noAgentError) Error() string { return e.message }
func (e *noAgentError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNoAgent}
	}
	return []error{ErrNoAgent, e.cause}
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
func ready(a Agent) *noAgentError {
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

// made returns an error for a team that [New] did not make, and for a nil context.
func (t *Team) made(ctx context.Context) error {
	if t == nil || t.byName == nil {
		return task.Problems{{Pointer: "", Message: "the team is nil or zero", Hint: "make it with New", Err: task.ErrInvalid}}
	}
	if ctx == nil {
		return task.Problems{{Pointer: "", Message: "the context is nil", Hint: "give context.Background() if there is no other", Err: task.ErrInvalid}}
	}
	return nil
}

// enroll checks one member and fills its place in the roster.
func (t *Team) enroll(i int) (found task.Problems) {
	m := &t.config.Agents[i]
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
		add("/name", fmt.Sprintf("there already is an agent %q", t.config.Agents[first].Name), "give each agent a name of its own; letter case does not tell names apart", task.ErrDuplicate)
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
		s, err := agent.ParseSchema(string(m.OutputSchema))
		if err != nil {
			add("/outputSchema", err.Error(), "write a JSON Schema", err)
		}
		t.schema[i] = s
	}
	t.caps[i] = handoff.Capabilities{Agent: m.Name, Accepts: m.Accepts, Produces: *m.Produces, OutputTags: m.OutputTags, MaxSession: m.MaxSession, Endpoints: t.endpoints(m)}
	return found
}

// baseURLs returns the base URLs that the prompts of a member are sent to. It is empty
// for an agent without an endpoint.
func (m *Member) baseURLs() []string {
	var all []string
	switch a := m.Agent.(type) {
	case interface{ Endpoints() []string }:
		if all = slices.Clone(a.Endpoints()); len(all) == 0 {
			all = []string{""}
		}
	case interface{ Endpoint() string }:
		all = []string{a.Endpoint()}
	}
	if m.Endpoint != "" {
		all = append([]string{m.Endpoint}, all[min(1, len(all)):]...)
	}
	for i := range all {
		all[i] = cmp.Or(all[i], unknownEndpoint)
	}
	return all
}

// A memberEndpoint is one endpoint of a member.
type memberEndpoint struct{ base, name string } // name is what messages call it

// endpoints returns the endpoints of a member, in order and each once.
func (m *Member) endpoints() (list []memberEndpoint) {
	known := map[string]bool{}
	for i, where := range m.baseURLs() {
		if known[endpoint.Normalize(where)] {
			continue
		}
		known[endpoint.Normalize(where)] = true
		name := m.EndpointName
		if i > 0 {
			name = ""
			if i <= len(m.FallbackNames) {
				name = m.FallbackNames[i-1]
			}
		}
		list = append(list, memberEndpoint{where, cmp.Or(name, where)})
	}
	return list
}

// endpoints returns the endpoints of a member with their clearances.
func (t *Team) endpoints(m *Member) (list []handoff.Endpoint) {
	for _, e := range m.endpoints() {
		list = append(list, handoff.Endpoint{URL: e.name, Accepts: t.acceptedBy(e.base)})
	}
	return list
}

// acceptedBy returns the clearance of an endpoint.
func (t *Team) acceptedBy(where string) label.Classification {
	accepts, named := label.Secret, false
	for base, level := range t.config.Endpoints {
		if endpoint.Normalize(base) == endpoint.Normalize(where) { // of two spellings of one address the stricter counts
			accepts, named = min(accepts, level), true
		}
	}
	if !named {
		return DefaultAccepts(where)
	}
	return accepts
}

// endpointNames returns the names of all endpoints of the team.
func (t *Team) endpointNames() (names []string) {
	for i := range t.caps {
		for _, e := range t.caps[i].Endpoints {
			names = append(names, e.URL)
		}
	}
	if c := t.config.Coordinator; c != nil && c.Agent != nil {
		for _, e := range t.endpoints(c.member()) {
			names = append(names, e.URL)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unknownEndpoint stands for a model that does not say where it is.
const unknownEndpoint = "(a model that does not name its endpoint)"

// DefaultAccepts returns the clearance of an endpoint that no setting names:
// secret for one on this machine, confidential for any other.
func DefaultAccepts(baseURL string) label.Classification {
	u, err := url.Parse(baseURL)
	if err != nil {
		return label.Confidential
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback()) {
		return label.Secret
	}
	return label.Confidential
}

// checkEndpoints checks the clearances of endpoints, which protect nothing
// where nobody's prompts go.
func (t *Team) checkEndpoints() (found task.Problems) {
	used := map[string]bool{}
	use := func(m *Member) {
		for _, where := range m.baseURLs() {
			used[endpoint.Normalize(where)] = true
		}
	}
	for i := range t.config.Agents {
		use(&t.config.Agents[i])
	}
	if c := t.config.Coordinator; c != nil && c.Agent != nil {
		use(c.member())
	}
	for _, base := range slices.Sorted(maps.Keys(t.config.Endpoints)) {
		at, subject := naming.Pointer("endpoints", base), fmt.Sprintf("endpoint %q", base)
		if !t.config.Endpoints[base].Valid() {
			found = append(found, unknownLabel(at+"/accepts", subject))
		}
		if u, err := url.Parse(strings.TrimSpace(base)); err != nil || u.Host == "" {
			found = append(found, task.Problem{Pointer: at, Subject: subject, Message: "it is no base URL", Hint: "write one such as https://api.openai.com/v1", Err: task.ErrInvalid})
		} else if !used[endpoint.Normalize(base)] {
			t.warnings = append(t.warnings, task.Problem{Pointer: at, Subject: subject, Message: "no agent's prompts go there", Hint: "write the base URL as the agent's model has it"})
		}
	}
	return found
}
