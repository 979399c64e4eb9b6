package specfile

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm/limit"
)

// readRun reads what concerns the run as a whole.
func (r *reader) readRun() {
	f, main := r.file, r.places.main
	f.Name = r.runName()
	f.Config.Name = f.Name
	f.Description = strings.TrimSpace(text(r.places.main.spec.own("description")))
	f.Run.Output = text(main.spec.own("output"))
	settings, own := runMembers(f)
	settings.read(r.places.setting)
	own.read(main.spec.own)
	if text(main.spec.own("mode")) == "auto" {
		f.Run.Auto = true
	}
	if n := integer(r.places.roster.team.own("maxConcurrency")); n > 0 && (f.Run.MaxConcurrency == 0 || n < f.Run.MaxConcurrency) {
		f.Run.MaxConcurrency = n
	}
	r.checkBases()
	r.checkFallbacks()
	r.readEndpoints()
	if n := main.spec.own("offline"); n != nil {
		r.readOffline(n)
	}
	if n := r.places.setting("strictAssignees"); n != nil && n.text == "false" {
		r.warn(n, "", "strictAssignees: no effect here: an unknown assignee is an error in any case")
	}
}

// runMembers are the limits of a run: those that any file may set, and those of the main file.
func runMembers(f *File) (settings, own members) {
	o, cfg := &f.Run, &f.Config
	settings = members{
		{"maxConcurrency", &o.MaxConcurrency}, {"maxTokenBudget", &o.MaxTokenBudget}, {"maxCostBudget", &o.MaxCostBudget}, {"schedulingStrategy", &o.Strategy},
	}
	own = members{{"timeoutMs", &o.Timeout}, {"reuse", &o.Reuse}, {"maxContextBytes", &cfg.MaxContextBytes}, {"maxPromptBytes", &cfg.MaxPromptBytes}, {"maxMessageBytes", &cfg.MaxMessageBytes}}
	return settings, own
}

// runName is the name of the spec, else of the team, else of the file.
func (r *reader) runName() string {
	for _, n := range []*node{
		r.places.main.spec.own("name"), r.places.main.team.own("name"), r.places.roster.spec.own("name"), r.places.roster.team.own("name"),
	} {
		if n != nil {
			return strings.TrimSpace(n.text)
		}
	}
	if r.file.Path == "-" {
		return "stdin"
	}
	base := filepath.Base(cmp.Or(r.file.Path, "team"))
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// readEndpoints reads the clearances and the limits of endpoints. If several files have a
// key, the first counts.
func (r *reader) readEndpoints() {
	f := r.file
	for _, y := range slices.Backward(r.places.layers) {
		n := y.spec.own("endpoints")
		if n == nil {
			continue
		}
		for _, item := range n.parts() {
			base, own := item.key, r.fields(item, "endpoint", nil)
			if own == nil {
				continue
			}
			if f.Config.Endpoints == nil {
				f.Config.Endpoints = make(map[string]label.Classification)
			}
			if accepts := own.own("accepts"); accepts != nil {
				f.Config.Endpoints[base] = level(accepts)
			} else if _, named := f.Config.Endpoints[base]; !named {
				f.Config.Endpoints[base] = plan.DefaultAccepts(base)
			}
			if own.own("textToolCalls") != nil {
				if r.textCalls == nil {
					r.textCalls = map[string]bool{}
				}
				takes := false
				members{{"textToolCalls", &takes}}.read(own.own)
				r.textCalls[endpoint.Normalize(base)] = takes
			}
			l := f.Limits[base]
			members{{"requestsPerMinute", &l.RequestsPerMinute}, {"tokensPerMinute", &l.TokensPerMinute}, {"maxConcurrency", &l.MaxConcurrency}}.read(own.own)
			if l == (limit.Limits{}) {
				continue
			}
			if f.Limits == nil {
				f.Limits = make(map[string]limit.Limits)
			}
			f.Limits[base] = l
		}
	}
}

func (r *reader) readOffline(n *node) {
	path, shown, ok := r.path("offline", n)
	if !ok {
		return
	}
	r.file.offlineShown = filepath.Join(n.src.dir, shown)
	if r.o.StoredOnly {
		r.file.Offline = filepath.Join(n.src.dir, path)
		return
	}
	script, err := openInside(r.o.Dir, n.src.dir, path)
	if n.src.loaded.copied != nil && errors.Is(err, errMissing) {
		r.file.Offline = filepath.Join(n.src.dir, path) // gone with the spec; an offline run reports it
		return
	}
	if err != nil {
		r.badAs(n, err, fileHint(err), "offline: %s: %v", quote(n.text), err)
		return
	}
	script.Close()
	r.file.Offline = filepath.Join(n.src.dir, path)
}

// readModels applies the models of the options.
func (r *reader) readModels() {
	option := r.o.called("Models")
	for _, given := range r.o.Models {
		agent, model, one := strings.Cut(given, "=")
		if !one {
			agent, model = "", given
		}
		if strings.TrimSpace(model) == "" {
			r.badOption("Models", ErrInvalid, "write "+option+" MODEL or "+option+" AGENT=MODEL", " %s: no model", quote(given))
			continue
		}
		known, hit := r.setModel(agent, model, one)
		if one && !hit {
			hint := nearHint(agent, "write "+option+" AGENT=MODEL, with the name of an agent", known...)
			if i := slices.IndexFunc(r.file.Agents, func(a Agent) bool { return !a.HasModel() && strings.EqualFold(a.Member.Name, agent) }); i >= 0 {
				hint = "its backend is a command, which calls no model"
				if r.file.Agents[i].Person {
					hint = "its backend is a person, and no model"
				}
			}
			if strings.EqualFold(agent, handoff.Coordinator) {
				hint = "there are tasks and no goal, so the coordinator is not called"
			}
			r.badOption("Models", ErrUnknown, hint, " %s: no agent %s", quote(given), quote(agent))
		}
	}
}

// setModel sets the model of one agent or the coordinator, or of all. It returns the known
// names and whether one matched.
func (r *reader) setModel(agent, model string, one bool) (known []string, hit bool) {
	for i := range r.file.Agents {
		a := &r.file.Agents[i]
		if !a.HasModel() {
			continue
		}
		known = append(known, a.Member.Name)
		if !one || strings.EqualFold(a.Member.Name, agent) {
			a.Member.Model, hit = model, true
			r.places.agents[i].setModel(&a.Connection, model)
		}
	}
	if c := r.file.Coordinator; c != nil {
		known = append(known, handoff.Coordinator)
		if !one || strings.EqualFold(handoff.Coordinator, agent) {
			c.Coordinator.Model, hit = model, true
			r.places.coordinator.setModel(&c.Connection, model)
		}
	}
	return known, hit
}

// checkIdle finds keys that have no effect because of other keys.
func (r *reader) checkIdle() {
	main, f := r.places.main.spec, r.file
	warn := func(name, hint, why string) {
		if n := main.own(name); n != nil {
			r.warn(n, hint, "%s: no effect: %s", name, why)
		}
	}
	if n := main.own("output"); n != nil && hasGoal(f) {
		if f.Run.Output = ""; r.o.Goal != "" {
			warn("output", "", "the coordinator answers "+r.o.called("Goal")+", from all results")
		} else {
			r.bad(n, "leave it out, or the goal", "output: the coordinator answers the goal, from all results")
		}
	}
	if f.Goal != nil {
		warn("taskDefaults", "remove it", "the coordinator plans the tasks")
	}
	if len(f.Tasks) == 0 {
		return
	}
	if f.Run.Auto {
		warn("mode", "remove it, or the tasks", "the tasks are written")
	}
	if c := r.places.coordinator; c != nil && !hasGoal(f) {
		r.warn(c.node, "add goal: to have it answer from the results", "coordinator: not called: there are tasks and no goal")
	}
}

// checkUnused warns of unused inputs and parameters.
func (r *reader) checkUnused() {
	if len(r.file.Tasks) == 0 && r.file.Goal == nil || len(r.found) > 0 { // also of a session, which has its turns later
		return
	}
	why, hint := "no task uses it", func(name string) string { return "grant it with uses: [" + name + "], or remove it" }
	if r.file.Goal != nil {
		why, hint = "no plan may grant it", func(string) string { return "write coordinator: {mayGrant: [inputs]}, or remove it" }
	}
	used := r.usedInputs()
	for i, in := range r.file.Run.Inputs {
		if at := r.places.inputs[i]; !used(in.Name) {
			r.warnAt(at.src, at.key, hint(in.Name), "input %s: %s", quote(in.Name), why)
		}
	}
	for _, name := range sortedKeys(r.places.params) {
		if p := r.places.params[name]; !p.used {
			r.warnAt(p.src, p.key, "write ${params."+name+"} where it belongs, or remove it", "params: nothing uses %s", quote(name))
		}
	}
}

// checkGrantedTools warns of tools, also of those of the runtime, that no planned task can have.
func (r *reader) checkGrantedTools() {
	if r.file.Goal == nil || r.file.Coordinator == nil || r.file.Coordinator.MayGrant.Tools || len(r.found) > 0 {
		return
	}
	for i := range r.file.Agents {
		m := &r.file.Agents[i].Member
		if r.places.agents[i] == nil {
			continue
		}
		var idle []string
		if len(m.Tools) > 0 {
			idle = append(idle, "have its tools")
		}
		if m.Spawn != nil {
			idle = append(idle, "spawn children")
		}
		if r.hasWay(m.Name) {
			idle = append(idle, "use its edges")
		}
		if len(idle) > 0 {
			r.warn(r.places.agents[i].node, "write coordinator: {mayGrant: [tools]}", "%s: no planned task can %s", agentName(i, m.Name), strings.Join(idle, " or "))
		}
	}
}

// checkBudgets warns of replies without a limit, of which one may overdraw a budget.
func (r *reader) checkBudgets() {
	var unlimited []string
	for i := range r.file.Agents {
		a := &r.file.Agents[i]
		if a.Process != nil || a.Person || a.MaxTokens > 0 || r.places.agents[i] == nil {
			continue
		}
		name := agentName(i, a.Member.Name)
		unlimited = append(unlimited, quote(a.Member.Name))
		for _, key := range budgetKeys {
			if n := r.places.agents[i].own(key); n != nil {
				r.warn(n, "set maxTokens of the agent", "%s: one reply of %s may overdraw it, since it has no limit", key, name)
			}
		}
	}
	for _, key := range budgetKeys {
		if n := r.places.setting(key); n != nil && len(unlimited) > 0 {
			r.warn(n, "set maxTokens of the agents, or of agentDefaults", "%s: one reply may overdraw it, since those of %s have no limit", key, naming.List(unlimited))
		}
	}
}

// budgetKeys are the keys of the budgets of a run and of an agent.
var budgetKeys = [...]string{"maxTokenBudget", "maxCostBudget"}

// hasWay reports whether an edge leads from an agent, and no message of the spec is sent along it.
func (r *reader) hasWay(agent string) bool {
	if slices.ContainsFunc(r.file.Run.Messages, func(m plan.Message) bool { return m.From == agent }) {
		return false
	}
	return slices.ContainsFunc(r.file.Config.Edges, func(e handoff.Edge) bool { return e.From == agent || e.Bidirectional && e.To == agent })
}

// usedInputs returns a function that reports whether a task uses an input, or a plan may.
func (r *reader) usedInputs() func(name string) bool {
	if r.file.Goal != nil {
		may := r.file.Coordinator != nil && r.file.Coordinator.MayGrant.Inputs
		return func(string) bool { return may }
	}
	used := make(map[string]bool)
	for _, name := range textList(r.places.chat.own("inputs")) {
		used[strings.ToLower(name)] = true
	}
	for s := range AllTasks(r.file.Tasks) {
		for _, u := range usesOf(s) {
			used[strings.ToLower(u.Name)] = true
		}
		if s.ForEach != nil {
			used[strings.ToLower(s.ForEach.Input)] = true
		}
	}
	return func(name string) bool { return used[strings.ToLower(name)] }
}
