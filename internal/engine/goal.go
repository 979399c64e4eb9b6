package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// planOf returns the plan that a run for a goal has made, as the caller may see it.
func (r *run) planOf(res *Result) (*plan.Plan, error) {
	if failed := r.coordinator.unplanned; failed != nil {
		return nil, failed
	}
	p := r.plan
	p.Describe()
	describer{r.results, instancesOf(p)}.describe(p.Written, "/tasks")
	p.Goal, p.Usage, p.Coordinator = len(r.coordinator.steps) > 0, res.Usage, plan.PlannedCoordinator(r.coordinator.config, &r.coordinator.caps)
	return p, nil
}

// A describer writes the descriptions of planned tasks, which the caller reads as results, and
// their provenance as a file says it.
type describer struct {
	run       *results
	instances map[string]int // of each task that has some, one, by where it is written
}

// describe writes those of tasks that a pointer leads to.
func (r describer) describe(specs []task.Spec, pointer string) {
	for i := range specs {
		s, at := &specs[i], pointer+"/"+strconv.Itoa(i)
		if s.Repeat != nil {
			r.describe(s.Repeat.Tasks, at+"/repeat/tasks")
			continue
		}
		if s.Verify != nil {
			at += "/verify" // where its rounds are written
		}
		index, ok := r.instances[at]
		if !ok {
			index, _ = r.run.plan.Graph.Index(task.NewID(s.Title))
		}
		s.Description = r.run.described(index)
		if from := s.Source.Record; from != nil {
			s.Source.Record = &provenance.Record{
				From: from.From, Envelope: from.Envelope, Run: from.Run, CreatedAt: from.CreatedAt.UTC().Round(0), ExpiresAt: from.ExpiresAt.UTC(),
			}
		}
	}
}

// instancesOf returns the first instance of each task in a loop or for a list, by where it is written.
// All of them have the same description, but for rounds that revise a result.
func instancesOf(p *plan.Plan) map[string]int {
	byPointer := map[string]int{}
	for i := range p.Graph.Len() {
		of := p.Graph.Task(i).Instance
		if of == nil {
			continue
		}
		if _, known := byPointer[of.Pointer]; !known {
			byPointer[of.Pointer] = i
		}
	}
	return byPointer
}

// checkAnswer returns the coordinator as the gate sees it when it answers o.Answer, or
// what is wrong with that goal.
func checkAnswer(ctx context.Context, t *plan.Roster, o RunOptions) (*plan.PlannedAgent, error) {
	r, err := newRun(t, o, time.Now())
	if err != nil {
		return nil, err
	}
	if err := r.answer(ctx, *o.Answer); err != nil {
		return nil, err
	}
	return plan.PlannedCoordinator(r.coordinator.config, &r.coordinator.caps), nil
}

// newGoalRun prepares a run for a goal, or says why it cannot start.
func (t *Team) newGoalRun(ctx context.Context, goal plan.Goal, o *RunOptions) (*run, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	start, options := time.Now(), settings(o)
	carryBus(t.roster, &options)
	options.Answer = &goal
	if found := append(t.roster.CheckGoalRun(options), checkStored(&options)...); len(found) > 0 {
		return nil, found
	}
	r, err := newRun(plan.RosterForGoal(t.roster), options, start)
	if err != nil {
		return nil, err
	}
	if err := r.restorePolicies(); err != nil {
		return nil, err
	}
	if err := r.answer(ctx, goal); err != nil {
		return nil, err
	}
	if err := r.coordinator.readable(); err != nil {
		return nil, err
	}
	return r, nil
}

// answer makes a goal the run's, or says what is wrong with it.
func (r *run) answer(ctx context.Context, goal plan.Goal) error {
	c, found := newCoordinator(r.runScope, &goal)
	if len(found) > 0 {
		return found
	}
	r.coordinator, r.answers = c, true
	return c.checkFirstPrompt(ctx)
}

// checkFirstPrompt builds the prompt of the first step as it will be built, so that what would
// be refused then is known before anything is spent. If ctx ends first, nothing is
// known and nothing is refused: the run makes no call.
func (c *coordinator) checkFirstPrompt(ctx context.Context) error {
	s := c.planStep()
	clear(c.asked)
	s.call.start = c.run.start
	_, err := s.open(ctx)
	switch {
	case err == nil:
		c.label = s.call.contract.MaxInput
	case ctx.Err() != nil:
		c.label = c.goal.Classification
	default:
		return task.Problems{c.refusedGoal(err)}
	}
	return nil
}

// refusedGoal words why the coordinator cannot be given the goal.
func (c *coordinator) refusedGoal(err error) task.Problem {
	p := task.Problem{Pointer: "/goal", Message: "the coordinator cannot be given the goal: " + err.Error(), Err: err}
	if refusal, ok := errors.AsType[*gate.Refusal](err); ok {
		p.Message, p.Hint = "the coordinator cannot be given the goal: "+refusal.Reason, refusal.Hint
	}
	return p
}

// readable refuses a goal whose plan the person who has to approve it could not see, or whose planned
// tasks no agent could be given.
func (c *coordinator) readable() error {
	if found := plan.CheckPlanApprover(c.run.team, c.label); len(found) > 0 {
		return found
	}
	level, highest := c.label, label.Public
	for _, a := range c.run.team.Candidates() {
		highest = max(highest, min(a.Clearance, a.Produces))
	}
	if highest >= level {
		return nil
	}
	return task.Problems{{
		Pointer: "/goal", Message: fmt.Sprintf("tasks planned for this goal are %v, and no agent may read and write more than what is %v", level, highest),
		Hint: fmt.Sprintf("set accepts: %v on the agents that may work on it", level), Err: &gate.Refusal{Rule: gate.RuleClearance, Reason: "no agent is cleared for the goal"},
	}}
}

// goalFor returns the goal as the caller may see it.
func (c *coordinator) goalFor() string {
	if c.goal == nil {
		return ""
	}
	text, err := c.run.shortForUser(c.goalText, gate.Source{Kind: handoff.Dependency, Name: "goal"}, c.run.start)
	if err != nil {
		return withheld(c.goal.Classification)
	}
	return text
}
