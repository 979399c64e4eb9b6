package handoff

// The names that no agent can have.
const (
	User        = "user"        // who starts the run and reads its result: on stdout, in JSON and progress
	Coordinator = "coordinator" // plans and synthesizes
	Computed    = "computed"    // makes the results of tasks with a value or a template, in this process
	Anyone      = "*"           // in rules only: every agent and the coordinator
)
