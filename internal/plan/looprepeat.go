package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A round of a loop differs from the others by what it reads of the round before. If that is the
// same as in an earlier round, and all agents of the loop answer equal prompts equally, the
// round repeats that one, and so would all rounds after it.

// compareRounds returns specs in which onRepeat is continue for loops whose rounds may differ in
// spite of equal prompts.
func (c *loopCheck) compareRounds(specs []task.Spec, pointer string) []task.Spec {
	if !slices.ContainsFunc(specs, func(s task.Spec) bool { return s.Repeat != nil || s.ForEach != nil && len(s.ForEach.Tasks) > 0 }) {
		return specs
	}
	specs = slices.Clone(specs)
	for i := range specs {
		s, at := &specs[i], fmt.Sprintf("%s/%d", pointer, i)
		if f := s.ForEach; f != nil && len(f.Tasks) > 0 {
			s.ForEach = new(*f)
			s.ForEach.Tasks = c.compareRounds(f.Tasks, at+"/forEach/tasks")
		}
		if s.Repeat == nil {
			continue
		}
		s.Repeat = new(*s.Repeat)
		r := s.Repeat
		r.Tasks = c.compareRounds(r.Tasks, at+"/repeat/tasks")
		about := subject{&c.found, at + "/repeat", fmt.Sprintf("task %q", s.Title)}
		why := c.notDeterministic(r.Tasks)
		switch {
		case r.OnRepeat != "" && r.OnRepeat != "fail":
			why = "onRepeat is " + r.OnRepeat
		case c.options.Replay.omitsTasks():
			r.OnRepeat, why = "continue", "some of what its tasks read is left out"
		case why != "":
			if r.OnRepeat == "fail" {
				c.advise(about.at("onRepeat"), "rounds are not compared: "+why, "leave onRepeat out")
			}
			r.OnRepeat = "continue"
		case r.MaxRounds > 1 && !readPrevious(r.Tasks):
			about.report("all rounds would be the same: no task reads the round before, and equal prompts have equal answers",
				"let a task depend on {task: …, round: previous, optional: true}, or write onRepeat: continue", task.ErrInvalid)
		}
		if why != "" {
			c.uncompared[at] = why
		}
	}
	return specs
}

// A loopCheck finds the loops whose rounds can be compared.
type loopCheck struct {
	findings
	team       *Roster
	options    *Options
	uncompared map[string]string // pointers to loops whose rounds are not compared, and why not
}

// readPrevious reports whether one of some tasks reads the round before.
func readPrevious(specs []task.Spec) bool {
	return slices.ContainsFunc(specs, func(s task.Spec) bool {
		return slices.ContainsFunc(s.DependsOn, isPrevious) || s.Verify != nil && slices.ContainsFunc(s.Verify.Judges, func(j task.Judge) bool { return slices.ContainsFunc(j.DependsOn, isPrevious) })
	})
}

// isPrevious reports whether a dependency is on a task of the round before.
func isPrevious(ref task.Ref) bool { return ref.Round == task.Previous }

// hasFiles reports whether a dependency grants output files.
func hasFiles(ref task.Ref) bool { return len(ref.Files) > 0 }

// notDeterministic says why equal prompts of some tasks may have different results, or what they
// read besides results of the loop may change; it returns "" if neither is so.
func (c *loopCheck) notDeterministic(specs []task.Spec) (why string) {
	for i := range specs {
		s := &specs[i]
		switch {
		case s.Repeat != nil:
			why = c.notDeterministic(s.Repeat.Tasks)
		case s.ForEach != nil && len(s.ForEach.Tasks) > 0:
			why = c.notDeterministic(s.ForEach.Tasks)
		case s.IsComputed():
		case s.MemoryScope == task.ScopeAll:
			why = fmt.Sprintf("%q reads the shared memory, which changes", s.Title)
		case len(s.OutputFiles) > 0 || slices.ContainsFunc(s.DependsOn, hasFiles):
			why = fmt.Sprintf("%q works on files", s.Title)
		default:
			why = c.notDeterministicAgent(s)
		}
		if why == "" && s.Verify != nil {
			why = c.notDeterministicJudges(s)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// notDeterministicJudges is notDeterministic for the judges of a task.
func (c *loopCheck) notDeterministicJudges(s *task.Spec) string {
	for k := range s.Verify.Judges {
		j := &s.Verify.Judges[k]
		if slices.ContainsFunc(j.DependsOn, hasFiles) {
			return fmt.Sprintf("a judge of %q works on files", s.Title)
		}
		if why := c.notDeterministicAgent(&task.Spec{Assignee: strings.TrimSpace(j.Agent), Tools: j.Tools}); why != "" {
			return why
		}
	}
	return ""
}

// notDeterministicAgent is notDeterministic for the agents that may get a task.
func (c *loopCheck) notDeterministicAgent(s *task.Spec) string {
	for i := range c.team.Config.Agents {
		m := &c.team.Config.Agents[i]
		if s.Assignee != "" && s.Assignee != m.Name {
			continue
		}
		settled, known := m.Agent.(interface{ IsDeterministic() bool })
		switch {
		case m.IsPerson():
			return fmt.Sprintf("%q is a person", m.Name)
		case c.team.Config.ApprovesLoweringFor(m.Name):
			return fmt.Sprintf("a person has to approve what %q gets", m.Name)
		case m.UsesWorkspace():
			return fmt.Sprintf("%q is a command", m.Name)
		case len(m.Tools) > 0 && (s.Tools == nil || len(s.Tools) > 0):
			return fmt.Sprintf("%q has tools", m.Name)
		case !known || !settled.IsDeterministic():
			return fmt.Sprintf("%q may answer equal prompts differently; set temperature: 0 or a seed, and no fallback", m.Name)
		}
	}
	return ""
}

// Rereads returns how many dependencies of a task, at the end, are what its round reads of the one
// before, and are compared with what earlier rounds read.
func Rereads(t *task.Task) int {
	if t.Instance == nil {
		return 0
	}
	return len(t.Instance.Again)
}

// isReread reports whether dependency j of a task is one of its [Rereads].
func isReread(t *task.Task, j int) bool { return j >= len(t.DependsOn)-Rereads(t) }

// rereadLabel returns the label that dependency j of a task, a result of the round before, can have
// when the tasks of its round read it. Whether it has changed tells no more than that.
func rereadLabel(p *Plan, i, j int) label.Classification {
	level, team := label.Public, p.Roster()
	up := p.Graph.Upstream(i)[j]
	from := p.Graph.Task(int(up))
	for _, next := range p.Graph.Downstream(int(up)) {
		t := p.Graph.Task(int(next))
		if RoundIn(p.Graph, int(next), from.Instance.Loop) != from.Instance.Round+1 {
			continue
		}
		for k, of := range p.Graph.Upstream(int(next)) {
			if of != up || isRead(t, k) {
				continue
			}
			m, _ := team.Index(t.Assignee)
			a := deliveryOf(team.Terms(from.Assignee, t.Assignee), p.least[up], p.Labels[up], true, &team.Capabilities[m])
			level = level.Join(a.Classification)
		}
	}
	return level
}

// RoundIn returns the round of a loop that task i is in, also in loops inside of it; zero if it is
// in none.
func RoundIn(g *graph.Graph, i int, loop string) int {
	for {
		in := g.Task(i).Instance
		switch {
		case in == nil || in.Loop == "":
			return 0
		case in.Loop == loop:
			return in.Round
		}
		i, _ = g.Index(task.NewID(in.Loop))
	}
}

// repeatPlace returns the loop of which dependency j of task i is compared from round to round.
func repeatPlace(c *checker, i, j int) subject {
	from := c.plan.Graph.Task(int(c.plan.Graph.Upstream(i)[j]))
	loop, _ := c.plan.Graph.Index(task.NewID(from.Instance.Loop))
	return c.task(loop).at("repeat")
}

// addRepeats adds whether a round repeats an earlier one as a source, for each result that is
// compared: its tasks and everything that follows from them learn it.
func addRepeats(b *flowBuilder, answer int) {
	p := b.plan
	tasks := map[int][]int32{} // by the producer of a result, those whose round is compared by it
	for i := range p.Graph.Len() {
		for j, up := range p.Graph.Upstream(i) {
			if isReread(p.Graph.Task(i), j) {
				tasks[int(up)] = append(tasks[int(up)], int32(i))
			}
		}
	}
	for up := range p.Graph.Len() {
		if len(tasks[up]) == 0 {
			continue
		}
		first := p.Graph.Task(int(tasks[up][0]))
		at := len(first.DependsOn) - Rereads(first)
		at += slices.Index(p.Graph.Upstream(int(tasks[up][0]))[at:], int32(up))
		f := branchFlow{source: b.results + up, from: p.Graph.Task(up).Assignee, task: up, paths: first.DependsOn[at].Need, learners: tasks[up], label: p.Branches.Of(int(tasks[up][0]))}
		loop := p.Graph.Task(up).Instance.Loop
		join, _ := p.Graph.Index(task.NewID(loop))
		b.addBranch("repeated rounds of "+WrittenTitle(p.Graph.Task(join)), &f, answer)
	}
}

// compared returns which parts of a result a source of [flowBuilder.addBranch] is taken from.
func (f *branchFlow) compared() pick.Selection {
	if f.paths == nil {
		return pick.Everything()
	}
	parts, _ := pick.Everything().Only(f.paths...)
	return parts
}
