package handoff

import "github.com/runteam/runteam/envelope"

// The readers that are not agents. No agent can have one of these names.
const (
	User        = envelope.User // the caller: stdout, JSON, progress
	Coordinator = "coordinator" // plans and synthesizes
	Anyone      = "*"           // in rules only: every agent and the coordinator
)
