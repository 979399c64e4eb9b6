package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A settingTool is a tool of a setting, without what it does.
type settingTool struct {
	name    string
	options tool.Options
	files   bool // it reads and writes the workspace
	form    form // of its arguments
}

// parameters is the schema of the arguments.
func (x *settingTool) parameters() json.RawMessage {
	return json.RawMessage(strings.Replace(x.form.schema(), `"required":["alpha","beta","gamma","score","kind","code"],`, "", 1))
}

func (x *settingTool) reader() string { return gate.ToolReader(x.name) }

// tools draws the tools of the setting, and which agents have them.
func (d *drawing) tools() {
	s := d.s
	s.toolsOf = make([][]int, len(s.agents))
	if !d.chance(50, "tools") {
		return
	}
	for i := range rapid.IntRange(1, 3).Draw(d.t, "tools") {
		x := settingTool{name: fmt.Sprintf("tool%d", i), form: pickOne(d, []form{closed, unclosed}, "arguments")}
		x.options.Accepts = pickOne(d, []label.Classification{label.Internal, label.Confidential, label.Confidential, label.Secret}, "accepts")
		x.options.Effect = pickOne(d, []tool.Effect{tool.None, tool.Workspace, tool.External}, "effect")
		if x.options.Stateful = x.options.Effect != tool.None && d.chance(40, "stateful"); !x.options.Stateful {
			x.options.Produces = new(pickOne(d, classes[:3], "produces"))
		} else if d.chance(60, "shared state") {
			x.options.State, x.options.Accepts = "shared", label.Confidential
		}
		x.files = x.options.Effect != tool.None && d.chance(60, "files") // calls without effects run at once, in any order
		s.tools = append(s.tools, x)
	}
	for i := range s.agents {
		m := &s.agents[i]
		most := s.clearance(m)
		if m.Produces != nil {
			most = min(most, *m.Produces)
		}
		for k := range s.tools {
			x := &s.tools[k]
			if x.options.Level() > most || !d.chance(60, "has the tool") {
				continue
			}
			s.toolsOf[i] = append(s.toolsOf[i], k)
			if d.chance(85, "untrusted") {
				m.AllowUntrusted = append(m.AllowUntrusted, x.name)
			}
		}
	}
}

// ownTools draws the tools of a task: all of its agent, or some of them.
func (d *drawing) ownTools(agent int) (names []string) {
	if !d.chance(25, "own tools") {
		return nil
	}
	names = []string{}
	for _, k := range d.s.toolsOf[agent] {
		if d.chance(60, "own tool") {
			names = append(names, d.s.tools[k].name)
		}
	}
	return names
}

// taskTools returns the tools of a task of an agent.
func (s *setting) taskTools(agent int, of *task.Spec) (list []int) {
	for _, k := range s.toolsOf[agent] {
		if of.Tools == nil || slices.Contains(of.Tools, s.tools[k].name) {
			list = append(list, k)
		}
	}
	return list
}

// toolLevel returns what the tools of a task add to its label.
func (s *setting) toolLevel(agent int, of *task.Spec) label.Classification {
	level := label.Public
	for _, k := range s.taskTools(agent, of) {
		level = level.Join(s.tools[k].options.Level())
	}
	return level
}

// calls draws the calls of tools in the turns of a task, whose label is level. Some are of tools
// that only its agent has.
func (d *drawing) calls(agent int, of *task.Spec, level label.Classification) (turns [][]int) {
	s, own := d.s, d.s.taskTools(agent, of)
	for _, k := range own {
		x, name := &s.tools[k], s.agents[agent].Name
		passed, _ := d.admit(level, x.options.Accepts, name, x.reader(), x.form, false)
		back := [2]string{x.reader(), name}
		d.between[back] = true
		if passed.Join(x.options.Level()) == label.Secret {
			d.exact[back] = true
		}
	}
	for n := rapid.IntRange(0, 3).Draw(d.t, "turns"); len(own) > 0 && len(turns) < n; {
		turns = append(turns, some(d, s.toolsOf[agent], 2, "calls"))
	}
	return turns
}

// ruledForm returns the form of what passes a pair, if one of the two is a tool.
func (d *drawing) ruledForm(pair [2]string) (form, bool) {
	isTool := strings.HasPrefix(pair[0], gate.ToolReader("")) || strings.HasPrefix(pair[1], gate.ToolReader(""))
	return unclosed, isTool
}

// A toolSource is a tool as the table has it: for each task, and each holder to which its conversation
// can be transferred, one without state, and for all of them one with state.
type toolSource struct {
	tool, task int    // no task of one with state
	holder     string // empty for the task's own agent, and of one with state
}

// listTools returns the tools in the order of the table.
func (s *setting) listTools() (list []toolSource) {
	for i := range s.tasks {
		at := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == s.tasks[i].Assignee })
		for _, k := range s.taskTools(at, &s.tasks[i]) {
			if from := s.toolSource(k, i, ""); !slices.Contains(list, from) {
				list = append(list, from)
			}
		}
	}
	for i := range s.tasks {
		if !s.transfersTask(i) {
			continue
		}
		for at := range s.agents {
			for _, k := range s.looks[at] {
				if from := s.toolSource(k, i, s.agents[at].Name); !slices.Contains(list, from) {
					list = append(list, from)
				}
			}
		}
	}
	return list
}

// toolSource is the source of what a tool says in a task to a holder, or to the task's own agent.
func (s *setting) toolSource(k, i int, holder string) toolSource {
	if s.tools[k].options.Stateful {
		return toolSource{k, -1, ""}
	}
	return toolSource{k, i, holder}
}

// toolPlace names that source.
func (s *setting) toolPlace(k, i int, holder string) string {
	return fmt.Sprintf("tool/%d", slices.Index(s.sources, s.toolSource(k, i, holder)))
}

// calling is the step of a tool that a task calls.
func calling(title, reader string) string { return title + " calls " + reader }

// buildTools makes the tools of a setting.
func (st *stage) buildTools(places map[task.ID]int) (list []*tool.Tool) {
	for k := range st.setting.tools {
		x := &st.setting.tools[k]
		list = append(list, &tool.Tool{
			Name: x.name, Parameters: x.parameters(), Options: x.options,
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				i := places[task.ID(strings.Split(c.ID, "/")[1])]
				return st.useTool(k, i, c)
			},
		})
	}
	return list
}

// useTool is what a tool does: it returns everything that it can read, and its own words.
func (st *stage) useTool(k, i int, c tool.Call) (tool.Result, error) {
	x := &st.setting.tools[k]
	read := string(c.Arguments)
	if x.files {
		read += readFiles(c)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	tk, by := &st.setting.tasks[i], st.callers[i]
	step := tk.Title
	if by.held {
		step = by.agent + " in " + tk.Title
	} else if tk.Tools != nil && !slices.Contains(tk.Tools, x.name) {
		panic("called " + x.name + ", which the task does not have")
	}
	st.called = append(st.called, sight{
		agent: x.reader(), step: calling(step, x.reader()), text: read, policy: st.policy,
		call: &toolSight{id: c.ID, caller: by, arguments: c.Arguments, files: len(read) > len(c.Arguments)},
	})
	if o := &x.options; o.Stateful {
		state := o.State
		if state == "" {
			state = x.name
		}
		st.states[state] += read
		read = st.states[state]
	}
	holder := ""
	if by.held {
		holder = by.agent
	}
	place := st.toolPlace(k, i, holder)
	echoes := echoesOf(canaries.ReplaceAllStringFunc(read, func(c string) string { // its own words have one place each
		if st.now.ofTool(c, st.setting, k) {
			return ""
		}
		return c
	}))
	return tool.Result{
		Text: "The tool says " + st.now.words(place) + " about " + letters(12, read),
		JSON: json.RawMessage(encoded(map[string]any{
			"alpha": st.now.words(place + "/alpha"), "beta": map[string]any{"x": st.now.words(place+"/beta/x") + " " + echoes}, "gamma": letters(12, read, "gamma"),
		})),
	}, nil
}

// readFiles returns all files of the workspace, if the tool gets it, and adds the arguments of
// the call to them.
func readFiles(c tool.Call) string {
	root, err := c.Workspace()
	if err != nil {
		return ""
	}
	var text strings.Builder
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := root.ReadFile(path)
		fmt.Fprintf(&text, "\n%s: %s", path, raw)
		return err
	})
	if err = errors.Join(err, root.WriteFile("outputs/"+letters(12, c.ID), c.Arguments, 0o600)); err != nil {
		panic(err)
	}
	return text.String()
}

// saidPlace is the place of what an agent says before its answer. It counts as the source
// that the answer is, at no path in it.
const saidPlace = "/said"

// callTools is the reply of an agent in a turn in which it calls tools; false if it answers.
func (w *variant) callTools(s *setting, i int, p prompt.Prompt) (agent.Reply, bool) {
	n, turns, source := turnNumber(p), s.calls[i], fmt.Sprintf("task/%d", i)
	if t, more := s.transferTurn(i), w.hesitates(s, i, p); t >= 0 && n >= t { // it looks more up, and transfers later
		if n -= len(more); n < t {
			return agent.Reply{Text: "I look more up.", ToolCalls: w.toolCalls(s, more[t-n-1:t-n], source, p)}, true
		}
	}
	if n >= max(len(turns), len(s.acts[i])) || strings.HasPrefix(p.Text(), retellHeading) {
		return agent.Reply{}, false
	}
	r := agent.Reply{Text: "I look it up: " + gist(p, "said") + " " + w.words(source+saidPlace) + " " + echoes(p)}
	if n < len(turns) {
		r.ToolCalls = w.toolCalls(s, turns[n], source, p)
	}
	w.addCalls(s, i, n, p, &r)
	return r, len(r.ToolCalls) > 0
}

// hesitates returns the tools that an agent calls, one in each turn, before it transfers the conversation: how many,
// and which, depends on all that it has read, and on what it knows by itself.
func (w *variant) hesitates(s *setting, i int, p prompt.Prompt) (list []int) {
	at := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == s.tasks[i].Assignee })
	own := s.taskTools(at, &s.tasks[i])
	word := letters(3, p.System(), p.Messages()[0].Text, fmt.Sprint(w.changed(fmt.Sprintf("task/%d", i)+saidPlace)))
	for _, c := range []byte(word)[1 : 1+word[0]%3] {
		if len(own) > 0 {
			list = append(list, own[int(c)%len(own)])
		}
	}
	return list
}

// toolCalls are calls of tools by an agent whose words are a source's.
func (w *variant) toolCalls(s *setting, tools []int, source string, p prompt.Prompt) (calls []llm.ToolCall) {
	words := func(what string) string {
		return gist(p, what) + " " + w.words(source+saidPlace) + " " + echoes(p)
	}
	for at, k := range tools {
		value := w.value(source+saidPlace, s.tools[k].form, func(place string) string {
			if place == "/alpha" {
				return words(strconv.Itoa(at))
			}
			return gist(p, place+strconv.Itoa(at)) + " " + w.words(source+saidPlace)
		}, 417, "red", "abcd").(map[string]any)
		delete(value, "gamma") // what is left of a list has other indexes
		calls = append(calls, llm.ToolCall{Name: s.tools[k].name, Arguments: encoded(value)})
	}
	return calls
}

// A turnAgent is the agent of the last prompt of a task that is not one of its children.
type turnAgent struct {
	agent string
	level label.Classification // of the prompt
	held  bool                 // the conversation was transferred to it
	read  []*prompt.Receipt    // of its prompts so far in this conversation
}

// A toolSight is what a sight has beside its text if its reader is a tool.
type toolSight struct {
	id        string
	caller    turnAgent
	arguments json.RawMessage
	files     bool // it read files
}

// call holds what a tool was given to its clearance, the rules for the pair and the table.
func (v *view) call(s *sight) string {
	for _, hidden := range append(cards[:], tokens[:]...) {
		if strings.Contains(s.text, hidden) {
			return "it has what is always redacted: " + hidden
		}
	}
	reader := v.reader(s.agent)
	for _, c := range canaries.FindAllString(s.text, -1) {
		at, met := v.variant.known[c]
		if !met {
			continue // cut
		}
		v.sum.met++
		switch {
		case !v.reach(split(at), reader):
			return fmt.Sprintf("%s of %s: by the table it never reaches %s", c, at, s.agent)
		case !v.spreads(split(at)).tainted[s.step]:
			return fmt.Sprintf("%s of %s: no edges lead to %s", c, at, s.step)
		}
	}
	accepts, level := v.table.Graph().Readers[reader].Clearance, s.call.caller.level
	if s.call.caller.held {
		v.sum.heldCalls++
	}
	switch {
	case level <= accepts:
	case s.call.caller.held:
		return fmt.Sprintf("it accepts %v, and a later holder called it from a conversation that is %v", accepts, level)
	case s.call.files:
		return fmt.Sprintf("it accepts %v, and read files of a conversation that is %v", accepts, level)
	default:
		v.sum.lowered++
	}
	if wrong := v.trusted(s); wrong != "" {
		return wrong
	}
	var value any
	if err := json.Unmarshal(s.call.arguments, &value); err != nil {
		return err.Error()
	}
	wrong := ""
	leaves(value, nil, func(path []string, text string) {
		if wrong == "" && canaries.MatchString(text) {
			wrong = v.argument(s, path, accepts)
		}
	})
	return wrong
}

// argument holds one text in the arguments of a call.
func (v *view) argument(s *sight, path []string, accepts label.Classification) string {
	level := s.call.caller.level
	d := &gate.Decision{From: s.call.caller.agent, To: s.agent, Before: level, After: min(level, accepts)}
	for i := range s.policy.Rules {
		r := s.policy.Rules[i]
		if r.Ceiling = nil; (r.From != d.From && r.From != handoff.Anyone) || (r.To != d.To && r.To != handoff.Anyone) {
			continue
		}
		if wrong := breaks(&r, path, d); wrong != "" {
			return "the argument /" + strings.Join(path, "/") + ": " + wrong
		}
		if s.call.files && narrows(&r) {
			return "it read files with the whole conversation, which a rule limits"
		}
	}
	if level <= accepts {
		return ""
	}
	for _, e := range v.setting.policy.Declassify {
		if e.From == d.From && e.To == d.To && slices.ContainsFunc(e.Paths, func(p task.Path) bool { return pick.Covers(p, path) }) {
			return ""
		}
	}
	return fmt.Sprintf("the argument /%s is %v, and nothing lowers it for %s", strings.Join(path, "/"), level, s.agent)
}

// narrows reports whether a rule delivers only parts of a value.
func narrows(r *handoff.PairRule) bool {
	only := func(paths []task.Path) bool { return paths != nil && !slices.Contains(paths, "") }
	tr := r.Translate
	return only(r.Allow) || r.Block != nil || tr != nil && (only(tr.Fields) || tr.Filter != nil)
}

// leaves calls f for each text in a value.
func leaves(value any, path []string, f func(path []string, text string)) {
	switch value := value.(type) {
	case string:
		f(path, value)
	case []any:
		for i, x := range value {
			leaves(x, append(slices.Clone(path), strconv.Itoa(i)), f)
		}
	case map[string]any:
		for name, x := range value {
			leaves(x, append(slices.Clone(path), name), f)
		}
	}
}

// steps returns the names of a task of the graph: a tool has one for each task, and each holder, that calls it.
func (v *view) steps(i int) (names []string) {
	if known := v.named[i]; known != nil {
		return known
	}
	if v.named == nil {
		v.named = map[int][]string{}
	}
	defer func() { v.named[i] = names }()
	g := v.table.Graph()
	if !strings.HasPrefix(g.Tasks[i].Title, gate.ToolReader("")) {
		return []string{g.Tasks[i].Title}
	}
	for _, source := range v.sourcesOf[i] {
		for _, k := range v.edgesFrom[source] {
			if e := &g.Edges[k]; v.calls(e.Task, i) {
				names = append(names, calling(g.Tasks[e.Task].Title, g.Tasks[i].Title))
			}
		}
	}
	return names
}

// calls reports whether a task of the graph, which gets what a tool returns, is one that calls the tool: that of an
// agent, or of a holder that passes on to the tool what it says.
func (v *view) calls(by, tool int) bool {
	g := v.table.Graph()
	return by < len(v.setting.tasks) || slices.ContainsFunc(v.sourcesOf[by], func(source int) bool {
		return g.Sources[source].Kind == handoff.Transferred && slices.ContainsFunc(v.edgesFrom[source], func(k int) bool { return g.Edges[k].Task == tool })
	})
}

// noteCaller notes who reads a prompt of a task.
func (st *stage) noteCaller(i int, p prompt.Prompt) {
	r := p.Receipt()
	if st.now.childStep(&st.setting.tasks[i], p) != "" && !isHolder(p) || strings.HasPrefix(p.Text(), retellHeading) {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	by := turnAgent{agent: r.Agent, level: r.Classification, held: isHolder(p), read: []*prompt.Receipt{r}}
	if turnNumber(p) > 0 && st.callers[i].agent == by.agent {
		by.read = append(slices.Clip(st.callers[i].read), r)
	}
	st.callers[i] = by
}

// toolAt is the index of a tool in the table: children have the same tools. It is negative for one that only
// agents have to which the conversation cannot be transferred.
func (v *view) toolAt(of toolSource) (at int) {
	if known, is := v.toolPlaces[of]; is {
		return known
	}
	if v.toolPlaces == nil {
		v.toolPlaces = map[toolSource]int{}
	}
	defer func() { v.toolPlaces[of] = at }()
	g, name := v.table.Graph(), v.setting.tools[of.tool].reader()
	for i := range g.Sources {
		if g.Sources[i].From == name && (of.task < 0 || slices.ContainsFunc(v.edgesFrom[i], func(k int) bool {
			e := &g.Edges[k]
			if of.holder == "" {
				return e.Task == of.task
			}
			return e.Task >= len(v.setting.tasks) && g.Tasks[e.Task].Title == of.holder+" in "+v.setting.tasks[of.task].Title && v.calls(e.Task, g.Sources[i].Task)
		})) {
			return i
		}
	}
	return -1
}
