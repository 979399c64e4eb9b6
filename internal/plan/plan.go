package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Description says what a run would do: who works on what, who reads what, at which
// label, and where it leaves to. Its JSON form is what `runteam plan -o json` prints.
type Description struct {
	Name   string         `json:"name,omitempty"`
	Agents []PlannedAgent `json:"agents"`
	Inputs []PlannedInput `json:"inputs"`
	Tasks  []PlannedTask  `json:"tasks"`  // in the order written
	Output []task.ID      `json:"output"` // whose results make the answer
	User   PlannedUser    `json:"user"`   // the caller as a reader
	Edges  []PlannedEdge  `json:"edges,omitempty"`

	// Redacted are the personal kinds, and the names of own patterns, that are redacted on
	// every edge to an agent unless a reading reveals them. Secrets always are; rules may
	// add kinds for their pairs.
	Redacted []redact.Kind `json:"redacted"`

	Goal  bool      `json:"goal,omitempty"` // the coordinator planned it
	Usage llm.Usage `json:"usage,omitzero"` // of the coordinator's plan

	Coordinator *PlannedAgent `json:"coordinator,omitempty"` // as the gate sees it; nil without a goal

	AtMost PlannedUsage `json:"atMost"` // what all model calls of the tasks can take

	// What declassifiers may deliver below its label, by delivery and by producer.
	Lowered   []PlannedLowering   `json:"lowered,omitempty"`
	Disclosed []PlannedDisclosure `json:"disclosed,omitempty"`

	// Findings say whether each assertion of the options holds. If one does not, the plan
	// is made, and a run does not start.
	Findings []Finding `json:"assertions,omitempty"`
}

// A Plan is a description of a run and what the run follows. [Plan.Describe] fills in the
// lists of the description.
type Plan struct {
	Description
	Warnings []task.Problem `json:"-"` // a run starts despite them

	Options  func() *Options        `json:"-"` // a function, so that no verb of package fmt prints the inputs
	Written  []task.Spec            `json:"-"` // in the order written, each with its agent
	Graph    *graph.Graph           `json:"-"`
	Members  []int32                `json:"-"` // of each task, an index into the roster
	assigned []bool                 // of each task: by the scheduler; nil when the caller assigned all
	Schemas  []*schema.Schema       `json:"-"` // of each task; nil for free text
	Labels   []label.Classification `json:"-"` // of each task's prompt and result, at most
	least    []label.Classification // the same if everything optional is missing
	Branches BranchLabels           `json:"-"`
	Folders  *Folders               `json:"-"` // that tasks get of others; nil if none does
	memory   []label.Classification // of each task of scope all, what it may find in memory at most; nil if there is none
	alongEdges
	lists      map[string]*InputList // in inputs, by where they are written
	uncompared map[string]string     // the loops whose rounds are not compared, by where they are written: why not
	InputIndex map[string]int        `json:"-"` // lower-cased name to an index into options.Inputs
	Outputs    []int32               `json:"-"` // tasks whose results make the answer
	govern                           // nil fields before the policy is replaced
	lines      []string              // of each task, where it is written; nil if no task has a line
	Roster     func() *Roster        `json:"-"` // a function as well
}

// ScriptedModel is what models are called in what is shown of a run that a script answers.
const ScriptedModel = "scripted"

// A PlannedAgent is an agent as the gate sees it.
type PlannedAgent struct {
	Name         string               `json:"name"`
	Model        string               `json:"model,omitempty"`
	Description  string               `json:"description,omitempty"`
	Capabilities []string             `json:"capabilities,omitempty"`
	Accepts      label.Classification `json:"accepts"`
	Produces     label.Classification `json:"produces"`
	Clearance    label.Classification `json:"clearance"`          // the lowest of its own and its endpoints'
	LeavesTo     string               `json:"leavesTo,omitempty"` // the endpoint that reads its prompts; empty for an agent in this process
	Fallback     []string             `json:"fallback,omitempty"` // other endpoints that read its prompts if the first one fails
	OutputTags   []string             `json:"outputTags,omitempty"`
	Tools        []PlannedTool        `json:"tools,omitempty"`
	Spawn        *PlannedSpawning     `json:"spawn,omitempty"`      // nil if it spawns no children
	Command      string               `json:"command,omitempty"`    // confined or unconfined, for an agent that is a command
	Unconfined   []string             `json:"unconfined,omitempty"` // tools that run unconfined commands
	Readable     []string             `json:"readable,omitempty"`   // what its confined commands may read beside their workspace
	Person       bool                 `json:"person,omitempty"`     // it is a person, who passes nothing on
	ApprovedBy   string               `json:"approvedBy,omitempty"` // of the coordinator: the person who has to approve its plans
	Tasks        int                  `json:"tasks"`
}

// A PlannedInput is a named input and the tasks that are granted it.
type PlannedInput struct {
	Name           string               `json:"name"`
	Classification label.Classification `json:"classification"`
	Bytes          int                  `json:"bytes"` // zero, if it is above the caller
	Readers        []task.ID            `json:"readers"`
}

// A PlannedTask is a task and everything that will reach its agent.
type PlannedTask struct {
	ID             task.ID              `json:"id"`
	Key            string               `json:"key,omitempty"`
	Title          string               `json:"title"`
	Assignee       string               `json:"assignee"`
	Assigned       bool                 `json:"assigned,omitempty"` // by the scheduler, not by the caller
	Computed       string               `json:"computed,omitempty"` // value or template, for a task that has one in place of an agent
	Classification label.Classification `json:"classification"`     // of its own text
	Label          label.Classification `json:"label"`              // of its prompt and of its result, at most
	When           string               `json:"when,omitempty"`     // the condition on which it runs
	Reads          []Reading            `json:"reads"`
	Lacks          []MissingFiles       `json:"lacks,omitempty"` // files of its dependencies that it does not get
	Caller         string               `json:"caller"`          // in whose name its agent works
	RequiredTags   []string             `json:"requiredTags,omitempty"`
	Tools          []string             `json:"tools,omitzero"` // that it may call; nil if its agent has none
	LeavesTo       string               `json:"leavesTo,omitempty"`
	Fallback       []string             `json:"fallback,omitempty"`
	UserSees       bool                 `json:"userSees"`         // whether its result is within the caller's clearance
	Depth          int                  `json:"depth"`            // longest way from a task without dependencies, from 0
	Rounds         int                  `json:"rounds,omitempty"` // how often it may run, in a loop; zero for once
	PlannedLoop
	ForEach   string `json:"forEach,omitempty"`   // the list that it runs for, such as /searches of Plan
	OnFailure string `json:"onFailure,omitempty"` // as written; empty means fail
	Line      string `json:"line,omitempty"`
}

// A PlannedLoop says how a task that is a loop ends.
type PlannedLoop struct {
	Loop           bool   `json:"loop,omitempty"`           // it calls no agent and has the result of its last round
	Until          string `json:"until,omitempty"`          // the condition that ends it
	RoundsCompared *bool  `json:"roundsCompared,omitempty"` // whether it ends with LOOP_STUCK before a round that would repeat an earlier one
	NotCompared    string `json:"notCompared,omitempty"`    // why its rounds are not compared
}

// A Reading is one piece of context that is granted to a task.
type Reading struct {
	Kind     handoff.SourceKind `json:"kind"`
	Task     task.ID            `json:"task,omitempty"` // of a dependency
	Name     string             `json:"name"`           // its title, or the input's name
	From     string             `json:"from"`           // the agent that makes it, or user
	As       task.Payload       `json:"as"`
	Optional bool               `json:"optional,omitempty"`
	Dependency
	Via      []string             `json:"via,omitempty"`      // of files that were given to a dependency: the titles of those that grant them
	Label    label.Classification `json:"label"`              // of what there is, at most
	Withheld string               `json:"withheld,omitempty"` // the rule, if it is certain to be withheld

	// What the policy and the task make of it.
	Arrives    label.Classification `json:"arrives"`              // its label when it is delivered, at most
	Mode       handoff.Mode         `json:"mode"`                 //
	ByTask     bool                 `json:"byTask,omitempty"`     // the task itself narrows it
	Delivers   string               `json:"delivers,omitempty"`   // which parts, if not all
	Rule       handoff.Rule         `json:"rule,omitempty"`       // that states the mode
	Line       string               `json:"line,omitempty"`       // where it is written
	Rules      []gate.Citation      `json:"rules,omitempty"`      // all that apply
	Lowered    string               `json:"loweredBy,omitempty"`  // the declassifier that may lower it
	Reveals    []redact.Kind        `json:"reveals,omitempty"`    // personal kinds that may be delivered unredacted
	Translated string               `json:"translated,omitempty"` // how it is translated
	CutTo      int                  `json:"cutTo,omitempty"`      // bytes that a size limit leaves of a longer input; zero means that it fits
}

// A Dependency says which of several results a [Reading] of a dependency is.
type Dependency struct {
	Round string    `json:"round,omitempty"` // previous for a result of the round before, in a loop; empty for any other
	OneOf []task.ID `json:"oneOf,omitempty"` // the alternatives, if it is one of several
}

// A PlannedUser is the caller as a reader.
type PlannedUser struct {
	Accepts label.Classification `json:"accepts"`
}

// userSees reports whether the caller is cleared for the result of a task.
func (p *Plan) userSees(i int) bool {
	terms := p.Roster().Terms(p.Graph.Task(i).Assignee, handoff.User)
	x := terms.Admit(p.Labels[i], *p.Options().UserAccepts, handoff.User)
	return !x.Withheld() && (PassesAsText(terms) || p.Schemas[i] != nil && terms.Mode() != handoff.Minimal)
}

// PassesAsText reports whether a text passes under some terms: only a whole does.
func PassesAsText(t *gate.Terms) bool {
	s, err := t.Delivers(nil)
	return err == nil && s.Whole()
}

// PassesWhole reports whether a value passes whole and with its own label to a caller with this
// clearance, under the terms of its producer and the caller.
func PassesWhole(t *gate.Terms, producer string, source gate.Source, level, accepts label.Classification) bool {
	x := t.Admit(level, accepts, handoff.User)
	if x.Withheld() || x.Lowers != nil || t.AddsRedaction() {
		return false
	}
	return gate.Instructs(source, producer) && !ofAgent(producer) || PassesAsText(t)
}

// ofAgent reports whether a producer is an agent of the team. What it tells another agent, or itself in later turns, is
// for the caller what the agent made.
func ofAgent(producer string) bool {
	return producer != handoff.User && producer != handoff.Coordinator && producer != gate.Runtime
}

// Input returns the input that a use names.
func (p *Plan) Input(u task.Use) *Input {
	return &p.Options().Inputs[p.InputIndex[strings.ToLower(u.Name)]]
}

// Describe fills in the lists for people, from what the checks computed.
func (p *Plan) Describe() {
	t := p.Roster()
	p.Redacted = redacted(t.Rules)
	p.Agents = make([]PlannedAgent, len(t.Config.Agents))
	for i := range p.Agents {
		m, caps := &t.Config.Agents[i], &t.Capabilities[i]
		p.Agents[i] = PlannedAgent{
			Name: m.Name, Model: m.Model, Description: m.Description, Capabilities: m.Capabilities,
			Accepts: caps.Accepts, Produces: caps.Produces, Clearance: caps.Clearance(), LeavesTo: leavesTo(caps), Fallback: fallback(caps), OutputTags: m.OutputTags,
			Tools: m.plannedTools(), Spawn: m.plannedSpawning(),
			Command: m.confinement(), Unconfined: m.unconfinedTools(), Readable: m.readable(), Person: m.IsPerson(),
		}
	}
	p.Inputs = make([]PlannedInput, len(p.Options().Inputs))
	for i, in := range p.Options().Inputs {
		p.Inputs[i] = PlannedInput{Name: in.Name, Classification: in.Classification, Bytes: InputSize(&in, *p.Options().UserAccepts), Readers: []task.ID{}}
	}
	g := p.Graph
	p.Tasks = make([]PlannedTask, g.Len())
	for _, at := range g.Order() {
		i := int(at)
		p.Tasks[i] = p.describeTask(t, i)
		if !Joins(g.Task(i)) {
			p.Agents[p.Members[i]].Tasks++
		}
		for _, up := range g.Upstream(i) {
			p.Tasks[i].Depth = max(p.Tasks[i].Depth, p.Tasks[up].Depth+1)
		}
	}
	for i := range p.Tasks {
		for _, u := range g.Task(i).Uses {
			in := &p.Inputs[p.InputIndex[strings.ToLower(u.Name)]]
			in.Readers = append(in.Readers, p.Tasks[i].ID)
		}
	}
	p.describeLowered(t)
	p.AtMost, p.Edges = mostUsage(p), plannedEdges(p)
	defer describeLoops(p)
	p.Output = make([]task.ID, len(p.Outputs))
	for k, i := range p.Outputs {
		p.Output[k] = g.Task(int(i)).ID
	}
}

func (p *Plan) describeTask(t *Roster, i int) PlannedTask {
	tk, caps := p.Graph.Task(i), &t.Capabilities[p.Members[i]]
	out := PlannedTask{
		ID: tk.ID, Key: tk.Key, Title: tk.Title, Assignee: tk.Assignee, Assigned: p.WasAssigned(i), Computed: computedBy(&tk.Spec),
		Classification: tk.Classification, Label: p.Labels[i], When: textOf(p, ownCondition(tk)), Reads: []Reading{},
		Caller: handoff.User, RequiredTags: slices.Clone(tk.RequiredTags), LeavesTo: leavesTo(caps), Fallback: fallback(caps), UserSees: p.userSees(i), OnFailure: tk.OnFailure, Line: tk.Source.Origin.String(),
	}
	describeInstance(p, tk, &out)
	out.Lacks = missingFiles(p, i)
	out.Tools = namesOfTools(p, i)
	parts := p.deliveries(nil, i)
	for k := range parts {
		a := &parts[k]
		grant, need := p.grantOf(i, a)
		r := Reading{Kind: a.part.kind, From: a.from, As: task.Output, Label: a.most}
		if p.isFiles(i, a) {
			r.As = gate.AsFiles
		}
		r.govern(&grant, need, *a)
		switch n := a.part.n; r.Kind {
		case handoff.Input:
			r.Name = tk.Uses[n].Name
			for _, kind := range slices.Sorted(maps.Keys(grant.Reveal)) {
				if !slices.Contains(r.Reveals, kind) {
					r.Reveals = append(r.Reveals, kind)
				}
			}
			if limit := cmp.Or(grant.MaxBytes, gate.DefaultContextBytes); r.Delivers == "" && r.Withheld == "" && p.Input(tk.Uses[n]).Folder == nil && len(p.Input(tk.Uses[n]).Text) > limit {
				r.CutTo = limit
			}
		case handoff.Dependency:
			d, from := tk.DependsOn[n], p.Graph.Task(int(p.Graph.Upstream(i)[n]))
			r.Task, r.Name, r.As, r.Optional, r.OneOf = from.ID, from.Title, cmp.Or(d.As, task.Output), d.Optional, alternatives(&d)
		case handoff.Condition:
			from := p.Graph.Task(int(p.Graph.Upstream(i)[n]))
			r.Task, r.Name, r.As = from.ID, from.Title, task.Structured
		case handoff.Files:
			l := &p.Folders.layers[i][n]
			r.As, r.Optional = gate.AsFiles, !slices.ContainsFunc(l.Via, func(j int) bool { return !tk.DependsOn[j].Optional })
			if r.Name = l.Source(p).Name; l.Task >= 0 {
				r.Task, r.Name = p.Graph.Task(l.Task).ID, p.Graph.Task(l.Task).Title
			}
			if r.Via = l.viaOf(p, i); !l.Direct {
				r.Kind = handoff.Folder
			}
		case handoff.Conversation:
			r.Name, r.Optional = p.Options().Conversation[n].Name(), true
		default:
			r.Name, r.Optional = fmt.Sprintf("message %d", n+1), true
		}
		out.Reads = append(out.Reads, r)
	}
	if p.memory != nil && tk.MemoryScope == task.ScopeAll {
		level := min(p.memory[i], out.Label)
		out.Reads = append(out.Reads, Reading{Kind: handoff.Memory, Name: "a digest of the shared memory", From: handoff.Anyone, As: task.Output, Optional: true, Label: level, Arrives: level, Mode: handoff.Full})
	}
	out.Reads = append(out.Reads, readsAlongEdges(p, i)...)
	return out
}

// readsAlongEdges describes the handoffs that a task may get.
func readsAlongEdges(p *Plan, i int) (list []Reading) {
	if i >= len(p.arrivals) {
		return nil
	}
	for _, a := range p.arrivals[i] {
		d := arrivalDelivery(p, i, a)
		r := Reading{Kind: handoff.Message, Name: "handoffs from " + d.from, From: d.from, As: task.Both, Optional: true, Label: a.most, Arrives: a.most}
		r.govern(&gate.Grant{Terms: termsTo(p, i, d.from)}, nil, d)
		list = append(list, r)
	}
	return list
}

// namesOfTools returns the names of the tools that a task may call; nil if its agent has none.
func namesOfTools(p *Plan, i int) []string {
	runtime := RuntimeTools(p, i)
	if len(p.Roster().Config.Agents[p.Members[i]].Tools)+len(runtime) == 0 || Joins(p.Graph.Task(i)) {
		return nil
	}
	names := []string{}
	for _, f := range p.Tools(i) {
		names = append(names, f.Name)
	}
	for _, f := range runtime {
		names = append(names, f.Name)
	}
	return names
}

// govern fills in what the policy makes of a reading.
func (r *Reading) govern(g *gate.Grant, need []task.Path, a delivery) {
	t := g.Terms
	r.Mode, r.Arrives, r.ByTask = t.Mode(), a.Classification, need != nil
	r.Rule, r.Line = t.Stated()
	r.Rules, r.Reveals, r.Translated = t.Cited(), t.Reveals(), t.Translates()
	if s, err := t.Delivers(need); err == nil && !s.Whole() && r.Mode != handoff.Minimal {
		r.Delivers = s.String()
	}
	if a.crossing.Lowers != nil {
		r.Lowered = a.crossing.Lowers.Name
		if s, err := t.Delivers(need); err == nil && !s.Whole() {
			r.Delivers = only(s, a.crossing.Lowers.Paths).String()
		} else {
			r.Delivers = gate.PathsString(a.crossing.Lowers.Paths)
		}
	}
	switch {
	case r.Mode == handoff.Minimal:
		r.Withheld, r.Arrives = gate.ReasonMinimal, label.Public
	case a.Withheld:
		r.Withheld = a.crossing.Reason
	}
}

// PlannedCoordinator returns the coordinator as a plan shows it.
func PlannedCoordinator(c *Coordinator, caps *gate.Capabilities) *PlannedAgent {
	return &PlannedAgent{
		Name: handoff.Coordinator, Model: c.Model, Accepts: caps.Accepts, Produces: caps.Produces,
		Clearance: caps.Clearance(), LeavesTo: leavesTo(caps), Fallback: fallback(caps), ApprovedBy: c.Approve,
	}
}

func leavesTo(c *gate.Capabilities) string {
	if len(c.Endpoints) == 0 {
		return ""
	}
	return c.Endpoints[0].URL
}

// fallback returns the endpoints of an agent without the first one.
func fallback(c *gate.Capabilities) (urls []string) {
	for i := 1; i < len(c.Endpoints); i++ {
		urls = append(urls, c.Endpoints[i].URL)
	}
	return urls
}

// Specs returns the tasks as they would be written: what [Team.RunTasks] takes,
// each with the agent that it was given. The label of a task that the
// Coordinator planned is that of what the coordinator had read.
func (p *Plan) Specs() []task.Spec { return slices.Clone(p.Written) }

// Format writes a few words for every verb, so that no verb prints an input.
func (p Plan) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "plan of %d tasks for %d agents", len(p.Tasks), len(p.Agents))
}

// InputSize returns the size of an input as a viewer with this clearance may see
// it: its class if the input is above the clearance.
func InputSize(in *Input, accepts label.Classification) int {
	if in.Classification > accepts {
		return 0
	}
	return len(in.Text)
}
