package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// A Finding says whether an assertion holds.
type Finding struct {
	Assertion flow.Assertion `json:"assertion"`
	flow.Finding
}

// checkAssertions holds the plan to the assertions of the options. One that
// names what does not exist is a problem.
func (c *checker) checkAssertions() {
	if len(c.options.Assert) == 0 || len(c.found) > 0 {
		return
	}
	table := c.plan.Flow()
	for i, a := range c.options.Assert {
		a.Reader = spelled(table.Graph(), a.Reader)
		f, err := table.Check(a)
		if err != nil {
			p, ok := errors.AsType[task.Problem](err)
			if !ok {
				p = task.Problem{Message: err.Error(), Err: err}
			}
			p.Pointer = naming.Pointer("assert", i)
			c.add(ofValues(&c.options, a, p))
			continue
		}
		c.plan.Findings = append(c.plan.Findings, Finding{a, f})
	}
}

// way writes the way of a finding behind its reason.
func way(p flow.Path) string {
	if len(p) == 0 {
		return ""
	}
	return ": " + p.String()
}

// spelled returns the name that an endpoint has in the graph, however its
// address is spelt; any other reader keeps its name.
func spelled(g *flow.Graph, reader string) string {
	if strings.Contains(reader, "://") {
		for i := range g.Readers {
			if r := &g.Readers[i]; r.Kind == flow.Endpoint && endpoint.Normalize(r.Name) == endpoint.Normalize(reader) {
				return r.Name
			}
		}
	}
	return reader
}

// Broken returns the assertions that do not hold, as problems.
func (p *Plan) Broken() (found task.Problems) {
	for i := range p.Findings {
		if f := &p.Findings[i]; !f.Holds {
			found = append(found, f.problem(i))
		}
	}
	return found
}

// BrokenWithoutInputs is broken as far as it does not depend on the texts of
// inputs and messages: there they have no members that an assertion could name.
func (p *Plan) BrokenWithoutInputs() (found task.Problems) {
	if len(p.Broken()) == 0 {
		return nil
	}
	table := flowOf(p, true)
	for i := range p.Findings {
		a := p.Findings[i].Assertion
		if result, err := table.Check(a); err == nil && !result.Holds {
			f := Finding{a, result}
			found = append(found, f.problem(i))
		}
	}
	return found
}

// problem words assertion i, which does not hold.
func (f *Finding) problem(i int) task.Problem {
	return task.Problem{
		Pointer: naming.Pointer("assert", i), Subject: fmt.Sprintf("assertion %q", f.Assertion.String()),
		Message: strings.TrimSpace(f.Why) + way(f.Path), Hint: hintBroken, Err: ErrAssertion,
	}
}

// ofValues returns the problem of an assertion, marked with [ErrInputValue] if it depends on the texts of
// inputs or messages.
func ofValues(o *Options, a flow.Assertion, p task.Problem) task.Problem {
	values := len(o.Inputs)+len(o.Messages) > 0
	if values && (a.Subject.Kind == flow.Property || a.Subject.Kind == flow.OfInput && a.Subject.Path != task.Whole) {
		p.Err = errors.Join(p.Err, ErrInputValue)
	}
	return p
}

const hintBroken = "narrow the way with need, block or mode, or remove the assertion"
