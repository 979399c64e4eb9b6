package specfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/tool"
)

// equip sets the tools of an agent.
func (r *reader) equip(i int) {
	f := r.places.agents[i]
	if f == nil {
		return
	}
	m := &r.file.Agents[i].Member
	r.mine = func() string { return agentName(i, m.Name) + ": " }
	before := r.problems
	for _, name := range r.presetTools(f) {
		m.Tools = append(m.Tools, r.presetTool(name, f)...)
	}
	m.Tools = append(m.Tools, r.listedTools(f, m.Tools)...)
	r.file.Tools.unequipped[i] = r.problems > before || f.unread("tools") || f.unread("toolPreset")
	for _, item := range r.pick(f, "disallowedTools").parts() {
		unwanted, _ := r.toolsNamed("disallowedTools", item)
		m.Tools = slices.DeleteFunc(m.Tools, func(t *tool.Tool) bool { return slices.Contains(unwanted, t) })
	}
	inherited := f.own("allowUntrusted") == nil
	for _, item := range r.pick(f, "allowUntrusted").parts() {
		trusted, known := r.toolsNamed("allowUntrusted", item)
		has := false
		for _, t := range trusted {
			if slices.Contains(m.Tools, t) && !slices.Contains(m.AllowUntrusted, t.Name) {
				m.AllowUntrusted = append(m.AllowUntrusted, t.Name)
			}
			has = has || slices.Contains(m.Tools, t)
		}
		if known && !has && !inherited {
			r.bad(item, "add it to tools, or remove it here", "allowUntrusted: the agent does not have the tool %s", quote(item.text))
		}
	}
}

// presetTools returns the names of the tools that an agent's toolPreset gives it.
func (r *reader) presetTools(f *fields) []string {
	if n := r.presetNode(f); n != nil {
		return presetNames(n.text)
	}
	return nil
}

// presetNode returns the toolPreset of an agent, or else the defaultToolPreset; nil if there
// is none.
func (r *reader) presetNode(f *fields) *node {
	if n := f.get("toolPreset"); n != nil {
		return n
	}
	return r.places.defaultPreset()
}

// defaultPreset returns the defaultToolPreset of an orchestrator, or nil.
func (p *places) defaultPreset() *node {
	for _, y := range p.layers {
		if n := y.orch.own("defaultToolPreset"); n != nil {
			return n
		}
	}
	return nil
}

// presetTool returns a built-in tool of a preset, with the settings of its entry.
func (r *reader) presetTool(name string, f *fields) []*tool.Tool {
	e := r.toolEntry(name, r.presetNode(f))
	e.used = true
	return e.tools
}

// toolEntry returns the entry of a built-in tool, which it makes at the first use.
func (r *reader) toolEntry(name string, at *node) *toolEntry {
	if e := r.file.Tools.entries[name]; e != nil {
		return e
	}
	before := r.problems
	e := &toolEntry{name: name, tools: r.readBuiltIn(name, nil, at)}
	if e.wrong = r.problems > before; !e.wrong {
		r.file.Tools.entries[name] = e
	}
	return e
}

// listedTools returns the tools of an agent's list; has are those of its preset.
func (r *reader) listedTools(f *fields, has []*tool.Tool) (all []*tool.Tool) {
	list, preset := r.pick(f, "tools"), r.presetNode(f)
	subject := r.subject
	for _, item := range list.parts() {
		r.subject = subject
		found, known := r.toolsNamed("tools", item)
		if !known {
			continue
		}
		if preset != nil && slices.Contains(builtIns(), item.text) && item.text != httpGet {
			line, _ := preset.src.place(preset.at)
			r.bad(item, "to choose tools, list all of them under tools and leave the preset out; to have fewer than the preset, name the others in disallowedTools",
				"tools: %s stands beside the preset %s of line %d, which it does not narrow", quote(item.text), preset.text, line)
			continue
		}
		for _, t := range found {
			if slices.Contains(all, t) || slices.Contains(has, t) {
				r.bad(item, "remove it", "tools: %s is listed twice", quote(r.file.Tools.written(t.Name)))
				break
			}
			all = append(all, t)
		}
	}
	return all
}

// toolsNamed returns the tools that a name in a list means, and whether the name is known. It
// reports an unknown one.
func (r *reader) toolsNamed(key string, item *node) (found []*tool.Tool, known bool) {
	name := item.text
	server, one, part := strings.Cut(name, "/")
	e := r.file.Tools.entries[server]
	switch {
	case e == nil && !part && slices.Contains(builtIns(), name):
		e = r.toolEntry(name, item)
	case e == nil || part && e.server == nil && !e.wrong:
		hint := nearHint(name, "declare an MCP server under tools of the file; built-in tools are "+strings.Join(builtIns(), ", "), r.file.Tools.names()...)
		if from := plan.RuntimeToolHint(name); from != "" {
			hint = from + ", which gives it this tool, and remove it here"
			if key != "tools" {
				hint = "remove it here"
			}
		}
		r.badAs(item, ErrUnknown, hint, "%s: unknown tool %s", key, quote(name))
		r.file.Tools.refused[name] = true
		return nil, false
	}
	e.used = e.used || key == "tools"
	if e.wrong || !part {
		return e.tools, !e.wrong
	}
	if i := slices.Index(e.server.Allow, one); i >= 0 {
		return e.tools[i : i+1], true
	}
	hint := "add it to allow of " + e.name
	if best := nearestOf(one, e.server.Allow...); best != "" {
		hint = "did you mean " + e.name + "/" + best + "? else add it to allow of " + e.name
	}
	r.badAs(item, ErrUnknown, hint, "%s: allow of %s does not list %s", key, quote(e.name), quote(one))
	r.file.Tools.refused[name] = true
	return nil, false
}

// names returns what lists of tools may name.
func (b *Toolbox) names() []string {
	all := slices.Clone(builtIns())
	for _, e := range b.list {
		if all = append(all, e.name); e.server == nil {
			continue
		}
		for _, name := range e.server.Allow {
			all = append(all, e.name+"/"+name)
		}
	}
	return all
}

// written returns the name of a tool as a spec writes it: SERVER/TOOL for SERVER__TOOL.
func (b *Toolbox) written(name string) string {
	for _, e := range b.list {
		for i, t := range e.tools {
			if t.Name == name && e.server != nil {
				return e.name + "/" + e.server.Allow[i]
			}
		}
	}
	return name
}

// word matches what can be the name of a tool in a text.
var word = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// respell returns a text with SERVER/TOOL for each SERVER__TOOL of the spec in it.
func (b *Toolbox) respell(text string) string {
	if b == nil || !strings.Contains(text, "__") {
		return text
	}
	return word.ReplaceAllStringFunc(text, b.written)
}

// exact returns the names that models see for a name as a spec writes it: all tools of a
// server, or one. Every other name stays as it is.
func (b *Toolbox) exact(name string) (all []string) {
	server, one, part := strings.Cut(name, "/")
	e := b.entries[server]
	if e == nil || e.server == nil {
		return []string{name}
	}
	for i, t := range e.tools {
		if !part || e.server.Allow[i] == one {
			all = append(all, t.Name)
		}
	}
	if all == nil {
		return []string{name}
	}
	return all
}

// readers returns the names of the agents' tools as readers, such as tool:bash.
func (b *Toolbox) readers() (all []string) {
	if b == nil {
		return nil
	}
	for i := range b.file.Agents {
		for _, t := range b.file.Agents[i].Member.Tools {
			if name := naming.ToolPrefix + t.Name; !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// exactReaders returns the readers that a name in a policy or an assertion means: for
// tool:SERVER all tools of a server.
func (b *Toolbox) exactReaders(name string) []string {
	short, is := strings.CutPrefix(name, naming.ToolPrefix)
	if !is || b == nil {
		return []string{name}
	}
	all := b.exact(short)
	for i := range all {
		all[i] = naming.ToolPrefix + all[i]
	}
	return all
}

// Approved returns the names of the tools whose calls a person has to approve, and of the
// declassifiers.
func (f *File) Approved() (names []string) {
	if p := f.Config.Policy; p != nil {
		for i := range p.Declassify {
			if p.Declassify[i].Approve != "" {
				names = append(names, p.Declassify[i].Name)
			}
		}
	}
	for i := range f.Agents {
		for _, t := range f.Agents[i].Member.Tools {
			if t.Approve != "" && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// checkPaths warns of tasks that name a file by an absolute path to an agent whose tools know only those of its workspace.
func (r *reader) checkPaths() {
	for i := range r.file.Tasks {
		t := &r.file.Tasks[i]
		at := slices.IndexFunc(r.file.Agents, func(a Agent) bool { return a.Member.Name == t.Assignee })
		if at < 0 || r.places.tasks[i] == nil || !slices.ContainsFunc(r.file.Agents[at].Member.Tools, func(t *tool.Tool) bool { return t.Effect == tool.Workspace || t.ReadsWorkspace }) {
			continue
		}
		if path := absolutePath.FindStringSubmatch(t.Description); path != nil {
			r.warn(r.places.tasks[i].own("description"), "name it as it is in the workspace, and bring it there with an input: {dir: …}", "description: %s is not in the workspace of the task, which is a folder of its own", strings.TrimRight(path[1], ".,;:"))
		}
	}
}

// absolutePath matches the absolute path of a file in a folder where people keep files.
var absolutePath = regexp.MustCompile(`(?:^|[\s"'(` + "`" + `])(/(?:tmp|home|Users|var|workspace|data|mnt|opt|root)/[^\s"')` + "`" + `]*)`)
