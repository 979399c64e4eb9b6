// Package assign chooses the agents of tasks that name none.
//
// An agent is eligible if it has what the task requires, may read its context and write
// its result, declares its tags and works long enough. A [Strategy] chooses among the
// eligible agents. Everything here only computes: the same input gives the same answer on
// every machine.
package assign

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// The conditions of an assignment that cannot be made. A [task.Problem] carries one of them.
var (
	ErrNoAgent  = errors.New("no agent may do the task")
	ErrRequires = errors.New("the agent lacks what the task requires")
	ErrUnknown  = errors.New("unknown agent")
)

// An Agent describes one agent for an assignment. Only Name is required. The zero value of
// Clearance and Produces is internal.
type Agent struct {
	Name string

	// Texts about it, which are compared with those of a task.
	Description  string
	SystemPrompt string
	Capabilities []string // letter case and surrounding spaces do not count

	Tools    []string // exact names
	Backend  string   // what runs it; letter case and surrounding spaces do not count
	Provider string   // whose models it calls; likewise

	Clearance  label.Classification // the most sensitive level that may reach it, and the endpoint behind it
	Produces   label.Classification // the most sensitive level that it may write
	OutputTags []string             // the tags that its results may carry
	MaxSession time.Duration        // bound on the work on one task; zero or less means none
}

// None is in place of an agent for a task that has a value or a template.
const None = -1

// Tasks returns the agent of each task as an index into agents: the one that
// the task names, or the one that the strategy chooses among the eligible, or [None]. It
// does not write to the graph.
//
// An agent is eligible if it has the tools of the task and all that it requires (see
// [task.Requires]), if its
// clearance and what it produces reach the label, if it declares every required tag, and if
// its longest session, if it has one, reaches the task's timeout. The labels are the most
// sensitive level that each prompt can have. An agent that a task names must only have what
// the task requires, as [Check] says: the handshake checks the rest.
//
// The error is [task.Problems], in the order of the tasks: the tasks without an eligible
// agent (ErrNoAgent), with the reason, and what Check finds. The strategy must be valid. Agents have
// different names; the first of two with the same name counts. Tasks may be called concurrently.
func Tasks(g *graph.Graph, labels []label.Classification, agents []Agent, s Strategy) ([]int32, error) {
	if len(labels) != g.Len() {
		return nil, fmt.Errorf("%w: %d labels for %d tasks", task.ErrInvalid, len(labels), g.Len())
	}
	a := &assigner{
		graph: g, labels: labels, roster: newRoster(agents),
		chosen: make([]int32, g.Len()), load: make([]int32, len(agents)),
	}
	if err := a.sortOut(); err != nil {
		return nil, err
	}
	a.choose(s.Current())
	return a.chosen, nil
}

// Check reports which tasks require what the agents that they name do not have
// (ErrRequires), and which name no agent of the list (ErrUnknown). The error is
// [task.Problems], in the order of the tasks. [Tasks] reports the same.
func Check(g *graph.Graph, agents []Agent) error {
	r := newRoster(agents)
	var found task.Problems
	for i := range g.Tasks() {
		if t := g.Task(i); t.Assignee != "" && !t.IsComputed() {
			if _, p, bad := r.named(i, t); bad {
				found = append(found, p)
			}
		}
	}
	return found.Err()
}

// Best returns the agent with the most points for a text, as [CapabilityMatch] counts them, among
// those whose clearance and what they produce reach level; the first of several. It is not
// ok if there is none.
func Best(text string, agents []Agent, level label.Classification) (index int, ok bool) {
	a := &assigner{roster: newRoster(agents), load: make([]int32, len(agents))}
	a.roster.narrow(&task.Task{}, level)
	if a.roster.eligible.empty() {
		return 0, false
	}
	s := newScorer(agents)
	s.read(text)
	return int(a.fittest(s)), true
}

// An assigner carries one assignment.
type assigner struct {
	graph  *graph.Graph
	labels []label.Classification
	roster *roster
	chosen []int32 // the answer
	load   []int32 // tasks of each agent so far
	open   []int32 // tasks without an agent, in the order in which they get one
}

// sortOut counts the tasks of named agents, lists the others, and reports those without an
// eligible agent.
func (a *assigner) sortOut() error {
	var found task.Problems
	for i := range a.graph.Tasks() {
		t := a.graph.Task(i)
		var p task.Problem
		var bad bool
		if t.IsComputed() {
			a.chosen[i] = None
			continue
		}
		if t.Assignee == "" {
			a.open = append(a.open, int32(i))
			a.roster.narrow(t, a.labels[i])
			if bad = a.roster.eligible.empty(); bad {
				p = a.roster.noAgent(i, t)
			}
		} else if a.chosen[i], p, bad = a.roster.named(i, t); !bad {
			a.load[a.chosen[i]]++
		}
		if bad {
			found = append(found, p)
		}
	}
	return found.Err()
}

// choose gives every open task its agent.
func (a *assigner) choose(s Strategy) {
	if len(a.open) == 0 {
		return
	}
	if s == DependencyFirst {
		a.sortByDependents()
	}
	pick := a.picker(s)
	for _, i := range a.open {
		t := a.graph.Task(int(i))
		a.roster.narrow(t, a.labels[i])
		agent := pick(t)
		a.chosen[i] = agent
		a.load[agent]++
	}
}

// sortByDependents sorts the tasks by how many others wait for them, most first; equal ones
// stay in the order of the input.
func (a *assigner) sortByDependents() {
	if len(a.load) == 1 {
		return // there is no choice
	}
	count := dependents(a.graph)
	slices.SortStableFunc(a.open, func(i, j int32) int { return int(count[j] - count[i]) })
}
