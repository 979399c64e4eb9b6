package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// Check checks tasks against the roster and returns what a run of them would do. The
// error is [task.Problems] with pointers into the tasks as written. It has every problem of
// the first stage that finds any: names and values of the options and the tasks, then the
// assignment to agents, labels and sizes, then the assertions. Resolved tasks get at as the
// time of their creation.
func (t *Roster) Check(specs []task.Spec, o Options, at time.Time) (*Plan, error) {
	t = cmp.Or(t.agents, t)
	if found := checkWritten(specs, "/tasks"); len(found) > 0 {
		return nil, found
	}
	specs = task.BoundLists(specs, func(s *task.Spec) json.RawMessage { return schemaWritten(t, s) })
	loops := loopCheck{team: t, options: &o, uncompared: map[string]string{}}
	tasks, places, err := task.Unroll(loops.compareRounds(specs, "/tasks"))
	if err == nil {
		err = loops.found.Err()
	}
	if err != nil {
		return nil, err
	}
	p, err := check(t, tasks, o, at)
	if places == nil {
		return p, err
	}
	w := writtenOut{specs, tasks, places}
	if err != nil {
		return nil, w.place(err)
	}
	p.uncompared, p.places = loops.uncompared, &w
	p.Warnings, p.Written = append(w.placeAll(p.Warnings), loops.advice...), w.assigned(p.Written)
	return p, nil
}

// schemaWritten returns the outputSchema of the agent that a task names; nil if there is none.
func schemaWritten(t *Roster, s *task.Spec) json.RawMessage {
	if i, known := t.Index(s.Assignee); known && i < len(t.Config.Agents) {
		return t.Config.Agents[i].OutputSchema
	}
	return nil
}

// check checks tasks that have no loops.
func check(t *Roster, specs []task.Spec, o Options, at time.Time) (*Plan, error) {
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
	checkConversation(&c)
	c.checkOutputName()
	g, err := graph.Resolve(specs, at)
	if err != nil {
		problems, ok := errors.AsType[task.Problems](err)
		if !ok {
			return nil, err
		}
		c.found = append(c.found, problems...)
	}
	checkSpecs(&c)
	if postpone(&c); len(c.found) > 0 {
		return nil, c.sorted()
	}
	t = c.addComputedMember()
	c.plan = &Plan{
		Description: Description{Name: t.Config.Name, User: PlannedUser{Accepts: *o.UserAccepts}},
		lists:       c.lists,
		Graph:       g, Roster: func() *Roster { return t }, Options: func() *Options { return &o },
	}
	c.plan.writeLines()
	c.checkTemplateReads()
	c.assign()
	if checkTimeouts(&c); len(c.found) == 0 {
		c.checkFlow()
		(&sizeCheck{checker: &c, reported: make([]bool, len(o.Inputs)), known: map[knownSize]gate.Decision{}}).checkSizes()
		postpone(&c)
		if c.checkOutput(); len(c.found) == 0 {
			c.plan.Written, c.plan.specs = c.specs, c.specs
			c.checkDisclosures()
		}
	}
	if len(c.found) > 0 {
		return nil, c.sorted()
	}
	c.checkAssertions()
	if postpone(&c); len(c.found) == 0 && len(c.ofInputs) > 0 {
		if c.found = c.plan.BrokenWithoutInputs(); len(c.found) == 0 {
			c.found = c.ofInputs
		}
	}
	if len(c.found) > 0 {
		return nil, c.sorted()
	}
	c.adviseUnused()
	c.plan.Warnings = append(slices.Clone(t.Warnings), c.advice...)
	return c.plan, nil
}

// postpone takes the problems that depend on the text of an input out of those of a planned run. They
// are reported once every stage has found nothing else: which problems the coordinator gets back would
// tell it something of the input otherwise.
func postpone(c *checker) {
	if !c.options.Planned {
		return
	}
	ofInput := func(p task.Problem) bool { return errors.Is(p, ErrInputValue) }
	for _, p := range c.found {
		if ofInput(p) {
			c.ofInputs = append(c.ofInputs, p)
		}
	}
	c.found = slices.DeleteFunc(c.found, ofInput)
}

// checkSpecs checks each task by itself. What was found before is not reported again.
func checkSpecs(c *checker) {
	reported := make(map[string]bool, len(c.found)) // one problem in one place is enough
	for _, p := range c.found {
		reported[p.Pointer] = true
	}
	known := len(c.found)
	for i := range c.specs {
		c.checkSpec(i, &c.specs[i])
	}
	c.checkInputLists()
	c.found = slices.Concat(c.found[:known], slices.DeleteFunc(c.found[known:], func(p task.Problem) bool { return reported[p.Pointer] }))
	if len(c.specs) == 0 {
		c.at("tasks").report("there are no tasks", "add a task with a title and a description", ErrNoTasks)
	}
}

// adviseUnused warns of inputs that no task uses, of failures that are accepted in vain, and of runs that can succeed
// without an answer.
func (c *checker) adviseUnused() {
	for i, in := range c.options.Inputs {
		if !c.used[i] {
			c.advise(c.about(fmt.Sprintf("input %q", in.Name), "inputs", in.Name), "no task uses it", "")
		}
	}
	for _, i := range acceptedInVain(c.plan.Graph) {
		c.advise(c.task(i).at("onFailure"), "no effect here: every task that depends on it needs its result, so they and the run fail if it fails", "write optional: true in their dependsOn")
	}
	if c.options.Answer == nil && acceptsNoAnswer(c.plan.Graph, c.plan.Outputs) {
		c.advise(c.task(int(c.plan.Outputs[0])).at("onFailure"), "the run can succeed without an answer: the failure of each task whose result is part of the answer is accepted", "write onFailure: fail for one whose result you need")
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
	paths := &pathCheck{checker: &c}
	paths.checkPolicyPaths()
	paths.checkIntakePaths()
	return c.found
}

// A checker collects everything that is wrong with one set of tasks, for the checks of
// each subject.
type checker struct {
	findings
	team     *Roster
	options  Options
	specs    []task.Spec
	inputs   map[string]int        // lower-cased name to index
	used     []bool                // of each input
	lists    map[string]*InputList // in inputs, by where they are written
	ofInputs task.Problems         // of a planned run, those that are reported last
	plan     *Plan
	parsed   map[string]parsed
	before   *Plan // that is checked again under another policy; nil for a new one

	values     map[string]any      // of inputs that are lists, by name
	impossible map[string]bool     // paths of the policy that can name nothing, and the pointers to them
	certain    map[certainKey]bool // whether tasks run in any case
	compared   comparedValues      // by conditions
}

func (c *checker) checkOptions() {
	o := c.options
	c.found = append(c.found, o.Invalid...)
	if strategy := c.at("schedulingStrategy"); !o.Strategy.Valid() {
		strategy.report(fmt.Sprintf("unknown strategy %q", o.Strategy), naming.Suggest(string(o.Strategy), assign.Strategies()), task.ErrInvalid)
	} else if now := assign.Former[string(o.Strategy)]; now != "" {
		c.advise(strategy, fmt.Sprintf("the strategy %q was removed: tasks are assigned by %s", o.Strategy, now), fmt.Sprintf("write %s", now))
	}
	c.at().checkBudget(o.Budget)
	c.checkPriced()
	c.checkStrictTools()
	checkReadable(c.team.Config.Agents, c.options.Journal, c.about)
	if o.MaxConcurrency < 0 {
		c.at("maxConcurrency").report(fmt.Sprintf("the maximum concurrency %d is negative", o.MaxConcurrency), fmt.Sprintf("use a positive number, or leave it out for the default of %d", DefaultConcurrency), task.ErrInvalid)
	}
	if err := naming.CheckLine(o.RunID); o.RunID != "" && err != nil {
		c.at("runId").report("the run's id: "+err.Error(), "", err)
	}
	c.at("timeoutMs").checkSign("the timeout of the run", int64(o.Timeout))
	c.at("userAccepts").checkLabel(*o.UserAccepts)
	c.used = make([]bool, len(o.Inputs))
	for i := range o.Inputs {
		c.checkInput(i)
	}
}

// checkInput checks one input by itself.
func (c *checker) checkInput(i int) {
	o := c.options
	in := &o.Inputs[i]
	about := c.about(fmt.Sprintf("input %q", in.Name), "inputs", in.Name)
	if err := naming.CheckName(in.Name); err != nil {
		about.report(err.Error(), "", err)
	}
	folded := strings.ToLower(in.Name)
	if first, twice := c.inputs[folded]; twice {
		about.report(fmt.Sprintf("there is already an input %q", o.Inputs[first].Name), "give each input its own name; names are not case-sensitive", task.ErrDuplicate)
	}
	c.inputs[folded] = i
	about.at("classification").checkLabel(in.Classification)
	if in.Envelope != nil {
		now := time.Now()
		if o.Replay != nil {
			now = time.Time{} // a replay reads what its run read
		}
		if text, _, err := gate.InputText(in.Envelope, now); err != nil {
			about.report("the result of an earlier run cannot be used: "+err.Error(), "run the task again, or give a text", err)
		} else if in.Text != text {
			about.report("it has a Text and an Envelope", "leave one of them out", task.ErrInvalid)
		}
	}
	in.checkFolder(about)
	c.checkFormat(in, about)
	if !utf8.ValidString(in.Text) {
		about.report("it is not valid UTF-8", "give a text, or clean it first", task.ErrInvalid)
	}
	about.checkLimits(Limits{MaxContextBytes: in.MaxContextBytes})
	about.at("ttlMs").checkSign("the TTL", int64(in.TTL))
}

// checkFormat checks the format of an input that is a list.
func (c *checker) checkFormat(in *Input, about subject) {
	if in.ListFormat == "" {
		return
	}
	if !slices.Contains(listformat.Names(), in.ListFormat) {
		about.at("format").report(fmt.Sprintf("unknown format %q", in.ListFormat), naming.Suggest(in.ListFormat, listformat.Names()), task.ErrInvalid)
		return
	}
	if in.Folder != nil {
		about.at("format").report("a folder has no format", "leave it out", task.ErrInvalid)
		return
	}
	if _, err := listformat.Parse(in.ListFormat, in.Text); err != nil {
		message := err.Error()
		if in.Classification > *c.options.UserAccepts {
			message = "it is not in its format"
		}
		about.report(message, "correct the text, or set format to that of the text", errors.Join(task.ErrInvalid, ErrInputValue, listformat.ErrInvalid))
	}
}

// checkSpec checks what the graph does not know: agents, inputs, schemas and words of the builder's.
func (c *checker) checkSpec(i int, s *task.Spec) {
	about := func() subject { return c.aboutTask(i, s) } // most tasks have no problem
	if _, ok := c.team.Index(s.Assignee); !ok && s.Assignee != "" {
		about().at("assignee").report(fmt.Sprintf("unknown agent %q", s.Assignee), naming.Suggest(s.Assignee, c.team.Names()), ErrUnknownAgent)
	}
	c.checkToolNames(about, s)
	for j, u := range s.Uses {
		k, ok := c.inputs[strings.ToLower(u.Name)]
		if !ok || c.options.Inputs[k].Name != u.Name {
			if u.Item == "" { // else it is reported at the list
				c.unknownInput(about().at("uses", j), u.Name)
			}
			continue
		}
		c.used[k] = true
	}
	for j := range s.DependsOn {
		if limit := s.DependsOn[j].MaxContextBytes; limit != 0 {
			about().at("dependsOn", j).checkLimits(Limits{MaxContextBytes: limit})
		}
	}
	c.checkFiles(about, s)
	c.checkComputedResult(about, s)
	if s.OutputSchema != nil {
		if _, err := c.parse(s.OutputSchema); err != nil {
			about().at("outputSchema").report(err.Error(), "write a JSON Schema", err)
		}
	}
	c.checkProvenance(i, s)
	if line, opener := brief.Opener(s.Description); line > 0 && (s.Instance == nil || !s.Instance.Judges) { // else it is reported of the task
		c.add(task.Problem{
			Pointer: naming.Pointer("tasks", i, "description"), Line: line, Subject: about().name,
			Message: fmt.Sprintf("a line of the description begins with %q, which is reserved for the prompt's own lines", opener),
			Hint:    "reword it", Err: task.ErrInvalid,
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
		output, _ := taskNames(c.specs).Find(name) // checkOutputName has reported an unknown one
		p.Outputs = []int32{int32(output)}
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
		c.at("output").report("with a goal the coordinator's answer is the answer of the run", "leave output out, or the goal", task.ErrInvalid)
	}
	if !PassesAsText(c.team.Terms(handoff.Coordinator, handoff.User)) {
		c.at("policy").report("a rule for user blocks parts of texts, or all of them, so the coordinator's answer would be withheld",
			"write the rule for the agents that it is about, and not for all", &gate.Refusal{Rule: gate.RuleGrant, Reason: "the answer would be withheld"})
	}
	if c.plan != nil {
		c.plan.Outputs = c.plan.Graph.Sinks()
	}
}

// checkOutputName reports an Output that names no task.
func (c *checker) checkOutputName() {
	name := c.options.Output
	if name == "" || c.options.Answer != nil {
		return
	}
	names := taskNames(c.specs)
	if _, known := names.Find(name); !known {
		c.add(unknownTask(names, name, "output"))
	}
}

// schema returns what the result of a task must match: its own schema or its agent's.
func (c *checker) schema(t *task.Task, member int) *schema.Schema {
	if t.OutputSchema == nil && t.Value != nil {
		return schemaOfValue(t.Value)
	}
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
		if p.schema, p.err = schema.Parse(string(raw)); p.err == nil {
			p.err = p.schema.Unusable()
		}
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

// task returns task i of the plan as a subject.
func (c *checker) task(i int) subject { return c.aboutTask(i, &c.plan.Graph.Task(i).Spec) }

// Index returns the index of the agent with this name.
func (t *Roster) Index(name string) (int, bool) {
	i, ok := t.byName[strings.ToLower(name)]
	return i, ok && t.Config.Agents[i].Name == name
}

// Names returns the names of the agents.
func (t *Roster) Names() []string {
	names := make([]string, agentsOf(t))
	for i := range names {
		names[i] = t.Config.Agents[i].Name
	}
	return names
}

// InputID names the envelope of an input.
func InputID(name string) envelope.ID { return envelope.ID("input/" + name) }
