package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A brancher decides which ready tasks run: it evaluates their conditions, and chooses among
// alternatives, once all that a task depends on has ended.
type brancher struct {
	run       *results
	undecided []int                      // ready tasks to decide about
	decided   map[int]error              // about tasks that run; an error if their condition could not be read
	rounds    map[string]*comparedRounds // by the title of their loop
	lists     map[listKey]listLength
	decoded   decodedLists
	names     itemNamer
	cut       map[string]bool // the places of lists with a warning of items that are not taken
}

// whyNotNeeded returns the reason of a task whose condition does not hold. It repeats the words of
// the spec and not the value.
func (b *brancher) whyNotNeeded(i int) string {
	return "Not needed: it runs when " + plan.ConditionText(b.run.plan, i) + "."
}

// whyLeftOut is the reason of a task in a round that does not run, or without an item.
const whyLeftOut = "Not needed: there is no such round or item."

// headingOf returns the heading of a dependency in prompts. For a list, it has the number of the
// item in that list, and nothing of the round and the item that the reader belongs to: prompts that
// say the same are equal.
func headingOf(d *task.Ref, from *task.Task) string {
	switch {
	case d.Title != "":
		return d.Title
	case d.Each != "":
		return plan.WrittenTitle(from) + from.Title[strings.LastIndexByte(from.Title, '['):]
	}
	return plan.WrittenTitle(from)
}

// becameReady follows a task that the queue may hand out. Whether it runs may still have to be
// decided.
func (b *brancher) becameReady(t task.Task) {
	if b.run.plan.Branches != nil && plan.MayBeLeftOut(&t) {
		i, _ := b.run.queue.Index(t.ID)
		if _, decided := b.decided[i]; !decided {
			b.undecided = append(b.undecided, i)
			return
		}
	}
	if b.run.bus.live() {
		b.run.ready(t)
	}
}

// decide ends the ready tasks that are not to run, and what follows from them.
func (b *brancher) decide(ctx context.Context) {
	for len(b.undecided) > 0 {
		i := b.undecided[0]
		b.undecided = b.undecided[1:]
		if b.run.queue.Status(i) != task.Pending {
			continue
		}
		now := time.Now()
		if plan.Joins(b.run.plan.Graph.Task(i)) {
			b.decideLoop(ctx, i, now)
			continue
		}
		if missing, ok := b.missing(i); ok {
			must(b.run.queue.Follow(i, missing, now))
			continue
		}
		why, err := b.whyNot(ctx, i, now)
		if err == nil && why != "" {
			must(b.run.queue.Omit(i, why, now))
			continue
		}
		b.decided[i] = err
		if b.run.bus.live() {
			b.run.ready(b.run.queue.Task(i))
		}
	}
}

// missing returns the task because of which task i cannot run: none of its alternatives
// completed, or none of the judges that it counts. It prefers one that failed to one that was
// skipped, and that to one that was not needed.
func (b *brancher) missing(i int) (at int, ok bool) {
	t := b.run.plan.Graph.Task(i)
	up := b.run.plan.Graph.Upstream(i)
	if judges := up[:len(up)-t.Reads]; t.CountsJudges() && len(judges) > 0 { // a replay may leave all of them out
		one := b.alternative(judges)
		return one, b.run.queue.Status(one) != task.Completed
	}
	for j := 0; j < len(t.DependsOn); j += max(len(t.DependsOn[j].OneOf), 1) {
		if n := len(t.DependsOn[j].OneOf); n > 0 && !t.DependsOn[j].Optional {
			if one := b.alternative(up[j : j+n]); b.run.queue.Status(one) != task.Completed {
				return one, true
			}
		}
		if d := &t.DependsOn[j]; d.Each != "" && !d.Optional {
			if s := b.run.queue.Status(int(up[j])); s == task.Failed || s == task.Skipped {
				return int(up[j]), true
			}
		}
	}
	return 0, false
}

// alternative returns the task whose result stands for several: the first that completed, else
// the first that says most about why none did.
func (b *brancher) alternative(tasks []int32) int {
	for _, status := range [...]task.Status{task.Completed, task.Failed, task.Skipped} {
		for _, k := range tasks {
			if b.run.queue.Status(int(k)) == status {
				return int(k)
			}
		}
	}
	return int(tasks[0])
}

// granted yields the dependencies of task i whose results are granted: of alternatives one, of each
// item those that were needed, and none that only its condition reads.
func (b *brancher) granted(i int) iter.Seq[int] {
	return func(yield func(j int) bool) {
		t, ups := b.run.plan.Graph.Task(i), b.run.plan.Graph.Upstream(i)
		for j := 0; j < len(ups)-t.Reads; {
			n, at := max(len(t.DependsOn[j].OneOf), 1), j
			if n > 1 {
				at += slices.Index(ups[j:j+n], int32(b.alternative(ups[j:j+n])))
			}
			if left := t.DependsOn[at].Each != "" && b.run.queue.Status(int(ups[at])) == task.NotNeeded; !left && !yield(at) {
				return
			}
			j += n
		}
	}
}

// offerDependency offers task i the result of task up, which is its dependency j.
func (b *brancher) offerDependency(i, j, up int) gate.Offer {
	d, from := &b.run.plan.Graph.Task(i).DependsOn[j], b.run.plan.Graph.Task(up)
	result, _ := b.run.queue.Result(up)
	return gate.Offer{
		Source: gate.Source{Kind: handoff.Dependency, Name: d.Task}, Title: plan.TitleInPrompts(plan.ReadBy(b.run.plan, i), from, headingOf(d, from)), Assignee: from.Assignee,
		Status: b.run.queue.Status(up), Envelope: result, As: d.As, Optional: d.Optional, ShowsParents: showsParents(result, b.run.plan, b.run.tasks),
	}
}

// showsParents reports whether the caller, if that may see a result, may know what it was made from: the caller may see
// all that was done for its task. If not, it may have been made from messages of which the caller knows nothing.
func showsParents(e *envelope.Envelope, p *Plan, tasks []TaskResult) bool {
	if e == nil {
		return false
	}
	i, known := p.Graph.Index(e.Task()) // of a loop, that of the round
	return known && !tasks[i].Metrics.Partial
}

// offerDependencies offers an attempt the results that its task depends on.
func (b *brancher) offerDependencies(a *attempt, i int) {
	t, ups := b.run.plan.Graph.Task(i), b.run.plan.Graph.Upstream(i)
	for j := range b.granted(i) {
		up := int(ups[j])
		a.grants = append(a.grants, b.run.plan.DependencyGrant(i, j, up))
		a.grants[len(a.grants)-1].List = b.decoded.forDependency(&t.DependsOn[j])
		a.offers = append(a.offers, b.offerDependency(i, j, up))
		a.dependencies++
	}
}

// whyNot evaluates the conditions of task i, and says why it is not needed; "" if it is. An error
// means that the gate withholds a value that they compare, or that it could not decide.
func (b *brancher) whyNot(ctx context.Context, i int, now time.Time) (why string, err error) {
	t := b.run.plan.Graph.Task(i)
	if t.Instance != nil {
		for _, list := range t.Instance.Lists {
			if has, err := b.hasItem(ctx, i, list, now); err != nil || !has {
				return whyLeftOut, err
			}
			b.names.nameItems(ctx, list, now)
		}
	}
	if t.Instance != nil && t.Instance.Guard != nil {
		switch holds, err := b.evaluate(ctx, i, t.Instance.Guard, now); {
		case err != nil:
			return "", err
		case !holds:
			return b.whyGuarded(ctx, i, now)
		}
	}
	if again, err := b.repeats(ctx, i, now); err != nil || again {
		return whyLeftOut, err
	}
	if t.When == nil {
		return "", nil
	}
	if holds, err := b.evaluate(ctx, i, t.When, now); err != nil || holds {
		return "", err
	}
	return b.whyNotNeeded(i), nil
}

// whyGuarded says why a task is not needed whose guard does not hold: the condition of the list of tasks
// that it is written in, or that there is no such round or item.
func (b *brancher) whyGuarded(ctx context.Context, i int, now time.Time) (string, error) {
	in := b.run.plan.Graph.Task(i).Instance
	if in.When == nil || in.Joins { // it is not known here whether a loop has an item
		return whyLeftOut, nil
	}
	if around := in.Guard.Of; in.Guard.Op == condition.All && len(around) == 2 && around[1].String() == in.When.String() {
		if holds, err := b.evaluate(ctx, i, &around[0], now); err != nil || !holds {
			return whyLeftOut, err
		}
	}
	return b.whyNotNeeded(i), nil
}

// evaluate evaluates one condition for task i.
func (b *brancher) evaluate(ctx context.Context, i int, c *condition.Condition, now time.Time) (holds bool, err error) {
	holds = c.Holds(func(c *condition.Condition) string {
		value, failed := b.compared(ctx, i, c, now)
		err = errors.Join(err, failed)
		return value
	})
	return holds, err
}

// compared takes the value that a comparison of task i reads through the gate to the agent of the
// task. It returns canonical JSON, or "" if there is no value.
func (b *brancher) compared(ctx context.Context, i int, c *condition.Condition, now time.Time) (string, error) {
	if up, _ := b.run.plan.Graph.Index(task.ID(c.Task)); b.run.queue.Status(up) == task.NotNeeded {
		return "", nil // of the last round of a loop: there is no such value
	}
	path := task.Path(c.Path)
	canonical, err := b.readFor(ctx, i, c.Task, now, path)
	if err != nil {
		return "", err
	}
	value, _, err := gate.FirstAt(canonical, path)
	return value.Canonical(), err
}

// readFor takes parts of a result that the condition of task i reads through the gate to the
// agent of the task. It returns the delivered value as canonical JSON.
func (b *brancher) readFor(ctx context.Context, i int, from string, now time.Time, paths ...task.Path) (string, error) {
	p, t := b.run.plan, b.run.plan.Graph.Task(i)
	j, _ := p.Graph.Index(task.ID(from))
	at := dependencyOn(t, from)
	grant := p.DependencyGrant(i, at, j)
	grant.Paths, grant.Item, grant.MaxBytes = paths, "", gate.MaxRedact
	result, _ := b.run.queue.Result(j)
	offer := conditionOffer(b.run, t, at, j, result)
	_, payload, err := b.deliver(ctx, i, p.Branches.Of(i), grant, &offer, now)
	if err != nil {
		return "", err
	}
	canonical, ok := payload.JSON()
	if !ok {
		return "", fmt.Errorf("compare a result of %q: it was delivered as a text", p.Graph.Task(j).Title)
	}
	return canonical, nil
}

// deliver takes an offer through the gate to the agent of task i, for the runtime to compare what
// arrives, at most at a level. There is no payload if it would have to be translated first.
func (b *brancher) deliver(ctx context.Context, i int, level label.Classification, grant gate.Grant, offer *gate.Offer, now time.Time) (gate.Ruling, envelope.Payload, error) {
	p, t := b.run.plan, b.run.plan.Graph.Task(i)
	if e := offer.Envelope; e != nil && naming.IsChain(e.Producer()) { // the grant is of the assignee alone
		grant.Terms = plan.ReadBy(p, i).Terms(e.Producer(), t.Assignee)
	}
	contract, err := gate.Negotiate(gate.Request{
		Session: fmt.Sprintf("%s/%s/when", b.run.session, t.ID), Caller: handoff.User, Run: b.run.id, Task: t.ID,
		Classification: level, Grants: []gate.Grant{grant}, Declassified: p.Declassified(i),
	}, &b.run.team.Capabilities[p.Members[i]])
	if err != nil {
		return gate.Ruling{}, envelope.Payload{}, err
	}
	compartment := gate.Compartment{Contract: contract}
	d, err := compartment.Decide(ctx, offer, now)
	if err != nil {
		return d, envelope.Payload{}, err
	}
	if err := b.run.delivered(&d.Decision, plan.ReadBy(p, i), contract.Session, now); err != nil || d.Verdict == gate.NeedsTranslation {
		return d, envelope.Payload{}, err
	}
	payload, _, err := compartment.Payload(offer, &d)
	return d, payload, err
}

// dependencyOn returns which dependency of a task its condition reads a result by.
func dependencyOn(t *task.Task, id string) int {
	for j := len(t.DependsOn) - t.Reads; j < len(t.DependsOn); j++ {
		if t.DependsOn[j].Task == id {
			return j
		}
	}
	return -1
}

// offerCondition offers an attempt what the condition of its task has read, so that it counts as
// read: no prompt has it.
func (b *brancher) offerCondition(a *attempt, i int) {
	t, ups := b.run.plan.Graph.Task(i), b.run.plan.Graph.Upstream(i)
	a.unreadable = b.decided[i]
	for j := len(ups) - t.Reads; j < len(ups)-plan.Rereads(t); j++ {
		result, _ := b.run.queue.Result(int(ups[j]))
		a.grants = append(a.grants, b.run.plan.DependencyGrant(i, j, int(ups[j])))
		a.grants[len(a.grants)-1].List = b.decoded.forDependency(&t.DependsOn[j])
		a.offers = append(a.offers, conditionOffer(b.run, t, j, int(ups[j]), result))
	}
	b.offerLists(a, i)
}

// conditionOffer offers the result of task up to the condition of t.
func conditionOffer(r *results, t *task.Task, at, up int, result *envelope.Envelope) gate.Offer {
	from := r.plan.Graph.Task(up)
	return gate.Offer{
		Source: gate.Source{Kind: handoff.Condition, Name: t.DependsOn[at].Task}, Title: plan.WrittenTitle(from), Assignee: from.Assignee,
		Status: r.queue.Status(up), Envelope: result, As: task.Structured,
	}
}
