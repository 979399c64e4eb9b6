package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// planRules returns the rules for a plan of this run.
func (c *coordinator) planRules() planning.Rules {
	inputs := make([]string, len(c.run.options.Inputs))
	for i, in := range c.run.options.Inputs {
		inputs[i] = in.Name
	}
	return planning.Rules{Agents: c.run.team.Names(), Inputs: inputs, MayGrant: c.config.MayGrant, MayPlan: c.config.MayPlan, Tools: planning.ToolNames(c.run.team.Members())}
}

// planFormat returns the JSON Schema of a plan for the endpoint. It contains no names that
// the prompt does not contain.
func (c *coordinator) planFormat() string { return planning.PlanSchema(c.planRules()) }

// planStep is the first step of a goal.
func (c *coordinator) planStep() *step {
	return c.step(StepPlan, brief.Planning, planning.PlanText(c.run.team.Names()), nil, func(b *brief.Brief, _ []gate.Sealed) { b.FormatSchema = c.planFormat() })
}

// decompose has the coordinator plan the tasks, and passes the plan to adopt. Without a valid plan
// nothing will run. If a person has to approve the plan, approved says so: then the plan may be one
// that the person has edited, and there is none as long as the person does not answer.
func (c *coordinator) decompose(ctx context.Context, approved bool, adopt func(*plan.Plan) error) *TaskError {
	s := c.planStep()
	for round := 1; s != nil; round++ {
		p, last, failed := c.propose(ctx, s)
		if s = nil; failed == nil && approved {
			p, s, failed = c.askPlanApprover(ctx, last, p, round)
		}
		if failed != nil {
			return failed
		}
		if p == nil {
			continue
		}
		if err := adopt(p); err != nil {
			last.call.setError(ctx, err)
			return c.stepError(last, codes.Decomposition)
		}
	}
	return nil
}

// propose takes a step that makes a plan, with one correction at most. It returns the plan and the
// last step.
func (c *coordinator) propose(ctx context.Context, s *step) (*plan.Plan, *step, *TaskError) {
	c.consult(ctx, s)
	if s.call.err != nil {
		return nil, s, c.stepError(s, codes.Decomposition)
	}
	p, found, shown := c.read(s)
	said := "the plan"
	if len(shown) > 0 {
		first, _ := c.run.explain(&s.call, codes.PlanInvalid, planning.Faults(shown))
		c.run.warn("the first plan could not be run, and was given back: " + strings.ReplaceAll(strings.TrimPrefix(first, "- "), "\n- ", "; "))
		s = c.repair(s, shown)
		c.consult(ctx, s)
		if s.call.err != nil {
			return nil, s, c.stepError(s, codes.Decomposition)
		}
		said = "also the second plan"
		p, found, _ = c.read(s)
	}
	if len(found) > 0 {
		return nil, s, c.invalid(s, said, found)
	}
	return p, s, nil
}

// read returns a checked plan from the coordinator's answer, or every problem in it, and
// shown, the problems that the coordinator may know. A problem that depends on the text
// of an input is not in shown, since by the flow table inputs do not derive into the
// coordinator. The text of each task is as sensitive as what the coordinator had read.
func (c *coordinator) read(s *step) (p *plan.Plan, found, shown task.Problems) {
	return c.checkPlan(s.call.reply.Text, s.call.envelope, s.call.by)
}

// checkPlan does what read does, for the text of a plan in an envelope, by the policy of a roster. If
// another one holds now, the plan is checked again when the run adopts it.
func (c *coordinator) checkPlan(text string, from *envelope.Envelope, by *plan.Roster) (p *plan.Plan, found, shown task.Problems) {
	specs, err := planning.ParsePlan(text, c.planRules())
	if err == nil {
		setSource(specs, from)
		o := c.run.options
		o.Planned = true
		if p, err = by.Check(specs, o, time.Now()); err == nil {
			return p, p.Broken(), p.BrokenWithoutInputs()
		}
	}
	found, ok := errors.AsType[task.Problems](err)
	if !ok {
		found = task.Problems{{Message: err.Error(), Err: err}}
	}
	for _, problem := range found {
		if !errors.Is(problem, plan.ErrInputValue) {
			shown = append(shown, problem)
		}
	}
	return nil, found, shown
}

// setSource sets the label and the provenance of planned tasks, and of those in loops. A loop has
// no description.
func setSource(specs []task.Spec, plan *envelope.Envelope) {
	for i := range specs {
		specs[i].Classification = plan.Classification()
		if loop := specs[i].Repeat; loop != nil {
			setSource(loop.Tasks, plan)
			continue
		}
		specs[i].Source.Record = provenanceOf(plan)
	}
}

// repair gives the coordinator its plan back, with everything that is wrong with it.
func (c *coordinator) repair(s *step, found task.Problems) *step {
	return c.planAgain(s, planning.RepairText(c.run.team.Names()), gate.Offer{Title: "What is wrong with it", Envelope: c.faultsOf(s.call.envelope, found)})
}

// faultsOf returns what is wrong with a plan, in the words of the runtime.
func (c *coordinator) faultsOf(plan *envelope.Envelope, found task.Problems) *envelope.Envelope {
	h := plan.Header()
	faults, err := envelope.New(envelope.Header{
		ID: "plan/faults", Producer: gate.Runtime, Run: c.run.id, Classification: h.Classification, Trust: h.Trust,
		CreatedAt: time.Now(), DerivedFrom: []envelope.ID{h.ID},
	}, envelope.Text(planning.Faults(found)))
	must(err)
	return faults
}

// planAgain gives the coordinator its plan back, with the reason why it must make another one.
func (c *coordinator) planAgain(s *step, text string, why gate.Offer) *step {
	why.Source = gate.Source{Kind: handoff.Fault, Name: "plan"}
	return c.step(StepRepair, brief.Planning, text, []gate.Offer{
		{Source: gate.Source{Kind: handoff.Plan, Name: "draft"}, Title: "Your previous plan", Envelope: s.call.envelope}, why,
	}, func(b *brief.Brief, sealed []gate.Sealed) { b.Drafts, b.FormatSchema = sealed, c.planFormat() })
}

// invalid returns the error of a plan that cannot be run. Its words quote the plan, so
// they pass the gate to the caller.
func (c *coordinator) invalid(s *step, what string, found task.Problems) *TaskError {
	s.call.err = fmt.Errorf("%w: %w", ErrPlan, found)
	s.call.message, _ = c.run.explain(&s.call, codes.PlanInvalid, fmt.Sprintf("%s cannot be run:\n%s", what, planning.Faults(found)))
	return c.stepError(s, codes.PlanInvalid)
}

// outlineOf lists the tasks of a plan.
func outlineOf(p *plan.Plan) []event.Planned {
	list := make([]event.Planned, p.Graph.Len())
	for i := range list {
		t := p.Graph.Task(i)
		list[i] = event.Planned{Task: t.ID, Title: t.Title, Agent: t.Assignee, Assigned: p.WasAssigned(i), Key: t.Key, Line: t.Source.Origin.String()}
		if t.Instance != nil && t.Title != t.Instance.Title {
			list[i].Written = t.Instance.Title
		}
		if t.Instance != nil && t.Instance.Joins {
			round, _ := p.Graph.Index(task.ID(t.DependsOn[0].OneOf[0])) // a graph has IDs in place of titles
			list[i].Rounds = naming.WithoutInstance(p.Graph.Task(round).Title)
		}
		for _, d := range t.DependsOn {
			list[i].DependsOn = append(list[i].DependsOn, task.ID(d.Task))
		}
	}
	return list
}

// shortcut returns a plan that gives a goal of one simple step to the agent that fits
// it best; nil if earlier turns belong to it, which only the coordinator reads, or if the caller does not allow that or there is no such agent.
func (c *coordinator) shortcut() *plan.Plan {
	if !c.run.options.Auto || len(c.run.options.Conversation) > 0 || c.config.Approve != "" || !planning.Simple(c.goal.Text) {
		return nil
	}
	best, ok := assign.Best(c.goal.Text, c.run.team.Candidates(), c.goal.Classification)
	if !ok {
		return nil
	}
	spec := task.Spec{Title: titleOf(c.goal.Text), Description: c.goal.Text, Classification: c.goal.Classification, Assignee: c.run.team.Config.Agents[best].Name, Source: provenance.Source{Origin: c.goal.Source.Origin, Record: provenanceOf(c.goalText)}}
	if c.config.MayGrant.Inputs {
		spec.Uses = UsesOf(c.run.options.Inputs)
	}
	o := c.run.options
	o.Answer = nil // its answer is the result
	p, err := c.run.governed().Check([]task.Spec{spec}, o, c.run.start)
	if err != nil || len(p.Broken()) > 0 {
		return nil
	}
	return p
}

// titleOf returns a title for a goal: as many of its words as fit on one line. Every
// reader sees a title without a fence around it. The title of a goal that contains a
// secret or a control token is "Goal", since a cut could leave half of it.
func titleOf(goal string) string {
	const most = 60
	words := strings.Fields(goal)
	title := words[0]
	for _, w := range words[1:] {
		if len(title)+1+len(w) > most {
			title += " …"
			break
		}
		title += " " + w
	}
	if gate.CheckUnfenced(strings.Join(words, " ")) != nil || naming.CheckTitle(title) != nil {
		return "Goal"
	}
	return title
}
