package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/task"
)

// foldLoops makes one row of all rounds of a task: what it says is true of each of them. What a
// round reads of the one before becomes a way in a circle.
// answers has the tasks of the plan whose results other tasks of the graph write, by these.
func foldLoops(g *flow.Graph, p *Plan, answers map[int]int) {
	f := folder{plan: p, answers: answers, tasks: make([]int, len(g.Tasks)), sources: make([]int, len(g.Sources)), first: map[string]int{}}
	f.foldTasks(g)
	f.foldSources(g)
	for i := range g.Edges {
		e := &g.Edges[i]
		e.Source, e.Task = f.sources[e.Source], f.tasks[e.Task]
	}
	for i := range g.Sights {
		g.Sights[i].Source = f.sources[g.Sights[i].Source]
	}
}

// addLastRounds adds that the result of a loop is the result of one of its rounds: who gets one of
// them gets the other.
func (b *flowBuilder) addLastRounds() {
	p, g := b.plan, &b.graph
	if !slices.ContainsFunc(p.Graph.Tasks(), func(t task.Task) bool { return Joins(&t) }) {
		return
	}
	edges := groupBySource(g.Edges, func(e *flow.Edge) int { return e.Source })
	sights := groupBySource(g.Sights, func(s *flow.Sight) int { return s.Source })
	sameAs := func(i int) (sources []int) { // of the loop that is task i, the rounds
		if t, ups := p.Graph.Task(i), p.Graph.Upstream(i); Joins(t) {
			for _, up := range ups[:len(ups)-t.Reads] {
				sources = append(sources, b.results+int(up))
			}
		}
		return sources
	}
	deliver := func(to, like int) {
		for _, e := range edges[like] {
			if e.Source, e.Copied = to, true; e.Task >= p.Graph.Len() || !Joins(p.Graph.Task(e.Task)) {
				g.Edges = append(g.Edges, e)
			}
		}
		for _, s := range sights[like] {
			s.Source = to
			g.Sights = append(g.Sights, s)
		}
	}
	for i := range p.Graph.Len() {
		for queue := sameAs(i); len(queue) > 0; queue = queue[1:] { // a round can be the result of an inner loop
			deliver(queue[0], b.results+i)
			deliver(b.results+i, queue[0])
			queue = append(queue, sameAs(queue[0]-b.results)...)
		}
	}
}

// groupBySource returns what each source is delivered by.
func groupBySource[T any](all []T, source func(*T) int) map[int][]T {
	by := map[int][]T{}
	for i := range all {
		by[source(&all[i])] = append(by[source(&all[i])], all[i])
	}
	return by
}

// A folder numbers tasks and sources anew.
type folder struct {
	plan    *Plan
	answers map[int]int
	tasks   []int
	sources []int
	first   map[string]int // by what they have in common, the new number
}

// foldTasks merges the rounds of each task, and what people approve in them.
func (f *folder) foldTasks(g *flow.Graph) {
	kept := g.Tasks[:0]
	for i, t := range g.Tasks {
		key := ""
		if i < f.plan.Graph.Len() {
			if in := f.plan.Graph.Task(i).Instance; in != nil {
				key, t.Title = "task "+in.Pointer, in.Title
			}
		} else if flow.IsApproval(t.Title) {
			key = t.Title
		}
		if at, known := f.first[key]; known && key != "" {
			f.tasks[i] = at
			continue
		}
		f.first[key], f.tasks[i] = len(kept), len(kept)
		kept = append(kept, t)
	}
	g.Tasks = kept
}

// foldSources merges what the rounds of a task make.
func (f *folder) foldSources(g *flow.Graph) {
	kept, rounds := g.Sources[:0], roundsOf(f.plan)
	for i, s := range g.Sources {
		key := ""
		of, transferred := f.answers[s.Task]
		if !transferred {
			of = s.Task
		}
		if of >= 0 && of < f.plan.Graph.Len() {
			if t := f.plan.Graph.Task(of); t.Instance != nil {
				s.Name = strings.ReplaceAll(s.Name, t.Title, t.Instance.Title)
				key = "source " + string(s.Kind) + " " + s.From + " " + t.Instance.Pointer + " " + s.Name
				if s.Kind == handoff.Dependency && !t.Instance.Joins {
					s.Rounds = rounds[t.Instance.Pointer]
				}
			}
		}
		if s.Task >= f.plan.Graph.Len() && flow.IsApproval(s.Name) {
			key = "source " + s.Name
		}
		if s.Task >= 0 {
			s.Task = f.tasks[s.Task]
		}
		if at, known := f.first[key]; known && key != "" {
			f.sources[i] = at
			kept[at].Label = kept[at].Label.Join(s.Label)
			continue
		}
		f.first[key], f.sources[i] = len(kept), len(kept)
		kept = append(kept, s)
	}
	g.Sources = kept
}

// roundsOf counts, for each pointer, how often the task that is written there may run.
func roundsOf(p *Plan) map[string]int {
	rounds := map[string]int{}
	for i := range p.Graph.Len() {
		if in := p.Graph.Task(i).Instance; in != nil {
			rounds[in.Pointer]++
		}
	}
	return rounds
}

// textOf returns a condition as people read it, with titles as they are written.
func textOf(p *Plan, c *task.Condition) string { return conditionText(p, c, WrittenTitle) }

// WrittenTitle returns the title of a task without its round and its item.
func WrittenTitle(t *task.Task) string {
	if t.Instance != nil {
		return t.Instance.Title
	}
	return t.Title
}

// TitleInPrompts returns a title of a task, such as its [WrittenTitle], as prompts have it. The title of a
// judge has the name of the agent, which a policy may hide.
func TitleInPrompts(t *Roster, of *task.Task, title string) string {
	if of.Instance == nil || !of.Instance.Judges {
		return title
	}
	return t.Rules.JudgeTitle(title, of.Assignee)
}

// describeInstance says that a task is a loop, or of which list its items are.
func describeInstance(p *Plan, t *task.Task, out *PlannedTask) {
	switch in := t.Instance; {
	case in == nil:
	case in.Joins:
		out.NotCompared = notCompared(p, in)
		out.RoundsCompared = new(out.NotCompared == "")
		out.Loop, out.Until, out.LeavesTo, out.Fallback = true, textOf(p, in.Until[len(in.Until)-1]), "", nil
	default:
		out.ForEach = listsText(p, in.Lists)
	}
}

// notCompared says why the rounds of a loop are not compared; it is empty if they are.
func notCompared(p *Plan, in *task.Instance) string {
	switch {
	case in.Quorum > 0:
		return "its judges decide whether there is another round"
	case p.uncompared[in.Pointer] == "" && in.Rounds < 3:
		return "the third round is the first that could repeat one"
	}
	return p.uncompared[in.Pointer]
}

// listsText names the lists that a task is for an item of, the innermost one first; it is empty if
// there are none.
func listsText(p *Plan, lists []*task.List) string {
	var names []string
	for _, l := range slices.Backward(lists) {
		of := "input " + l.Input
		if l.Task != "" {
			up, _ := p.Graph.Index(task.ID(l.Task))
			of = WrittenTitle(p.Graph.Task(up))
		}
		if l.Path != task.Whole {
			of = string(l.Path) + " of " + of
		}
		names = append(names, of)
	}
	return strings.Join(names, ", and of ")
}

// describeLoops leaves one description of each task in a loop: that of its last round, which may
// read what any round reads.
func describeLoops(p *Plan) {
	rounds := roundsOf(p)
	if len(rounds) == 0 {
		return
	}
	last := map[string]int{}
	for i := range p.Tasks {
		if in := p.Graph.Task(i).Instance; in != nil {
			last[in.Pointer] = i
		}
	}
	kept := make([]PlannedTask, 0, len(p.Tasks))
	ids, titles := map[task.ID]task.ID{}, map[task.ID]string{}
	for i, t := range p.Tasks {
		in := p.Graph.Task(i).Instance
		if in == nil {
			kept = append(kept, t)
			continue
		}
		of := &p.Tasks[last[in.Pointer]]
		ids[t.ID], titles[t.ID] = of.ID, in.Title
		if t.ID == of.ID {
			t.Title = in.Title
			if t.Rounds = rounds[in.Pointer]; in.Joins {
				t.Rounds *= in.Rounds // in a list, or in another loop
			}
			markPrevious(p, in, t.Reads)
			kept = append(kept, t)
		}
	}
	for i := range kept {
		seen := map[[3]string]bool{}
		kept[i].Reads = slices.DeleteFunc(kept[i].Reads, func(r Reading) bool {
			key := [3]string{string(r.Kind), string(cmp.Or(ids[r.Task], r.Task)), r.Round}
			if r.Task == "" || ids[r.Task] == "" {
				return false
			}
			again := seen[key]
			seen[key] = true
			return again
		})
		for k := range kept[i].Reads {
			if r := &kept[i].Reads[k]; ids[r.Task] != "" {
				r.Task, r.Name = ids[r.Task], titles[r.Task]
			}
		}
	}
	for i := range p.Inputs {
		var readers []task.ID
		for _, id := range p.Inputs[i].Readers {
			if id = cmp.Or(ids[id], id); !slices.Contains(readers, id) {
				readers = append(readers, id)
			}
		}
		p.Inputs[i].Readers = append([]task.ID{}, readers...)
	}
	p.Tasks = kept
}

// markPrevious marks what an instance reads of the round before.
func markPrevious(p *Plan, in *task.Instance, reads []Reading) {
	for k := range reads {
		i, ok := p.Graph.Index(reads[k].Task)
		if !ok {
			continue
		}
		if of := p.Graph.Task(i).Instance; of != nil && !of.Joins && of.Loop == in.Loop && of.Round == in.Round-1 {
			reads[k].Round = task.Previous
		}
	}
}
