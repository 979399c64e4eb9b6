package specfile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Build makes the team. It calls connect, which must not be nil, for each agent, and for
// the coordinator if there is a goal. Problems that [engine.New] finds come back as an
// [*Error] with places, together with problems of the names and references in tasks and
// assertions. If agents cannot be connected, the error joins the reasons, each once.
func (f *File) Build(connect func(Agent) (engine.Agent, error)) (*engine.Team, error) {
	cfg := f.Config
	cfg.Agents = make([]engine.Member, len(f.Agents))
	var errs []error
	seen := make(map[string]bool)
	add := func(who string, err error) {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			errs = append(errs, fmt.Errorf("%s: %w", who, err))
		}
	}
	for i, a := range f.Agents {
		does, err := connect(a)
		add(fmt.Sprintf("agent %q", a.Member.Name), err)
		cfg.Agents[i] = a.Member
		cfg.Agents[i].Agent = does
	}
	if hasGoal(f) && f.Coordinator != nil {
		c := f.Coordinator.Coordinator
		does, err := connect(f.Coordinator.agent())
		add(handoff.Coordinator, err)
		c.Agent = does
		cfg.Coordinator = &c
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	t, err := engine.New(cfg)
	if found := f.unknownNames(endpoints(&cfg)); err == nil && len(found) > 0 {
		err = found
	}
	if err == nil {
		return t, nil
	}
	if problems, ok := errors.AsType[task.Problems](err); ok {
		err = append(f.known(problems), f.graph(f.Tasks)...)
	}
	return nil, f.Locate(err)
}

// endpoints returns the names of the endpoints of the agents of a team.
func endpoints(cfg *engine.Config) []string {
	known := []string{}
	add := func(a engine.Agent, names ...string) {
		for i, base := range endpoint.All(a) {
			name := base
			if i < len(names) {
				name = cmp.Or(names[i], base)
			}
			if base != "" && !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
	}
	for i := range cfg.Agents {
		m := &cfg.Agents[i]
		add(m.Agent, m.EndpointNames...)
	}
	if c := cfg.Coordinator; c != nil {
		add(c.Agent, c.EndpointNames...)
	}
	return known
}

// An idleAgent replaces an agent in a team that only checks. It cannot run.
type idleAgent struct{ engine.Agent }

// cleared returns a member with the abilities of m that may read everything.
func cleared(m engine.Member) engine.Member {
	c := engine.Member{
		Name: m.Name, Agent: idleAgent{}, Accepts: label.Secret, MaxSession: m.MaxSession,
		Provider: m.Provider, Capabilities: m.Capabilities, Description: m.Description, SystemPrompt: m.SystemPrompt,
	}
	for _, tag := range m.OutputTags {
		if naming.CheckName(tag) == nil {
			c.OutputTags = append(c.OutputTags, tag)
		}
	}
	if m.OutputSchema != nil {
		c.OutputSchema = json.RawMessage("{}")
	}
	for _, t := range m.Tools { // only the names count, for tasks that require them
		c.Tools = append(c.Tools, &tool.Tool{
			Name: t.Name, Parameters: json.RawMessage(`{"type":"object"}`), Options: tool.Options{Accepts: label.Secret, Produces: new(label.Public), Effect: tool.None},
			Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errIdle },
		})
	}
	return c
}

// errIdle reports a call of a tool in a team that only checks.
var errIdle = errors.New("the team only checks")

// shareTools makes members with tools of one name have the same tool.
func shareTools(all []engine.Member) {
	known := make(map[string]*tool.Tool)
	for i := range all {
		for k, t := range all[i].Tools {
			if known[t.Name] == nil {
				known[t.Name] = t
			}
			all[i].Tools[k] = known[t.Name]
		}
	}
}

// graph returns the problems of tasks, even if the agents have problems. It checks them
// against the agents with valid names, and ignores references to the other agents.
func (f *File) graph(tasks []task.Spec) task.Problems {
	if len(tasks) == 0 {
		return nil
	}
	cfg := engine.Config{Name: f.Name}
	if hasGoal(f) {
		cfg.Coordinator = &engine.Coordinator{Agent: idleAgent{}}
	}
	nameless := false
	tasks = copyTasks(tasks)
	run := f.Run
	run.Messages, run.Assert = slices.Clone(run.Messages), nil // the policy and the schemas may be missing here
	for _, a := range f.Agents {
		name := a.Member.Name
		twice := slices.ContainsFunc(cfg.Agents, func(m engine.Member) bool { return strings.EqualFold(m.Name, name) })
		if !twice && naming.CheckName(name) == nil {
			cfg.Agents = append(cfg.Agents, cleared(a.Member))
			continue
		}
		nameless = nameless || name == ""
		for t := range AllTasks(tasks) {
			if t.Requires, t.RequiredTags = nil, nil; t.Assignee == name { // the agent may be the only one that meets the requirements
				t.Assignee = ""
			}
		}
		for i := range run.Messages {
			if m := &run.Messages[i]; m.From == name || m.To == name {
				*m = engine.Message{From: handoff.User, To: handoff.Anyone, Text: "x"}
			}
		}
	}
	shareTools(cfg.Agents)
	if len(cfg.Agents) == 0 {
		cfg.Agents, nameless = []engine.Member{{Name: "x", Agent: idleAgent{}, Accepts: label.Secret}}, true
	}
	t, err := engine.New(cfg)
	if err != nil {
		return nil
	}
	_, err = t.Plan(tasks, &run)
	problems, _ := errors.AsType[task.Problems](err)
	return slices.DeleteFunc(problems, func(p task.Problem) bool {
		return nameless && errors.Is(p, plan.ErrUnknownAgent)
	})
}

// names returns the problems of the names of agents.
func (f *File) names() task.Problems {
	cfg := engine.Config{Name: f.Name}
	for _, a := range f.Agents {
		cfg.Agents = append(cfg.Agents, engine.Member{Name: a.Member.Name, Agent: idleAgent{}})
	}
	_, err := engine.New(cfg)
	problems, _ := errors.AsType[task.Problems](err)
	return problems
}

// checkReferences returns the problems of names and references in a file that has other
// problems, so that all are reported together. It leaves out problems that only follow
// from the found ones.
func (f *File) checkReferences(found []finding) []finding {
	if f.places.main.spec == nil || len(found) >= tooMany {
		return nil
	}
	p := f.places
	tasks := copyTasks(f.Tasks)
	untitled := plainTasks(tasks, p.tasks, p.loops)
	run := f.Run
	run.Inputs = slices.Clone(run.Inputs)
	for i := range run.Inputs {
		in := &run.Inputs[i]
		if in.Classification = label.Public; in.Folder == nil {
			in.Text, in.ListFormat = "x", ""
		}
	}
	run.Messages, run.Answer = slices.Clone(run.Messages), nil
	for i := range run.Messages {
		run.Messages[i].Classification, run.Messages[i].Text = label.Public, "x"
	}
	unread := p.main.node.get("inputs").len() != len(run.Inputs)
	plain := &File{Name: f.Name, Agents: f.Agents, Run: run, places: p}
	var out []finding
	for _, problem := range withoutFollowUps(append(plain.names(), plain.graph(tasks)...), tasks, run.Inputs) {
		switch {
		case untitled && errors.Is(problem, task.ErrUnknown), unread && errors.Is(problem, plan.ErrUnknownInput):
			continue
		case !p.written(tokens(problem.Pointer)), errors.Is(problem, plan.ErrInputValue), errors.Is(problem, plan.ErrConditions): // the inputs have other texts here, and the tasks no conditions
			continue
		}
		out = append(out, p.find(problem))
	}
	for _, problem := range f.unknownNames(nil) {
		out = append(out, p.find(problem))
	}
	return slices.DeleteFunc(out, func(one finding) bool {
		return slices.ContainsFunc(found, func(f finding) bool { return f.src == one.src && f.at == one.at })
	})
}

// plainTasks changes tasks so that only their references can be wrong: labels, tags and forms depend
// on values that may not have been read. It reports whether one has no title.
func plainTasks(tasks []task.Spec, places []*fields, loops map[*fields]loopPlace) (untitled bool) {
	for i := range tasks {
		s := &tasks[i]
		s.Classification, s.RequiredTags, s.OutputSchema, s.Requires, s.When = label.Public, nil, nil, nil, nil
		s.Timeout, s.OnTimeout = 0, ""
		s.DependsOn, s.Uses = plainReferences(s.DependsOn, s.Uses)
		s.NeedToKnow, s.Verify = nil, plainVerify(s.Verify)
		untitled = untitled || strings.TrimSpace(s.Title) == ""
		if n := places[i].get("description"); s.Description == "" && n != nil && n.is == isObject {
			s.Description = "x" // the file that cannot be read is reported already
		}
		if inner := loopTasks(s); inner != nil && places[i] != nil {
			untitled = plainTasks(inner, loops[places[i]].tasks, loops) || untitled
		}
	}
	return untitled
}

// written reports whether the value that a pointer names could be read. A value that is
// missing or has the wrong type is reported already.
func (p *places) written(parts []string) bool {
	switch {
	case len(parts) == 0:
		return false
	case parts[0] == "tasks" && len(parts) > 2:
		return p.writtenInTask(p.taskAt(parts))
	case parts[0] == "agents" && len(parts) > 2:
		return pick(p.agents, parts).own(parts[2]) != nil
	case parts[0] == "messages" && len(parts) > 2:
		return pick(p.messages, parts).own(parts[2]) != nil
	case parts[0] == "edges" && len(parts) > 2:
		return pick(p.edges, parts).own(parts[2]) != nil
	case parts[0] == "tasks", parts[0] == "agents":
		return false
	}
	return true
}

// writtenInTask is written for a pointer into a task.
func (p *places) writtenInTask(f *fields, rest []string) bool {
	if f == nil || len(rest) == 0 || rest[0] == "repeat" || rest[0] == "forEach" { // conditions and lists depend on schemas
		return false
	}
	if list := f.own("dependsOn"); list != nil && rest[0] == "dependsOn" && len(rest) == 2 {
		item, _, _ := walk(list, rest[1:])
		return item == nil || item.is != isObject || text(item.get("task")) != "" // another one has alternatives, or no name that can be read
	}
	return f.get(inWorkspace(f, rest)[0]) != nil
}
