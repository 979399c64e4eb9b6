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

// A computation performs an attempt at a task that has a value or a template, or counts judges.
// Like an agent it gets only what the gate has sealed for the attempt; the prompt is for those who
// read the records of the run.
type computation struct{ *attempt }

// Run returns the value, counts judges, or executes the template.
func (c computation) Run(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
	if c.task.CountsJudges() {
		return c.count()
	}
	if c.task.Value != nil {
		v, err := jsonvalue.Parse(string(c.task.Value))
		if err != nil {
			return agent.Reply{}, err
		}
		text, structured := plan.ResultOf(v, c.task.OutputSchema != nil)
		return agent.Reply{Text: text, JSON: structured}, nil
	}
	parsed, err := texttemplate.Parse(c.task.Template)
	if err != nil {
		return agent.Reply{}, fmt.Errorf("template: %w", err)
	}
	inputs, results := c.granted()
	if r := c.run.options.Replay; r != nil && len(r.Without)+len(r.WithoutInputs) > 0 {
		fillLeftOut(parsed, inputs, results)
	}
	text, err := parsed.Execute(ctx, inputs, results)
	if err != nil {
		return agent.Reply{}, fmt.Errorf("template: %w", err)
	}
	reply := agent.Reply{Text: text}
	if c.schema == nil {
		return reply, nil
	}
	if reply.JSON, reply.Text, err = jsonvalue.Find(text, c.schema.AllowsType); err == nil {
		err = c.schema.ValidateContext(ctx, reply.JSON)
	}
	if err != nil && !errors.Is(err, schema.ErrGuard) { // a template repeats itself, so nothing corrects it
		err = fmt.Errorf("%w: %w", schema.ErrMismatch, err)
	}
	return reply, err
}

// granted returns the inputs and results that were delivered, by the names that a template has
// for them. The key of a task counts before the title of another.
func (c computation) granted() (inputs, results map[string]any) {
	inputs, results = map[string]any{}, map[string]any{}
	used := 0
	for i := range c.sealed {
		if s := &c.sealed[i]; s.Source().Kind == handoff.Input && used < len(c.task.Uses) { // what follows is read by no use
			u := &c.task.Uses[used]
			inputs[cmp.Or(u.Title, u.Name)] = valueOf(s, u.Item != "")
			used++
		}
	}
	if c.task.Instance != nil {
		for _, name := range c.task.Instance.Lacks {
			results[name] = ""
		}
	}
	delivered := c.delivered()
	c.name(results, delivered, 0)
	c.name(results, delivered, 1)
	return inputs, results
}

// delivered returns what was delivered of each dependency of the task; nil for other alternatives,
// for what was not needed, and for what only conditions read.
func (c computation) delivered() []*gate.Sealed {
	all, next := make([]*gate.Sealed, len(c.task.DependsOn)), 0
	for i := range c.sealed {
		s := &c.sealed[i]
		if s.Source().Kind != handoff.Dependency {
			continue
		}
		for c.task.DependsOn[next].Task != s.Source().Name {
			next++
		}
		all[next] = s
		next++
	}
	return all
}

// name adds to results what was delivered, by the n-th name of each. The results of all instances
// of a task are one list, and what was not granted is an empty text.
func (c computation) name(results map[string]any, delivered []*gate.Sealed, n int) {
	lists := map[string][]any{}
	for j := range len(c.task.DependsOn) - c.task.Reads {
		names := plan.ResultNames(c.graph, c.index, j)
		if n >= len(names) {
			continue
		}
		var value any = ""
		if s := delivered[j]; s != nil {
			value = valueOf(s, true)
		}
		if c.task.DependsOn[j].Each == "" {
			results[names[n]] = value
			continue
		}
		if delivered[j] != nil {
			lists[names[n]] = append(lists[names[n]], value)
		}
		results[names[n]] = lists[names[n]]
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
