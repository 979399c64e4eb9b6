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
	listFiles
	listFailed
	listSkipped
	listMemory
	listMessages
	listDrafts
	listTransferred
	lists
)

func listsOf(b *brief.Brief) [lists]*[]gate.Sealed {
	return [lists]*[]gate.Sealed{&b.Inputs, &b.Dependencies, &b.Files, &b.Failed, &b.Skipped, &b.Memory, &b.Messages, &b.Drafts, &b.Transferred}
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

// A place says what may be in a field of a brief: in each layout these
// kinds of context and no other, and of a task only this status, if one is
// named.
type place struct {
	name   string
	kinds  kinds
	status task.Status
}

type kinds [brief.Layouts][]handoff.SourceKind

var ofList = [lists]place{
	listInputs:      {name: "Inputs", kinds: kinds{brief.Work: {handoff.Input, handoff.Arguments, handoff.Plan, handoff.Fault}}},
	listDrafts:      {name: "Drafts", kinds: kinds{brief.Planning: {handoff.Plan, handoff.Fault}}},
	listResults:     {name: "Dependencies", kinds: kinds{brief.Work: {handoff.Dependency}, brief.Synthesis: {handoff.Dependency, handoff.Digest}}},
	listFiles:       {name: "Files", kinds: kinds{brief.Work: {handoff.Files, handoff.Folder}}},
	listFailed:      {name: "Failed", kinds: kinds{brief.Synthesis: {handoff.Fault}}, status: task.Failed},
	listSkipped:     {name: "Skipped", kinds: kinds{brief.Synthesis: {handoff.Fault}}, status: task.Skipped},
	listMemory:      {name: "Memory", kinds: kinds{brief.Work: {handoff.Memory}, brief.Synthesis: {handoff.Memory}}},
	listTransferred: {name: "Transferred", kinds: kinds{brief.Work: {handoff.Transferred}}},
	listMessages:    {name: "Messages", kinds: kinds{brief.Work: {handoff.Message}}},
}

var ofConversation = place{name: "Conversation", kinds: kinds{brief.Work: {handoff.Conversation}, brief.Planning: {handoff.Conversation}, brief.Synthesis: {handoff.Conversation}}}

var ofOne = [ones]place{
	oneRoster:      {name: "Roster", kinds: kinds{brief.Planning: {handoff.Roster}, brief.Synthesis: {handoff.Roster}}},
	oneGoal:        {name: "Goal", kinds: kinds{brief.Planning: {handoff.Goal}, brief.Synthesis: {handoff.Goal}}},
	oneInstruction: {name: "Instruction", kinds: kinds{brief.Work: {handoff.Plan}}},
}
