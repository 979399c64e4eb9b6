package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// policies are all policies that a run has had: its policy can be replaced while it works. An attempt reads
// by the policy that applied when it began, as long as the newest one delivers at least as much to it.
// New attempts, and deliveries to the caller, use the newest.
type policies struct {
	now atomic.Pointer[plan.Roster] // the roster with the current policy

	mu   sync.Mutex // guards list
	list []governance
}

// A governance is a policy of a run.
type governance struct {
	team   *plan.Roster
	digest string
	at     int // the number of entries in the history before it; zero for policies of this process
}

func newPolicies(t *plan.Roster) *policies {
	p := &policies{list: []governance{{team: t, digest: t.Rules.Digest()}}}
	p.now.Store(t)
	return p
}

// governed returns the roster with the current policy.
func (p *policies) governed() *plan.Roster { return p.now.Load() }

// add makes a policy the current one.
func (p *policies) add(g governance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, g)
	p.now.Store(g.team)
}

// all returns the policies, oldest first.
func (p *policies) all() []governance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.list)
}

// named returns the digest of the policy of a roster as in entries of the journal: empty for the first
// policy.
func (p *policies) named(t *plan.Roster) string {
	if first := p.all()[0]; t == nil || t.Rules == first.team.Rules {
		return ""
	}
	return t.Rules.Digest()
}

// find returns the newest roster with a digest from an entry; nil if there is none.
func (p *policies) find(digest string) *plan.Roster {
	list := p.all()
	for _, g := range slices.Backward(list) {
		if g.digest == digest {
			return g.team
		}
	}
	if digest == "" {
		return list[0].team
	}
	return nil
}

// restorePolicies adds the policies of earlier processes of the run, or of the run that is repeated.
func (r *runScope) restorePolicies() error {
	p := r.priorRun
	if p == nil {
		return nil
	}
	for i := range p.history.Log {
		c := p.history.Log[i].Command
		if c == nil || c.Policy == nil {
			continue
		}
		own, err := c.Policy.Policy()
		if err == nil {
			var t *plan.Roster
			if t, err = plan.WithPolicy(r.team, own); err == nil && t.Rules.Digest() != c.Policy.Digest {
				err = record.ErrPolicyAltered
			}
			if err == nil {
				r.add(governance{t, c.Policy.Digest, i + 1})
				continue
			}
		}
		found := plan.AsProblems(err)
		for k := range found {
			found[k].Message = fmt.Sprintf("the policy that %s gave the run: %s", c.By, found[k].Message)
		}
		return found
	}
	return nil
}

// govern returns a plan under all policies that came after its own.
func (r *runScope) govern(p *plan.Plan) (*plan.Plan, error) {
	list, own := r.all(), p.Roster()
	from := slices.IndexFunc(list, func(g governance) bool { return g.team.Rules == own.Rules })
	past := len(list) > 1 && r.priorRun != nil
	for k := from + 1; k < len(list) && from >= 0; k++ {
		next, err := plan.Govern(p, plan.Under(own, list[k].team), r.statesBefore(p, list[k].at))
		if err != nil {
			return nil, err
		}
		p = next
	}
	if !past {
		return p, nil
	}
	return plan.Govern(p, plan.Under(own, r.governed()), r.statesBefore(p, len(r.priorRun.history.Log)))
}

// statesBefore returns what is known of the tasks of a plan from the first entries of the history.
func (r *runScope) statesBefore(p *plan.Plan, entries int) []plan.State {
	states := make([]plan.State, p.Graph.Len())
	if r.priorRun == nil {
		return states
	}
	for i := range r.priorRun.history.Log[:entries] {
		e := &r.priorRun.history.Log[i]
		switch {
		case e.Asked != nil:
			if k, known := p.Graph.Index(e.Asked.Task); known && !states[k].Completed {
				states[k].By = r.find(e.Asked.Policy)
			}
		case e.Exchange != nil && e.Exchange.Part == "":
			k, known := p.Graph.Index(e.Exchange.Task)
			if !known || !e.Exchange.Completed() && !r.priorRun.isStrict() {
				continue
			}
			states[k] = plan.State{Completed: true, Label: p.Labels[k], By: r.find(e.Exchange.Policy)}
			if res := e.Exchange.Result; res != nil {
				states[k].Label = res.Header.Classification
			}
		}
	}
	return states
}

// normal returns a policy as the journal gives it back, with where it is written.
func normal(p *handoff.Policy) (*handoff.Policy, error) {
	text, err := policytext.Write(p)
	if err != nil {
		return nil, err
	}
	own, err := policytext.Read(text)
	if err != nil {
		return nil, err
	}
	policytext.SetOrigins(own, policytext.Origins(p))
	return own, nil
}

// storedPolicy returns the policy of a roster as it is stored; one without rules has the names of the agents.
func storedPolicy(t *plan.Roster) *record.Policy {
	own := t.Rules.Policy()
	stored, err := record.NewPolicy(&own, t.Rules.Digest(), plan.Parties(t))
	if err != nil {
		why := strings.TrimPrefix(err.Error(), record.ErrPolicyUnwritten.Error()+": ")
		return &record.Policy{Digest: t.Rules.Digest(), Parties: plan.Parties(t), Missing: why}
	}
	return stored
}

// Policy returns the policy that holds now, with its digest and whom it may name.
func (r *run) Policy() (*record.Policy, error) {
	t := r.governed()
	own := t.Rules.Policy()
	return record.NewPolicy(&own, t.Rules.Digest(), plan.Parties(t))
}

// asProblem makes the widenings of a policy problems of it.
func asProblem(list []string, err error) (found task.Problems) {
	for _, text := range list {
		found = append(found, task.Problem{Pointer: "/policy", Message: text, Hint: "narrow it, or start the run with AllowWidening", Err: err})
	}
	return found
}

// ErrPolicyReplaced ends an attempt that holds what the new policy of the run denies. It begins again.
var ErrPolicyReplaced = errors.New("the policy of the run was replaced")

// policiesOf returns the entries with which the policies of a run came.
func policiesOf(p *priorRun) (list []record.Entry) {
	for i := range p.history.Log {
		if c := p.history.Log[i].Command; c != nil && c.Policy != nil {
			own := *c
			own.Number = 0
			list = append(list, record.Entry{Command: &own})
		}
	}
	return list
}
