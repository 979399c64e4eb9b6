package engine

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/tool"
)

// permittedTo returns a digest of what a member may read, write and call. What a person approves for a
// member is approved for one that may do this.
func permittedTo(m *plan.Member, caps *gate.Capabilities) record.Key {
	parts := []string{caps.Agent, caps.Accepts.String(), caps.Produces.String(), string(m.Handoff), string(effectOf(m))}
	if in := intakeOf(m); in != "" {
		parts = append(parts, "intake", in)
	}
	for _, e := range caps.Endpoints {
		parts = append(parts, "endpoint", e.URL, e.Accepts.String())
	}
	for _, tag := range caps.OutputTags {
		parts = append(parts, "tag", tag)
	}
	for _, name := range slices.Sorted(slices.Values(m.AllowUntrusted)) {
		parts = append(parts, "untrusted", name)
	}
	for _, f := range m.Tools {
		does := callOf(f)
		parts = append(parts, "tool", string(does[:]))
	}
	return digestOf(parts...)
}

// reachOf says along which edges the members of a roster may send and delegate, and which children they may
// spawn; empty if none may.
func reachOf(t *plan.Roster) (parts []string) {
	for i := range t.Config.Agents {
		m := &t.Config.Agents[i]
		for _, n := range t.Network.Neighbors(i) {
			parts = append(parts, "edge", m.Name, t.Config.Agents[n.Member].Name, n.Max.String(), strconv.FormatBool(n.Delegate), strconv.FormatBool(n.Transfer))
			for _, glob := range t.Config.Edges[n.Edge].Files {
				parts = append(parts, "files", glob)
			}
		}
		if m.Spawn != nil {
			s := m.Spawn.WithDefaults()
			parts = append(parts, "spawn", m.Name, strconv.Itoa(s.Max), strconv.Itoa(s.Depth), s.Timeout.String(), strconv.Itoa(s.MaxTurns))
			for _, glob := range s.Files {
				parts = append(parts, "files", glob)
			}
		}
	}
	return parts
}

// intakeOf returns what a member says of the context that it receives, as JSON; empty if nothing.
func intakeOf(m *plan.Member) string {
	if m.AllowedContextFields == nil && len(m.BlockedContextFields) == 0 && m.Translate == nil {
		return ""
	}
	raw, err := json.Marshal([]any{m.AllowedContextFields, m.BlockedContextFields, m.Translate})
	must(err) // lists of texts and numbers
	return string(raw)
}

// callOf returns a digest of what a call of a tool may read, return and change.
func callOf(f *tool.Tool) record.Key {
	parts := []string{f.Name, string(f.Parameters), string(f.Effect), f.Accepts.String(), f.Level().String(), f.Approve, f.State,
		strconv.FormatBool(f.Stateful), strconv.FormatBool(f.Foreign), strconv.FormatBool(f.ReadsWorkspace), strconv.FormatBool(f.Repeatable)}
	if f.Program != nil {
		parts = append(parts, "confined "+strconv.FormatBool(f.Program.Confined))
	}
	return digestOf(append(parts, f.Readable...)...)
}
