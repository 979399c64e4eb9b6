package gate

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/handoff"
)

// Runtime is the producer of what the runtime itself says, such as what is
// wrong with a plan. No agent may have this name.
const Runtime = "runteam"

// Kinds of context that only the caller reads.
const (
	Reasoning handoff.SourceKind = "reasoning" // what a model wrote before its answer
	Stream    handoff.SourceKind = "stream"    // what a model writes, while it arrives
)

// A Source identifies where a piece of context comes from.
type Source struct {
	Kind handoff.SourceKind `json:"kind"`
	Name string             `json:"name"` // the ID of the task or the name of the input
}

// UnmarshalJSON reads a stored source. A kind that this version does not know is an error, so
// that a record of a later version is refused and not shown as something else.
func (s *Source) UnmarshalJSON(raw []byte) error {
	type plain Source
	if err := json.Unmarshal(raw, (*plain)(s)); err != nil {
		return err
	}
	if _, known := granted[s.Kind]; !known && s.Kind != "" {
		return fmt.Errorf("unknown kind of context %q", s.Kind)
	}
	return nil
}

// Instructs reports whether a source tells its reader what to do, or what the
// runtime has to say, instead of a result. Such words have no
// parts: labels, ceilings and redaction count for them, modes and paths do not.
// What went wrong in the words of an agent is none of them.
func Instructs(s Source, from string) bool {
	switch s.Kind {
	case handoff.Goal, handoff.Roster, handoff.Plan, handoff.Draft:
		return true
	case handoff.Fault:
		return from == Runtime
	}
	return false
}

// Rules that let a source through, by what granted it.
const (
	RuleDependsOn handoff.Rule = "dependsOn"   // a dependency
	RuleUses      handoff.Rule = "uses"        // a named input
	RuleForEach   handoff.Rule = "forEach"     // the task runs for this item of a list
	RuleWhen      handoff.Rule = "when"        // the condition of the task compares it
	RuleResult    handoff.Rule = "result"      // the reader asked for the run
	RuleMemory    handoff.Rule = "memoryScope" // the task reads shared memory
	RuleMessage   handoff.Rule = "message"     // the reader was written to
	RuleGoal      handoff.Rule = "goal"        // the reader plans for the goal, or answers it
	RuleRoster    handoff.Rule = "roster"      // the reader plans for the team
	RulePlan      handoff.Rule = "plan"        // the reader does the planned task, or corrects the plan
	RuleFault     handoff.Rule = "fault"       // the reader corrects what is wrong, or reports what failed
	RuleDraft     handoff.Rule = "draft"       // the reader corrects its own answer
	RuleTurns     handoff.Rule = "turns"       // the reader answers a later turn of the session
	RuleTools     handoff.Rule = "tools"       // the agent may call the tool
	RuleTransfer  handoff.Rule = "transfer"    // the conversation was transferred to the reader
	RuleEdge      handoff.Rule = "edge"        // it is above the maxClassification of the edge
	RuleDigested  handoff.Rule = "digested"    // the reader joins digests; [RuleDigest] is the one that withholds what was altered
)

// granted names what lets each kind of context through. For a kind that is not in it,
// that is [RuleGrant].
var granted = map[handoff.SourceKind]handoff.Rule{
	handoff.Dependency: RuleDependsOn, handoff.Condition: RuleWhen, handoff.Input: RuleUses, handoff.Memory: RuleMemory, handoff.Message: RuleMessage,
	handoff.Goal: RuleGoal, handoff.Roster: RuleRoster, handoff.Plan: RulePlan, handoff.Fault: RuleFault, handoff.Digest: RuleDigested, handoff.Draft: RuleDraft, handoff.Arguments: RuleTools, handoff.ToolResult: RuleTools, handoff.Files: RuleFiles, handoff.Folder: RuleFiles, handoff.Conversation: RuleTurns, handoff.Transferred: RuleTransfer, Reasoning: RuleResult, Stream: RuleResult,
}

// deciding returns the rule that decides in which form a value passes, and its line: the one that states the mode or
// takes parts away, else the one that translates it, else the entry of the policy that was used first, else the grant.
func (g *Grant) deciding(d *Ruling) (handoff.Rule, string) {
	t := g.Terms
	switch {
	case d.Rule != "":
		return d.Rule, d.Line
	case t != nil && t.translation.active && !Instructs(g.Source, d.From):
		return t.translation.by.Rule, cmp.Or(t.translation.by.Line, d.Line)
	case len(d.Entries) > 0:
		e := d.Entries[0]
		return handoff.Rule(e.Name), cmp.Or(t.entryLine(e.Use), d.Line)
	}
	return cmp.Or(g.rule(), RuleGrant), d.Line
}

// entryLine returns where the entry for a use is written.
func (t *Terms) entryLine(use EntryUse) string {
	switch use {
	case EntryLowered:
		return t.lower.Origin.String()
	case EntryEndorsed:
		return t.endorse.Origin.String()
	}
	return t.renew.Origin.String()
}

// rule returns what lets the granted context through if no rule of the policy does.
func (g *Grant) rule() handoff.Rule {
	if g.Item != "" {
		return RuleForEach
	}
	return granted[g.Source.Kind]
}
