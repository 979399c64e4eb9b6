package agent

import "github.com/runteam/runteam/internal/codes"

// A Condition is an error that ends an agent's work. Its value is the code of the task in
// results and events:
//
//   - OUTPUT_SCHEMA_INVALID: the answer does not match the output schema
//   - GUARD_FAILED: the answer has the right form and another value than a const of the schema
//   - ANSWER_TRUNCATED: a limit on tokens ended the answer
//   - ANSWER_FILTERED: the provider filtered the answer
//   - ANSWER_REFUSED: the model refused to answer
//   - FINISH_REASON_UNKNOWN: the answer ended for an unknown reason
//   - MAX_TURNS: the agent has no turn left
//   - LOOP_DETECTED: the agent repeats itself, which its loop detection ends
//   - TOOL_NOT_GRANTED: the model called a tool that it was not given
//   - TIMEOUT: the agent took too long
//   - EFFECTS_UNCERTAIN: an unconfined command was interrupted
//
// Another attempt can help after a truncated answer, an unknown reason and a timeout. The
// errors of an [LLM] wrap a Condition:
//
//	if errors.Is(err, agent.Condition("ANSWER_TRUNCATED")) {
type Condition = codes.Condition
