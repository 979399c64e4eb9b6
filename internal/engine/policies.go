package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// policies are all policies that a run has had: its policy can be replaced while it works. Each attempt reads by
// one of them. New attempts, and deliveries to the caller, use the newest.
type policies struct {
	now atomic.Pointer[plan.Roster] // the roster with the current policy

	mu   sync.Mutex     // guards list
	list []*plan.Roster // the rosters with these policies, oldest first
}

func newPolicies(t *plan.Roster) *policies {
	p := &policies{}
	p.add(t)
	return p
}

// governed returns the roster with the current policy.
func (p *policies) governed() *plan.Roster { return p.now.Load() }

// add makes the policy of a roster the current one.
func (p *policies) add(t *plan.Roster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, t)
	p.now.Store(t)
}

// all returns the rosters with the policies, oldest first.
func (p *policies) all() []*plan.Roster {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.list)
}

// named returns the digest of the policy of a roster as in entries of the journal: empty for the first
// policy.
func (p *policies) named(t *plan.Roster) string {
	if first := p.all()[0]; t == nil || t.Rules == first.Rules {
		return ""
	}
	return t.Rules.Digest()
}

// find returns the newest roster with a digest from an entry; nil if there is none.
func (p *policies) find(digest string) *plan.Roster {
	list := p.all()
	for _, t := range slices.Backward(list) {
		if t.Rules.Digest() == digest {
			return t
		}
	}
	if digest == "" {
		return list[0]
	}
	return nil
}

// restorePolicies adds the policies of earlier processes of the run, or of the run that is repeated.
func (r *runScope) restorePolicies() error {
	if r.memo == nil {
		return nil
	}
	for _, c := range r.memo.Policies {
		own, err := c.Policy.Policy()
		if err == nil {
			var t *plan.Roster
			if t, err = plan.WithPolicy(r.team, own); err == nil && t.Rules.Digest() != c.Policy.Digest {
				err = record.ErrPolicyAltered
			}
			if err == nil {
				r.add(t)
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

// govern returns a plan under the current policy, in which the tasks that earlier processes completed count with
// what they read and made.
func (r *runScope) govern(p *plan.Plan) (*plan.Plan, error) {
	now := r.governed()
	if r.memo == nil && p.Roster().Rules == now.Rules || len(r.all()) == 1 {
		return p, nil
	}
	return plan.Govern(p, plan.Under(p.Roster(), now), r.priorStates(p))
}

// priorStates returns what is known of the tasks of a plan from earlier processes.
func (r *runScope) priorStates(p *plan.Plan) []plan.State {
	states := make([]plan.State, p.Graph.Len())
	if r.memo == nil {
		return states
	}
	for k := range states {
		t := r.memo.Task(p.Graph.Task(k).ID)
		if t == nil {
			continue
		}
		ended := t.Accepted()
		if r.memo.Is(memo.Strict) {
			ended = t.LastAttempt()
		}
		switch {
		case ended != nil:
			states[k] = plan.State{Completed: true, Label: p.Labels[k], By: r.find(ended.Policy)}
			if ended.Result != nil {
				states[k].Label = ended.Result.Header.Classification
			}
		case t.Asked != nil:
			states[k].By = r.find(t.Asked.Policy)
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

// ErrPolicyReplaced ends an attempt for which a new policy of the run changes something. It begins again.
var ErrPolicyReplaced = errors.New("the policy of the run was replaced")

// policiesOf returns the entries with which the policies of a run came.
func policiesOf(m *memo.Memo) (list []record.Entry) {
	for _, c := range m.Policies {
		own := *c
		own.Number = 0
		list = append(list, record.Entry{Command: &own})
	}
	return list
}
