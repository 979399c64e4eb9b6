package team

// Codes of errors, as results and events have them. Beside them stand those of
// package handoff, for context that the gate held, and MODEL_ with the kind of
// an llm.Error, such as MODEL_RATE_LIMITED.
const (
	CodeDependency     = "DEPENDENCY_FAILED"     // a dependency failed
	CodeMemory         = "MEMORY_UNAVAILABLE"    // the shared memory could not be read
	CodeRecord         = "RECORD_FAILED"         // the record could not be kept, so the prompt was not sent
	CodeJournal        = "JOURNAL_FAILED"        // the journal failed, so nothing more was begun
	CodeReplay         = "NOT_IN_JOURNAL"        // a run that is replayed has no answer to this prompt
	CodeBudget         = "BUDGET_EXCEEDED"       // a token budget of the run or of the agent had not enough left for a call
	CodeCostBudget     = "COST_BUDGET_EXCEEDED"  // a cost budget of the run or of the agent had not enough left for a call
	CodeNoPrice        = "PRICE_MISSING"         // a cost budget cannot count a call, since its model has no price
	CodeTimeout        = "TIMEOUT"               // the attempt, or the reply, came too late
	CodeCanceled       = "CANCELED"              // the run ended first
	CodePromptTooLarge = "PROMPT_TOO_LARGE"      // what cannot be cut does not fit
	CodeSchema         = "OUTPUT_SCHEMA_INVALID" // the answer does not match its schema, also after a correction
	CodeGuard          = "GUARD_FAILED"          // the answer has the right form, and another value than a const of its schema
	CodeTruncated      = "ANSWER_TRUNCATED"      // a limit on tokens ended the answer, and the task does not accept that
	CodeFiltered       = "ANSWER_FILTERED"       // the provider withheld the answer or the rest of it
	CodeRefused        = "ANSWER_REFUSED"        // the model declined to answer
	CodeUnknownFinish  = "FINISH_REASON_UNKNOWN" // the answer ended for a reason that runteam does not know
	CodeReply          = "REPLY_REFUSED"         // the gate did not take the reply
	CodeMaxTurns       = "MAX_TURNS"             // no turn was left
	CodeToolCall       = "TOOL_NOT_GRANTED"      // the model called a tool that it was not given
	CodeModel          = "MODEL_ERROR"           // a model call failed in a way that nobody has a word for
	CodeAgent          = "AGENT_ERROR"           // an agent written in Go returned an error of its own
	CodePanic          = "AGENT_PANIC"           // an agent panicked
	CodeInternal       = "INTERNAL_ERROR"        // a bug in runteam

	CodePlanInvalid   = "COORDINATOR_PLAN_INVALID"         // also the second plan cannot be run; nothing was
	CodeDecomposition = "COORDINATOR_DECOMPOSITION_FAILED" // no plan came; nothing was run
	CodeSynthesis     = "COORDINATOR_SYNTHESIS_FAILED"     // the tasks ended, and no answer was made of their results
)
