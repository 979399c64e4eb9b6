package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A command that is not confined can pass what it reads to every other such command, and to
// the network. In the flow table all of them are connected to one stateful tool, the machine.

// Process returns the command of a member whose agent is one, or nil.
func (m *Member) Process() *agent.Process {
	p, _ := m.Agent.(*agent.Process)
	return p
}

// A workspaceUser is an agent that may work in the workspace of its attempt without tools, such as
// a stand-in for a command.
type workspaceUser interface{ UsesWorkspace() bool }

// UsesWorkspace reports whether the agent of a member works in the workspace without tools.
func (m *Member) UsesWorkspace() bool {
	u, ok := m.Agent.(workspaceUser)
	return m.Process() != nil || ok && u.UsesWorkspace()
}

// IsUnconfined reports whether the agent of a member is a command that is not confined.
func (m *Member) IsUnconfined() bool {
	p := m.Process()
	return p != nil && p.Unconfined()
}

// isUnconfinedTool reports whether a tool runs commands that are not confined.
func isUnconfinedTool(f *tool.Tool) bool { return f.Stateful && f.State == process.Machine }

// unconfinedTools returns the names of the tools of a member that run unconfined commands.
func (m *Member) unconfinedTools() (names []string) {
	for _, f := range m.Tools {
		if isUnconfinedTool(f) {
			names = append(names, f.Name)
		}
	}
	return names
}

// confinement returns how the command of a member runs, or "" if its agent is none.
func (m *Member) confinement() string {
	switch {
	case m.Process() == nil:
		return ""
	case m.IsUnconfined():
		return process.Unconfined
	}
	return process.Confined
}

// Unconfined names a member of the team that runs commands which are not confined; empty if none
// does. Such a command has the rights of the user, and could answer in place of a person.
func (c *Config) Unconfined() string {
	for i := range c.Agents {
		if m := &c.Agents[i]; m.IsUnconfined() || len(m.unconfinedTools()) > 0 {
			return m.Name
		}
	}
	return ""
}

// machine returns the tool that stands for what an unconfined command of a member, or one of
// these tools of it, can reach, or nil.
func (m *Member) machine(tools []*tool.Tool) *tool.Tool {
	o := tool.Options{Accepts: m.Accepts, Produces: &m.Accepts}
	if !m.IsUnconfined() {
		i := slices.IndexFunc(tools, isUnconfinedTool)
		if i < 0 {
			return nil
		}
		o = tools[i].Options
	}
	o.Stateful, o.State = true, process.Machine
	return &tool.Tool{Name: process.Machine, Options: o}
}

// reachable returns tools of a member, with the machine if it runs unconfined commands.
func (m *Member) reachable(tools []*tool.Tool) []*tool.Tool {
	if f := m.machine(tools); f != nil {
		return append(slices.Clip(tools), f)
	}
	return tools
}

// reachableIn returns the tools that task i of a plan can reach.
func reachableIn(p *Plan, i int) []*tool.Tool {
	return p.Roster().Config.Agents[p.Members[i]].reachable(p.Tools(i))
}

// readable returns what the confined commands of a member, its own and those of its tools, may read
// beside their workspaces.
func (m *Member) readable() (paths []string) {
	if p := m.Process(); p != nil {
		paths = append(paths, p.Readable...)
	}
	for _, f := range m.Tools {
		paths = append(paths, f.Readable...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// CheckJournal checks what depends on the journal of a run whose plan was made without it.
func (t *Roster) CheckJournal(journal record.Store) task.Problems {
	c := checker{team: t}
	checkReadable(t.Config.Agents, journal, c.about)
	return c.found
}

// checkReadable reports commands that may read the journal of the run, or the workspaces of all tasks.
func checkReadable(agents []Member, journal record.Store, about func(name string, at ...any) subject) {
	j, ok := journal.(record.PrivateStore)
	if !ok {
		return
	}
	private := j.Private()
	for i := range agents {
		m := &agents[i]
		of := about(fmt.Sprintf("agent %q", m.Name), "agents", i)
		check := func(paths []string, at ...any) {
			for _, path := range paths {
				if i := slices.IndexFunc(private, func(p string) bool { return process.Contains(path, p) }); i >= 0 {
					of.at(at...).report(fmt.Sprintf("its commands may read %s, and the journal has what other agents read in %s", path, private[i]),
						"keep the journal and its workspaces in other folders, or name only the folder of the program that the command needs", task.ErrInvalid)
				}
			}
		}
		if p := m.Process(); p != nil {
			check(p.Readable, "backend", "readable")
		}
		for k, f := range m.Tools {
			check(f.Readable, "tools", k)
		}
	}
}

// checkProcesses reports agents that are commands and cannot work as they are set up.
func (c *Config) checkProcesses(found *task.Problems) {
	for i := range c.Agents {
		m := &c.Agents[i]
		p, about := m.Process(), subject{found, naming.Pointer("agents", i), fmt.Sprintf("agent %q", m.Name)}
		if p == nil {
			continue
		}
		if len(m.Tools) > 0 {
			about.at("tools").report("an agent that is a command cannot call tools", "remove the tools, or use a model", task.ErrInvalid)
		}
		if p.Input == agent.InputArgument && m.Accepts > label.Internal {
			about.at("backend", "input").report(fmt.Sprintf("the agent accepts %v, and other users can read the arguments of a command", m.Accepts),
				"set input to stdin, or accepts to internal", task.ErrInvalid)
		}
		if p.Unconfined() {
			about.checkMachine(m, c.Agents)
		}
	}
	if k := c.Coordinator; k != nil {
		if _, ok := k.Agent.(*agent.Process); ok {
			subject{found, "/coordinator", "coordinator"}.report("a command cannot be the coordinator", "use a model", task.ErrInvalid)
		}
	}
}

// checkMachine reports an unconfined command that may read what another one may not: through
// the machine, that one could read it too.
func (s subject) checkMachine(m *Member, all []Member) {
	for i := range all {
		other := &all[i]
		f := other.machine(other.Tools)
		if other == m || f == nil || m.Accepts <= f.Level() {
			continue
		}
		s.at("accepts").report(fmt.Sprintf("what its unconfined command reads, up to %v, can reach the unconfined commands of agent %q, which has only %v", m.Accepts, other.Name, f.Level()),
			"confine one of them, or give both the same accepts", &gate.Refusal{Rule: gate.RuleClearance, Reason: "commands that are not confined are not separated from each other"})
	}
}

// checkStrictTools reports commands and servers that are not confined if the options forbid them.
func (c *checker) checkStrictTools() {
	if !c.options.StrictTools {
		return
	}
	for i := range c.team.Config.Agents {
		m := &c.team.Config.Agents[i]
		about := c.about(fmt.Sprintf("agent %q", m.Name), "agents", i)
		if m.IsUnconfined() {
			about.at("backend", "confine").report("its command is not confined, and this run allows only confined commands", unconfinedHint(), ErrUnconfined)
		}
		for k, f := range m.Tools {
			if isUnconfinedTool(f) {
				about.at("tools", k).report(fmt.Sprintf("the commands of tool %q are not confined, and this run allows only confined commands", f.Name), unconfinedHint(), ErrUnconfined)
			}
		}
	}
	c.found = append(c.found, c.team.Config.UnconfinedPrograms(true)...)
}

// unconfinedHint says how to have a command confined.
func unconfinedHint() string {
	if process.Confines() {
		return "remove confine: false"
	}
	return "this system cannot confine commands: it lacks " + process.Missing()
}

// checkSummaries reports texts that a command or a person would have to summarize.
func (c *checker) checkSummaries(i int, parts []delivery) {
	m := &c.team.Config.Agents[c.plan.Members[i]]
	who := "command"
	switch {
	case c.plan.Graph.Task(i).IsComputed():
		who = "task without a model"
	case m.IsPerson():
		who = "person"
	case m.Process() == nil:
		return
	}
	for k := range parts {
		if g, _ := c.plan.grantOf(i, &parts[k]); g.Terms.ByReader() {
			c.task(i).report(fmt.Sprintf("the policy has agent %q summarize what it gets from %q, and a %s cannot do that", m.Name, parts[k].from, who), "write by: excerpt", task.ErrInvalid)
		}
	}
}
