package spec

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/runteam/runteam/label"
)

// What concerns a run as a whole: its limits, endpoints and flags, and what is
// known only when everything has been read.

// readRun reads what concerns the run as a whole.
func (r *reader) readRun() {
	f, main := r.file, r.places.main
	f.Name = r.name()
	f.Config.Name = f.Name
	f.Run.Output = text(main.spec.own("output"))
	f.Run.Timeout = duration(main.spec.own("timeoutMs"))
	f.Run.MaxConcurrency = integer(r.setting("maxConcurrency"))
	if n := integer(r.roster.team.own("maxConcurrency")); n > 0 && (f.Run.MaxConcurrency == 0 || n < f.Run.MaxConcurrency) {
		f.Run.MaxConcurrency = n
	}
	r.readEndpoints()
	if n := main.spec.own("offline"); n != nil {
		r.readOffline(n)
	}
	if n := r.setting("strictAssignees"); n != nil && n.text == "false" {
		r.warnAt(n.src, n.at, "", "strictAssignees: no effect here: an unknown assignee is an error in any case")
	}
}

// name is the name of the spec, else of the team, else of the file.
func (r *reader) name() string {
	for _, n := range []*node{
		r.places.main.spec.own("name"), r.places.main.team.own("name"), r.roster.spec.own("name"), r.roster.team.own("name"),
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

func (r *reader) readEndpoints() {
	for _, y := range r.layers {
		n := y.spec.own("endpoints")
		if n == nil {
			continue
		}
		for i, base := range n.kids.keys {
			f := r.fields(&n.kids.nodes[i], endpointPlace, nil)
			if f == nil || f.own("accepts") == nil {
				continue
			}
			if r.file.Config.Endpoints == nil {
				r.file.Config.Endpoints = make(map[string]label.Classification)
			}
			if _, twice := r.file.Config.Endpoints[base]; !twice {
				r.file.Config.Endpoints[base] = level(f.own("accepts"))
			}
		}
	}
}

func (r *reader) readOffline(n *node) {
	path, ok := r.expand("offline", n)
	if !ok {
		return
	}
	script, err := openInside(n.src.dir, path)
	if err != nil {
		r.bad(n, err, fileHint(err), "offline: %s: %v", quote(n.text), err)
		return
	}
	script.Close()
	r.file.Offline = filepath.Join(n.src.dir, path)
}

// readModels applies --model.
func (r *reader) readModels() {
	for _, flag := range r.o.Models {
		agent, model, one := strings.Cut(flag, "=")
		if !one {
			agent, model = "", flag
		}
		if strings.TrimSpace(model) == "" {
			r.badFlag(ErrInvalid, "write --model MODEL or --model AGENT=MODEL", "--model %s: no model", quote(flag))
			continue
		}
		hit := false
		var known []string
		for i := range r.file.Agents {
			a := &r.file.Agents[i]
			known = append(known, a.Member.Name)
			if !one || strings.EqualFold(a.Member.Name, agent) {
				a.Model, a.Member.Model, hit = model, model, true
			}
		}
		if one && !hit {
			hint := "write --model AGENT=MODEL, with the name of an agent"
			if best := nearestOf(agent, known...); best != "" {
				hint = "did you mean " + best + "?"
			}
			r.badFlag(ErrUnknown, hint, "--model %s: no agent %s", quote(flag), quote(agent))
		}
	}
}

// checkStrategy refuses a strategy that has something to decide and is not built.
func (r *reader) checkStrategy() {
	n := r.setting("schedulingStrategy")
	if n == nil || n.text == "round-robin" {
		return
	}
	for i := range r.file.Tasks {
		if r.file.Tasks[i].Assignee == "" {
			r.bad(n, ErrNotBuilt, "write round-robin, or an assignee for every task",
				"schedulingStrategy: %s: not built yet, and %s has no assignee", n.text, taskName(i, r.file.Tasks[i].Title))
			return
		}
	}
}

// checkTurns warns of tasks that name no assignee, where there is a choice:
// who forgot one sees it, and who means it can say so.
func (r *reader) checkTurns() {
	if len(r.file.Agents) < 2 || r.setting("schedulingStrategy") != nil {
		return
	}
	var titles []string
	var first *node
	for i, f := range r.places.tasks {
		if f == nil || f.get("assignee") != nil || f.node.get("assignee") != nil {
			continue
		}
		if titles = append(titles, quote(strings.TrimSpace(r.file.Tasks[i].Title))); first == nil {
			first = f.node
		}
	}
	if first == nil {
		return
	}
	const most = 5
	list, more := strings.Join(titles[:min(len(titles), most)], ", "), ""
	if n := len(titles) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	r.warnAt(first.src, first.at, "write assignee: NAME in each, or schedulingStrategy: round-robin if that is meant",
		"no assignee, so assigned to the agents in turn: %s%s", list, more)
}

// checkUnused warns of inputs and parameters that nothing uses.
func (r *reader) checkUnused() {
	if len(r.file.Tasks) == 0 || len(r.found) > 0 {
		return
	}
	used := make(map[string]bool)
	for i := range r.file.Tasks {
		for _, u := range r.file.Tasks[i].Uses {
			used[strings.ToLower(u.Name)] = true
		}
	}
	for i, in := range r.file.Run.Inputs {
		if at := r.places.inputs[i]; !used[strings.ToLower(in.Name)] {
			r.warnAt(at.src, at.key, "grant it with uses: ["+in.Name+"], or remove it", "input %s: no task uses it", quote(in.Name))
		}
	}
	for _, name := range sortedKeys(r.params) {
		if p := r.params[name]; !p.used {
			r.warnAt(p.src, p.key, "write ${params."+name+"} where it belongs, or remove it", "params: nothing uses %s", quote(name))
		}
	}
}
