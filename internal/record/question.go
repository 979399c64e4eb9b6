package record

import (
	"context"
	"time"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Question says that a person is asked for the result of a task, or whether something may
// happen: a call of a tool, a plan, or a delivery that an entry of the policy lowers. It is durable together with the prompt, before the person is asked. It is open
// until an Answer to it, an Exchange of its task or an entry about its call follows, or a Question
// about the same task with another key.
type Question struct {
	Session string               `json:"session"` // of the attempt that asks
	Task    task.ID              `json:"task"`
	Title   string               `json:"title"`
	Agent   string               `json:"agent"` // the person
	Attempt int                  `json:"attempt"`
	Time    time.Time            `json:"time"`
	Label   label.Classification `json:"label"` // of the prompt

	Call     string    `json:"call,omitempty"`     // the session of the call of a tool that needs an approval; empty for the result of a task
	Tool     string    `json:"tool,omitempty"`     // its name
	Approval string    `json:"approval,omitempty"` // what else has to be approved: the plan, or the name of an entry of the policy
	Messages []string  `json:"messages,omitempty"` // ids of the messages in the prompt
	Memory   []task.ID `json:"memory,omitempty"`   // the tasks whose results it found in the shared memory

	Users []string `json:"users,omitempty"` // who may answer; none if anybody may

	Key Key `json:"-"` // of exactly what the person is shown, the files of the workspace, and what an approval lets happen

	// List is equal for the questions about the calls of one turn, which are open together. It is zero for any
	// other question.
	List Key `json:"-"`

	// Schema is the JSON Schema that the answer must match; empty for a text, and if the caller
	// may not see the task.
	Schema  string `json:"schema,omitempty"`
	Missing string `json:"-"` // why the schema cannot be read; empty if it can, or if there is none
}

// RefusalForm is the schema of an answer to an approval of which a part is withheld from whoever
// answers: nobody approves what is not shown.
const RefusalForm = `{"type":"object","properties":{` +
	`"decision":{"const":"no","description":"part of the question is withheld from you, so you cannot approve it; you can refuse it"},` +
	`"reason":{"type":"string","maxLength":2000,"description":"why not"}},` +
	`"required":["decision"],"additionalProperties":false}`

// RefusedUnseen says why such an approval is not taken.
const RefusedUnseen = "part of the question is withheld from you, so you cannot approve it: the decision can only be no"

// An Answer is what a person answered to a Question. It serves prompts with the key of that
// question, in this run only.
type Answer struct {
	Session string               `json:"session"` // of the question
	Task    task.ID              `json:"task"`
	Title   string               `json:"title"`
	Agent   string               `json:"agent"`
	By      string               `json:"by"` // who answered
	Time    time.Time            `json:"time"`
	Reason  string               `json:"reason,omitempty"`
	Label   label.Classification `json:"label"` // of the question

	Key     Key    `json:"-"`              // of the question, as the journal has it
	Text    string `json:"text,omitempty"` // JSON if the question has a schema
	Missing string `json:"-"`              // why the text cannot be read; empty if it can

	// Command is the number of the answer among those that [AnswerLog.Waiting] returns. With the
	// entry, it waits no more.
	Command int64 `json:"-"`
}

// An AnswerLog is a [Log] to which other processes leave answers and other commands for its run.
type AnswerLog interface {
	// Waiting returns the answers that wait, the oldest first. At most one of them is to the same
	// question.
	Waiting(ctx context.Context) ([]Answer, error)

	// LeftBefore reports whether commands waited when the log was opened.
	LeftBefore() bool

	// Commands returns the commands that wait, the oldest first.
	Commands(ctx context.Context) ([]LeftCommand, error)

	// Refuse ends the wait of an answer or another command, and says why.
	Refuse(ctx context.Context, command int64, why string) error

	// Mask replaces a key as [History].Mask does.
	Mask(key Key) Key
}
