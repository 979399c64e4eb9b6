package specfile

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/tool"
)

// toolsOfTask reads the names of the tools of a task. SERVER means those tools of the server that its
// agent has. It returns nil without the key, and no names for an empty list.
func (r *reader) toolsOfTask(n *node, assignee string) []string {
	if n == nil {
		return nil
	}
	box, names := r.file.Tools, []string{}
	has, who := r.toolsOfAgent(assignee)
	for _, item := range n.parts() {
		if plan.RuntimeToolHint(item.text) != "" { // the check of the tasks knows who has it
			if !slices.Contains(names, item.text) {
				names = append(names, item.text)
			}
			continue
		}
		found := slices.DeleteFunc(box.exact(item.text), func(name string) bool { return !slices.Contains(has, name) })
		server, _, _ := strings.Cut(item.text, "/")
		if e := box.entries[server]; len(found) == 0 && who != "" && !box.refused[item.text] && (e == nil || !e.wrong) {
			written := make([]string, len(has))
			for i, name := range has {
				written[i] = box.written(name)
			}
			r.badAs(item, ErrUnknown, nearHint(item.text, "add it to tools of the agent, or remove it here", written...), "tools: %s the tool %s", who, quote(item.text))
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// toolsOfAgent returns the names of the tools of an agent or, for a task that names none, of all
// agents, and the beginning of a sentence about a tool that is not among them; empty if the
// agent is unknown, or may lack a tool because of a problem that is reported.
func (r *reader) toolsOfAgent(assignee string) (names []string, who string) {
	if who = "no agent has"; assignee != "" {
		who = ""
	}
	lacking := false
	for i := range r.file.Agents {
		m := &r.file.Agents[i].Member
		if assignee != "" && m.Name != assignee {
			continue
		}
		lacking = lacking || r.file.Tools.unequipped[i]
		if assignee != "" {
			who = "agent " + quote(m.Name) + " does not have"
		}
		names = append(names, toolNames(m.Tools)...)
	}
	if lacking {
		who = ""
	}
	return names, who
}

// toolNames returns the names of tools.
func toolNames(list []*tool.Tool) (names []string) {
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}
