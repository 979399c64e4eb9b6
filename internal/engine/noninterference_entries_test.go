package engine_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// toolEntries draws entries of the policy for what tools return: some lower parts of it, which a rule withholds
// otherwise, and some endorse it, so that an agent may call a tool with external effects after it has read them.
func (d *drawing) toolEntries() {
	s := d.s
	for at := range s.agents {
		m := &s.agents[at]
		for _, k := range s.toolsOf[at] {
			x := &s.tools[k]
			if s.ruleBetween(x.reader(), m.Name) == nil || !d.chance(40, "lower a result") {
				continue
			}
			level := pickOne(d, classes[:2], "lowered to")
			s.ruleBetween(x.reader(), m.Name).Ceiling = &level
			s.policy.Declassify = append(s.policy.Declassify, handoff.Declassifier{
				Entry: entry("lower", x.reader(), m.Name), LowerTo: level, UnsafeText: true, Paths: some(d, toolPlaces[1:], 2, "lowered parts"),
			})
		}
		if len(s.toolsOf[at]) > 0 && d.chance(40, "endorse") {
			d.endorseAll(at)
		}
	}
}

// endorseAll takes from an agent the permission to call tools with untrusted context, and endorses most of what it
// may read.
func (d *drawing) endorseAll(at int) {
	s, to := d.s, d.s.agents[at].Name
	s.agents[at].AllowUntrusted = nil
	from := []string{handoff.User}
	for i := range s.agents {
		if i != at {
			from = append(from, s.agents[i].Name)
		}
	}
	for _, k := range s.toolsOf[at] {
		from = append(from, s.tools[k].reader())
	}
	for _, name := range from {
		often := 95
		if strings.HasPrefix(name, gate.ToolReader("")) {
			often = 60
		}
		known := slices.ContainsFunc(s.policy.Endorse, func(e handoff.Endorser) bool { return e.From == name && e.To == to })
		if d.chance(often, "endorses") && !known {
			s.policy.Endorse = append(s.policy.Endorse, handoff.Endorser{Entry: entry("endorse", name, to)})
		}
	}
}

// entry is what all exceptions of a policy have.
func entry(what, from, to string) handoff.Entry {
	return handoff.Entry{Name: strings.ReplaceAll(what+" "+from+" "+to, ":", " "), From: from, To: to, Reason: "a test"}
}

// ruleBetween is the rule for a pair, or nil.
func (s *setting) ruleBetween(from, to string) *handoff.PairRule {
	i := slices.IndexFunc(s.policy.Rules, func(r handoff.PairRule) bool { return r.From == from && r.To == to })
	if i < 0 {
		return nil
	}
	return &s.policy.Rules[i]
}

// toolPlaces are the places of what a tool returns: its text, and parts of its value.
var toolPlaces = []task.Path{"", "/alpha", "/beta/x"}

// ofTool reports whether a canary is of what a tool says itself.
func (w *variant) ofTool(canary string, s *setting, k int) bool {
	at, of := split(w.known[canary]).source, 0
	_, err := fmt.Sscanf(at, "tool/%d", &of)
	return err == nil && s.sources[of].tool == k
}

// trusted holds a call of a tool with external effects to what the policy says of untrusted context.
func (v *view) trusted(s *sight) string {
	k := slices.IndexFunc(v.setting.tools, func(x settingTool) bool { return x.reader() == s.agent })
	m, _ := v.setting.member(s.call.caller.agent)
	x := &v.setting.tools[k]
	if x.options.Effect != tool.External || slices.Contains(m.AllowUntrusted, x.name) {
		return ""
	}
	counted := false
	for _, r := range s.call.caller.read {
		for i := range r.Sources {
			d := r.Sources[i].Decision
			if d == nil || !d.IsDelivered() || d.Source.Kind == handoff.Draft || d.From == gate.Runtime {
				continue
			}
			if !slices.ContainsFunc(v.setting.policy.Endorse, func(e handoff.Endorser) bool { return e.From == d.From && e.To == d.To }) {
				return fmt.Sprintf("it has external effects, and its caller read what %s says, which nothing endorses", d.From)
			}
			counted = counted || strings.HasPrefix(d.From, gate.ToolReader(""))
		}
	}
	if counted {
		v.sum.endorsed++
	}
	return ""
}
