package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/texttemplate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// Tasks with a value or a template are performed by a member that no team lists. It is in this
// process, so it is cleared for everything, and like every member it cannot lower a label.

// computedVersion changes when equal templates of equal values make other texts.
const computedVersion = "runteam/computed/1"

// agentsOf returns how many members are agents of the team.
func agentsOf(t *Roster) int {
	if t.agents != nil {
		return len(t.agents.Config.Agents)
	}
	return len(t.Config.Agents)
}

// addComputedMember returns the roster for the tasks: that of the team, unless some of them have no agent.
func (c *checker) addComputedMember() *Roster {
	if slices.ContainsFunc(c.specs, func(s task.Spec) bool { return s.IsComputed() }) {
		c.team = withComputed(c.team)
	}
	return c.team
}

// RosterForGoal returns the roster for a run of a goal: with the member for tasks without an agent if
// the coordinator may plan judges, whom such a task counts.
func RosterForGoal(t *Roster) *Roster {
	if c := t.Config.Coordinator; c != nil && c.MayPlan.Verify {
		return withComputed(t)
	}
	return t
}

// withComputed returns a roster with the member for tasks without an agent.
func withComputed(t *Roster) *Roster {
	accepts := label.Secret
	more := *t
	more.agents = t
	more.Config.Agents = append(slices.Clip(t.Config.Agents), Member{
		Name: handoff.Computed, Agent: agent.Func(uncomputed), Accepts: accepts, Produces: &accepts,
		Limits: Limits{MaxContextBytes: gate.MaxRedact, MaxPromptBytes: brief.MaxBytes}, Backend: Backend{Version: computedVersion},
	})
	more.Capabilities = append(slices.Clip(t.Capabilities), gate.Capabilities{Agent: handoff.Computed, Accepts: accepts, Produces: accepts})
	more.Schemas = append(slices.Clip(t.Schemas), nil)
	more.byName = maps.Clone(t.byName)
	more.byName[handoff.Computed] = len(t.Config.Agents)
	return &more
}

// uncomputed is in place of the agent, which differs from attempt to attempt.
func uncomputed(context.Context, prompt.Prompt) (agent.Reply, error) {
	return agent.Reply{}, errors.New("it performs only tasks that have a value or a template")
}

// computedBy names what a task has in place of an agent.
func computedBy(s *task.Spec) string {
	switch {
	case s.Value != nil:
		return "value"
	case s.Template != "":
		return "template"
	case s.CountsJudges():
		return "verdict"
	}
	return ""
}

// assignComputed gives the tasks without an agent to the member that performs them, and loops whose result
// such a task has.
func (c *checker) assignComputed() {
	g := c.plan.Graph
	for _, at := range g.Order() {
		i := int(at)
		t := g.Task(i)
		if t.IsComputed() || Joins(t) && t.Assignee == "" && g.Task(int(g.Upstream(i)[0])).Assignee == handoff.Computed {
			g.Assign(i, handoff.Computed)
		}
	}
}

// schemaOfValue returns the schema that only a value matches, or nil for a text.
func schemaOfValue(raw json.RawMessage) *schema.Schema {
	v, err := jsonvalue.Parse(string(raw))
	if _, isText := v.Value().(string); isText || err != nil {
		return nil
	}
	s, _ := schema.Parse(`{"const":` + v.Canonical() + `}`)
	return s
}

// checkComputedResult checks a value or a template by itself.
func (c *checker) checkComputedResult(about func() subject, s *task.Spec) {
	if s.Template != "" {
		if _, err := texttemplate.Parse(s.Template); err != nil {
			c.reportAtLine(about().at("template"), err, "template: "+err.Error(), "correct it; it is a template of Go's text/template")
		}
	}
	if s.Value == nil {
		return
	}
	at := about().at("value")
	v, err := jsonvalue.Parse(string(s.Value))
	if err != nil {
		at.report("value: "+err.Error(), "", err)
		return
	}
	if text, structured := ResultOf(v, s.OutputSchema != nil); !gate.FitsReply(text, structured) {
		at.report(fmt.Sprintf("value: it is larger than a result may be, %s with its text and its structured part", bytesize.Text(gate.MaxReply)), "make it an input", brief.ErrTooLarge)
		return
	}
	if s.OutputSchema == nil {
		return
	}
	if parsed, err := c.parse(s.OutputSchema); err == nil { // another error is reported with the schema
		if err := parsed.Validate(v); err != nil {
			at.report("value: "+err.Error(), "correct it, or outputSchema", err)
		}
	}
}

// ResultOf returns the result of a task with a value. A text has no structured part, unless the
// task has a schema of its own. Without one, the result is the canonical form, which schemaOfValue
// demands: large integers are texts in it.
func ResultOf(v jsonvalue.Value, hasSchema bool) (text string, structured jsonvalue.Value) {
	if text, isText := v.Value().(string); isText && !hasSchema {
		return text, jsonvalue.Value{}
	}
	if same, err := jsonvalue.Parse(v.Canonical()); err == nil && !hasSchema {
		v = same
	}
	return v.Canonical(), v
}

// reportAtLine reports a problem with the line that an error of a template has.
func (c *checker) reportAtLine(s subject, err error, message, hint string) {
	s.report(message, hint, task.ErrInvalid)
	if at, ok := errors.AsType[*texttemplate.Error](err); ok {
		c.found[len(c.found)-1].Line = at.Line
	}
}

// checkTemplateReads reports names in templates of what their tasks are not granted. What a replay leaves
// out is not granted either; the run then says so.
func (c *checker) checkTemplateReads() {
	if c.options.Replay != nil {
		return
	}
	for i := range c.plan.Graph.Len() {
		if t := c.plan.Graph.Task(i); t.Template != "" {
			c.checkTemplateReadsOf(i, t)
		}
	}
}

func (c *checker) checkTemplateReadsOf(i int, t *task.Task) {
	parsed, err := texttemplate.Parse(t.Template)
	if err != nil {
		return // reported
	}
	granted := map[string][]string{}
	for j := range len(t.DependsOn) - t.Reads { // what its condition reads is not granted
		granted[texttemplate.Results] = append(granted[texttemplate.Results], ResultNames(c.plan.Graph, i, j)...)
	}
	if t.Instance != nil {
		granted[texttemplate.Results] = append(granted[texttemplate.Results], t.Instance.Lacks...)
	}
	for _, u := range t.Uses {
		granted[texttemplate.Inputs] = append(granted[texttemplate.Inputs], cmp.Or(u.Title, u.Name))
	}
	for _, r := range parsed.Reads() {
		if r.Name == "" && (r.Of == texttemplate.Inputs || r.Of == texttemplate.Results) || slices.Contains(granted[r.Of], r.Name) {
			continue
		}
		message, hint := c.explainUngranted(r, granted[r.Of])
		c.reportAtLine(c.task(i).at("template"), &texttemplate.Error{Line: r.Line}, "template: "+message, hint)
	}
}

// ResultNames returns the names by which a template of task i names the result of dependency j:
// the heading of an item, the name of several tasks for each item, or the title as written of the other
// task and its key.
func ResultNames(g *graph.Graph, i, j int) []string {
	d, from := &g.Task(i).DependsOn[j], g.Task(int(g.Upstream(i)[j]))
	key := from.Key
	if from.Instance != nil && key == "" {
		key = from.Instance.Key
	}
	switch {
	case d.Title != "":
		return []string{d.Title}
	case d.Each != "" && d.Each != key && naming.Normalize(d.Each) != naming.Normalize(WrittenTitle(from)): // of several tasks for each item
		return []string{d.Each}
	case key == "":
		return []string{WrittenTitle(from)}
	}
	return []string{WrittenTitle(from), key}
}

// explainUngranted says why a template cannot read a name, and what to write.
func (c *checker) explainUngranted(r texttemplate.Read, granted []string) (message, hint string) {
	switch r.Of {
	case texttemplate.Inputs:
		return fmt.Sprintf("the task is not granted input %q", r.Name), nearGranted(r.Name, granted, fmt.Sprintf("add %q to uses", r.Name))
	case texttemplate.Results:
		i, known := taskNames(c.specs).Find(r.Name)
		if !known {
			return fmt.Sprintf("there is no task %q", r.Name), nearGranted(r.Name, granted, "write the key or the title of a task in dependsOn")
		}
		title := c.specs[i].Title
		return fmt.Sprintf("the task is not granted the result of %q", title), nearGranted(r.Name, granted, fmt.Sprintf("add %q to dependsOn", title))
	}
	return fmt.Sprintf("unknown name %q", "."+r.Of), "write .inputs.NAME or .results.NAME"
}

// nearGranted suggests a granted name that differs in a letter or in its case, or else otherwise.
func nearGranted(name string, granted []string, otherwise string) string {
	if best, ok := naming.Nearest(name, granted); ok {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return otherwise
}
