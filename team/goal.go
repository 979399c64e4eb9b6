package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

// A Goal is what a team is asked for: the coordinator plans the tasks for it
// and answers it from their results.
type Goal struct {
	Text           string       // required; at most 256 KiB
	Params         []task.Param // which bytes of Text came from parameters, for receipts
	Classification label.Classification
	Origin         task.Position
}

// Format writes the label and the size, so that no verb prints the text.
func (g Goal) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "goal, %v, %s", g.Classification, label.ClassText(len(g.Text)))
}

// A Coordinator plans the tasks for a goal and writes the answer from their
// results. It is a reader like any other: under the name coordinator, with a
// clearance, behind the gate. It sees the roster (names, models, a line about
// each agent), the goal, what each task came to, and what the caller's store of
// the shared memory held before.
type Coordinator struct {
	// Agent is required. Planning and synthesis are two prompts to it, a plan that
	// must be corrected is one more. The system prompt of each says in which form
	// a plan is written; an agent written in Go reads from [prompt.Prompt.Layout]
	// what it is asked for.
	Agent Agent

	SystemPrompt string       // who it is, before its duties; empty means our words
	SystemParams []task.Param // which bytes of SystemPrompt came from parameters
	Instructions string       // added to its duties

	// Accepts is the most sensitive level that it may read; nil means as much as
	// the caller. It never reads more than the caller, whom it answers: a result
	// above that enters the synthesis by title and status only.
	Accepts *label.Classification

	MayGrant Grants // what its plans may grant beside dependencies; the zero value means nothing

	// MaxContextBytes and MaxPromptBytes limit its prompts, as of [Config]; zero
	// means the team's. Results that do not fit are answered in parts, of which the coordinator
	// makes a digest each before it answers the goal from the digests.
	MaxContextBytes int
	MaxPromptBytes  int

	// MaxTokenBudget and MaxCostBudget bound its own calls in a run; see [Member].
	MaxTokenBudget int
	MaxCostBudget  llm.Money

	Endpoint string // as of a [Member]

	// EndpointName and FallbackNames are as for a [Member].
	EndpointName  string
	FallbackNames []string

	Version string     // as of a [Member]
	Reuse   task.Reuse // as of a [Member]
	Model   string     // shown in plans
	Origin  task.Position
}

// Grants are what a plan that a model wrote may grant beside dependencies: the
// shared memory, and named inputs, of which the coordinator then reads names
// and labels, and never the texts or their sizes.
type Grants = synth.Grants

// Mode says what a goal is turned into.
type Mode string

// The modes.
const (
	ModePlan Mode = ""     // a plan of the coordinator's
	ModeAuto Mode = "auto" // a goal of one simple step goes to the agent that fits it best, without a plan; any other is planned
)

// A Message is what one member of the team tells another before the run
// begins. It is itself the grant for that pair: labels and redaction apply as
// to any context.
type Message struct {
	From           string // an agent, or user
	To             string // an agent, or * for every agent but the sender
	Text           string
	Classification label.Classification
	TTL            time.Duration // life from the start of the run; zero means unlimited
}

// Format writes who tells whom and the size, so that no verb prints the text.
func (m Message) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "message from %q to %q, %v, %s", m.From, m.To, m.Classification, label.ClassText(len(m.Text)))
}

// RunTeam turns a goal into an answer: the coordinator plans tasks for it, the
// plan is checked as the caller's own tasks would be, the tasks run, and the
// coordinator answers the goal from what they came to. A plan that cannot be
// run is given back once, with everything wrong with it; if the second one
// cannot be run either, nothing is.
//
// An error means that the run could not start: [task.Problems] if something is
// wrong with the goal, the coordinator or the options, and nothing was spent. A
// run that started always returns a Result; see [Result.Err].
func (t *Team) RunTeam(ctx context.Context, goal Goal, o *RunOptions) (*Result, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	r, err := t.newGoalRun(ctx, goal, o)
	if err != nil {
		return nil, err
	}
	if err := r.claim(); err != nil {
		return nil, err
	}
	defer r.releaseClaims()
	return r.run(ctx), nil
}

// PlanTeam asks the coordinator for a plan of the goal and checks it, and runs
// nothing. This makes one model call, or two if the first plan cannot be run.
// [Plan.Specs] are the tasks, for [Team.RunTasks] or a file. The error is
// [task.Problems] if the goal could not be asked for, and a [*TaskError] if no
// valid plan came.
func (t *Team) PlanTeam(ctx context.Context, goal Goal, o *RunOptions) (*Plan, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	r, err := t.newGoalRun(ctx, goal, o)
	if err != nil {
		return nil, err
	}
	r.plansOnly = true
	if err := r.claim(); err != nil {
		return nil, err
	}
	defer r.releaseClaims()
	res := r.run(ctx)
	if r.unplanned != nil {
		return nil, r.unplanned
	}
	p := r.plan
	p.describe(t)
	for i := range p.specs {
		p.specs[i].Description = r.described(i) // the caller reads it, as a result
		if from := p.specs[i].Provenance; from != nil {
			p.specs[i].Provenance = &task.Provenance{ // as a file says it
				From: from.From, Envelope: from.Envelope, Run: from.Run, CreatedAt: from.CreatedAt.UTC().Round(0), ExpiresAt: from.ExpiresAt.UTC(),
			}
		}
	}
	p.Goal, p.Usage, p.Coordinator = len(r.steps) > 0, res.Usage, r.council.describe()
	return p, nil
}

// newGoalRun prepares a run for a goal, or says why it cannot start.
func (t *Team) newGoalRun(ctx context.Context, goal Goal, o *RunOptions) (*run, error) {
	start := time.Now()
	options := o.withDefaults()
	t.carryBus(&options)
	options.Answer = &goal
	c := checker{team: t, options: options, inputs: make(map[string]int, len(options.Inputs))}
	c.checkOptions()
	c.checkMessages()
	c.checkAnswer()
	c.checkReaders()
	c.checkPolicyPaths()
	if c.found = append(c.found, options.checkKeeping()...); len(c.found) > 0 {
		return nil, c.found
	}
	r, err := t.newRun(options, start)
	if err != nil {
		return nil, err
	}
	if err := r.answer(ctx, goal); err != nil {
		return nil, err
	}
	if err := r.readable(); err != nil {
		return nil, err
	}
	return r, nil
}

// answer makes a goal the run's, or says what is wrong with it. It builds the
// prompts that begin with the goal as they will be built, so that what would be
// refused then is known before anything is spent. If ctx ends first, nothing is
// known and nothing is refused: the run makes no call.
func (r *run) answer(ctx context.Context, goal Goal) error {
	k, found := r.team.convene(&goal, &r.options, r.id, r.start)
	if len(found) > 0 {
		return found
	}
	r.goal, r.council, r.answers, r.asked = &goal, k, true, map[StepKind]int{}
	rehearsed := r.planning()
	err := rehearsed.rehearse(ctx, r.start)
	clear(r.asked)
	switch {
	case err == nil:
		r.council.label = rehearsed.contract.MaxInput
	case ctx.Err() != nil:
		r.council.label = goal.Classification
	default:
		return task.Problems{r.refusedGoal(err)}
	}
	return nil
}

// refusedGoal words why the coordinator cannot be given the goal.
func (r *run) refusedGoal(err error) task.Problem {
	p := task.Problem{Pointer: "/goal", Message: "the coordinator cannot be given the goal: " + err.Error(), Err: err}
	if refusal, ok := errors.AsType[*handoff.Refusal](err); ok {
		p.Message, p.Hint = "the coordinator cannot be given the goal: "+refusal.Reason, refusal.Hint
	}
	return p
}

// readable refuses a goal whose planned tasks no agent could be given.
func (r *run) readable() error {
	level, highest := r.council.label, label.Public
	for i := range r.team.caps {
		highest = max(highest, min(r.team.caps[i].Clearance(), r.team.caps[i].Produces))
	}
	if highest >= level {
		return nil
	}
	return task.Problems{{
		Pointer: "/goal", Message: fmt.Sprintf("tasks planned for this goal are %v, and no agent may read and write more than what is %v", level, highest),
		Hint: fmt.Sprintf("set accepts: %v on the agents that may work on it", level), Err: &handoff.Refusal{Rule: handoff.RuleClearance, Reason: "no agent is cleared for the goal"},
	}}
}

// goalFor returns the goal as the caller may see it.
func (r *run) goalFor() string {
	if r.council == nil {
		return ""
	}
	text, err := r.shortForUser(r.council.goal, handoff.Source{Kind: handoff.Dependency, Name: "goal"}, r.start)
	if err != nil {
		return withheld(r.goal.Classification)
	}
	return text
}
