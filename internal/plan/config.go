package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A Goal is what the coordinator plans tasks for and answers from their results.
type Goal struct {
	Text           string // required; at most 256 KiB
	Classification label.Classification
	Source         provenance.Source // where Text comes from, for receipts; package spec sets it
}

// Format writes the label and the size, so that no verb prints the text.
func (g Goal) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "goal, %v", g.Classification)
}

// A Budget limits the tokens and the cost of model calls; see team.Budget.
type Budget struct {
	MaxTokenBudget int
	MaxCostBudget  llm.Money
}

// A Backend describes the model and endpoint behind an agent; see team.Backend.
type Backend struct {
	Model         string
	Endpoint      string
	EndpointNames []string
	Version       string
	Reuse         string
}

// A Coordinator plans the tasks for a goal and writes the answer from their results; see
// team.Coordinator.
type Coordinator struct {
	Agent agent.Agent

	SystemPrompt string             // its role, before its duties; empty means the default
	SystemParams []provenance.Param // which bytes of SystemPrompt came from parameters
	Instructions string             // added to its duties

	Accepts *label.Classification

	MayGrant Grants // what its plans may grant besides dependencies; the zero value means nothing
	MayPlan  planning.Constructs
	Approve  string // the person who has to approve its plans; empty if none has to

	Limits
	Budget
	Backend
	Origin provenance.Position
}

// Grants are what a plan that a model wrote may grant in addition to dependencies:
// the shared memory, named inputs, and tools of the agents of its tasks. Of inputs the
// coordinator then reads names and labels, but never the texts or their sizes; of tools it reads
// names and descriptions. If a plan has tasks for the items of an input, their results show how many
// there are.
type Grants = planning.Grants

// A Message goes from one member of the team to another before the run begins; see
// team.Message.
type Message struct {
	From           string // an agent, or user
	To             string // an agent, or * for every agent but the sender
	Text           string
	Classification label.Classification
	TTL            time.Duration // life from the start of the run; zero means unlimited
}

// Format writes the pair and the size, so that no verb prints the text.
func (m Message) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "message from %q to %q, %v", m.From, m.To, m.Classification)
}

// A Member is an agent and what the gate must know of it; team.Member documents its
// fields.
type Member struct {
	Name  string
	Agent agent.Agent

	SystemPrompt string
	OutputSchema json.RawMessage // for tasks without one of their own; nil means free text

	Accepts    label.Classification  // the most sensitive level that it may read
	Produces   *label.Classification // the most sensitive level that it may write; nil means Accepts
	OutputTags []string              // tags that its results may carry

	Tools          []*tool.Tool // that it may call
	AllowUntrusted []string     // names of those with an external effect that it may call from untrusted context
	Conversation

	Receives

	MaxSession  time.Duration // longest time that the agent may work on one attempt, and that a task may ask for; zero means no limit
	MaxParallel int           // attempts at the same time; zero means as many as the run allows

	Limits
	Budget
	Backend

	Provider     string // such as openai; matched by a task's requires
	Description  string
	Capabilities []string
	Written
}

// An Intake narrows what a member receives; see team.Intake.
type Intake struct {
	AllowedContextFields []task.Path
	BlockedContextFields []task.Path
	Translate            *handoff.Translation
	MaxContextTokens     int
}

// Receives says what a member receives, whatever the policy delivers to it.
type Receives struct {
	Handoff handoff.Mode
	Intake
}

// narrows reports whether the gate has to know of an intake.
func (in *Intake) narrows() bool {
	return in.AllowedContextFields != nil || len(in.BlockedContextFields) > 0 || in.Translate != nil
}

// A Conversation says how an agent that calls tools may work; team.Member documents its fields.
type Conversation struct {
	LoopDetection *LoopDetection
	Spawn         *Spawning // nil if it may spawn no children
}

// Written says where a file has a member; package spec sets it.
type Written struct {
	SystemParams []provenance.Param // which bytes of SystemPrompt came from parameters
	Origin       provenance.Position
}

// Config is what a team is made of; see team.Config.
type Config struct {
	Name   string
	Agents []Member // at least one; the order is the roster's

	Coordinator *Coordinator // plans and answers goals; nil for a team that only runs tasks

	Endpoints map[string]label.Classification

	Policy *handoff.Policy
	Edges  []handoff.Edge // along which agents may send handoffs; none means that no agent may

	Prices map[string]llm.Price

	Limits
	MaxMessageBytes int // of a message that an agent sends; zero means DefaultMessageBytes

	OnToolCall func(ctx context.Context, c ToolCall) error

	Logger *slog.Logger // nil discards; receives names and counts, never payloads
}

// An Input is a text of the caller, or a result of an earlier run; see team.Input.
type Input struct {
	Name           string
	Text           string
	Classification label.Classification

	Envelope *envelope.Envelope
	Folder   *filetree.Folder

	TTL time.Duration // life from the start of the run; zero means unlimited

	MaxContextBytes int
	Cut             bool

	ListFormat string // of a list, as package listformat names it; empty means JSON

	Origin provenance.Position
}

// Format writes the name and the size, so that no verb prints the text.
func (i Input) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "input %q, %v", i.Name, i.Classification)
}

// MarshalJSON writes the name, the label and the size, without the text.
func (i Input) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name           string               `json:"name"`
		Classification label.Classification `json:"classification"`
		Bytes          int                  `json:"bytes"`
	}{i.Name, i.Classification, len(i.Text)})
}
