package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// planRules returns the rules for a plan of this run.
func (r *run) planRules() planning.Rules {
	inputs := make([]string, len(r.options.Inputs))
	for i, in := range r.options.Inputs {
		inputs[i] = in.Name
	}
	return planning.Rules{Agents: r.team.Names(), Inputs: inputs, MayGrant: r.council.of.MayGrant}
}

// planFormat returns the JSON Schema of a plan for the endpoint. It contains no names that
// the prompt does not contain.
func (r *run) planFormat() string { return planning.PlanSchema(r.planRules()) }

// planning is the first step of a goal.
func (r *run) planning() *step {
	return r.step(StepPlan, prompt.Planning, planning.PlanText(r.team.Names()), nil, func(b *prompt.Brief, _ []gate.Sealed) { b.FormatSchema = r.planFormat() })
}

// decompose asks the coordinator for a plan and takes it over, after one
// correction at most. Without a valid plan nothing will run.
func (r *run) decompose(ctx context.Context) *TaskError {
	s := r.planning()
	r.consult(ctx, s)
	if s.err != nil {
		return r.stepError(s, codes.Decomposition)
	}
	p, found, told := r.read(s)
	said := "the plan"
	if len(told) > 0 {
		first, _ := r.explain(&s.exchange, codes.PlanInvalid, planning.Faults(told))
		r.warn("the first plan could not be run, and was given back: " + strings.ReplaceAll(strings.TrimPrefix(first, "- "), "\n- ", "; "))
		s = r.repair(s, told)
		r.consult(ctx, s)
		if s.err != nil {
			return r.stepError(s, codes.Decomposition)
		}
		said = "also the second plan"
		p, found, _ = r.read(s)
	}
	if len(found) > 0 {
		return r.invalid(s, said, found)
	}
	if err := r.adopt(p); err != nil {
		s.judge(ctx, err)
		return r.stepError(s, codes.Decomposition)
	}
	return nil
}

// read returns a checked plan from the coordinator's answer, or everything that is
// wrong with it, and told, the part of that which the coordinator may know. A problem that depends on the text of an input is not in told, since by
// the flow table inputs do not derive into the coordinator. The text of each
// task is as sensitive as what the coordinator had read.
func (r *run) read(s *step) (p *plan.Plan, found, told task.Problems) {
	specs, err := planning.ParsePlan(s.reply.Text, r.planRules())
	if err == nil {
		for i := range specs {
			specs[i].Classification = s.envelope.Classification()
			specs[i].Provenance = provenanceOf(s.envelope)
		}
		o := r.options.Options
		o.Planned = true
		if p, err = r.team.Check(specs, o, time.Now()); err == nil {
			return p, p.Broken(), p.BrokenWithoutInputs()
		}
	}
	found, ok := errors.AsType[task.Problems](err)
	if !ok {
		found = task.Problems{{Message: err.Error(), Err: err}}
	}
	for _, problem := range found {
		if !errors.Is(problem, plan.ErrInputValue) {
			told = append(told, problem)
		}
	}
	return nil, found, told
}

// repair gives the coordinator its plan back, with everything that is wrong with it.
func (r *run) repair(s *step, found task.Problems) *step {
	h := s.envelope.Header()
	faults, err := envelope.New(envelope.Header{
		ID: "plan/faults", Producer: gate.Runtime, Run: r.id, Classification: h.Classification, Trust: h.Trust,
		CreatedAt: time.Now(), DerivedFrom: []envelope.ID{h.ID},
	}, envelope.Text(planning.Faults(found)))
	r.must(err)
	return r.step(StepRepair, prompt.Planning, planning.RepairText(r.team.Names()), []gate.Offer{
		{Source: handoff.Source{Kind: handoff.Plan, Name: "draft"}, Title: "Your previous plan", Envelope: s.envelope},
		{Source: handoff.Source{Kind: handoff.Fault, Name: "plan"}, Title: "What is wrong with it", Envelope: faults},
	}, func(b *prompt.Brief, sealed []gate.Sealed) { b.Drafts, b.FormatSchema = sealed, r.planFormat() })
}

// invalid says what is wrong with the last plan. The words quote the plan, so
// they take the same road to the caller.
func (r *run) invalid(s *step, what string, found task.Problems) *TaskError {
	s.err = fmt.Errorf("%w: %w", ErrPlan, found)
	s.message, _ = r.explain(&s.exchange, codes.PlanInvalid, fmt.Sprintf("%s cannot be run:\n%s", what, planning.Faults(found)))
	return r.stepError(s, codes.PlanInvalid)
}

// adopt makes a plan of the coordinator's the run's.
func (r *run) adopt(p *plan.Plan) error {
	if err := r.follow(p); err != nil {
		return err
	}
	if r.bus.live() {
		r.bus.emit(r.announced())
	}
	r.advise()
	r.prepare()
	return nil
}

// announced is the event that says what was planned.
func (r *run) announced() event.Event {
	list := r.outline()
	return event.Event{Type: event.PlanReady, Tasks: len(list), Plan: list}
}

// outline lists the tasks of the plan.
func (r *run) outline() []event.Planned {
	list := make([]event.Planned, r.plan.Graph.Len())
	for i := range list {
		t := r.plan.Graph.Task(i)
		list[i] = event.Planned{Task: t.ID, Title: t.Title, Agent: t.Assignee, Assigned: r.plan.WasAssigned(i)}
		for _, d := range t.DependsOn {
			list[i].DependsOn = append(list[i].DependsOn, task.ID(d.Task))
		}
	}
	return list
}

// shortcut gives a goal of one simple step to the agent that fits it best, if
// the caller allows that and there is such an agent.
func (r *run) shortcut() (taken bool) {
	if r.options.Mode != plan.ModeAuto || !planning.Simple(r.goal.Text) {
		return false
	}
	best, ok := assign.Best(r.goal.Text, r.team.Candidates(), r.goal.Classification)
	if !ok {
		return false
	}
	spec := task.Spec{Title: titleOf(r.goal.Text), Description: r.goal.Text, Classification: r.goal.Classification, Assignee: r.team.Config.Agents[best].Name, Origin: r.goal.Origin, Provenance: provenanceOf(r.council.goal)}
	if r.council.of.MayGrant.Inputs {
		spec.Uses = UsesOf(r.options.Inputs)
	}
	o := r.options.Options
	o.Answer = nil // its answer is the result
	p, err := r.team.Check([]task.Spec{spec}, o, r.start)
	if err != nil || len(p.Broken()) > 0 {
		return false
	}
	if r.answers = r.adopt(p) != nil; r.answers {
		return false
	}
	return true
}

// titleOf makes a title of a goal: its words on one line, as many as fit. A
// title stands outside of any fence and before every reader, so a goal that
// holds a secret or a control token, of which a cut could leave half, has none.
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
	if gate.Harmless(strings.Join(words, " ")) != nil || naming.CheckTitle(title) != nil {
		return "Goal"
	}
	return title
}
