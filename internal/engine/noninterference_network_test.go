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
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A network is what agents of a setting may do with each other while they work, and what they do.
type network struct {
	links  []handoff.Edge
	spawns []bool          // of each agent
	acts   [][][]netAction // by task and turn
	passes []string        // of each agent: whom it transfers a conversation to that was transferred to it; empty if it answers
	looks  [][]int         // of each agent: the tools that it calls before, of its own
}

// A netAction is a call of a tool of the runtime: what it passes on is made of all that the agent has read.
type netAction struct {
	tool string // the prefix of it for one that transfers the conversation
	to   string // an agent; empty for a copy of the agent itself
}

// call is the call; say makes words.
func (a netAction) call(say func(what string) string) llm.ToolCall {
	if a.tool == plan.TransferPrefix {
		return llm.ToolCall{Name: a.tool + a.to, Arguments: encoded(map[string]any{"reason": say("reason")})}
	}
	return llm.ToolCall{Name: a.tool, Arguments: a.arguments(say)}
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
	s.spawns, s.passes, s.looks = make([]bool, len(s.agents)), make([]string, len(s.agents)), make([][]int, len(s.agents))
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
		e.Transfer = d.chance(50, "transfer")
		s.links = append(s.links, e)
	}
	d.equipHolders()
	for i := range s.spawns {
		if to := d.transfers(s.agents[i].Name); len(to) > 0 && d.chance(60, "passes it on") {
			s.passes[i] = pickOne(d, to, "the next holder").to
		}
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
	for i, own := range s.toolsOf {
		if len(own) > 0 && d.chance(70, "looks it up") {
			s.looks[i] = some(d, own, 3, "calls of a holder")
		}
	}
	for _, e := range s.links {
		if e.Transfer && d.chance(60, "a wall") {
			d.wall(e.From, e.To)
		}
	}
}

// wall withholds from an agent whole what another one says and reads that transfers its conversation to it, as far as
// no task of its own needs it.
func (d *drawing) wall(from, to string) {
	s, hidden := d.s, []string{handoff.User, from}
	at := func(name string) int {
		return slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == name })
	}
	for _, k := range s.toolsOf[at(from)] {
		if !slices.Contains(s.toolsOf[at(to)], k) {
			hidden = append(hidden, s.tools[k].reader())
		}
	}
	for _, name := range hidden {
		if pair := [2]string{name, to}; !d.between[pair] {
			d.between[pair] = true
			s.policy.Rules = append(s.policy.Rules, handoff.PairRule{From: name, To: to, Mode: handoff.Minimal})
		}
	}
}

// equipHolders gives tools to agents that have none, and to which a conversation can be transferred. They fit the tasks
// that these agents have.
func (d *drawing) equipHolders() {
	s := d.s
	for at := range s.agents {
		m := &s.agents[at]
		if len(s.toolsOf[at]) > 0 || !slices.ContainsFunc(s.links, func(e handoff.Edge) bool {
			return e.Transfer && (e.To == m.Name || e.Bidirectional && e.From == m.Name)
		}) {
			continue
		}
		for range d.number(1, 2, "tools of a holder") {
			x := settingTool{name: fmt.Sprintf("tool%d", len(s.tools)), form: pickOne(d, []form{closed, unclosed}, "arguments")}
			x.options.Accepts = max(d.highestOf(m.Name), pickOne(d, classes[2:], "accepts"))
			x.options.Effect = pickOne(d, []tool.Effect{tool.None, tool.Workspace, tool.External}, "effect")
			if x.options.Produces = new(d.lowestOf(m.Name)); x.options.Effect != tool.None && *x.options.Produces == x.options.Accepts {
				x.options.Stateful = d.chance(40, "stateful")
			}
			x.files = x.options.Effect != tool.None && d.chance(60, "files")
			s.toolsOf[at] = append(s.toolsOf[at], len(s.tools))
			s.tools = append(s.tools, x)
			m.AllowUntrusted = append(m.AllowUntrusted, x.name)
		}
	}
}

// netActions draws the calls of one turn of an agent.
func (d *drawing) netActions(of string) (list []netAction) {
	s := d.s
	if to := d.transfers(of); len(to) > 0 && d.chance(40, "transfers it") {
		return some(d, to, 1, "the new holder")
	}
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

// transfers returns the calls with which an agent can transfer a conversation.
func (d *drawing) transfers(of string) (list []netAction) {
	for _, e := range d.s.links {
		switch {
		case e.Transfer && e.From == of:
			list = append(list, netAction{plan.TransferPrefix, e.To})
		case e.Transfer && e.Bidirectional && e.To == of:
			list = append(list, netAction{plan.TransferPrefix, e.From})
		}
	}
	return list
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

// highestOf returns the highest label of the tasks of an agent, as they are without edges.
func (d *drawing) highestOf(name string) (level label.Classification) {
	for i := range d.s.tasks {
		if d.s.tasks[i].Assignee == name {
			level = level.Join(d.labels[i])
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
		if a.tool == plan.TransferPrefix { // it must be the only one
			r.ToolCalls = nil
		}
		r.ToolCalls = append(r.ToolCalls, a.call(func(what string) string {
			return gist(p, fmt.Sprint(what, at)) + " " + w.words(fmt.Sprintf("task/%d", i)+saidPlace) + " " + echoes(p)
		}))
	}
}

// heldHeading begins what a prompt has of a conversation that was transferred.
const heldHeading = "## Conversation before it was transferred to you"

// isHolder reports whether a prompt is one of a holder to which the conversation of a task was transferred. The prompt
// need not have anything of that conversation.
func isHolder(p prompt.Prompt) bool {
	return strings.Contains(p.Receipt().Session, record.HolderPart)
}

// turnNumber is how many turns of the agent are before a prompt.
func turnNumber(p prompt.Prompt) (n int) {
	for _, m := range p.Messages() {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// heldPlace names the source of what the holder in a prompt says.
func heldPlace(i int, r *prompt.Receipt) string { return fmt.Sprintf("held/%d-%s", i, r.Agent) }

// heldStep is the name of the agent and of the step of such a source, as the flow table has it.
func (s *setting) heldStep(source string) (agent, step string) {
	number, by, _ := strings.Cut(strings.TrimPrefix(source, "held/"), "-")
	return by, by + " in Task " + number
}

// holderReply is the answer of a holder of task i, which may call its tools first and then transfer the conversation.
func (w *variant) holderReply(s *setting, i int, f form, p prompt.Prompt) (agent.Reply, error) {
	source := heldPlace(i, p.Receipt())
	at := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == p.Receipt().Agent })
	if strings.HasPrefix(p.Text(), retellHeading) {
		return w.reply(source, f, false, p)
	}
	turn := turnNumber(p)
	say := func(what string) string {
		return gist(p, what) + " " + w.words(source+saidPlace) + " " + echoes(p)
	}
	if len(s.looks[at]) > 0 {
		if turn--; turn < 0 {
			return agent.Reply{Text: "I look it up: " + say("said"), ToolCalls: w.toolCalls(s, s.looks[at], source, p)}, nil
		}
	}
	if to := s.passes[at]; to != "" && turn == 0 {
		a := netAction{plan.TransferPrefix, to}
		return agent.Reply{Text: "I pass it on: " + say("said"), ToolCalls: []llm.ToolCall{a.call(say)}}, nil
	}
	return w.reply(source, f, false, p)
}

// childStep is the name of the children that a prompt is of, as the flow table has it; empty for a prompt of a task.
func (w *variant) childStep(parent *task.Spec, p prompt.Prompt) string {
	r := p.Receipt()
	switch {
	case !strings.Contains(r.Session, "/child/"):
		return ""
	case isHolder(p), strings.HasPrefix(p.Text(), retellHeading): // children are given nothing that is retold
		return r.Agent + " in " + parent.Title
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
	if !flow.IsApproval(s.step) {
		v.sum.children++
	}
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

// ofHolder holds the prompt of a holder to the rows of the table.
func (v *view) ofHolder(s *sight) string {
	g := v.table.Graph()
	if !strings.Contains(s.text, heldHeading) {
		return ""
	}
	v.sum.held++
	for i := range s.receipt.Sources {
		d := s.receipt.Sources[i].Decision
		if d == nil || d.Source.Kind != handoff.Transferred || d.Verdict != gate.Passed {
			continue
		}
		if !slices.ContainsFunc(g.Edges, func(e flow.Edge) bool {
			src := &g.Sources[e.Source]
			return g.Tasks[e.Task].Title == s.step && e.Reach() != flow.Never && src.From == d.From && (src.Kind == handoff.ToolResult || d.Before <= src.Label) // a tool returns what is as sensitive as its arguments
		}) {
			return fmt.Sprintf("what %s said, which is %v, came to %s, and no row of the table has it", d.From, d.Before, s.step)
		}
	}
	return ""
}

// ofHolders holds the results of transferred conversations to the labels of the turns that made them.
func (v *view) ofHolders() string {
	for i := range v.story.result.Tasks {
		r := &v.story.result.Tasks[i]
		if r.Envelope == nil || !naming.IsChain(r.Envelope.Producer()) {
			continue
		}
		v.sum.transferred++
		for k := range r.Receipts {
			if of := r.Receipts[k]; r.Label < of.Classification {
				return fmt.Sprintf("the result of %q is %v, and a turn of %s was %v", r.Title, r.Label, of.Agent, of.Classification)
			}
		}
	}
	return ""
}

// ofChain holds a result of several agents to the rules for each of them.
func (v *view) ofChain(at spot, d *gate.Decision, s *sight) string {
	for _, name := range naming.Links(d.From) {
		one := *d
		one.From = name
		if wrong := v.lawless(strings.Split(at.path, "/")[1:], &one, s); wrong != "" {
			return wrong
		}
	}
	return ""
}

// writer is the step that a source has the words of; empty if none has.
func (v *view) writer(source string) string {
	switch kind, number, _ := strings.Cut(source, "/"); kind {
	case "task":
		return "Task " + number
	case "held":
		_, step := v.setting.heldStep(source)
		return step
	}
	g := v.table.Graph()
	if by := g.Sources[v.source(source)].Task; by >= 0 {
		return g.Tasks[by].Title
	}
	return ""
}

// sources are all sources of the table that have words of a source: the handoffs of a task are its own words, too,
// and what its agent says before it transfers the conversation.
func (v *view) sources(at spot) []int {
	list := []int{v.source(at.source)}
	number, isTask := strings.CutPrefix(at.source, "task/")
	if !isTask || at.path != "" {
		return list
	}
	g := v.table.Graph()
	for i := range g.Sources {
		s := &g.Sources[i]
		if (s.Kind == handoff.Message || s.Kind == handoff.Transferred) && s.Task >= 0 && g.Tasks[s.Task].Title == "Task "+number {
			list = append(list, i)
		}
	}
	return list
}
