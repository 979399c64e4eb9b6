package brief

// What the ranges of a prompt are for. The constants have no type, so that they are values
// of the type that the receipt of a prompt has for them.
const (
	PartFrame       = iota // the builder's headings, blank lines and fences
	PartSystem             // the agent's system prompt, with the guidance
	PartSchema             // the schema of the reply
	PartTitle              // the task's title
	PartDescription        // the task's description
	PartHeading            // a task's title and assignee, an input's name, an agent's name
	PartPayload            // granted context
	PartWithheld           // a line in place of context
	PartGoal               // what the caller asks
)
