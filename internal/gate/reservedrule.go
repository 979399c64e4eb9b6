package gate

import (
	"slices"

	"github.com/runteam/runteam/handoff"
)

// reservedRules are the names that decisions bear where no rule of a policy decided.
var reservedRules = []handoff.Rule{
	RuleClearance, RuleProduces, RuleTags, RuleSession, RuleGrant,
	RuleDependsOn, RuleUses, RuleForEach, RuleWhen, RuleResult, RuleMemory, RuleMessage, RuleGoal, RuleRoster, RulePlan, RuleFault, RuleDraft, RuleTurns, RuleTools, RuleTransfer, RuleEdge, RuleFiles, RuleDigested,
	RuleContract, RuleExpiry, RuleDigest, RuleSecret, RuleSize, RuleStructuredSize, RulePromptSize, RulePayload, RuleStatus, RuleClaim, RuleSchema, RuleReplySize, RuleHops,
	RuleRedact, RuleTokens, RuleDefault, RuleAgentDefault,
}

// isReserved reports whether the gate itself decides under this name, so that nothing
// of a policy may have it: a record would say that the gate had ruled.
func isReserved(r handoff.Rule) bool { return slices.Contains(reservedRules, r) }

const takenName, takenHint = "the gate itself uses this name", "choose another name, which records can tell from the gate's"
