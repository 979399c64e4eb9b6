package engine_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A network is what agents of a setting may do with each other while they work, and what they do.
type network struct {
	links  []handoff.Edge
	spawns []bool          // of each agent
	acts   [][][]netAction // by task and turn
}

// A netAction is a call of a tool of the runtime: what it passes on is made of all that the agent has read.
type netAction struct {
	tool string
	to   string // an agent; empty for a copy of the agent itself
}

// arguments are those of the call; say makes words.
func (a netAction) arguments(say func(what string) string) string {
	out := map[string]any{}
	if a.to != "" {
		out["to"] = a.to
	}
	if a.tool == plan.SendHandoff {
		out["message"], out["structured"] = say("message"), map[string]any{"alpha": say("structured")}
	} else {
		out["goal"] = say("goal")
	}
	return encoded(out)
}

// network draws edges between the agents, and what they use them for. Most edges carry no more than the tasks of their
// readers may have, so that most settings can be run.
func (d *drawing) network() {
	s := d.s
	s.acts = make([][][]netAction, len(s.tasks))
	s.spawns = make([]bool, len(s.agents))
	if !d.chance(45, "network") {
		return
	}
	taken := map[[2]string]bool{}
	for _, e := range s.messageEdges() {
		taken[[2]string{e.From, e.To}] = true
	}
	for range d.number(1, 3*len(s.agents), "links") {
		from := d.number(0, len(s.tasks)-2, "sender") // whose reader begins later
		to := d.number(from+1, len(s.tasks)-1, "reader")
		e := handoff.Edge{From: s.tasks[from].Assignee, To: s.tasks[to].Assignee, Bidirectional: d.chance(30, "both ways"), Delegate: d.chance(35, "delegate")}
		if e.From == e.To || taken[[2]string{e.From, e.To}] || taken[[2]string{e.To, e.From}] {
			continue
		}
		taken[[2]string{e.From, e.To}] = true
		switch {
		case d.chance(85, "as its readers"):
			e.MaxClassification = new(d.lowestOf(e.To))
			if e.Bidirectional {
				*e.MaxClassification = min(*e.MaxClassification, d.lowestOf(e.From))
			}
		case d.chance(50, "a limit"):
			e.MaxClassification = new(pickOne(d, classes, "most"))
		}
		s.links = append(s.links, e)
	}
	for i := range s.spawns {
		s.spawns[i] = d.chance(30, "spawns")
	}
	for i := range s.tasks {
		if s.tasks[i].Tools != nil {
			continue // the task has only the tools that it names
		}
		for range d.number(1, 3, "turns") {
			s.acts[i] = append(s.acts[i], d.netActions(s.tasks[i].Assignee))
		}
	}
}

// netActions draws the calls of one turn of an agent.
func (d *drawing) netActions(of string) (list []netAction) {
	s := d.s
	var can []netAction
	for _, e := range s.links {
		for _, way := range [][2]string{{e.From, e.To}, {e.To, e.From}} {
			if way[0] != of || way[0] == e.To && !e.Bidirectional {
				continue
			}
			can = append(can, netAction{plan.SendHandoff, way[1]}, netAction{plan.SendHandoff, way[1]})
			if e.Delegate {
				can = append(can, netAction{plan.DelegateToAgent, way[1]})
			}
		}
	}
	if at := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == of }); s.spawns[at] {
		can = append(can, netAction{plan.SpawnAgent, ""})
	}
	if d.chance(10, "a stranger") { // to whom no edge leads
		can = append(can, netAction{plan.SendHandoff, d.agent()})
	}
	if len(can) == 0 {
		return nil
	}
	return some(d, can, 3, "actions")
}

// lowestOf returns the lowest label of the tasks of an agent, as they are without edges.
func (d *drawing) lowestOf(name string) label.Classification {
	level := label.Secret
	for i := range d.s.tasks {
		if d.s.tasks[i].Assignee == name {
			level = min(level, d.labels[i])
		}
	}
	return level
}

// edges are all edges of a setting.
func (s *setting) edges() []handoff.Edge { return slices.Concat(s.messageEdges(), s.links) }

// reaches reports whether an edge leads from one agent to another.
func (s *setting) reaches(from, to string) bool {
	return slices.ContainsFunc(s.edges(), func(e handoff.Edge) bool {
		return e.From == from && e.To == to || e.Bidirectional && e.From == to && e.To == from
	})
}

// addCalls adds the calls of tools of the runtime in turn n of task i.
func (w *variant) addCalls(s *setting, i, n int, p prompt.Prompt, r *agent.Reply) {
	if n >= len(s.acts[i]) {
		return
	}
	for at, a := range s.acts[i][n] {
		arguments := a.arguments(func(what string) string {
			return gist(p, fmt.Sprint(what, at)) + " " + w.words(fmt.Sprintf("task/%d", i)+saidPlace) + " " + echoes(p)
		})
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{Name: a.tool, Arguments: arguments})
	}
}

// childStep is the name of the children that a prompt is of, as the flow table has it; empty for a prompt of a task.
func childStep(parent *task.Spec, r *prompt.Receipt) string {
	switch {
	case !strings.Contains(r.Session, "/child/"):
		return ""
	case r.Agent == parent.Assignee:
		return "children of " + parent.Title
	}
	return r.Agent + " for " + parent.Title
}

// childReply is the answer of a child: a function of its prompt.
func childReply(p prompt.Prompt) agent.Reply {
	return agent.Reply{Text: "I did it " + gist(p, "") + " " + echoes(p)}
}

// handed holds what a prompt has of handoffs to the edges of the spec, and to the rows of the table.
func (v *view) handed(s *sight) string {
	g := v.table.Graph()
	for i := range s.receipt.Sources {
		d := s.receipt.Sources[i].Decision
		if d == nil || d.Source.Kind != handoff.Message || d.From == handoff.User || d.Verdict != gate.Passed {
			continue
		}
		if slices.ContainsFunc(v.setting.messages, func(m engine.Message) bool { return m.From == d.From && reads(&m, s.agent) }) {
			continue // it may be of the options
		}
		v.sum.sent++
		if !v.setting.reaches(d.From, s.agent) {
			return fmt.Sprintf("a handoff of %s came to %s, and no edge leads there", d.From, s.agent)
		}
		found := false
		for k := range g.Edges {
			e := &g.Edges[k]
			src := &g.Sources[e.Source]
			found = found || src.Kind == handoff.Message && src.Task >= 0 && src.From == d.From && g.Tasks[e.Task].Title == s.step && d.Before <= src.Label
		}
		if !found {
			return fmt.Sprintf("a handoff of %s, which is %v, came to %s, and no row of the table has it", d.From, d.Before, s.step)
		}
	}
	return ""
}

// ofChild holds the prompt of a child to the edges of the spec and to the label that the table has of it.
func (v *view) ofChild(s *sight) string {
	g := v.table.Graph()
	at := slices.IndexFunc(g.Tasks, func(t flow.Task) bool { return t.Title == s.step })
	if at < 0 {
		return ""
	}
	k := slices.IndexFunc(g.Sources, func(src flow.Source) bool {
		return src.Task == at && src.Kind == handoff.ToolResult && src.Name == s.step
	})
	if k < 0 {
		return ""
	}
	v.sum.children++
	if s.receipt.Classification > g.Sources[k].Label {
		return fmt.Sprintf("the prompt of a child is %v, at most %v was said", s.receipt.Classification, g.Sources[k].Label)
	}
	by, of, delegated := strings.Cut(s.step, " for ")
	if !delegated {
		return ""
	}
	for i := range v.setting.tasks {
		if t := &v.setting.tasks[i]; t.Title == of && !v.setting.reaches(t.Assignee, by) {
			return fmt.Sprintf("%s works for %s, and no edge leads there", by, of)
		}
	}
	return ""
}

// sources are all sources of the table that have words of a source: the handoffs of a task are its own words, too.
func (v *view) sources(at spot) []int {
	first := v.source(at.source)
	list := []int{first}
	if g := v.table.Graph(); at.path == "" && g.Sources[first].Task >= 0 && g.Sources[first].Kind == handoff.Dependency {
		for i := range g.Sources {
			if s := &g.Sources[i]; s.Kind == handoff.Message && s.Task == g.Sources[first].Task {
				list = append(list, i)
			}
		}
	}
	return list
}
