package planning

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// uses reads the inputs of a task.
func (r *reader) uses(v any) { r.spec.Uses = r.usedInputs(v, "", "uses") }

// usedInputs reads the inputs that are granted. item is a name beside theirs, if it is not empty.
func (r *reader) usedInputs(v any, item string, path ...any) (uses []task.Use) {
	if list, ok := v.([]any); ok && len(list) == 0 {
		return nil // requires nothing
	}
	const hint = "remove it, and write what the agent must know into the description"
	if !r.rules.MayGrant.Inputs && item == "" {
		r.bad(ErrGrant, name(path)+": "+ErrGrant.Error(), hint, path...)
		return nil
	}
	for i, input := range r.short(v, max(len(r.rules.Inputs)+1, maxTools), path...) {
		uses = append(uses, task.Use{Name: input})
		if at := append(slices.Clip(path), i); input != item || item == "" {
			r.checkInput(input, hint, at...)
		}
	}
	return uses
}

// checkInput checks that an input may be granted.
func (r *reader) checkInput(input, hint string, path ...any) {
	switch {
	case !r.rules.MayGrant.Inputs:
		r.bad(ErrGrant, name(path)+": "+ErrGrant.Error(), hint, path...)
	case !r.inputs[input]:
		r.bad(ErrUnknownInput, fmt.Sprintf("%s: unknown input %s", name(path), quote(input)), r.nearest(input, r.rules.Inputs), path...)
	}
}

// tools reads the tools of a task.
func (r *reader) tools(v any) { r.spec.Tools = r.calledTools(v, r.spec.Assignee, "tools") }

// calledTools reads the tools that an agent may call: for no agent, those of any. It never returns nil.
func (r *reader) calledTools(v any, agent string, path ...any) []string {
	called := []string{}
	if list, ok := v.([]any); ok && len(list) == 0 {
		return called // requires nothing
	}
	if !r.rules.MayGrant.Tools {
		r.bad(ErrGrant, name(path)+": "+ErrGrant.Error(), "remove it, and plan what agents can do without tools", path...)
		return called
	}
	known, who := r.rules.tools(agent), "no agent has"
	if agent != "" {
		who = fmt.Sprintf("agent %s does not have", quote(agent))
	}
	for i, tool := range r.short(v, 2*maxTools, path...) {
		called = append(called, tool)
		if at := append(slices.Clip(path), i); !slices.Contains(known, tool) && (agent == "" || r.agents[agent]) {
			r.bad(ErrUnknownTool, fmt.Sprintf("%s: %s the tool %s", name(at), who, quote(tool)), r.otherTool(tool, known), at...)
		}
	}
	return called
}

// otherTool is a hint for a tool that an agent does not have. Another agent may have it.
func (r *reader) otherTool(tool string, known []string) string {
	var owners []string
	for _, agent := range r.rules.Agents {
		if slices.Contains(r.rules.Tools[agent], tool) {
			owners = append(owners, quote(agent))
		}
	}
	instead := "remove it"
	if len(known) > 0 {
		instead = "write one of " + naming.List(known)
	}
	switch {
	case len(owners) > 0:
		return instead + ", or give the task to an agent that has it: " + naming.List(owners)
	case len(known) == 0:
		return instead
	}
	return r.nearest(tool, known)
}

// tools returns the names of the tools of an agent or, for no agent, of all of them.
func (r *Rules) tools(agent string) (names []string) {
	if agent != "" {
		return r.Tools[agent]
	}
	for _, name := range r.Agents {
		for _, f := range r.Tools[name] {
			if !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
	}
	return names
}
