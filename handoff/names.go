package handoff

// The readers that are not agents. No agent can have one of these names.
const (
	User        = "user"        // the caller: stdout, JSON, progress
	Coordinator = "coordinator" // plans and synthesizes
	Anyone      = "*"           // in rules only: every agent and the coordinator
)
