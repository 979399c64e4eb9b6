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
	"github.com/runteam/runteam/internal/flow"
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

// A toolSource is a tool as the table has it: for each task one without state, and for all of
// them one with state.
type toolSource struct {
	tool, task int // no task of one with state
}

// toolSources are the tools in the order of the table.
func (s *setting) toolSources() (list []toolSource) {
	for i := range s.tasks {
		at := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == s.tasks[i].Assignee })
		for _, k := range s.taskTools(at, &s.tasks[i]) {
			from := toolSource{k, i}
			if s.tools[k].options.Stateful {
				from.task = -1
			}
			if !slices.Contains(list, from) {
				list = append(list, from)
			}
		}
	}
	return list
}

// toolPlace names the source of what a tool says in a task.
func (s *setting) toolPlace(k, i int) string {
	if s.tools[k].options.Stateful {
		i = -1
	}
	return fmt.Sprintf("tool/%d", slices.Index(s.toolSources(), toolSource{k, i}))
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
	if tk := &st.setting.tasks[i]; tk.Tools != nil && !slices.Contains(tk.Tools, x.name) {
		panic("called " + x.name + ", which the task does not have")
	}
	read := string(c.Arguments)
	if x.files {
		read += readFiles(c)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.called = append(st.called, sight{
		agent: x.reader(), step: calling(st.setting.tasks[i].Title, x.reader()), text: read,
		call: &toolSight{id: c.ID, from: st.setting.tasks[i].Assignee, arguments: c.Arguments, files: len(read) > len(c.Arguments), level: st.levels[i]},
	})
	if o := &x.options; o.Stateful {
		state := o.State
		if state == "" {
			state = x.name
		}
		st.states[state] += read
		read = st.states[state]
	}
	words := st.now.words(st.toolPlace(k, i))
	return tool.Result{
		Text: "The tool says " + words + " about " + letters(12, read),
		JSON: json.RawMessage(encoded(map[string]any{"alpha": words, "beta": map[string]any{"x": echoesOf(read)}, "gamma": letters(12, read, "gamma")})),
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
	n := 0
	for _, m := range p.Messages() {
		if m.Role == "assistant" {
			n++
		}
	}
	turns, source := s.calls[i], fmt.Sprintf("task/%d", i)
	if n >= max(len(turns), len(s.acts[i])) || strings.HasPrefix(p.Text(), retellHeading) {
		return agent.Reply{}, false
	}
	words := func(what string) string {
		return gist(p, what) + " " + w.words(source+saidPlace) + " " + echoes(p)
	}
	r := agent.Reply{Text: "I look it up: " + words("said")}
	var tools []int
	if n < len(turns) {
		tools = turns[n]
	}
	for at, k := range tools {
		value := w.value(source+saidPlace, s.tools[k].form, func(place string) string {
			if place == "/alpha" {
				return words(strconv.Itoa(at))
			}
			return gist(p, place+strconv.Itoa(at)) + " " + w.words(source+saidPlace)
		}, 417, "red", "abcd").(map[string]any)
		delete(value, "gamma") // what is left of a list has other indexes
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{Name: s.tools[k].name, Arguments: encoded(value)})
	}
	w.addCalls(s, i, n, p, &r)
	return r, len(r.ToolCalls) > 0
}

// A toolSight is what a sight has beside its text if its reader is a tool.
type toolSight struct {
	id        string
	from      string // the agent that called
	arguments json.RawMessage
	files     bool                 // it read files
	level     label.Classification // of the prompt that was answered with the call
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
	accepts := v.table.Graph().Readers[reader].Clearance
	if s.call.level > accepts {
		v.sum.lowered++
	}
	if s.call.level > accepts && s.call.files {
		return fmt.Sprintf("it accepts %v, and read files of a conversation that is %v", accepts, s.call.level)
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
	d := &gate.Decision{From: s.call.from, To: s.agent, Before: s.call.level, After: min(s.call.level, accepts)}
	for i := range v.setting.policy.Rules {
		r := v.setting.policy.Rules[i]
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
	if s.call.level <= accepts {
		return ""
	}
	for _, e := range v.setting.policy.Declassify {
		if e.From == d.From && e.To == d.To && slices.ContainsFunc(e.Paths, func(p task.Path) bool { return pick.Covers(p, path) }) {
			return ""
		}
	}
	return fmt.Sprintf("the argument /%s is %v, and nothing lowers it for %s", strings.Join(path, "/"), s.call.level, s.agent)
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

// steps returns the names of a task of the graph: a tool has one for each task that calls it.
func (v *view) steps(i int) (names []string) {
	g := v.table.Graph()
	if !strings.HasPrefix(g.Tasks[i].Title, gate.ToolReader("")) {
		return []string{g.Tasks[i].Title}
	}
	for k := range g.Edges {
		if e := &g.Edges[k]; g.Sources[e.Source].Task == i && e.Task < len(v.setting.tasks) {
			names = append(names, calling(g.Tasks[e.Task].Title, g.Tasks[i].Title))
		}
	}
	return names
}

// atLevel notes the label of a prompt of a task.
func (st *stage) atLevel(i int, p prompt.Prompt) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.levels[i] = p.Receipt().Classification
}

// toolAt is the index of a tool in the table: children have the same tools.
func (v *view) toolAt(of toolSource) int {
	g, name := v.table.Graph(), v.setting.tools[of.tool].reader()
	for i := range g.Sources {
		if g.Sources[i].From == name && (of.task < 0 || slices.ContainsFunc(g.Edges, func(e flow.Edge) bool { return e.Source == i && e.Task == of.task })) {
			return i
		}
	}
	panic("no source " + name)
}
