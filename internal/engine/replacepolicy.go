package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// maxChecks is how often a policy is checked while the run works on. After that, the run waits for the check.
const maxChecks = 3

// A checkedPolicy is a new policy with what the checks say of it.
type checkedPolicy struct {
	policy *handoff.Policy
	next   *plan.Roster
	equal  bool  // to the current one
	err    error // why it is refused, whatever the tasks have done

	checked bool       // the rest is known
	before  *plan.Plan // that was checked; nil if the run had none
	states  []plan.State
	plan    *plan.Plan    // under the policy; nil if the run has none
	found   task.Problems // what is wrong with it
}

// checkPolicy checks a new policy without the lock of the run, which is taken only to read the state of the tasks.
// If that has changed at the end, the result is out of date, and the check is repeated.
func (s *steering) checkPolicy(c *record.LeftCommand) *checkedPolicy {
	k := &checkedPolicy{}
	if k.err = k.compile(s.run, c); k.err != nil {
		return k
	}
	for checks := 0; checks < maxChecks && k.isOutdated(s); checks++ {
		k.checkTasks(s.run, c.Assert)
	}
	return k
}

// isOutdated reports whether the check is for another state of the tasks than the present one, which it then
// stores for the next check. It acquires the lock of the run. Without a plan, little is checked.
func (k *checkedPolicy) isOutdated(s *steering) bool {
	r := s.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plan == nil || k.isCurrent(s) {
		return false
	}
	k.before, k.states = r.plan, s.taskStates(s.deniedAttempts(k.next))
	return true
}

// compile checks what does not depend on the state of the tasks.
func (k *checkedPolicy) compile(r *run, c *record.LeftCommand) (err error) {
	if r.repeats() {
		return refused("it repeats another run, whose policies it must keep")
	}
	now := r.governed()
	if digest := now.Rules.Digest(); c.Replaces != digest {
		return refused("%w; its digest is now %s", steer.ErrStale, digest)
	}
	if k.policy, err = normal(c.Policy); err != nil {
		return refused("%w", err)
	}
	if k.next, err = plan.WithPolicy(r.team, k.policy); err != nil {
		return refused("%w", err)
	}
	if k.equal = k.next.Rules.Digest() == now.Rules.Digest(); !r.options.AllowWidening {
		return widening(k.next, now)
	}
	return nil
}

// isCurrent reports whether the result of a check is for the present state of the tasks.
func (k *checkedPolicy) isCurrent(s *steering) bool {
	return k.checked && k.before == s.run.plan && slices.Equal(k.states, s.taskStates(s.deniedAttempts(k.next)))
}

// prepare returns the function that replaces the current policy. The lock of the run is held from here until
// the replacement, so nothing completes or begins in between; if the state of the tasks has changed since
// the check, the check is repeated. Prompts built by the new policy become durable after the command and
// are not sent before that.
func (k *checkedPolicy) prepare(s *steering, c *record.LeftCommand, entry *record.Command) (do func() error, err error) {
	if k.err != nil {
		return nil, k.err
	}
	revoked := s.deniedAttempts(k.next)
	if !k.isCurrent(s) {
		k.before, k.states = s.run.plan, s.taskStates(revoked)
		k.checkTasks(s.run, c.Assert)
	}
	switch {
	case len(k.found) > 0:
		return nil, refused("%w", k.found)
	case k.equal:
		return nil, refused("%w", steer.ErrUnchanged)
	}
	if entry.Policy, err = record.NewPolicy(k.policy, k.next.Rules.Digest(), plan.Parties(k.next)); err != nil {
		return nil, refused("%w", err)
	}
	return func() error { s.replacePolicy(k.next, k.plan, revoked); return nil }, nil
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

// checkTasks checks the tasks that have not completed under the new policy, by the states that were stored
// for the check.
func (k *checkedPolicy) checkTasks(r *run, also []string) {
	k.checked, k.plan, k.found = true, k.before, nil
	switch {
	case k.equal:
	case k.before != nil:
		governed, err := plan.Govern(k.before, plan.Under(k.before.Roster(), k.next), k.states)
		if err != nil {
			k.found = plan.AsProblems(err)
			return
		}
		k.plan = governed
	default:
		k.found = k.next.CheckGoalRun(r.options)
		if r.coordinator.goal != nil {
			k.found = append(k.found, plan.CheckPlanApprover(k.next, r.coordinator.label)...)
		}
	}
	k.found = append(k.found, plan.CheckAlso(k.plan, r.options.Assert, also)...)
}

// taskStates returns what a check of a new policy needs to know about each task.
func (s *steering) taskStates(revoked []*attempt) []plan.State {
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
			states[i].By, states[i].Continues = s.held[a].by, !slices.Contains(revoked, a)
		}
	}
	return states
}

// A holding is what a running attempt may have read.
type holding struct {
	by       *plan.Roster // whose policy it reads by
	agent    string
	pairs    [][2]string // of producers and readers: what it may read and pass on
	index    int
	canceled bool // a command canceled the task
}

// A stepHolding is what a running step of the coordinator may have read.
type stepHolding struct {
	by      *plan.Roster
	reader  string   // the coordinator, or the person who approves its plan
	from    []string // who made what it is offered
	cancel  context.CancelCauseFunc
	revoked bool
}

// deniedAttempts returns the attempts that may have read what the policy of a roster denies.
func (s *steering) deniedAttempts(next *plan.Roster) (list []*attempt) {
	for a, h := range s.held {
		if h.by.Rules == next.Rules {
			continue
		}
		if h.pairs == nil {
			h.pairs = pairsOf(s.run.results, h.index, h.by)
		}
		if slices.ContainsFunc(h.pairs, func(p [2]string) bool { return plan.DeliversMore(h.by, next, p[0], p[1]) }) {
			list = append(list, a)
		}
	}
	return list
}

// pairsOf returns the pairs of producers and readers of an attempt: what it may read, and what it passes on.
// An attempt with tools, messages or memory access may read from every producer.
func pairsOf(r *results, i int, by *plan.Roster) (pairs [][2]string) {
	t, tools := r.plan.Graph.Task(i), r.plan.Tools(i)
	producers := []string{handoff.User, handoff.Coordinator}
	for _, up := range r.plan.Graph.Upstream(i) {
		producers = append(producers, r.plan.Graph.Task(int(up)).Assignee)
	}
	if len(tools) > 0 || len(plan.Holders(r.plan, i)) > 0 || r.messages != nil || t.MemoryScope == task.ScopeAll {
		producers = []string{handoff.User, handoff.Coordinator, handoff.Computed, handoff.Anyone}
		for _, p := range plan.Parties(by) {
			producers = append(producers, p.Name)
		}
	}
	readers := makersOf(r, i)
	for _, name := range readers {
		if m, known := by.Index(name); known && name != t.Assignee {
			tools = append(slices.Clip(tools), by.Config.Agents[m].Tools...)
		}
		for _, f := range tools {
			pairs = append(pairs, [2]string{name, gate.ToolReader(f.Name)})
			if f.Approve != "" {
				pairs = append(pairs, [2]string{name, f.Approve})
			}
		}
	}
	if policy := by.Config.Policy; policy != nil {
		for k := range policy.Declassify {
			if d := &policy.Declassify[k]; slices.Contains(readers, d.To) && d.Approve != "" {
				readers = append(readers, d.Approve)
			}
		}
	}
	for _, from := range producers {
		for _, to := range readers {
			pairs = append(pairs, [2]string{from, to})
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

// replacePolicy makes a policy the current one. Attempts and steps of the coordinator that may have read what it
// denies end and begin again.
func (s *steering) replacePolicy(next *plan.Roster, p *plan.Plan, revoked []*attempt) {
	r := s.run
	before := r.governed()
	if p != nil {
		r.plan = p
	}
	r.add(governance{team: next, digest: next.Rules.Digest()})
	r.bus.govern(r.team.EndpointNames(), next.Rules.Words())
	for _, a := range revoked {
		s.revoked[a] = true
		a.cancel(ErrPolicyReplaced)
	}
	for a, h := range s.held {
		if !s.revoked[a] && slices.ContainsFunc(makersOf(r.results, h.index), func(name string) bool { return plan.DeliversMore(before, next, name, handoff.User) }) {
			a.stream.stop()
		}
	}
	for h := range s.steps {
		if h.holdsDenied(next) {
			h.revoked = true
			h.cancel(ErrPolicyReplaced)
		}
	}
	s.wakeUp()
}

// holdsDenied reports whether a step of the coordinator may have read what a policy denies.
func (h *stepHolding) holdsDenied(next *plan.Roster) bool {
	if h.reader != handoff.Coordinator { // what a person approves names the policy
		return h.by.Rules != next.Rules
	}
	return slices.ContainsFunc(h.from, func(name string) bool { return plan.DeliversMore(h.by, next, name, h.reader) })
}

// isReplaced reports whether an ended attempt must begin again because of a new policy. Call it once per
// attempt.
func isReplaced(s *steering, a *attempt) bool {
	if s == nil {
		return false
	}
	is := s.revoked[a]
	delete(s.revoked, a)
	return is
}

// revoke discards the result of an attempt that was made under a policy that no longer applies.
func revoke(r *results, a *attempt) {
	err := ErrPolicyReplaced
	if m := r.team.Find(a.caps.Agent); a.conversation != nil && a.external || a.stage == givenPrompt && m.IsUnconfined() && !m.Process().Repeatable {
		err = fmt.Errorf("%w, so the task is not performed again: %w", ErrEffectsUncertain, ErrPolicyReplaced)
	}
	a.failure = failure{err: err, code: code(err), message: err.Error(), terminal: errors.Is(err, ErrEffectsUncertain), aborted: err == ErrPolicyReplaced}
	a.envelope, a.outputs, a.text, a.structured, a.outputsText, a.outputsBefore = nil, nil, "", "", "", ""
	a.revoked = true
	if a.end.IsZero() {
		a.end = time.Now()
	}
	a.stream.takeBack()
}

// beginsAgain retries a task whose attempt was revoked or whose stored result cannot be used, unless the run
// is ending. It reports whether it does.
func beginsAgain(ctx context.Context, r *results, a *attempt) bool {
	missed := a.recalls && errors.Is(a.err, ErrPolicyReplaced) && !a.revoked
	if !a.revoked && !missed || a.terminal || ctx.Err() != nil || r.stopped() {
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

// governs returns the roster by whose policy an attempt at a task reads. A task that an earlier process has
// completed uses its result under the policy of that time, or begins again.
func governs(r *results, i int, a *attempt) *plan.Roster {
	by := plan.ReadBy(r.plan, i)
	if p := r.priorRun; p.isStrict() {
		if b := p.task(r.plan.Graph.Task(i).ID); b != nil {
			if t := r.find(b.readBy()); t != nil {
				r.policies.now.Store(t) // which the caller read by then
			}
		}
	} else {
		a.recalls = by.Rules != r.plan.Roster().Rules
	}
	r.readBy[i] = by
	return by
}

// beginStep starts a step of the coordinator, or the question to a person about its plan. Its context ends
// if a new policy denies what it has read. Call end at its end; revoked reports whether that happened.
func (s *steering) beginStep(ctx context.Context, x *modelCall, reader string) (of context.Context, end func() (revoked bool)) {
	if s == nil {
		return ctx, func() bool { return false }
	}
	of, cancel := context.WithCancelCause(ctx)
	h := &stepHolding{by: x.by, reader: reader, cancel: cancel}
	for i := range x.offers {
		if e := x.offers[i].Envelope; e != nil {
			h.from = append(h.from, e.Producer())
		}
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if h.holdsDenied(s.run.governed()) && !x.recalls { // it was prepared before
		h.revoked = true
		cancel(ErrPolicyReplaced)
	}
	s.steps[h] = true
	return of, func() bool {
		s.run.mu.Lock()
		defer s.run.mu.Unlock()
		delete(s.steps, h)
		cancel(nil)
		return h.revoked && ctx.Err() == nil
	}
}
