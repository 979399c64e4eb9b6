// Package codes lists the codes of errors, as results, events and stored runs have them.
//
// Besides these there are the codes of package gate, for context that it withheld, and
// MODEL_ with the kind of an llm.Error, such as MODEL_RATE_LIMITED.
package codes

// Codes of tasks and of the coordinator.
const (
	Dependency     = "DEPENDENCY_FAILED"     // a dependency failed
	Memory         = "MEMORY_UNAVAILABLE"    // the shared memory could not be read
	Record         = "RECORD_FAILED"         // the prompt could not be recorded, so it was not sent
	Journal        = "JOURNAL_FAILED"        // the journal failed, so no further task was started
	Replay         = "NOT_IN_JOURNAL"        // a run that is replayed has no answer to this prompt
	Budget         = "BUDGET_EXCEEDED"       // a token budget of the run or of the agent had not enough left for a call
	CostBudget     = "COST_BUDGET_EXCEEDED"  // a cost budget of the run or of the agent had not enough left for a call
	NoPrice        = "PRICE_MISSING"         // a cost budget cannot count a call, since its model has no price
	Timeout        = "TIMEOUT"               // the attempt took too long
	Interrupted    = "INTERRUPTED"           // somebody stopped the call, and the task goes on
	PolicyReplaced = "POLICY_REPLACED"       // a new policy changes what the attempt reads or passes on, and the task begins again
	Canceled       = "CANCELED"              // the run ended first, or the task was cancelled
	PromptTooLarge = "PROMPT_TOO_LARGE"      // the part that cannot be cut does not fit
	Schema         = "OUTPUT_SCHEMA_INVALID" // the answer does not match its schema, also after a correction
	Guard          = "GUARD_FAILED"          // the answer has the right form, but not the value of a const of its schema
	Truncated      = "ANSWER_TRUNCATED"      // a limit on tokens ended the answer, and the task does not accept that
	Filtered       = "ANSWER_FILTERED"       // the provider withheld the answer or the rest of it
	Refused        = "ANSWER_REFUSED"        // the model declined to answer
	UnknownFinish  = "FINISH_REASON_UNKNOWN" // the answer ended for a reason that runteam does not know
	Reply          = "REPLY_REFUSED"         // the gate refused the reply
	MaxTurns       = "MAX_TURNS"             // no turn was left
	ListTooLong    = "LIST_TOO_LONG"         // a list has more items than instances of a task are allowed
	LoopLimit      = "LOOP_LIMIT"            // the condition of a loop does not hold after its last round
	LoopStuck      = "LOOP_STUCK"            // a round of a loop would have the same prompts as an earlier one
	Rejected       = "ANSWER_REJECTED"       // fewer judges than the quorum accept the answer
	Loop           = "LOOP_DETECTED"         // the agent repeated its calls of tools or its text, and its loop detection ends that
	ToolCall       = "TOOL_NOT_GRANTED"      // the model called a tool that it does not have
	Tool           = "TOOL_ERROR"            // a call of a tool failed; the agent got the error as its result
	ToolRefused    = "TOOL_REFUSED"          // the program refused a call of a tool; the agent got its reason as the result
	NoReply        = "NO_REPLY"              // nothing was left that could reply to a handoff
	ReplyPending   = "REPLY_PENDING"         // a call of send_handoff waited for a reply when the run was suspended
	Effects        = "EFFECTS_UNCERTAIN"     // a call with an external effect was interrupted, so the task does not start over
	OutputFiles    = "OUTPUT_FILES_INVALID"  // an output file is not a text, or they are too large
	Workspace      = "WORKSPACE_LIMIT"       // the files in the workspace of the task are above its limits
	FilesConflict  = "FILES_CONFLICT"        // two dependencies have different versions of one file
	Model          = "MODEL_ERROR"           // a model call failed in a way that has no code of its own
	Agent          = "AGENT_ERROR"           // an agent written in Go returned an error of its own, or a command failed
	Panic          = "AGENT_PANIC"           // an agent panicked
	Internal       = "INTERNAL_ERROR"        // a bug in runteam
	LeftOut        = "LEFT_OUT"              // the task is of a round that did not run, or of an item that the list does not have; results omit it

	PlanInvalid   = "COORDINATOR_PLAN_INVALID"         // the second plan cannot be run either; nothing was run
	PlanRefused   = "COORDINATOR_PLAN_REFUSED"         // the person who has to approve the plan refused it, or cannot; nothing was run
	Decomposition = "COORDINATOR_DECOMPOSITION_FAILED" // the coordinator returned no plan; nothing was run
	Synthesis     = "COORDINATOR_SYNTHESIS_FAILED"     // the coordinator made no answer of the results
)
