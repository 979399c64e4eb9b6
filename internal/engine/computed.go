package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/texttemplate"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// compute returns the value of a task, counts its judges, or executes its template. It takes the
// place of an agent, and like one it gets only what the gate has sealed for the attempt; the prompt
// is for those who read the records of the run.
func (a *attempt) compute(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
	if a.task.CountsJudges() {
		ups := a.graph.Upstream(a.index)
		judges := make([]string, len(ups)-a.task.Reads) // without what its round is conditional on
		for k := range judges {
			judges[k] = a.by.Rules.ShownName(a.graph.Task(int(ups[k])).Assignee)
		}
		return countJudges(deliveredResults(a.task, a.sealed)[:len(judges)], judges, a.task.Instance.Quorum)
	}
	if a.task.Value != nil {
		v, err := jsonvalue.Parse(string(a.task.Value))
		if err != nil {
			return agent.Reply{}, err
		}
		text, structured := plan.ResultOf(v, a.task.OutputSchema != nil)
		return agent.Reply{Text: text, JSON: structured}, nil
	}
	parsed, err := texttemplate.Parse(a.task.Template)
	if err != nil {
		return agent.Reply{}, fmt.Errorf("template: %w", err)
	}
	inputs, results := templateValues(a.task, a.sealed, func(j int) []string { return plan.ResultNames(a.graph, a.index, j) })
	if r := a.run.options.Replay; r != nil && len(r.Without)+len(r.WithoutInputs) > 0 {
		fillLeftOut(parsed, inputs, results)
	}
	text, err := parsed.Execute(ctx, inputs, results)
	if err != nil {
		return agent.Reply{}, fmt.Errorf("template: %w", err)
	}
	reply := agent.Reply{Text: text}
	if a.schema == nil {
		return reply, nil
	}
	if reply.JSON, reply.Text, err = jsonvalue.Find(text, a.schema.AllowsType); err == nil {
		err = a.schema.ValidateContext(ctx, reply.JSON)
	}
	if err != nil && !errors.Is(err, schema.ErrGuard) { // a template repeats itself, so nothing corrects it
		err = fmt.Errorf("%w: %w", schema.ErrMismatch, err)
	}
	return reply, err
}

// templateValues returns the inputs and results that were delivered to a task, by the names that its
// template has for them. names returns those of a dependency: the key of a task counts before the
// title of another.
func templateValues(t *task.Task, sealed []gate.Sealed, names func(dependency int) []string) (inputs, results map[string]any) {
	inputs, results = map[string]any{}, map[string]any{}
	used := 0
	for i := range sealed {
		if s := &sealed[i]; s.Source().Kind == handoff.Input && used < len(t.Uses) { // what follows is read by no use
			u := &t.Uses[used]
			inputs[cmp.Or(u.Title, u.Name)] = valueOf(s, u.Item != "")
			used++
		}
	}
	if t.Instance != nil {
		for _, name := range t.Instance.Lacks {
			results[name] = ""
		}
	}
	delivered := deliveredResults(t, sealed)
	for n := range 2 {
		nameResults(results, t, delivered, names, n)
	}
	return inputs, results
}

// deliveredResults returns what was delivered of each dependency of a task; nil for other alternatives,
// for what was not needed, and for what only conditions read.
func deliveredResults(t *task.Task, sealed []gate.Sealed) []*gate.Sealed {
	all, next := make([]*gate.Sealed, len(t.DependsOn)), 0
	for i := range sealed {
		s := &sealed[i]
		if s.Source().Kind != handoff.Dependency {
			continue
		}
		for t.DependsOn[next].Task != s.Source().Name {
			next++
		}
		all[next] = s
		next++
	}
	return all
}

// nameResults adds to results what was delivered of each dependency, by its n-th name. The results of
// all instances of a task are one list, and what was not granted is an empty text.
func nameResults(results map[string]any, t *task.Task, delivered []*gate.Sealed, names func(dependency int) []string, n int) {
	lists := map[string][]any{}
	for j := range len(t.DependsOn) - t.Reads {
		all := names(j)
		if n >= len(all) {
			continue
		}
		name := all[n]
		var value any = ""
		if s := delivered[j]; s != nil {
			value = valueOf(s, true)
		}
		if t.DependsOn[j].Each == "" {
			results[name] = value
			continue
		}
		if delivered[j] != nil {
			lists[name] = append(lists[name], value)
		}
		results[name] = lists[name]
	}
}

// fillLeftOut makes what a replay leaves out an empty text, where a template names it.
func fillLeftOut(t *texttemplate.Template, inputs, results map[string]any) {
	for _, r := range t.Reads() {
		list := results
		if r.Of == texttemplate.Inputs {
			list = inputs
		}
		if _, granted := list[r.Name]; !granted {
			list[r.Name] = ""
		}
	}
}

// valueOf returns what was delivered: a parsed value if that was asked for or is all there is of
// what may be parsed, and else a text, which is empty for what was withheld.
func valueOf(s *gate.Sealed, parsed bool) any {
	p := s.Payload()
	raw, structured := p.JSON()
	if structured && parsed && (s.As() != task.Output || p.Text() == "") {
		if v, err := jsonvalue.Decode(raw); err == nil {
			return texttemplate.Decoded(v)
		}
	}
	if structured && p.Text() == "" {
		return raw
	}
	return p.Text()
}

// withComputed adds the value, the template or the quorum of a task, which is in no prompt, to a key.
func withComputed(key record.Key, t *task.Task) record.Key {
	if !t.IsComputed() {
		return key
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%d:%s", len(t.Value), t.Value, len(t.Template), t.Template)
	if t.CountsJudges() {
		fmt.Fprintf(h, "quorum %d", t.Instance.Quorum)
	}
	h.Write(key[:])
	return record.Key(h.Sum(nil))
}
