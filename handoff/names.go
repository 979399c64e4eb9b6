package handoff

// The names that no agent can have.
const (
	User        = "user"        // the caller: stdout, JSON, progress
	Coordinator = "coordinator" // plans and synthesizes
	Computed    = "computed"    // makes the results of tasks with a value or a template, in this process
	Anyone      = "*"           // in rules only: every agent and the coordinator
)
