package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// WithPolicy returns the roster with another policy, or [task.Problems] with everything wrong with it.
func WithPolicy(t *Roster, policy *handoff.Policy) (*Roster, error) {
	computed := t.agents != nil
	if computed {
		t = t.agents
	}
	n := *t
	n.Config.Policy, n.Rules = policy, nil
	var found task.Problems
	n.Config.checkApprovers(&found)
	if found = append(found, n.govern()...); len(found) > 0 {
		return nil, found
	}
	equip(&n)
	if computed {
		return withComputed(&n), nil
	}
	return &n, nil
}

// Under returns the roster with the policy of another roster of the same agents.
func Under(t *Roster, by *Roster) *Roster {
	n := *t
	n.Rules, n.Config.Policy = by.Rules, by.Config.Policy
	equip(&n)
	if t.agents != nil {
		n.agents = Under(t.agents, by)
	}
	return &n
}

// Parties returns the names that a policy of the roster may have, with the defaults of the agents.
func Parties(t *Roster) []gate.Party {
	if t.agents != nil {
		t = t.agents
	}
	return t.Config.parties()
}

// parties returns the parties that a policy may name.
func (c *Config) parties() []gate.Party {
	parties := make([]gate.Party, len(c.Agents))
	for i := range c.Agents {
		m := &c.Agents[i]
		parties[i] = gate.Party{Name: m.Name, Default: m.Handoff, Allow: m.AllowedContextFields, Block: m.BlockedContextFields, Translate: m.Translate}
	}
	for _, name := range c.toolNames() {
		parties = append(parties, gate.Party{Name: gate.ToolReader(name)})
	}
	return parties
}

// Widens returns the pairs to which the policy of the roster may deliver more than that of another
// roster of the same agents.
func Widens(t *Roster, than *Roster) []gate.Widening {
	parties := Parties(t)
	names := make([]string, len(parties))
	for i := range parties {
		names[i] = parties[i].Name
	}
	return t.Rules.Widens(than.Rules, names, func(reader string) bool { return readsSecrets(t, reader) })
}

// readsSecrets reports whether a reader is cleared for what is secret.
func readsSecrets(t *Roster, reader string) bool {
	switch reader {
	case handoff.User, handoff.Computed:
		return true
	case handoff.Coordinator:
		return t.Config.Coordinator != nil && (t.Config.Coordinator.Accepts == nil || *t.Config.Coordinator.Accepts == label.Secret)
	}
	if i, is := t.Index(reader); is {
		return t.Capabilities[i].Accepts == label.Secret
	}
	return slices.ContainsFunc(t.Config.Agents, func(m Member) bool {
		for _, f := range m.Tools {
			if f != nil && gate.ToolReader(f.Name) == reader && f.Accepts == label.Secret {
				return true
			}
		}
		return false
	})
}

// Differs reports whether the policies of two rosters may deliver something else from a producer to a reader.
func Differs(a, b *Roster, from, to string) bool {
	if a.Rules == b.Rules {
		return false
	}
	x, y, secret := a.Terms(from, to), b.Terms(from, to), readsSecrets(a, to)
	return len(x.Widens(y, secret)) > 0 || len(y.Widens(x, secret)) > 0
}

// A State is what is known of a task when the policy of its run is replaced.
type State struct {
	Completed bool
	Label     label.Classification // of its result, once it has completed

	By        *Roster // has the policy of its last prompt; nil if it had no prompt
	Continues bool    // a running attempt continues under that policy
}

// govern is what a plan knows of the policies before the one of its roster.
type govern struct {
	specs  []task.Spec // that were checked, one for each task
	places *writtenOut // nil if each task is written once
	past   []*Roster   // of each task that has completed, the roster by whose policy it read; nil if the policy was never replaced
	states []State
	bounds []label.Classification // of each task that has completed: of its prompt, at most
}

// Bound returns the highest label that the prompt of a task can have.
func Bound(p *Plan, i int) label.Classification {
	if i < len(p.states) && p.states[i].Completed {
		return p.bounds[i]
	}
	return p.Labels[i]
}

// StateOf returns what was known of a task when the policy was last replaced.
func StateOf(p *Plan, i int) (s State) {
	if i < len(p.states) {
		s = p.states[i]
	}
	return s
}

// Forget returns the plan in which a completed task must run again, because its result cannot be used.
func Forget(p *Plan, i int) (*Plan, error) {
	states := slices.Clone(p.states)
	states[i] = State{}
	return Govern(p, p.Roster(), states)
}

// ReadBy returns the roster by whose policy a task reads, or has read if it has completed.
func ReadBy(p *Plan, i int) *Roster {
	if i < len(p.past) && p.past[i] != nil {
		return p.past[i]
	}
	return p.Roster()
}

// rosters returns each of the rosters that ReadBy returns for some task, or will.
func rosters(p *Plan) []*Roster {
	list := []*Roster{p.Roster()}
	for _, t := range p.past {
		if t != nil && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// termsTo returns the terms of what a producer makes for the agent of task i.
func termsTo(p *Plan, i int, from string) *gate.Terms {
	return ReadBy(p, i).Terms(from, p.Graph.Task(i).Assignee)
}

// Govern returns the plan under the policy of another roster of the same agents. It checks all tasks that
// have not completed, with the labels of the results so far, and the assertions, with what readers have
// already got. The error is [task.Problems] with all problems.
func Govern(p *Plan, t *Roster, states []State) (*Plan, error) {
	o := *p.Options()
	o.Planned = false // the problems are for the user, who may read what inputs hold
	c := checker{team: t, options: o, specs: p.specs, inputs: p.InputIndex, lists: p.lists, before: p, used: make([]bool, len(o.Inputs))}
	c.plan = &Plan{
		Description: Description{Name: p.Name, User: p.User}, lists: p.lists, Graph: p.Graph, Roster: func() *Roster { return t }, Options: p.Options,
		Written: p.Written, assigned: p.assigned, uncompared: p.uncompared, lines: p.lines, Warnings: p.Warnings,
		govern: govern{specs: p.specs, places: p.places, states: states, past: make([]*Roster, len(states)), bounds: make([]label.Classification, len(states))},
	}
	for i := range states {
		if states[i].Completed {
			c.plan.past[i] = cmp.Or(states[i].By, ReadBy(p, i))
		}
	}
	c.checkFlow()
	(&sizeCheck{checker: &c, reported: make([]bool, len(o.Inputs)), known: map[knownSize]gate.Decision{}}).checkSizes()
	c.checkOutput()
	if drop(&c, states); len(c.found) == 0 {
		c.checkDisclosures()
		drop(&c, states)
	}
	if len(c.found) == 0 {
		c.checkAssertions()
		c.found = append(c.found, broken(c.plan)...)
		c.found = append(c.found, brokenByHeld(c.plan, c.found)...)
	}
	if len(c.found) == 0 {
		return c.plan, nil
	}
	found := c.sorted()
	if p.places != nil {
		return nil, p.places.place(found)
	}
	return nil, found
}

// drop removes the problems of completed tasks and of messages, which were already sent.
func drop(c *checker, states []State) {
	c.found = slices.DeleteFunc(c.found, func(q task.Problem) bool {
		i := naming.TaskIndex(q.Pointer)
		return i >= 0 && i < len(states) && states[i].Completed || isMessage(q.Pointer)
	})
}

func isMessage(pointer string) bool {
	return strings.HasPrefix(pointer, "/messages/")
}

// settle sets the label of a task whose result is known, and keeps the bound of one whose attempt
// continues. It reports whether the task has completed.
func (c *labelCheck) settle(i int) bool {
	p := c.plan
	if i >= len(p.states) {
		return false
	}
	s := &p.states[i]
	switch {
	case s.Completed:
		p.bounds[i] = p.Labels[i].Join(s.Label)
		p.Labels[i], p.least[i] = s.Label, s.Label
	case s.Continues:
		p.Labels[i] = p.Labels[i].Join(c.before.Labels[i])
	}
	return s.Completed
}

// broken returns the assertions of a plan that do not hold.
func broken(p *Plan) (found task.Problems) {
	for i := range p.Findings {
		if f := &p.Findings[i]; !f.Holds {
			found = append(found, ofValues(p.Options(), f.Assertion, f.problem(i)))
		}
	}
	return found
}

// brokenByHeld returns the assertions that do not hold, beside those that were found, once it counts
// what the readers of each prompt have already got under the policies before.
func brokenByHeld(p *Plan, found task.Problems) (broken task.Problems) {
	if len(p.Findings) == 0 || len(found) > 0 {
		return nil
	}
	table := heldFlow(p)
	for i := range p.Findings {
		a := p.Findings[i].Assertion
		if result, err := table.Check(a); err == nil && !result.Holds {
			f := Finding{a, result}
			q := f.problem(i)
			q.Hint = hintHeld
			broken = append(broken, ofValues(p.Options(), a, q))
		}
	}
	return broken
}

const hintHeld = "a reader has already got it under an earlier policy; keep the rules that stop it after that reader"

// heldFlow returns the flow table of a plan with what the readers of each prompt have already got under the
// policies before.
func heldFlow(p *Plan) *flow.Table {
	held := *p
	held.past = slices.Clone(p.past)
	for i := range held.past {
		if by := p.states[i].By; by != nil {
			held.past[i] = by
		}
	}
	return held.Flow()
}

// CheckAlso checks assertions in addition to those that a plan has, with what readers have already got. The
// plan is nil if there are no tasks yet.
func CheckAlso(p *Plan, own []flow.Assertion, also []string) (found task.Problems) {
	var tables []*flow.Table
	for i, text := range also {
		at := func(message, hint string, err error) {
			found = append(found, task.Problem{Pointer: naming.Pointer("policy", "assert", i), Subject: fmt.Sprintf("assertion %q", text), Message: message, Hint: hint, Err: err})
		}
		a, err := flow.ParseAssertion(text)
		switch {
		case err != nil:
			at(err.Error(), "", err)
			continue
		case slices.ContainsFunc(own, func(o flow.Assertion) bool { return o.String() == a.String() }):
			continue // checked with the plan
		case p == nil:
			at("the run has no tasks yet for which it could be checked", "leave it out, or send the policy again once the tasks are planned", ErrAssertion)
			continue
		case tables == nil:
			tables = []*flow.Table{p.Flow(), heldFlow(p)}
		}
		for k, table := range tables {
			a.Reader = spelled(table.Graph(), a.Reader)
			f, err := table.Check(a)
			switch hint := []string{hintBroken, hintHeld}[k]; {
			case err != nil:
				p, is := errors.AsType[task.Problem](err)
				if !is {
					p.Message = err.Error()
				}
				at(p.Message, p.Hint, err)
			case !f.Holds:
				at(strings.TrimSpace(f.Why)+way(f.Path), hint, ErrAssertion)
			default:
				continue
			}
			break
		}
	}
	return found
}

// AsProblems returns an error as problems of a policy.
func AsProblems(err error) task.Problems {
	if found, ok := errors.AsType[task.Problems](err); ok {
		return found
	}
	return task.Problems{{Pointer: "/policy", Message: err.Error(), Err: err}}
}
