package planning

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
)

// An Agent is what a coordinator may know about an agent: what it is for, not how it works.
type Agent struct {
	Name         string
	Model        string // empty if there is none to name
	Description  string // what it is for
	SystemPrompt string // its first line replaces a missing description; the rest is not shown
	Capabilities []string
	Tools        []Tool // that its tasks may be given; none if plans may not grant tools
	Runtime      []Tool // of the runtime, which they may be given too
}

// A Tool is what a coordinator may know about a tool.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // its beginning, in one line; left out of tools that a server describes
}

// entry is an agent in the manifest; what is empty is left out.
type entry struct {
	Name         string   `json:"name"`
	Model        string   `json:"model,omitempty"`
	RoleSummary  string   `json:"roleSummary,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Tools        []Tool   `json:"tools,omitempty"`
}

// Manifest returns the roster as a coordinator reads it: a JSON array, in the
// order of the roster, of objects with name, model, roleSummary (at most 140
// characters), capabilities (the first 20) and tools (the first 24, and of those of the
// runtime the first 24, each with name and description). Each text is one clean line of at
// most 140 characters; one that holds a secret or a control token of a chat template is left out. The error is a name that no
// agent can have ([naming.CheckName]), or a manifest above
// [jsonvalue.MaxBytes].
func Manifest(agents []Agent) (jsonvalue.Value, error) {
	entries := make([]entry, len(agents))
	for i := range agents {
		a := &agents[i]
		if err := naming.CheckName(a.Name); err != nil {
			return jsonvalue.Value{}, fmt.Errorf("manifest: agent %d: %w", i+1, err)
		}
		entries[i] = entry{
			Name: a.Name, Model: shown(a.Model), RoleSummary: summary(a),
			Capabilities: shownList(a.Capabilities, maxCapabilities), Tools: shownTools(a),
		}
	}
	raw, err := json.Marshal(entries)
	if err != nil {
		return jsonvalue.Value{}, fmt.Errorf("manifest: %w", err)
	}
	v, err := jsonvalue.Parse(string(raw))
	if err != nil {
		return jsonvalue.Value{}, fmt.Errorf("manifest: %w", err)
	}
	return v, nil
}

// summary returns a line about an agent: its description, or else the first
// line of its system prompt that is not empty.
func summary(a *Agent) string {
	if line := shown(a.Description); line != "" {
		return line
	}
	for line := range strings.FieldsFuncSeq(a.SystemPrompt, naming.EndsLine) {
		if oneLine(line, maxSummary) != "" {
			return shown(line)
		}
	}
	return ""
}

// shownTools returns the tools of an agent as the manifest may show them.
func shownTools(a *Agent) (out []Tool) {
	for _, list := range [...][]Tool{a.Tools, a.Runtime} {
		most := len(out) + maxTools
		for _, t := range list {
			if name := shown(t.Name); name == t.Name && len(out) < most {
				out = append(out, Tool{name, shown(t.Description)})
			}
		}
	}
	return out
}

// ToolNames returns the names of the tools of each agent that a manifest shows.
func ToolNames(agents []Agent) map[string][]string {
	names := make(map[string][]string, len(agents))
	for i := range agents {
		for _, t := range shownTools(&agents[i]) {
			names[agents[i].Name] = append(names[agents[i].Name], t.Name)
		}
	}
	return names
}

// shown returns a text as the manifest may show it, or nothing.
func shown(text string) string {
	line := oneLine(text, len(text))
	if gate.CheckUnfenced(line) != nil { // asked before the cut, which may leave half a secret
		return ""
	}
	return cut(line, maxSummary)
}

// shownList returns the first texts of a list that have something to show.
func shownList(list []string, most int) []string {
	var out []string
	for _, text := range list {
		if line := shown(text); line != "" && len(out) < most {
			out = append(out, line)
		}
	}
	return out
}
