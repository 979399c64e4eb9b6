package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A settingPeople is the people of a setting, and what happens while the run waits for one of them.
type settingPeople struct {
	people []bool // of each agent

	narrower *handoff.Policy // delivers no more than the policy of the setting; nil if the policy is not replaced
	widens   bool            // the run begins with the narrower policy, which is replaced by the other one
	during   int             // the task of a person, in whose first question the policy is replaced
}

// drawPeople draws people in place of agents that do nothing that people cannot do, people who approve calls of tools, and
// another policy.
func (d *drawing) drawPeople() {
	s := d.s
	s.people = make([]bool, len(s.agents))
	if !d.chance(45, "people") {
		return
	}
	for at := range s.agents {
		if s.people[at] = s.couldBePerson(at) && d.chance(70, "person"); !s.people[at] {
			continue
		}
		s.agents[at].SystemPrompt = ""
		for i := range s.tasks {
			if s.tasks[i].Assignee == s.agents[at].Name {
				s.calls[i], s.acts[i] = nil, nil
			}
		}
	}
	if len(s.tools) > 0 && d.chance(70, "approvals") {
		d.approvers()
	}
	d.replacement()
}

// couldBePerson reports whether an agent has and does nothing that a person cannot have or do.
func (s *setting) couldBePerson(at int) bool {
	m := &s.agents[at]
	if len(s.toolsOf[at]) > 0 || m.Endpoint != "" || s.spawns[at] || m.AllowUntrusted != nil {
		return false
	}
	return !slices.ContainsFunc(s.links, func(e handoff.Edge) bool {
		return e.From == m.Name || e.To == m.Name && (e.Bidirectional || e.Delegate || e.Transfer)
	}) && !slices.ContainsFunc(s.messages, func(msg engine.Message) bool {
		return msg.From == m.Name
	}) && !slices.ContainsFunc(s.policy.Rules, func(r handoff.PairRule) bool {
		return r.To == m.Name && r.Translate != nil && r.Translate.ByModel
	})
}

// approvers draws who approves calls of tools: a person who has tasks and may read all of them, or one who has none.
// Most policies let them see what they approve.
func (d *drawing) approvers() {
	s, level := d.s, label.Internal
	for _, l := range d.labels {
		level = level.Join(l)
	}
	var who []string
	for at := range s.agents {
		if s.people[at] && s.agents[at].Accepts >= level {
			who = append(who, s.agents[at].Name)
		}
	}
	if len(who) == 0 || d.chance(60, "without tasks") {
		if d.chance(20, "accepts more") {
			level = label.Secret
		}
		s.agents = append(s.agents, engine.Member{Name: "approver", Accepts: level})
		s.forms, s.toolsOf, s.people = append(s.forms, plain), append(s.toolsOf, nil), append(s.people, true)
		s.spawns, s.passes, s.looks = append(s.spawns, false), append(s.passes, ""), append(s.looks, nil)
		who = append(who, "approver")
	}
	for k := range s.tools {
		if d.chance(60, "approved") {
			s.tools[k].options.Approve = pickOne(d, who, "who approves")
			d.showTo(s.tools[k].options.Approve, k)
		}
	}
}

// showTo draws the rules for what a person sees of the calls of a tool.
func (d *drawing) showTo(who string, k int) {
	s := d.s
	for at := range s.agents {
		if slices.Contains(s.toolsOf[at], k) && s.ruleBetween(s.agents[at].Name, who) == nil && d.chance(90, "sees it") {
			r := handoff.PairRule{From: s.agents[at].Name, To: who, Mode: handoff.Full}
			if d.chance(30, "less than all") {
				r.Block = some(d, []task.Path{"inner", "q", "/**/note"}, 2, "block")
			}
			s.policy.Rules = append(s.policy.Rules, r)
		}
	}
}

// replacement draws a narrower policy, if a person has a task in every run.
func (d *drawing) replacement() {
	s := d.s
	var during []int
	for i := range s.tasks {
		if s.people[slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == s.tasks[i].Assignee })] && s.runsAlways(i) {
			during = append(during, i)
		}
	}
	if len(during) == 0 || !d.chance(90, "another policy") {
		return
	}
	s.during, s.widens = pickOne(d, during, "during"), d.chance(25, "widens")
	p := *s.policy
	p.Rules = slices.Clone(p.Rules)
	var pairs [][2]string
	for _, pair := range sortedPairs(d.between) {
		if !d.compared[pair] && len(d.needed[pair]) == 0 {
			pairs = append(pairs, pair)
		}
	}
	if len(pairs) == 0 || d.chance(30, "the user too") {
		pairs = append(pairs, [2]string{d.agent(), handoff.User})
	}
	for _, pair := range pairs[d.number(0, len(pairs)-1, "the first pair"):] {
		d.narrow(&p, pair)
	}
	s.narrower = &p
}

// narrow has a policy deliver less to a pair.
func (d *drawing) narrow(p *handoff.Policy, pair [2]string) {
	at := slices.IndexFunc(p.Rules, func(r handoff.PairRule) bool { return r.From == pair[0] && r.To == pair[1] })
	if at < 0 {
		at, p.Rules = len(p.Rules), append(p.Rules, handoff.PairRule{From: pair[0], To: pair[1]})
	}
	r := &p.Rules[at]
	switch {
	case r.Mode == handoff.Minimal:
	case !d.exact[pair] && pair[1] != handoff.User && d.chance(40, "minimal"):
		*r = handoff.PairRule{ID: r.ID, From: r.From, To: r.To, Mode: handoff.Minimal, Ceiling: r.Ceiling, Redact: r.Redact}
	default:
		r.Block = append(slices.Clip(r.Block), some(d, closed.blocks(), 2, "block")...)
	}
}

// runsAlways reports whether no condition decides about a task.
func (s *setting) runsAlways(i int) bool {
	if s.tasks[i].When != nil {
		return false
	}
	for _, ref := range s.tasks[i].DependsOn {
		if up := slices.IndexFunc(s.tasks, func(t task.Spec) bool { return t.Title == ref.Task }); !s.runsAlways(up) {
			return false
		}
	}
	return true
}

// isPerson reports whether an agent is a person.
func (s *setting) isPerson(name string) bool {
	at := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == name })
	return at >= 0 && s.people[at]
}

// hasPeople reports whether a run waits for people.
func (s *setting) hasPeople() bool { return slices.Contains(s.people, true) }

// startCompressors has the compressors of journals make their channels, which all runs share, outside of the bubbles of
// single runs.
func startCompressors() {
	ctx, o := context.Background(), &engine.RunOptions{RunID: "run"}
	k, err := newKeeper(ctx, o)
	if err == nil {
		_, err = k.text(ctx, &engine.Result{RunID: o.RunID})
	}
	if err = errors.Join(err, k.journal.Close()); err != nil {
		panic(err)
	}
}

// bubbleOf has a run of a setting with people in a bubble of its own, where a person answers when the run can do nothing
// else: what happens at the same time is the same in each run then.
func bubbleOf(t *testing.T) func(func()) {
	return func(f func()) {
		synctest.Test(t, func(*testing.T) { f() })
	}
}

// asPerson makes a person of an agent of the stage.
func (st *stage) asPerson(a int, places map[task.ID]int) *person.Agent {
	s := st.setting
	return person.New(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		i := places[p.Receipt().Task]
		step, asks := approvalStep(p, s.tasks[i].Title)
		if !asks {
			step = s.tasks[i].Title
		}
		st.look(p, step)
		wait := time.Millisecond
		for range i { // all questions of one task are answered before one of the next
			wait *= 6
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
		if asks {
			return approves(p), nil
		}
		if i == s.during && s.narrower != nil && !st.replaced {
			st.replaced = true
			if st.replacePolicy(ctx); ctx.Err() != nil { // the question is for the policy before
				return agent.Reply{}, context.Cause(ctx)
			}
		}
		r, err := st.now.answer(s, i, s.forms[a], p)
		r.Text = strings.TrimSuffix(strings.TrimPrefix(r.Text, "```json\n"), "\n```")
		return r, err
	})
}

// approvalStep is the part of a task in which a person approves a call, if a prompt asks for that.
func approvalStep(p prompt.Prompt, title string) (step string, asks bool) {
	name, is := strings.CutPrefix(p.Text(), "# Task: "+plan.ApprovalTitle(""))
	name, _, _ = strings.Cut(name, "\n")
	return flow.ApprovalTitle(name, title), is && engine.IsApproval(p)
}

// approves is the answer to a question about a call: a function of the prompt.
func approves(p prompt.Prompt) agent.Reply {
	decision := [...]string{"yes", "yes", "no", "always"}[letters(1, gist(p, "decision"))[0]%4]
	return agent.Reply{Text: encoded(map[string]string{"decision": decision, "reason": "since " + gist(p, "reason") + " " + echoes(p)[:echoed-200]})}
}

// first is the policy that a run begins with.
func (s *setting) first() *handoff.Policy {
	if s.widens && s.narrower != nil {
		return s.narrower
	}
	return s.policy
}

// replacePolicy replaces the policy of the run by the other one, unless the tasks that are left could not run then.
func (st *stage) replacePolicy(ctx context.Context) {
	next := st.setting.policy
	if !st.widens {
		next = st.narrower
	}
	now, err := st.monitor.Policy()
	if err == nil {
		err = st.monitor.Steer(context.WithoutCancel(ctx), steer.Command{Kind: steer.ReplacePolicy, By: "ann", Policy: next, Replaces: now.Digest})
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if err == nil {
		st.policy = next
	}
}

// approved holds what a person is shown of a call to the rules for what the agent passes to that person.
func (v *view) approved(s *sight) (wrong string) {
	if !flow.IsApproval(s.step) {
		return ""
	}
	for _, at := range s.receipt.Text {
		if at.Source < 0 || s.receipt.Sources[at.Source].Decision == nil {
			continue
		}
		d := s.receipt.Sources[at.Source].Decision
		shown := s.text[at.Start:at.End]
		from, to := strings.Index(shown, "{"), strings.LastIndex(shown, "}")
		if d.Source.Kind != handoff.Arguments || from < 0 || to < from {
			continue
		}
		var value any
		if json.Unmarshal([]byte(shown[from:to+1]), &value) != nil {
			continue // not the value
		}
		v.sum.shown++
		leaves(value, nil, func(path []string, text string) {
			for i := range s.policy.Rules {
				r := &s.policy.Rules[i]
				if wrong == "" && canaries.MatchString(text) && (r.From == d.From || r.From == handoff.Anyone) && (r.To == s.agent || r.To == handoff.Anyone) {
					wrong = breaks(r, path, d)
				}
			}
		})
	}
	return wrong
}
