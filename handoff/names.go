package handoff

import "github.com/runteam/runteam/envelope"

// The readers that are no agents. No agent may have these names.
const (
	User        = envelope.User // the caller: stdout, JSON, progress
	Coordinator = "coordinator" // plans and synthesizes
	Anyone      = "*"           // in rules only
)
