package plan

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A Goal is what a team is asked for: the coordinator plans the tasks for it
// and answers it from their results.
type Goal struct {
	Text           string       // required; at most 256 KiB
	Params         []task.Param // which bytes of Text came from parameters, for receipts
	Classification label.Classification
	Origin         task.Position
}

// Format writes the label and the size, so that no verb prints the text.
func (g Goal) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "goal, %v, %s", g.Classification, label.ClassText(len(g.Text)))
}

// A Coordinator plans the tasks for a goal and writes the answer from their
// results. It is a reader like any other: under the name coordinator, with a
// clearance, behind the gate. It sees the roster (names, models, a line about
// each agent), the goal, what each task came to, and what the caller's store of
// the shared memory held before.
type Coordinator struct {
	// Agent is required. Planning and synthesis are two prompts to it, a plan that
	// must be corrected is one more. The system prompt of each says in which form
	// a plan is written; an agent written in Go reads from [prompt.Prompt.Layout]
	// what it is asked for.
	Agent agent.Agent

	SystemPrompt string       // who it is, before its duties; empty means our words
	SystemParams []task.Param // which bytes of SystemPrompt came from parameters
	Instructions string       // added to its duties

	// Accepts is the most sensitive level that it may read; nil means as much as
	// the caller. It never reads more than the caller, whom it answers: a result
	// above that enters the synthesis by title and status only.
	Accepts *label.Classification

	MayGrant Grants // what its plans may grant beside dependencies; the zero value means nothing

	// MaxContextBytes and MaxPromptBytes limit its prompts, as of [Config]; zero
	// means the team's. Results that do not fit are answered in parts, of which the coordinator
	// makes a digest each before it answers the goal from the digests.
	MaxContextBytes int
	MaxPromptBytes  int

	// MaxTokenBudget and MaxCostBudget bound its own calls in a run; see [Member].
	MaxTokenBudget int
	MaxCostBudget  llm.Money

	Endpoint string // as of a [Member]

	// EndpointName and FallbackNames are as for a [Member].
	EndpointName  string
	FallbackNames []string

	Version string     // as of a [Member]
	Reuse   task.Reuse // as of a [Member]
	Model   string     // shown in plans
	Origin  task.Position
}

// Grants are what a plan that a model wrote may grant beside dependencies: the
// shared memory, and named inputs, of which the coordinator then reads names
// and labels, and never the texts or their sizes.
type Grants = planning.Grants

// Mode says what a goal is turned into.
type Mode string

// The modes.
const (
	ModePlan Mode = ""     // a plan of the coordinator's
	ModeAuto Mode = "auto" // a goal of one simple step goes to the agent that fits it best, without a plan; any other is planned
)

// A Message is what one member of the team tells another before the run
// begins. It is itself the grant for that pair: labels and redaction apply as
// to any context.
type Message struct {
	From           string // an agent, or user
	To             string // an agent, or * for every agent but the sender
	Text           string
	Classification label.Classification
	TTL            time.Duration // life from the start of the run; zero means unlimited
}

// Format writes who tells whom and the size, so that no verb prints the text.
func (m Message) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "message from %q to %q, %v, %s", m.From, m.To, m.Classification, label.ClassText(len(m.Text)))
}

// A Member is an agent and what the gate must know of it. Name and Agent are required.
type Member struct {
	Name  string
	Agent agent.Agent

	SystemPrompt string
	SystemParams []task.Param    // which bytes of SystemPrompt came from parameters
	OutputSchema json.RawMessage // for tasks without one of their own; nil means free text

	Accepts    label.Classification  // the most sensitive level that it may read
	Produces   *label.Classification // the most sensitive level that it may write; nil means Accepts
	OutputTags []string              // tags that its results may carry

	// Handoff is what it gets of what other agents make where no rule of the
	// policy states a mode. It may narrow [handoff.Policy].Default, and not widen
	// it; empty narrows nothing.
	Handoff handoff.Mode

	MaxContextBytes int // as of [Config]; zero means the team's
	MaxPromptBytes  int // as of [Config]; zero means the team's

	MaxSession  time.Duration // longest time that the agent may work on one attempt, and that a task may ask for; zero means no limit
	MaxParallel int           // attempts at the same time; zero means as many as the run allows

	// MaxTokenBudget and MaxCostBudget bound the model calls of this agent in a run, in
	// addition to the budgets of [Options]; zero means no bound. A task whose call does
	// not fit into a budget of its agent fails, and the run continues.
	MaxTokenBudget int
	MaxCostBudget  llm.Money

	// Endpoint is the base URL that its prompts are sent to. Empty means what
	// the Agent's own method Endpoint() string says. An agent that has one but
	// does not know, such as an [agent.LLM] over a model that names no endpoint,
	// counts as one of unknown clearance, up to confidential. An agent without
	// such a method, such as an [AgentFunc], counts as one that sends its
	// prompts nowhere.
	//
	// An agent with several endpoints, such as an [agent.LLM] with a fallback, has a
	// method Endpoints() []string that lists them. Each of them is a reader, and the
	// lowest of their clearances applies. Endpoint then replaces the first one.
	Endpoint string

	// EndpointName is what plans, decisions and records call that endpoint, for a
	// base URL that should not be shown. Empty means the base URL itself.
	EndpointName string

	// FallbackNames are the EndpointNames of the endpoints after the first, in the order
	// of the agent's method Endpoints.
	FallbackNames []string

	// Version names everything beside the prompt that the answers depend on: the
	// model, its endpoint, the parameters of a call, the program. Empty means what
	// the Agent's own method Version() string says. Without one, what it answers is
	// taken by no other run; see [Options].Reuse.
	Version string
	Reuse   task.Reuse // whether its answers may be those of earlier runs

	// What an agent is known by: to people, to whoever picks an agent for a task
	// without an assignee (see [Options].Strategy), and to the coordinator.
	Model        string
	Provider     string // such as openai; matched by a task's requires
	Description  string
	Capabilities []string
	Origin       task.Position
}

// Config is what a team is made of.
type Config struct {
	Name   string
	Agents []Member // at least one; the order is the roster's

	Coordinator *Coordinator // who plans and answers goals; nil for a team that only runs tasks

	// Endpoints are the clearances of endpoints by base URL. One that is not
	// named here accepts what is secret if it is on this machine, and else what
	// is confidential.
	Endpoints map[string]label.Classification

	// Policy governs what crosses between the members; nil narrows nothing. It
	// grants nothing that tasks do not.
	Policy *handoff.Policy

	// Prices are the prices of models, by the name that their endpoints know. A model
	// without a name has the price of [Member].Model. Only cost budgets need prices.
	Prices map[string]llm.Price

	// MaxContextBytes limits one piece of context in a prompt: the result of a
	// dependency, an input or a message. A longer text is cut, which the prompt and
	// the run's result say; a longer structured value is withheld. The limit that
	// is set nearest to the piece counts: on the dependency or the input, on the
	// agent, here. Zero means 256 KiB, and 64 KiB for a dependency that is
	// delivered as structured or both. At most 4 MiB.
	MaxContextBytes int

	// MaxPromptBytes limits the user message of a prompt. In a longer one all texts
	// are cut to one common length. An agent's own limit counts first. Zero means
	// 512 KiB. At most 4 MiB.
	MaxPromptBytes int

	Logger *slog.Logger // nil discards; receives names and counts, never payloads
}

// An Input is a text of the caller, or a result of an earlier run, that tasks may
// be granted by name.
type Input struct {
	Name           string
	Text           string
	Classification label.Classification

	// Envelope is the result of an earlier run that the input is, such as
	// [TaskResult].Envelope or what a journal returns. Text is then empty, or the
	// text of that result. Its label, which
	// Classification can only raise, its expiry and its provenance go over to the
	// input. A result that has expired is an error before the run.
	Envelope *envelope.Envelope

	TTL time.Duration // life from the start of the run; zero means unlimited

	// MaxContextBytes limits what is delivered of the text; zero means the limit of
	// the agent that reads it. An input that is known to exceed its limit is an
	// error before the run, unless Cut lets it be cut.
	MaxContextBytes int
	Cut             bool

	Origin task.Position
}

// Format writes the name and the size, so that no verb prints the text.
func (i Input) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "input %q, %v, %s", i.Name, i.Classification, label.ClassText(len(i.Text)))
}

// MarshalJSON writes the name, the label and the size, without the text.
func (i Input) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name           string               `json:"name"`
		Classification label.Classification `json:"classification"`
		Bytes          int                  `json:"bytes"`
	}{i.Name, i.Classification, len(i.Text)})
}
