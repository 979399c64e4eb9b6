package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A policy is replaced at one moment: the lock of the run is held from the check until the new policy holds, so no
// task completes and no call begins in between. What works then continues if the new policy makes the same of
// all that it reads and passes on. Otherwise it ends and begins again; only its external calls are awaited.

// preparePolicy checks a new policy, and returns the function that replaces the current one. Prompts built by the
// new policy become durable after the command and are not sent before that. The caller holds the lock of the run.
func (s *steering) preparePolicy(c *record.LeftCommand, entry *record.Command) (do func() error, err error) {
	r := s.run
	policy, next, err := s.compilePolicy(c)
	if err != nil {
		return nil, err
	}
	changed := s.changedBy(next)
	if next.Rules.Digest() == r.governed().Rules.Digest() {
		if found := plan.CheckAlso(r.plan, r.options.Assert, c.Assert); len(found) > 0 {
			return nil, refused("%w", found)
		}
		return nil, refused("%w", steer.ErrUnchanged)
	}
	p, err := s.checkTasks(next, s.taskStates(changed), c.Assert)
	if err != nil {
		return nil, refused("%w", err)
	}
	if entry.Policy, err = record.NewPolicy(policy, next.Rules.Digest(), plan.Parties(next)); err != nil {
		return nil, refused("%w", err)
	}
	return func() error { s.replacePolicy(next, p, changed); return nil }, nil
}

// compilePolicy checks what does not depend on the tasks, and returns the policy with the roster that has it.
func (s *steering) compilePolicy(c *record.LeftCommand) (policy *handoff.Policy, next *plan.Roster, err error) {
	r := s.run
	if r.repeats() {
		return nil, nil, refused("it repeats another run, whose policies it must keep")
	}
	now := r.governed()
	if digest := now.Rules.Digest(); c.Replaces != digest {
		return nil, nil, refused("%w; its digest is now %s", steer.ErrStale, digest)
	}
	if policy, err = normal(c.Policy); err != nil {
		return nil, nil, refused("%w", err)
	}
	if next, err = plan.WithPolicy(r.team, policy); err != nil {
		return nil, nil, refused("%w", err)
	}
	if !r.options.AllowWidening {
		err = widening(next, now)
	}
	return policy, next, err
}

// Widening returns an error that wraps [steer.ErrWidens] if the policy of a team may deliver more than that of another
// team of the same agents.
func (t *Team) Widening(than *Team) error {
	if err := errors.Join(t.made(context.Background()), than.made(context.Background())); err != nil {
		return err
	}
	return widening(t.roster, than.roster)
}

// widening returns an error if a policy may deliver more than the current one.
func widening(next, now *plan.Roster) error {
	list := plan.Widens(next, now)
	if len(list) == 0 {
		return nil
	}
	texts := make([]string, len(list))
	for i := range list {
		if texts[i] = list[i].String(); list[i].Line != "" {
			texts[i] += " (" + list[i].Line + ")"
		}
	}
	return refused("%w", asProblem(texts, steer.ErrWidens))
}

// checkTasks checks the tasks that have not completed under a new policy, and the assertions that came with it. It
// returns the plan under the policy; nil if the run has none yet.
func (s *steering) checkTasks(next *plan.Roster, states []plan.State, also []string) (p *plan.Plan, err error) {
	r := s.run
	var found task.Problems
	if r.plan != nil {
		if p, err = plan.Govern(r.plan, plan.Under(r.plan.Roster(), next), states); err != nil {
			return nil, plan.AsProblems(err)
		}
	} else {
		found = next.CheckGoalRun(r.options)
		if r.coordinator.goal != nil {
			found = append(found, plan.CheckPlanApprover(next, r.coordinator.label)...)
		}
	}
	if found = append(found, plan.CheckAlso(p, r.options.Assert, also)...); len(found) > 0 {
		return nil, found
	}
	return p, nil
}

// taskStates returns what a check of a new policy needs to know about each task.
func (s *steering) taskStates(changed []*holding) []plan.State {
	r := s.run
	states := make([]plan.State, len(r.tasks))
	for i := range states {
		t := &r.tasks[i]
		switch status := r.queue.Status(i); {
		case status == task.Completed:
			states[i] = plan.State{Completed: true, Label: t.Envelope.Classification(), By: r.readBy[i]}
		case status == task.NotNeeded:
			states[i] = plan.State{Completed: true, Label: r.plan.Labels[i], By: r.readBy[i]}
		case plan.StateOf(r.plan, i).Completed: // an earlier process has its result
			states[i] = plan.StateOf(r.plan, i)
		default:
			states[i].By = r.readBy[i]
		}
		if a := s.working[i]; a != nil && !states[i].Completed {
			states[i].Continues = !slices.Contains(changed, a.holding)
		}
	}
	return states
}

// A holding is what a new policy must know of an attempt at a task, or of a step of the coordinator, that works.
type holding struct {
	by       *plan.Roster            // whose policy it reads by
	pairs    func() [][2]string      // producers and readers: what it may read and pass on; nil if each policy matters
	cancel   context.CancelCauseFunc // ends all but its external calls
	replaced bool                    // a new policy changes what it reads or passes on
	canceled bool                    // a command canceled the task
}

// changedBy returns the attempts and steps for which the policy of a roster changes something.
func (s *steering) changedBy(next *plan.Roster) (list []*holding) {
	for h := range s.held {
		if h.isChangedBy(next) {
			list = append(list, h)
		}
	}
	return list
}

func (h *holding) isChangedBy(next *plan.Roster) bool {
	if h.pairs == nil || h.by.Rules == next.Rules {
		return h.by.Rules != next.Rules
	}
	return slices.ContainsFunc(h.pairs(), func(p [2]string) bool { return plan.Differs(h.by, next, p[0], p[1]) })
}

// end ends the attempt or step because of a new policy.
func (h *holding) end() {
	h.replaced = true
	h.cancel(ErrPolicyReplaced)
}

// pairsOf returns the pairs of producers and readers of an attempt: what it may read, and what it passes on.
// An attempt with tools, messages or memory access may read from every producer.
func pairsOf(r *results, i int, by *plan.Roster) (pairs [][2]string) {
	t, agents := r.plan.Graph.Task(i), makersOf(r, i)
	for _, to := range plan.Delegates(r.plan, i) {
		agents = append(agents, by.Config.Agents[to.Member].Name)
	}
	producers := []string{handoff.User, handoff.Coordinator}
	if len(r.plan.Tools(i)) > 0 || len(plan.RuntimeTools(r.plan, i)) > 0 || r.messages != nil || t.MemoryScope == task.ScopeAll {
		producers = append(producers, handoff.Computed, handoff.Anyone)
		for _, p := range plan.Parties(by) {
			producers = append(producers, p.Name)
		}
	} else {
		for _, up := range r.plan.Graph.Upstream(i) {
			producers = append(producers, r.plan.Graph.Task(int(up)).Assignee)
		}
	}
	readers := agents
	if policy := by.Config.Policy; policy != nil {
		for k := range policy.Declassify {
			if d := &policy.Declassify[k]; slices.Contains(agents, d.To) && d.Approve != "" {
				readers = append(readers, d.Approve)
			}
		}
	}
	for _, from := range producers {
		for _, to := range readers {
			pairs = append(pairs, [2]string{from, to})
		}
	}
	for k, name := range agents {
		tools := r.plan.Tools(i)
		if m, known := by.Index(name); known && k > 0 {
			tools = by.Config.Agents[m].Tools
		}
		for _, f := range tools {
			pairs = append(pairs, [2]string{name, gate.ToolReader(f.Name)})
			if f.Approve != "" {
				pairs = append(pairs, [2]string{name, f.Approve})
			}
		}
	}
	return pairs
}

// makersOf returns the agents that may make the result of a task: its assignee, and those that its
// conversation can be transferred to.
func makersOf(r *results, i int) []string {
	names := []string{r.plan.Graph.Task(i).Assignee}
	for _, h := range plan.Holders(r.plan, i) {
		if name := r.team.Config.Agents[h.Member].Name; name != names[0] {
			names = append(names, name)
		}
	}
	return names
}

// replacePolicy makes a policy the current one. Attempts and steps that it changes end and begin again.
func (s *steering) replacePolicy(next *plan.Roster, p *plan.Plan, changed []*holding) {
	r := s.run
	before := r.governed()
	if p != nil {
		r.plan = p
	}
	r.add(next)
	r.bus.govern(r.team.EndpointNames(), next.Rules.Words())
	for _, h := range changed {
		h.end()
	}
	for i, a := range s.working {
		if !a.holding.replaced && slices.ContainsFunc(makersOf(r.results, i), func(name string) bool { return plan.Differs(before, next, name, handoff.User) }) {
			a.stream.stop()
		}
	}
	s.wakeUp()
}

// awaited returns the context of a call with an external effect. It ends with ctx, but not when a new policy ends the
// attempt: then the call ends by its own time limit, or with the run. The call has ended when end is called.
func awaited(ctx, run context.Context) (call context.Context, end func()) {
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, ErrPolicyReplaced) {
			cancel(cause)
		}
	})
	stopRun := context.AfterFunc(run, func() { cancel(context.Cause(run)) })
	return call, func() { stop(); stopRun(); cancel(nil) }
}

// revoke discards the result of an attempt that was made under a policy that no longer applies.
func revoke(r *results, a *attempt) {
	err := ErrPolicyReplaced
	if m := r.team.Find(a.caps.Agent); a.conversation != nil && a.external || a.stage == givenPrompt && m.IsUnconfined() && !m.Process().Repeatable {
		err = fmt.Errorf("%w, so the task is not performed again: %w", ErrEffectsUncertain, ErrPolicyReplaced)
	}
	a.failure = failure{err: err, code: code(err), message: err.Error(), terminal: errors.Is(err, ErrEffectsUncertain), aborted: err == ErrPolicyReplaced}
	a.envelope, a.outputs, a.text, a.structured, a.outputsText, a.outputsBefore = nil, nil, "", "", "", ""
	if a.end.IsZero() {
		a.end = time.Now()
	}
	a.stream.takeBack()
}

// isReplaced reports whether a new policy has ended an attempt or step.
func (h *holding) isReplaced() bool { return h != nil && h.replaced }

// beginsAgain retries a task whose attempt a new policy ended or whose stored result cannot be used, unless the run
// is ending. It reports whether it does.
func beginsAgain(ctx context.Context, r *results, a *attempt) bool {
	missed := a.recalls && errors.Is(a.err, ErrPolicyReplaced) && !a.holding.isReplaced()
	if !a.holding.isReplaced() && !missed || a.terminal || ctx.Err() != nil || r.stopped() {
		return false
	}
	if missed {
		p, err := plan.Forget(r.plan, a.index)
		if err != nil {
			a.failure = failure{err: err, code: code(err), message: "the policy of the run was replaced, and the task cannot be performed under it: " + err.Error(), terminal: true}
			return false
		}
		r.plan = p
	}
	if t := &r.tasks[a.index]; t.WaitingFor != "" {
		t.WaitingFor = ""
		must(readyqueue.Continue(r.queue, a.index, a.end))
	}
	if r.steering != nil {
		r.steering.uncounted[a.index]++
	}
	must(r.queue.Retry(a.index, a.end))
	return true
}

// readBy returns the digest of the policy by which the caller got the result of the last attempt; empty for that of the
// start, and if no attempt ended.
func readBy(t *memo.Task) string {
	if x := t.LastAttempt(); x != nil {
		return x.ReadBy
	}
	return ""
}

// governs returns the roster by whose policy an attempt at a task reads. A task that an earlier process has
// completed uses its result under the policy of that time, or begins again.
func governs(r *results, i int, a *attempt) *plan.Roster {
	by := plan.ReadBy(r.plan, i)
	if r.memo.Is(memo.Strict) {
		if b := r.memo.Task(r.plan.Graph.Task(i).ID); b != nil {
			if t := r.find(readBy(b)); t != nil {
				r.policies.now.Store(t) // which the caller read by then
			}
		}
	} else {
		a.recalls = by.Rules != r.plan.Roster().Rules
	}
	r.readBy[i] = by
	return by
}

// beginStep starts a step of the coordinator or, if reader is a person, the question about its plan. Its context ends
// if a new policy changes what it reads. Call end at its end; replaced reports whether that happened.
func (s *steering) beginStep(ctx context.Context, x *modelCall, reader string) (of context.Context, end func() (replaced bool)) {
	if s == nil {
		return ctx, func() bool { return false }
	}
	h := &holding{by: x.by}
	of, h.cancel = context.WithCancelCause(ctx)
	if reader == handoff.Coordinator { // what a person approves names the policy
		pairs := [][2]string{}
		for i := range x.offers {
			if e := x.offers[i].Envelope; e != nil {
				pairs = append(pairs, [2]string{e.Producer(), reader})
			}
		}
		h.pairs = func() [][2]string { return pairs }
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if !x.recalls && h.isChangedBy(s.run.governed()) { // it was prepared before
		h.end()
	}
	s.held[h] = true
	return of, func() bool {
		s.run.mu.Lock()
		defer s.run.mu.Unlock()
		delete(s.held, h)
		h.cancel(nil)
		return h.replaced && ctx.Err() == nil
	}
}
