package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Names of the tools with which an agent has work done that is part of its own attempt.
const (
	SpawnAgent      = "spawn_agent"       // by a child, an agent like itself with an empty history
	DelegateToAgent = "delegate_to_agent" // by another agent of the team, along an edge
)

// Defaults of a Spawning.
const (
	defaultChildren     = 8
	defaultChildTimeout = 5 * time.Minute
	defaultChildTurns   = 20
)

// MaxChildren is the most children that an attempt at a task may have.
const MaxChildren = 10_000

// MaxDelegations is how many goals an attempt at a task may delegate.
const MaxDelegations = 32

// A Spawning lets an agent spawn children; see team.Spawning.
type Spawning struct {
	Max      int
	Depth    int
	Timeout  time.Duration
	MaxTurns int
	Files    []string
}

// WithDefaults returns the settings with every default filled in.
func (s Spawning) WithDefaults() Spawning {
	s.Max, s.Depth = cmp.Or(s.Max, defaultChildren), cmp.Or(s.Depth, 1)
	s.Timeout, s.MaxTurns = cmp.Or(s.Timeout, defaultChildTimeout), cmp.Or(s.MaxTurns, defaultChildTurns)
	return s
}

// checkSpawning reports settings of children that cannot be used.
func (s subject) checkSpawning(m *Member) {
	w := m.Spawn
	if w == nil {
		return
	}
	of := s.at("spawn")
	switch {
	case m.IsPerson():
		of.report("a person spawns no children", "remove spawn", task.ErrInvalid)
		return
	case m.Process() != nil:
		of.report("a command spawns no children", "remove spawn, or use a model", task.ErrInvalid)
		return
	}
	if w.Timeout < 0 {
		of.at("timeoutMs").report("the time limit of children is negative", fmt.Sprintf("use a positive one, or leave it out for %d minutes", defaultChildTimeout/time.Minute), task.ErrInvalid)
	}
	checkPassedFiles(of, w.Files)
	without := Spawning{}.WithDefaults()
	for _, n := range []struct {
		key                string
		value, max, normal int
	}{{"max", w.Max, MaxChildren, without.Max}, {"depth", w.Depth, envelope.MaxHops, without.Depth}, {"maxTurns", w.MaxTurns, MaxTurns, without.MaxTurns}} {
		if n.value < 0 || n.value > n.max {
			of.at(n.key).report(fmt.Sprintf("spawn.%s is %d", n.key, n.value), fmt.Sprintf("use 1 to %d, or leave it out for %d", n.max, n.normal), task.ErrInvalid)
		}
	}
}

// checkPassedFiles reports globs of files that may be passed to children or delegates if they match nothing.
func checkPassedFiles(about subject, globs []string) {
	if _, err := filetree.ParseGlobs(globs); err != nil {
		about.at("files").report(err.Error(), "", task.ErrInvalid)
	}
}

// hasWorkspace reports whether a member has tools that work on files of its workspace.
func (m *Member) hasWorkspace() bool {
	return slices.ContainsFunc(m.Tools, worksOnFiles)
}

// worksOnFiles reports whether a tool reads or changes files of the workspace.
func worksOnFiles(t *tool.Tool) bool { return t.ReadsWorkspace || t.Effect == tool.Workspace }

// ForChildren returns those of the tools that a child may have: a person approves no calls of children.
func ForChildren(tools []*tool.Tool) []*tool.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t *tool.Tool) bool { return t.Approve != "" })
}

// Delegates returns the members to which task i may delegate.
func Delegates(p *Plan, i int) (list []Neighbor) {
	if !slices.ContainsFunc(RuntimeTools(p, i), func(t RuntimeTool) bool { return t.Name == DelegateToAgent }) {
		return nil
	}
	return p.Roster().Network.delegates(int(p.Members[i]))
}

// delegates returns the neighbors to which a member may delegate.
func (n *Network) delegates(member int) (list []Neighbor) {
	for _, to := range n.Neighbors(member) {
		if to.Delegate {
			list = append(list, to)
		}
	}
	return list
}

// SpawningOf returns how task i may spawn children; nil if it may not.
func SpawningOf(p *Plan, i int) *Spawning {
	if !slices.ContainsFunc(RuntimeTools(p, i), func(t RuntimeTool) bool { return t.Name == SpawnAgent }) {
		return nil
	}
	return new(p.Roster().Config.Agents[p.Members[i]].Spawn.WithDefaults())
}

// delegatedLabel returns the most sensitive level of what the tools of the delegates of task i return.
func delegatedLabel(p *Plan, i int) label.Classification {
	level := label.Public
	for _, to := range Delegates(p, i) {
		level = level.Join(LevelOf(ForChildren(p.Roster().Config.Agents[to.Member].Tools)))
	}
	return level
}

// LevelOf returns the most sensitive level of what tools return.
func LevelOf(tools []*tool.Tool) label.Classification {
	level := label.Public
	for _, t := range tools {
		level = level.Join(t.Level())
	}
	return level
}

// MaxGoal is the largest size of the goal of a child, in bytes.
const MaxGoal = 64 << 10

// spawnAgent returns the tool with which a member spawns children.
func spawnAgent(m *Member) RuntimeTool {
	limit := m.Spawn.WithDefaults()
	properties := goalProperties(limit.Timeout)
	knows := ""
	if len(limit.Files) > 0 && m.hasWorkspace() {
		properties["files"], knows = passedFiles(limit.Files), " and the files that you pass"
	}
	description := "Has a copy of you with an empty history pursue a goal, and returns its answer. It knows the goal" + knows + " and nothing else. Calls in one turn run at the same time."
	if len(ForChildren(m.Tools)) < len(m.Tools) {
		description += " It cannot have tools whose calls a person approves."
	}
	if tools := ForChildren(m.Tools); len(tools) > 0 {
		properties["tools"] = map[string]any{"type": "array", "maxItems": len(tools), "uniqueItems": true, "items": map[string]any{"enum": childToolNames(tools)}, "description": "the tools of yours that it may call; none unless given"}
	}
	return runtimeTool(SpawnAgent, description, tool.None, properties, "goal")
}

// delegateToAgent returns the tool with which a member delegates to its neighbors.
func delegateToAgent(t *Roster, from *Member, to []Neighbor) RuntimeTool {
	var names, globs []string
	var list strings.Builder
	for _, n := range to {
		m := &t.Config.Agents[n.Member]
		name := t.Rules.ShownName(m.Name)
		names = append(names, name)
		list.WriteString("\n- " + name)
		if m.Description != "" {
			list.WriteString(": " + t.Rules.WithoutNames(m.Description))
		}
		if files := t.Config.Edges[n.Edge].Files; len(files) > 0 && from.hasWorkspace() {
			globs = append(globs, files...)
			list.WriteString(" (may get the files " + strings.Join(files, ", ") + ")")
		}
		if losesTools(m) {
			list.WriteString(" (without its tools, whose calls a person approves)")
		}
	}
	properties := goalProperties(defaultChildTimeout)
	properties["to"] = map[string]any{"enum": names, "description": "the agent"}
	knows := ""
	if len(globs) > 0 {
		properties["files"], knows = passedFiles(globs), " and the files that you pass"
	}
	return runtimeTool(DelegateToAgent, "Has another agent pursue a goal, and returns its answer. It knows the goal"+knows+" and nothing else. Calls in one turn run at the same time. Agents:"+list.String(), tool.None, properties, "to", "goal")
}

// MaxPassedGlobs is how many globs of files a call may name.
const MaxPassedGlobs = 32

// passedFiles is the argument with which a call passes files, of which the globs are granted.
func passedFiles(globs []string) map[string]any {
	globs = slices.Sorted(slices.Values(globs))
	return map[string]any{
		"type": "array", "minItems": 1, "maxItems": MaxPassedGlobs, "items": map[string]any{"type": "string", "minLength": 1, "maxLength": 512},
		"description": "files of your workspace that it gets, as globs, within " + strings.Join(slices.Compact(globs), ", ") + "; what it changes of such files is in your workspace after the call, beside your version as NAME.CALL.EXT if that has changed too; none unless given",
	}
}

// goalProperties returns the arguments that both tools have.
func goalProperties(most time.Duration) map[string]any {
	return map[string]any{
		"goal":      map[string]any{"type": "string", "minLength": 1, "maxLength": MaxGoal, "description": "what to do, with all that has to be known for it"},
		"timeoutMs": map[string]any{"type": "integer", "minimum": 1, "maximum": max(most.Milliseconds(), 1), "description": "time for its work; the maximum unless given"},
	}
}

// childToolNames returns the names of tools.
func childToolNames(tools []*tool.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}
