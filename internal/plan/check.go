package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Check checks tasks against the roster and returns what a run of them would do. The
// error is [task.Problems]: everything that is wrong, with pointers into the tasks as
// written. Resolved tasks get at as the time of their creation.
func (t *Roster) Check(specs []task.Spec, o Options, at time.Time) (*Plan, error) {
	specs, unknown := o.Replay.apply(specs, o.Inputs)
	if len(unknown) > 0 {
		return nil, unknown
	}
	c := checker{team: t, options: o, specs: specs, inputs: make(map[string]int, len(o.Inputs))}
	c.checkOptions()
	if !o.Planned {
		c.checkFresh()
	}
	c.checkMessages()
	g, err := graph.Resolve(specs, at)
	if err != nil {
		problems, ok := errors.AsType[task.Problems](err)
		if !ok {
			return nil, err
		}
		c.found = append(c.found, problems...)
	}
	reported := make(map[string]bool, len(c.found)) // one problem in one place is enough
	for _, p := range c.found {
		reported[p.Pointer] = true
	}
	known := len(c.found)
	for i := range specs {
		c.checkSpec(i, &specs[i])
	}
	c.found = slices.Concat(c.found[:known], slices.DeleteFunc(c.found[known:], func(p task.Problem) bool { return reported[p.Pointer] }))
	if len(specs) == 0 {
		c.add(task.Problem{Pointer: "/tasks", Message: "there are no tasks", Hint: "add a task with a title and a description", Err: ErrNoTasks})
	}
	if len(c.found) > 0 {
		return nil, c.sorted()
	}
	c.plan = &Plan{
		Description: Description{Name: t.Config.Name, User: PlannedUser{Accepts: *o.UserAccepts}},
		Graph:       g, Roster: func() *Roster { return t }, Options: func() *Options { return &o },
	}
	c.plan.writeLines()
	if c.assign(); len(c.found) == 0 {
		lowering := c.checkFlow()
		(&sizeCheck{checker: &c, reported: make([]bool, len(o.Inputs)), known: map[knownSize]gate.Decision{}}).checkSizes()
		if c.checkOutput(); len(c.found) == 0 {
			c.plan.Written = c.specs
			lowering.checkDisclosures()
		}
	}
	if len(c.found) > 0 {
		return nil, c.sorted()
	}
	if c.checkAssertions(); len(c.found) > 0 {
		return nil, c.sorted()
	}
	c.adviseUnused()
	c.plan.Warnings = append(slices.Clone(t.Warnings), c.advice...)
	return c.plan, nil
}

// adviseUnused warns of inputs that no task uses.
func (c *checker) adviseUnused() {
	for i, in := range c.options.Inputs {
		if !c.used[i] {
			c.advice = append(c.advice, task.Problem{Pointer: naming.Pointer("inputs", in.Name), Subject: fmt.Sprintf("input %q", in.Name), Message: "no task uses it"})
		}
	}
}

// CheckGoalRun checks what can be checked of a run for o.Answer before the coordinator has
// planned its tasks.
func (t *Roster) CheckGoalRun(o Options) task.Problems {
	c := checker{team: t, options: o, inputs: make(map[string]int, len(o.Inputs))}
	c.checkOptions()
	c.checkMessages()
	c.checkAnswer()
	c.checkReaders()
	(&pathCheck{checker: &c}).checkPolicyPaths()
	return c.found
}

// A checker collects everything that is wrong with one set of tasks, for the checks of
// each subject.
type checker struct {
	team    *Roster
	options Options
	specs   []task.Spec
	inputs  map[string]int // lower-cased name to index
	used    []bool         // of each input
	plan    *Plan
	found   task.Problems
	parsed  map[string]parsed
	advice  []task.Problem // what is worth a look and no error
}

func (c *checker) add(p task.Problem) { c.found = append(c.found, p) }

// sorted returns the problems in the order of the tasks, and within a task as found.
func (c *checker) sorted() error {
	slices.SortStableFunc(c.found, func(a, b task.Problem) int { return naming.TaskIndex(a.Pointer) - naming.TaskIndex(b.Pointer) })
	return c.found
}

func (c *checker) checkOptions() {
	o := c.options
	if !o.Strategy.Valid() {
		c.add(task.Problem{Pointer: "/schedulingStrategy", Message: fmt.Sprintf("no strategy is called %q", o.Strategy), Hint: naming.Suggest(string(o.Strategy), strategies()), Err: task.ErrInvalid})
	}
	if o.MaxTokenBudget < 0 {
		c.add(task.Problem{Pointer: "/maxTokenBudget", Message: "maxTokenBudget must not be negative", Hint: "leave it out for no bound", Err: task.ErrInvalid})
	}
	if o.MaxCostBudget < 0 {
		c.add(task.Problem{Pointer: "/maxCostBudget", Message: "maxCostBudget must not be negative", Hint: "leave it out for no bound", Err: task.ErrInvalid})
	}
	c.checkPriced()
	if o.MaxConcurrency < 0 {
		c.add(task.Problem{Pointer: "/maxConcurrency", Message: "maxConcurrency must be at least 1", Err: task.ErrInvalid})
	}
	if err := naming.CheckLine(o.RunID); o.RunID != "" && err != nil {
		c.add(task.Problem{Pointer: "/runId", Message: "the run's id: " + err.Error(), Err: err})
	}
	if o.Timeout < 0 {
		c.add(task.Problem{Pointer: "/timeoutMs", Message: "timeoutMs must not be negative", Err: task.ErrInvalid})
	}
	if !o.UserAccepts.Valid() {
		c.add(unknownLabel("/userAccepts", ""))
	}
	c.used = make([]bool, len(o.Inputs))
	for i := range o.Inputs {
		c.checkInput(i)
	}
}

// checkInput checks one input by itself.
func (c *checker) checkInput(i int) {
	o := c.options
	in := &o.Inputs[i]
	at, subject := naming.Pointer("inputs", in.Name), fmt.Sprintf("input %q", in.Name)
	if err := naming.CheckName(in.Name); err != nil {
		c.add(task.Problem{Pointer: at, Subject: subject, Message: err.Error(), Err: err})
	}
	folded := strings.ToLower(in.Name)
	if first, twice := c.inputs[folded]; twice {
		c.add(task.Problem{Pointer: at, Subject: subject, Message: fmt.Sprintf("there already is an input %q", o.Inputs[first].Name), Hint: "give each input a name of its own; letter case does not tell names apart", Err: task.ErrDuplicate})
	}
	c.inputs[folded] = i
	if !in.Classification.Valid() {
		c.add(unknownLabel(at+"/classification", subject))
	}
	if in.Envelope != nil {
		now := time.Now()
		if o.Replay != nil {
			now = time.Time{} // a replay reads what its run read
		}
		if text, _, err := gate.InputText(in.Envelope, now); err != nil {
			c.add(task.Problem{Pointer: at, Subject: subject, Message: "the result of an earlier run cannot be used: " + err.Error(), Hint: "run the task again, or give a text", Err: err})
		} else if in.Text != text {
			c.add(task.Problem{Pointer: at, Subject: subject, Message: "it has a Text and an Envelope", Hint: "leave one of them out", Err: task.ErrInvalid})
		}
	}
	if !utf8.ValidString(in.Text) {
		c.add(task.Problem{Pointer: at, Subject: subject, Message: "it is not valid UTF-8", Hint: "give a text, or clean it first", Err: task.ErrInvalid})
	}
	c.found = append(c.found, checkLimits(at, subject, in.MaxContextBytes, 0)...)
	if in.TTL < 0 {
		c.add(task.Problem{Pointer: at + "/ttlMs", Subject: subject, Message: "ttlMs must not be negative", Err: task.ErrInvalid})
	}
}

// checkSpec checks what the graph does not know: agents, inputs, schemas and words of the builder's.
func (c *checker) checkSpec(i int, s *task.Spec) {
	add := func(message, hint string, err error, tokens ...any) {
		c.add(task.Problem{Pointer: naming.Pointer(append([]any{"tasks", i}, tokens...)...), Subject: subjectOf(s), Message: message, Hint: hint, Err: err})
	}
	if _, ok := c.team.Index(s.Assignee); !ok && s.Assignee != "" {
		add(fmt.Sprintf("no agent is called %q", s.Assignee), naming.Suggest(s.Assignee, c.team.Names()), ErrUnknownAgent, "assignee")
	}
	for j, u := range s.Uses {
		k, ok := c.inputs[strings.ToLower(u.Name)]
		if !ok || c.options.Inputs[k].Name != u.Name {
			names := make([]string, len(c.options.Inputs))
			for n, in := range c.options.Inputs {
				names[n] = in.Name
			}
			add(fmt.Sprintf("no input is called %q", u.Name), naming.Suggest(u.Name, names), ErrUnknownInput, "uses", j)
			continue
		}
		c.used[k] = true
	}
	for j := range s.DependsOn {
		if s.DependsOn[j].MaxContextBytes == 0 {
			continue
		}
		c.found = append(c.found, checkLimits(naming.Pointer("tasks", i, "dependsOn", j), subjectOf(s), s.DependsOn[j].MaxContextBytes, 0)...)
	}
	if s.OutputSchema != nil {
		if _, err := c.parse(s.OutputSchema); err != nil {
			add(err.Error(), "write a JSON Schema", err, "outputSchema")
		}
	}
	c.checkProvenance(i, s)
	if line, opener := brief.Opener(s.Description); line > 0 {
		c.add(task.Problem{
			Pointer: naming.Pointer("tasks", i, "description"), Line: line, Subject: subjectOf(s),
			Message: fmt.Sprintf("a line of the description begins with %q, as only a prompt's own lines may", opener),
			Hint:    "word it differently", Err: task.ErrInvalid,
		})
	}
}

// checkOutput finds whose results make the answer, and refuses a run whose
// only answer the caller could not read.
func (c *checker) checkOutput() {
	if c.options.Answer != nil {
		c.checkAnswer()
		return
	}
	p, g := c.plan, c.plan.Graph
	if name := c.options.Output; name != "" {
		i, ok := c.find(name)
		if !ok {
			titles := make([]string, g.Len())
			for k := range titles {
				titles[k] = g.Task(k).Title
			}
			c.add(task.Problem{Pointer: "/output", Message: fmt.Sprintf("no task is called %q", name), Hint: naming.Suggest(name, titles), Err: task.ErrUnknown})
			return
		}
		p.Outputs = []int32{int32(i)}
	} else {
		p.Outputs = g.Sinks()
	}
	for _, i := range p.Outputs {
		if p.userSees(int(i)) {
			return
		}
	}
	if len(c.found) == 0 {
		first := g.Task(int(p.Outputs[0]))
		pointer := "/output"
		if c.options.Output == "" {
			pointer = naming.Pointer("tasks", p.Outputs[0])
		}
		problem := task.Problem{
			Pointer: pointer, Subject: fmt.Sprintf("task %q", first.Title),
			Message: fmt.Sprintf("its result, the only answer of the run, will be %v, and you may see %v", p.Labels[p.Outputs[0]], *c.options.UserAccepts),
			Hint:    "let another task make an answer that you may see, or raise your clearance",
			Err:     errors.Join(ErrAnswerWithheld, &gate.Refusal{Rule: gate.RuleClearance, Reason: "the answer would be withheld"}),
		}
		if terms := c.team.Terms(first.Assignee, handoff.User); p.Labels[p.Outputs[0]] <= *c.options.UserAccepts && len(terms.Cited()) > 0 {
			cited := terms.Cited()[0]
			problem.Message = fmt.Sprintf("its result, the only answer of the run, would be withheld from you by rule %s", cited.Rule)
			if cited.Line != "" {
				problem.Message += " (" + cited.Line + ")"
			}
			problem.Hint, problem.Err = "let another task make an answer that you may see, or change the rule", &gate.Refusal{Rule: gate.RuleClearance, Reason: "the answer would be withheld"}
		}
		c.add(problem)
	}
}

// checkAnswer is checkOutput for a run whose coordinator answers a goal: for
// the caller's clearance, from all that was done.
func (c *checker) checkAnswer() {
	if c.options.Output != "" {
		c.add(task.Problem{Pointer: "/output", Message: "with a goal the coordinator's answer is the answer of the run", Hint: "leave output out, or the goal", Err: task.ErrInvalid})
	}
	if !PassesAsText(c.team.Terms(handoff.Coordinator, handoff.User)) {
		c.add(task.Problem{
			Pointer: "/policy", Message: "a rule for user blocks parts of texts, or all of them, so the coordinator's answer would be withheld",
			Hint: "write the rule for the agents that it is about, and not for everybody", Err: &gate.Refusal{Rule: gate.RuleGrant, Reason: "the answer would be withheld"},
		})
	}
	if c.plan != nil {
		c.plan.Outputs = c.plan.Graph.Sinks()
	}
}

func (c *checker) find(name string) (int, bool) {
	i := slices.IndexFunc(c.plan.Graph.Tasks(), func(t task.Task) bool { return Named(&t.Spec, name) })
	return i, i >= 0
}

// schema returns what the result of a task must match: its own schema or its agent's.
func (c *checker) schema(t *task.Task, member int) *schema.Schema {
	if t.OutputSchema == nil {
		return c.team.Schemas[member]
	}
	s, _ := c.parse(t.OutputSchema) // checkSpec has reported the error
	return s
}

// parse reads a schema, once for all tasks that have the same.
func (c *checker) parse(raw json.RawMessage) (*schema.Schema, error) {
	p, known := c.parsed[string(raw)]
	if !known {
		p.schema, p.err = schema.Parse(string(raw))
		if c.parsed == nil {
			c.parsed = map[string]parsed{}
		}
		c.parsed[string(raw)] = p
	}
	return p.schema, p.err
}

// parsed is a schema that was read, or why it cannot be.
type parsed struct {
	schema *schema.Schema
	err    error
}

func (c *checker) input(u task.Use) *Input {
	return &c.options.Inputs[c.inputs[strings.ToLower(u.Name)]]
}

// A location is where a problem will be reported.
type location struct {
	c       *checker
	pointer string
	subject string
}

func (c *checker) problem(i int, tokens ...any) location {
	t := c.plan.Graph.Task(i)
	return location{c, naming.Pointer(append([]any{"tasks", i}, tokens...)...), fmt.Sprintf("task %q", t.Title)}
}

func (p location) report(message, hint string, err error) {
	p.c.add(task.Problem{Pointer: p.pointer, Subject: p.subject, Message: message, Hint: hint, Err: err})
}

// unknownLabel is the problem of a value that is no label.
func unknownLabel(pointer, subject string) task.Problem {
	return task.Problem{Pointer: pointer, Subject: subject, Message: "unknown label", Hint: "write one of " + strings.Join(label.Classifications(), ", "), Err: label.ErrUnknown}
}

func subjectOf(s *task.Spec) string { return fmt.Sprintf("task %q", s.Title) }

// member returns the index of the agent with this name.
func (t *Roster) Index(name string) (int, bool) {
	i, ok := t.byName[strings.ToLower(name)]
	return i, ok && t.Config.Agents[i].Name == name
}

func (t *Roster) Names() []string {
	names := make([]string, len(t.Config.Agents))
	for i := range names {
		names[i] = t.Config.Agents[i].Name
	}
	return names
}

// inputID names the envelope of an input.
func InputID(name string) envelope.ID { return envelope.ID("input/" + name) }
