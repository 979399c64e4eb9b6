package brief

// What the ranges of a prompt are for, as its receipt names it.
const (
	PartFrame       = "frame"       // the builder's headings, blank lines and fences
	PartSystem      = "system"      // the agent's system prompt, with the guidance
	PartSchema      = "schema"      // the schema of the reply
	PartTitle       = "title"       // the task's title
	PartDescription = "description" // the task's description
	PartHeading     = "heading"     // a task's title and assignee, an input's name, an agent's name
	PartPayload     = "payload"     // granted context
	PartWithheld    = "withheld"    // a line in place of context
	PartGoal        = "goal"        // what the caller asks
)
