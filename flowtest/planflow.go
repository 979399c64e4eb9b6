package flowtest

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A planFlow is the flow of a plan, which says where canaries may be.
type planFlow struct {
	plan  *plan.Plan
	table *flow.Table
	g     *flow.Graph // of the table
	user  int         // reader

	edges     edgeLists
	instances instanceFlow
	rows      map[task.ID]int // of each task and instance, its task in g
	specs     []*task.Spec    // of each task in g that is planned, as its first instance has it
}

// edgeLists are the edges of each source of a graph and the sources of each task.
type edgeLists struct {
	*flow.Graph
	delivered map[int][]int
	writes    map[int][]int
}

func newEdgeLists(g *flow.Graph) edgeLists {
	l := edgeLists{Graph: g, delivered: map[int][]int{}, writes: map[int][]int{}}
	for i := range g.Edges {
		l.delivered[g.Edges[i].Source] = append(l.delivered[g.Edges[i].Source], i)
	}
	for i := range g.Sources {
		if t := g.Sources[i].Task; t >= 0 {
			l.writes[t] = append(l.writes[t], i)
		}
	}
	return l
}

func newPlanFlow(of *plan.Plan) *planFlow {
	p := &planFlow{plan: of, table: of.Flow(), rows: map[task.ID]int{}}
	p.g = p.table.Graph()
	p.edges, p.instances = newEdgeLists(p.g), instanceFlow{newEdgeLists(plan.FlowOfInstances(of)), of.Graph}
	p.user = slices.IndexFunc(p.g.Readers, func(r flow.Reader) bool { return r.Kind == flow.User })
	written := map[string]int{} // by pointer, the row of the first instance
	for i := range of.Graph.Len() {
		t := of.Graph.Task(i)
		row, known := len(p.specs), false
		if t.Instance != nil {
			if row, known = written[t.Instance.Pointer]; !known {
				row = len(p.specs)
				written[t.Instance.Pointer] = row
			}
		}
		if p.rows[t.ID] = row; !known {
			p.specs = append(p.specs, &t.Spec)
		}
	}
	return p
}

// row returns the task of the graph that a task or an instance is, or -1.
func (p *planFlow) row(id task.ID) int {
	if row, ok := p.rows[id]; ok {
		return row
	}
	return -1
}

// source returns the source that a canary is planted in, or -1.
func (p *planFlow) source(x *canary) int {
	return slices.IndexFunc(p.g.Sources, isSource(x, func(t int) bool { return p.row(p.g.Tasks[t].ID) == x.row }))
}

// said returns the sources that are what agents say in the task in whose result a canary is planted: stand-ins
// say it before they transfer their conversation.
func (p *planFlow) said(x *canary, g *flow.Graph) (sources []int) {
	for i, s := range g.Sources {
		if s.Kind == handoff.Transferred && x.isOfTask() && !x.handoff && p.row(g.Tasks[s.Task].ID) == x.row {
			sources = append(sources, i)
		}
	}
	return sources
}

// worksOn returns the tasks of the graph in which a reader works on what a task of the graph is about: several
// if the reader gets a conversation back. A negative reader is any.
func (p *planFlow) worksOn(t, reader int) (all []int) {
	for i := range p.g.Tasks {
		if n := &p.g.Tasks[i]; i == t || n.ID != "" && n.ID == p.g.Tasks[t].ID && (reader < 0 || n.Agent == reader) {
			all = append(all, i)
		}
	}
	return all
}

// isSource returns what reports of each source of a graph, in order, whether a canary is planted in
// it. is says whether a task of the graph writes the canary.
func isSource(x *canary, is func(t int) bool) func(flow.Source) bool {
	message := 0
	return func(s flow.Source) bool {
		switch {
		case x.message > 0: // the sources of messages are in their order
			if s.Kind == handoff.Message && s.Task < 0 {
				message++
			}
			return message == x.message && s.Task < 0
		case x.handoff:
			return s.Kind == handoff.Message && s.Task >= 0 && is(s.Task)
		case x.input != "":
			return s.Kind == handoff.Input && strings.EqualFold(s.Name, x.input)
		}
		return s.Kind == handoff.Dependency && s.Task >= 0 && is(s.Task)
	}
}

// taskOf returns the task of the graph that a prompt belongs to, or -1.
func (p *planFlow) taskOf(s sentPrompt) int {
	title := ""
	switch s.layout {
	case brief.Planning.String():
		title = "the plan"
	case brief.Synthesis.String():
		title = "the answer"
	default:
		row := p.row(s.task)
		if s.approves != nil {
			of := ""
			if row >= 0 {
				of = p.g.Tasks[row].Title
			}
			title := s.approves(of)
			if i := slices.IndexFunc(p.g.Tasks, func(t flow.Task) bool { return t.Title == title }); i >= 0 {
				return i
			}
		}
		if at := p.reader(s.agent); row >= 0 && p.g.Tasks[row].Agent != at {
			for _, i := range p.worksOn(row, at) {
				if p.g.Tasks[i].Agent == at {
					return i
				}
			}
		}
		return row
	}
	return slices.IndexFunc(p.g.Tasks, func(t flow.Task) bool { return t.ID == "" && t.Title == title })
}

// isGranted reports whether anything of a source is granted to a reader, even if a rule, a
// need or a label then withholds it.
func (p *planFlow) isGranted(source int) bool {
	return len(p.edges.delivered[source]) > 0 || slices.ContainsFunc(p.g.Sights, func(s flow.Sight) bool { return s.Source == source })
}

// clearance returns the clearance of the user.
func (p *planFlow) clearance() label.Classification { return p.g.Readers[p.user].Clearance }

// mayBeRecorded reports whether the trace of the run may have the canary: a trace has what
// the user is shown, and the prompts up to the user's clearance.
func (p *planFlow) mayBeRecorded(g *allowance) bool {
	return g.user || p.isCleared(g) && slices.Contains(g.tasks, true)
}

// isCleared reports whether the canary can have a label that the user accepts.
func (p *planFlow) isCleared(g *allowance) bool { return g.user || g.least <= p.clearance() }

// reads reports whether a reader reads the prompts of a task.
func (p *planFlow) reads(t int, reader string) bool {
	tk := &p.g.Tasks[t]
	if p.g.Readers[tk.Agent].Name == reader {
		return true
	}
	return slices.ContainsFunc(tk.Endpoints, func(e int) bool { return p.g.Readers[e].Name == reader })
}

// reader returns the index of a reader by its name, or -1.
func (p *planFlow) reader(name string) int {
	return slices.IndexFunc(p.g.Readers, func(r flow.Reader) bool { return r.Name == name })
}

// line returns where a task is written.
func (p *planFlow) line(t int) string {
	if t < 0 || t >= len(p.plan.Tasks) {
		return ""
	}
	return p.plan.Tasks[t].Line
}

// find returns the task of the graph that a title, key or ID names.
func (p *planFlow) find(name string) (row int, known bool) {
	if row, known = p.tasks().Find(name); !known {
		row, known = p.rows[task.ID(name)]
	}
	return row, known
}

// tasks returns the titles and keys of the tasks of the graph, as they are written.
func (p *planFlow) tasks() naming.TaskList {
	names := make(naming.TaskList, len(p.plan.Tasks))
	for i := range names {
		names[i] = naming.TaskNames{Title: p.plan.Tasks[i].Title, Key: p.key(i)}
	}
	return names
}

// key returns the key of a task as it is written.
func (p *planFlow) key(row int) string {
	if in := p.specs[row].Instance; in != nil && in.Key != "" {
		return in.Key
	}
	return p.plan.Tasks[row].Key
}
