package codes

import "cmp"

// A Condition is an error that is known by its code. Package agent exports the type.
type Condition string

// Error returns the condition in words, or an unknown one as it is.
func (c Condition) Error() string { return cmp.Or(conditions[c], string(c)) }

var conditions = map[Condition]string{
	Schema:        "the answer does not match the output schema",
	Guard:         "the answer fails a guard of the output schema",
	Truncated:     "the answer was truncated",
	Filtered:      "the provider filtered the answer",
	Refused:       "the model refused to answer",
	UnknownFinish: "the answer ended for an unknown reason",
	MaxTurns:      "no turn is left",
	ListTooLong:   "the list is too long",
	LoopLimit:     "the loop reached its limit",
	LoopStuck:     "the loop repeats itself",
	Rejected:      "the judges reject the answer",
	Loop:          "the agent repeats itself",
	ToolCall:      "the model called a tool that it was not given",
	Timeout:       "the agent took too long",
	Effects:       "it is not known what the command changed",
}
