// Package handoff says what may pass between the members of a team, and what was decided.
//
// A [Policy] narrows what tasks are granted: which parts of a result a reader
// gets, in which form, and with which personal data redacted.
//
//	policy := handoff.Policy{Rules: []handoff.PairRule{
//		{From: "fraud", To: "letters", Allow: []task.Path{"/risk_level"}},
//		{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"internal_notes"}},
//	}}
//
// A policy never grants: without a dependency, an input or a message, nothing
// passes. A [WithheldError] reports what a policy withholds.
package handoff
