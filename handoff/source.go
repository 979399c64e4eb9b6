package handoff

// A SourceKind is what a piece of context is. Context without a kind is never delivered.
type SourceKind string

// The kinds of context.
const (
	Dependency SourceKind = "dependency" // the result of a task
	Input      SourceKind = "input"      // a named input of the user
	Memory     SourceKind = "memory"     // an entry of shared memory
	Message    SourceKind = "message"    // a message of a team member
	Goal       SourceKind = "goal"       // what the user asks of the team
	Roster     SourceKind = "roster"     // who is on the team, and what each can do
	Plan       SourceKind = "plan"       // a text of the coordinator: the description of a planned task, or a draft of a plan
	Fault      SourceKind = "fault"      // an error text, or a list of what is wrong
	Digest     SourceKind = "digest"     // the coordinator's digest of a part of the results
	Draft      SourceKind = "draft"      // what the reader itself said in an earlier turn, such as an answer to correct
	Arguments  SourceKind = "arguments"  // of a call of a tool, which reads them
	ToolResult SourceKind = "toolResult" // what a tool returned
	Files      SourceKind = "files"      // the output files of a task
	Folder     SourceKind = "folder"     // files that another task passes on as it was given them: the output files of a task, or the files of an input
	Condition  SourceKind = "condition"  // what the condition of a task compares

	Conversation SourceKind = "conversation" // a text of the person or an answer, of an earlier turn of a session
	Transferred  SourceKind = "transferred"  // a piece of the conversation before it was transferred: what an agent said, or what a tool returned to it
)
