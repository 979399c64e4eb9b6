package engine

import (
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

// A computation performs an attempt at a task that has a value or a template. Like an agent it
// gets only what the gate has sealed for the attempt; the prompt is for those who read the
// records of the run.
type computation struct{ *attempt }

// Run returns the value, or executes the template.
func (c computation) Run(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
	if c.task.Value != nil {
		v, err := jsonvalue.Parse(string(c.task.Value))
		if err != nil {
			return agent.Reply{}, err
		}
		text, structured := plan.ResultOf(v, c.schema != nil)
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
	for i, u := range c.task.Uses {
		inputs[u.Name] = valueOf(&c.sealed[i])
	}
	deps := c.sealed[len(c.task.Uses):]
	for k, up := range c.graph.Upstream(c.index) {
		results[c.graph.Task(int(up)).Title] = valueOf(&deps[k])
	}
	for k, up := range c.graph.Upstream(c.index) {
		if key := c.graph.Task(int(up)).Key; key != "" {
			results[key] = valueOf(&deps[k])
		}
	}
	return inputs, results
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

// valueOf returns what was delivered: a parsed value if that was asked for or is all there is,
// and else a text, which is empty for what was withheld.
func valueOf(s *gate.Sealed) any {
	p := s.Payload()
	raw, structured := p.JSON()
	if structured && s.Source().Kind == handoff.Dependency && (s.As() != task.Output || p.Text() == "") {
		if v, err := jsonvalue.Decode(raw); err == nil {
			return texttemplate.Decoded(v)
		}
	}
	if structured && p.Text() == "" {
		return raw
	}
	return p.Text()
}

// withComputed adds the value or the template of a task, which is in no prompt, to a key.
func withComputed(key record.Key, t *task.Task) record.Key {
	if !t.IsComputed() || key == (record.Key{}) {
		return key
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%d:%s", len(t.Value), t.Value, len(t.Template), t.Template)
	h.Write(key[:])
	return record.Key(h.Sum(nil))
}
