package prompt

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// The lists of a brief, in the order of the texts.
const (
	listInputs = iota
	listResults
	listFailed
	listSkipped
	listMemory
	listMessages
	listDrafts
	lists
)

func listsOf(b *brief.Brief) [lists]*[]gate.Sealed {
	return [lists]*[]gate.Sealed{&b.Inputs, &b.Dependencies, &b.Failed, &b.Skipped, &b.Memory, &b.Messages, &b.Drafts}
}

// What a brief has one of, in the order of the texts.
const (
	oneRoster = iota
	oneGoal
	oneInstruction
	ones
)

func onesOf(b *brief.Brief) [ones]*gate.Sealed {
	return [ones]*gate.Sealed{b.Roster, b.Goal, b.Instruction}
}

// A place says what may stand in a field of a brief: in each layout these
// kinds of context and no other, and of a task only this status, if one is
// named.
type place struct {
	name   string
	kinds  kinds
	status task.Status
}

type kinds [brief.Layouts][]handoff.SourceKind

var ofList = [lists]place{
	listInputs:   {name: "Inputs", kinds: kinds{Work: {handoff.Input}}},
	listDrafts:   {name: "Drafts", kinds: kinds{Work: {handoff.Draft, handoff.Fault}, Planning: {handoff.Plan, handoff.Fault}}},
	listResults:  {name: "Dependencies", kinds: kinds{Work: {handoff.Dependency}, Synthesis: {handoff.Dependency, handoff.Digest}}},
	listFailed:   {name: "Failed", kinds: kinds{Synthesis: {handoff.Fault}}, status: task.Failed},
	listSkipped:  {name: "Skipped", kinds: kinds{Synthesis: {handoff.Fault}}, status: task.Skipped},
	listMemory:   {name: "Memory", kinds: kinds{Work: {handoff.Memory}, Synthesis: {handoff.Memory}}},
	listMessages: {name: "Messages", kinds: kinds{Work: {handoff.Message}}},
}

var ofOne = [ones]place{
	oneRoster:      {name: "Roster", kinds: kinds{Planning: {handoff.Roster}, Synthesis: {handoff.Roster}}},
	oneGoal:        {name: "Goal", kinds: kinds{Planning: {handoff.Goal}, Synthesis: {handoff.Goal}}},
	oneInstruction: {name: "Instruction", kinds: kinds{Work: {handoff.Plan}}},
}
