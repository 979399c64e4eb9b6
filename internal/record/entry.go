// Package record declares what is recorded of a run: the entries that a journal or a
// trace stores, and the [History] that a later process reads back.
package record

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// An Entry is one thing that a journal stores about a run. Exactly one field is set. Event
// and Record are in the form that the caller may see. Exchange contains the answer as the
// agent gave it, so a journal must not be used as a log.
type Entry struct {
	Begin      *RunStart      // a process begins or resumes the run; its first entry
	Event      *event.Event   // the event for subscribers; never of the type Handed, whose decisions are in records
	Change     *TaskChange    // what an event says of a task; only in a [History], which has no events
	Record     *Prompt        // decisions and, if there is one, the prompt; before it is sent
	Asked      *CallStart     // an agent is to be given the prompt
	Begun      *PrefetchStart // a prefetched call begins
	Exchange   *AgentCall     // the result of that call
	Sent       *SentMessage   // a message waits for its readers from now on
	Rejected   *AgentCall     // an answer that its agent must correct: Result is the answer, and Error what is wrong with it; the Exchange of the session follows
	Turn       *AgentCall     // what an agent said in the first turn of an attempt that has more: Result has the calls of tools
	ToolCall   *CallStart     // a tool is about to be called, with arguments that passed the gate
	ToolResult *AgentCall     // the result of that call; Agent is the reader name of the tool, and Session that of the call
	Files      *AgentCall     // the output files of a task, before the Exchange of the same session
	Question   *Question      // a person is asked
	Answer     *Answer        // and answered
	Command    *Command       // somebody steers the run; before it takes effect
	End        *RunEnd        // the last entry, if the process ended the run
}

// A Key is a digest of everything that an agent's answer depends on: the agent, and both
// texts of its prompt. The texts may have any label, so a journal stores a key only in a
// form that depends on a secret of its own.
type Key [sha256.Size]byte

// A RunStart says what a run consists of when a process begins or resumes it.
type RunStart struct {
	Run    string          `json:"run"`
	Name   string          `json:"name,omitempty"` // of the team
	Time   time.Time       `json:"time"`
	Tasks  []event.Planned `json:"-"` // none for a goal that is not planned yet
	Inputs []Input         `json:"inputs,omitempty"`
	Goal   bool            `json:"goal,omitempty"` // a coordinator answers it

	// Accepts is the highest label of what the entries have in the form for the caller; nil in runs of
	// earlier versions, of which it is not known.
	Accepts *label.Classification `json:"accepts,omitempty"`

	// Label is the highest label of what the caller may see of the run; nil in runs of earlier versions.
	Label  *label.Classification `json:"label,omitempty"`
	Policy *Policy               `json:"policy,omitempty"`
	Budget Budget                `json:"budget,omitzero"`

	// Workspaces says where the process makes workspaces; zero without a journal, and in runs of earlier versions.
	Workspaces WorkspacePlace `json:"workspaces,omitzero"`

	// Version is that of the file into which a journal wrote the process; zero in files before version 9, which keep the
	// events of tasks apart from the history.
	Version int `json:"version,omitempty"`
}

// A WorkspacePlace is where a process makes workspaces on disk. Those in memory are on the same host.
type WorkspacePlace struct {
	Host   string `json:"host,omitempty"`   // its name
	Folder string `json:"folder,omitempty"` // the one that was named for workspaces, or the default; empty if the journal does not keep it
}

// DerivedEvents is the first version of files whose events are derived from the other entries, but those that say what no
// other entry does. Files of earlier versions have all events, except those of decisions.
const DerivedEvents = 10

// A Budget is what the calls of a run may use; zero is no limit.
type Budget struct {
	Tokens int       `json:"tokens,omitempty"`
	Cost   llm.Money `json:"cost,omitempty"`
}

// An Input names an input of the run. Its text is not stored.
type Input struct {
	Name           string               `json:"name"`
	Classification label.Classification `json:"classification"`
	Bytes          int                  `json:"bytes"` // zero, if the caller may not see it
	Key            Key                  `json:"-"`     // of the text
	Line           string               `json:"line,omitempty"`

	// FromRun and FromTask are set if the input is the result of a task of an earlier run.
	FromRun  string  `json:"fromRun,omitempty"`
	FromTask task.ID `json:"fromTask,omitempty"`
}

// A CallStart says that an agent is about to be given a prompt. If no Exchange of the same
// session follows, the call was interrupted. A prefetched call counts as interrupted only
// if a PrefetchStart follows.
type CallStart struct {
	Session string    `json:"session"`
	Task    task.ID   `json:"task"` // or the coordinator's step
	Agent   string    `json:"agent"`
	Model   string    `json:"model,omitempty"`
	Attempt int       `json:"attempt"` // from 1 in the whole run, over all processes
	Time    time.Time `json:"time"`
	Bytes   int       `json:"bytes"` // of the prompt, for budgets

	Messages []string `json:"messages,omitempty"` // ids of the messages in the prompt

	// Policy is the digest of the policy that the prompt is made by; empty for that of the start.
	Policy string `json:"policy,omitempty"`

	Ahead   bool `json:"ahead,omitempty"`   // it is prefetched
	Partial bool `json:"partial,omitempty"` // the caller may not see all of the prompt, and nothing of its size

	// Set only for a call of a tool, and for a command that is not confined:
	Repeatable bool   `json:"repeatable,omitempty"`
	Always     bool   `json:"always,omitempty"` // the person approved each further call of the tool in the run
	Effect     string `json:"effect,omitempty"`

	// Set only for a call of a tool by which an agent has another one pursue a goal:
	To           string `json:"to,omitempty"`    // who works on the goal
	Child        string `json:"child,omitempty"` // [ChildOf] of its sessions
	*event.Spawn        // nil in lines of earlier versions

	// Set only for a call of a tool that a person approved. The approval is spent with it.
	ApprovedBy string `json:"approvedBy,omitempty"` // the person
	Definition string `json:"definition,omitempty"` // with Always, a digest of what a server says about the tool

	Key Key `json:"-"` // of the name of a tool and the arguments before the gate; zero for an agent
}

// A SentMessage says that a message was sent. The messages of an agent become durable
// together with its answer, and before any prompt that contains them.
type SentMessage struct {
	ID      string    `json:"id"` // unique in its run
	From    string    `json:"from"`
	To      string    `json:"to"`                // an agent, or * for all others
	Session string    `json:"session,omitempty"` // of the attempt that sent it; empty if the program did
	Call    string    `json:"call,omitempty"`    // the call of send_handoff that sent it; empty for any other message
	Task    task.ID   `json:"task,omitempty"`    // the one task that is to read it; empty if its readers get it with their next tasks
	Given   int       `json:"given,omitempty"`   // its number among the messages in the options of the run, from 1; zero for any other
	Time    time.Time `json:"time"`
	Bytes   int       `json:"bytes"`           // of its text; zero, if the caller may not see it
	Shown   bool      `json:"shown,omitempty"` // the caller may see all of it

	Key Key `json:"-"` // of the call that sent it, as that of a CallStart; zero for any other message

	Message *envelope.Record `json:"-"` // nil if it cannot be read any more; Missing says why
	Missing string           `json:"-"`
}

// A PrefetchStart says that a prefetched call has begun.
type PrefetchStart struct {
	Session string    `json:"session"`
	Time    time.Time `json:"time"`
}

// An AgentCall is one prompt to an agent and its result: for a task, for a step of the
// coordinator, or for a translation that one of them needed.
type AgentCall struct {
	CallID
	Keys
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Spent
	Context  event.Context `json:"context,omitzero"`
	Messages []string      `json:"messages,omitempty"` // IDs of the messages in its prompt
	Memory   []task.ID     `json:"memory,omitempty"`   // the tasks whose results it found in the shared memory
	Reads    []Read        `json:"reads,omitempty"`    // what it was delivered, in a turn of a session
	From     string        `json:"from,omitempty"`     // the run of a cached answer; empty if the agent answered
	SavedTokens

	Call     llm.CallInfo `json:"call,omitzero"`      // of the last model call that answered, as the caller may see it
	Warnings []string     `json:"warnings,omitempty"` // of its model calls, as the caller may see them

	Result *envelope.Record `json:"-"`               // nil if it failed
	Shown  *ShownResult     `json:"shown,omitempty"` // the result as the caller may see it; nil if the caller may see all of it
	Code   string           `json:"code,omitempty"`  // of the error, if it failed

	TransferredTo string `json:"transferredTo,omitempty"` // the agent to which the call transferred the conversation; empty for any other

	Refused   *LabeledText `json:"refused,omitempty"`   // an answer that was not accepted, even if it was corrected later; nil if there is none
	Reasoning *LabeledText `json:"reasoning,omitempty"` // what the model wrote before its answer; nil if nothing

	Error      string `json:"error,omitempty"`      // as the caller may see it
	EventError string `json:"eventError,omitempty"` // the same as events have it, without personal data; empty if there is no difference

	Provider *ProviderData `json:"-"` // what the provider needs back with the calls of tools; nil if it needs nothing

	// Missing says why the result cannot be read, such as that it is encrypted under a key that
	// was not given; empty if it can. MissingLabel is the label of such a result.
	Missing      string               `json:"-"`
	MissingLabel label.Classification `json:"-"`

	// SizeClasses says that what it took is in size classes, since the exact numbers are encrypted under a key that was not
	// given. Budgets count the classes, and nobody is shown them.
	SizeClasses bool `json:"-"`
}

// A Read says that a reader was delivered something in a turn of a session.
type Read struct {
	Reader string             `json:"reader"`
	From   string             `json:"from"` // who made it
	Kind   handoff.SourceKind `json:"kind"`
	Input  string             `json:"input,omitempty"` // its name; empty for anything else
}

// ProviderData is what a provider needs back with a turn of a conversation. Nobody is shown it: a journal
// stores it encrypted, or not at all.
type ProviderData struct {
	Before string            // the session of the turn before; empty for the first turn
	Data   *llm.ProviderData // nil if it was not stored, or cannot be decrypted
}

// A Mount says where the files of an input that is a folder are in the workspace of a task.
type Mount struct {
	Input string `json:"input"`
	At    string `json:"at"` // a folder of the workspace; "." is the workspace itself
}

// A CallID identifies a call within a run.
type CallID struct {
	Session string  `json:"session"` // unique in its run
	Task    task.ID `json:"task"`
	Title   string  `json:"title"`
	Agent   string  `json:"agent"`
	Model   string  `json:"model,omitempty"`
	Attempt int     `json:"attempt"`
	Folder  string  `json:"folder,omitempty"` // of the workspace, after a call of a tool
	Part    string  `json:"part,omitempty"`   // of a translation or a part of the synthesis: distinguishes it from other calls of its task

	Mounts []Mount `json:"mounts,omitempty"` // of output files: the inputs in the workspace of their task

	// CallsTools says that the agent called tools in place of an answer: the result has the calls.
	CallsTools bool `json:"callsTools,omitempty"`

	// Sends says that the agent also sent messages that take effect with the answer of the attempt. A process that
	// resumes the run does not have them, and calls the agent again.
	Sends bool `json:"sends,omitempty"`

	// Digests of policies; empty for that of the start: of the one that the prompt was made by, and of
	// the one by which the caller got the result.
	Policy string `json:"policy,omitempty"`
	ReadBy string `json:"readBy,omitempty"`
}

// Keys find a cached answer.
type Keys struct {
	Key      Key  `json:"-"`                  // zero if no prompt could be built
	Core     Key  `json:"-"`                  // the same without the shared memory and the messages in the prompt
	Reusable bool `json:"reusable,omitempty"` // another run may take the answer
	Reuse    Key  `json:"-"`                  // the key for another run: Key and the origin of the endpoint

	// Files is of all files of the workspace after a call of a tool; zero if there is none.
	Files Key `json:"-"`
}

// Spent is the cost of a call, for budgets. Documents have it from [AgentCall.Usage], and
// nothing of it if it is partial.
type Spent struct {
	Input           int       `json:"inputTokens,omitempty"`
	Output          int       `json:"outputTokens,omitempty"`
	CachedTokens    int       `json:"cachedTokens,omitempty"`    // of Input, those that the endpoint read from its cache
	ReasoningTokens int       `json:"reasoningTokens,omitempty"` // of Output, those of the reasoning
	Cost            llm.Money `json:"cost,omitempty"`            // of its model calls; zero if it is unknown
	Partial         bool      `json:"rounded,omitempty"`         // the caller may not see all of the prompt and the reply; the name is that of earlier versions
	Turns           int       `json:"turns,omitempty"`           // model calls that answered
}

// SavedTokens are the tokens that another run spent on a cached answer.
type SavedTokens struct {
	SavedInput     int `json:"savedInputTokens,omitempty"`
	SavedOutput    int `json:"savedOutputTokens,omitempty"`
	SavedCached    int `json:"savedCachedTokens,omitempty"`    // of SavedInput
	SavedReasoning int `json:"savedReasoningTokens,omitempty"` // of SavedOutput
}

// IsPartial reports whether the caller may not see all of the call, or the reader of a journal cannot.
func (x *AgentCall) IsPartial() bool { return x.Partial || x.SizeClasses }

// Usage returns the tokens that the call spent, as they are shown: none if the call is partial.
func (x *AgentCall) Usage() llm.Usage {
	if x.IsPartial() {
		return llm.Usage{}
	}
	return x.Took()
}

// Took returns the tokens that the call spent, for budgets.
func (x *AgentCall) Took() llm.Usage {
	return llm.Usage{InputTokens: x.Input, OutputTokens: x.Output, CachedTokens: x.CachedTokens, ReasoningTokens: x.ReasoningTokens}
}

// Saved returns the tokens that another run spent on a cached answer, as they are shown: none if the call is partial.
func (x *AgentCall) Saved() llm.Usage {
	if x.IsPartial() {
		return llm.Usage{}
	}
	return llm.Usage{InputTokens: x.SavedInput, OutputTokens: x.SavedOutput, CachedTokens: x.SavedCached, ReasoningTokens: x.SavedReasoning}
}

// Completed reports whether the agent's answer was accepted.
func (x *AgentCall) Completed() bool { return x.Code == "" }

// A LabeledText is a text that an agent wrote in addition to its result, as the caller may
// see it: the reasoning of its model, or an answer that was not accepted.
type LabeledText struct {
	Text      string               `json:"text"`
	Label     label.Classification `json:"label"`              // of the text as the agent wrote it
	ExpiresAt time.Time            `json:"expiresAt,omitzero"` // the text must not be read from then on; zero means it does not expire

	// Set only for an answer that was not accepted:
	Attempt int          `json:"attempt,omitempty"`
	Problem string       `json:"problem,omitempty"` // what is wrong with it, as the corrective call says it
	Call    llm.CallInfo `json:"call,omitzero"`     // the model call that gave it
}

// A ShownResult is a result as the caller may see it.
type ShownResult struct {
	Text       string `json:"text,omitempty"`
	Structured string `json:"structured,omitempty"` // canonical JSON

	// KeptBack says of a result above the caller's clearance that the policy, too, would
	// deliver less than all of it.
	KeptBack bool `json:"keptBack,omitempty"`
}

// A RunEnd says how a run ended.
type RunEnd struct {
	Time     time.Time `json:"time"`
	Status   string    `json:"status"`
	Output   []task.ID `json:"output,omitempty"` // whose results make the answer; none if the coordinator makes it
	Answer   string    `json:"answer,omitempty"` // of the coordinator, as the caller may see it
	Errors   []Failure `json:"errors,omitempty"` // of the coordinator's work
	Warnings []string  `json:"warnings,omitempty"`
	Usage    llm.Usage `json:"tokenUsage,omitzero"` // of all its processes, as the caller may see it
	Partial  bool      `json:"partial,omitempty"`   // the caller may not see all of it

	// Tasks say how each task of the run ended, in the order written. A journal stores only how many have which status,
	// since the events of the tasks say the rest; earlier versions stored them.
	Tasks []TaskEnd `json:"-"`
}

// A TaskEnd says how a task ended.
type TaskEnd struct {
	Task   task.ID     `json:"task"`
	Title  string      `json:"title"`
	Agent  string      `json:"agent"`
	Status task.Status `json:"status"`
	Reason string      `json:"reason,omitempty"` // why it failed or was skipped, as the caller may see it
	Code   string      `json:"code,omitempty"`
	Root   task.ID     `json:"root,omitempty"` // the task whose end caused this one's

	Accepted bool `json:"failureAccepted,omitempty"` // it failed, and the run can succeed all the same

	Attempts int `json:"attempts,omitempty"` // that began
}

// A Failure is an error of a step of the coordinator.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A History is what a journal stores of one run.
type History struct {
	Begins []RunStart // one for each process that began or resumed the run, in order
	Log    []Entry    // in the order in which they became durable, without End, events and records
	End    *RunEnd    // of the last process; nil if it was interrupted
	Alive  time.Time  // when the last process was seen to work on the run; zero if that is not known

	// Versions are what the answers of each agent depended on besides its prompts, by its name. An
	// agent without an entry had the version that it has now.
	Versions map[string]string

	// Mask replaces a key in the history: a journal stores no key in clear. Nil
	// means that keys are not replaced.
	Mask func(Key) Key
}

// HasTaskEvents reports whether the history has the events of its tasks however it was read.
func (h *History) HasTaskEvents() bool {
	return !slices.ContainsFunc(h.Begins, func(b RunStart) bool { return b.Version == 0 })
}

// StoredLabel returns the label of the run as a process that began or resumed it recorded it: the clearance of the
// caller in runs of earlier versions, or confidential if that is not known either.
func (s *RunStart) StoredLabel() label.Classification {
	switch {
	case s.Label != nil:
		return *s.Label
	case s.Accepts != nil:
		return *s.Accepts
	}
	return label.Confidential
}

// Caller returns the clearance of the caller of the run, who started it; [label.Secret] if that is not known.
func (h *History) Caller() label.Classification {
	if h == nil || len(h.Begins) == 0 || h.Begins[0].Accepts == nil {
		return label.Secret
	}
	return *h.Begins[0].Accepts
}

// Clearance returns the highest label that texts of the history for its caller may have. It is
// [label.Secret] if that is not known of one of its processes.
func (h *History) Clearance() (highest label.Classification) {
	if len(h.Begins) == 0 {
		return label.Secret
	}
	highest = label.Public
	for i := range h.Begins {
		if h.Begins[i].Accepts == nil {
			return label.Secret
		}
		highest = highest.Join(*h.Begins[i].Accepts)
	}
	return highest
}
