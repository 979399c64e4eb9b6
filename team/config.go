package team

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Agent performs tasks; see [agent.Agent].
type Agent = agent.Agent

// AgentFunc makes a function an [Agent]; see [agent.Func].
type AgentFunc = agent.Func

// Config describes a team, for [New].
type Config struct {
	Name        string
	Agents      []Member     // at least one
	Coordinator *Coordinator // plans and answers goals; nil for a team that only runs tasks

	// Endpoints sets the clearances of endpoints by base URL. The default is secret for an
	// endpoint on this machine, and confidential for any other.
	Endpoints map[string]label.Classification

	// Policy narrows what passes between the members; nil narrows nothing. It grants
	// nothing that tasks do not grant.
	Policy *handoff.Policy

	// Edges say which agents may send handoffs to which others while they work: with the tool
	// send_handoff, which agents with such an edge have, or with [OutboxFrom]. Without edges no
	// agent sends anything.
	Edges []handoff.Edge

	// Prices are the prices of models, by the names that their endpoints use. A model
	// without a name has the price of its member's Model. Only cost budgets need prices.
	Prices map[string]llm.Price

	Limits // defaults for members that set none

	// MaxMessageBytes limits a message that an agent sends along an edge: its text, and the JSON of its
	// other parts. A larger one is refused, and the agent reads why. The default is 16 KiB; at most 1 MiB.
	MaxMessageBytes int

	// OnToolCall decides whether a call of a tool is made, for instance by asking a person. It is
	// called once before each call, with the arguments that the tool would get. An error refuses
	// the call, and the agent reads its text as the result; a panic refuses the call too.
	// OnToolCall may wait, and must return when ctx ends, which is when the attempt ends; its time
	// counts towards the time limit of the task. It must be safe for concurrent use, because calls
	// without effects run in parallel. A resumed run does not ask again about calls whose end is
	// stored.
	OnToolCall func(ctx context.Context, c ToolCall) error

	Logger *slog.Logger // nil discards; receives names and counts, never payloads
}

// Limits bound the sizes of prompts. Zero means the team's limit, and in [Config] the
// default.
type Limits struct {
	// MaxContextBytes limits one piece of context in a prompt: the result of a
	// dependency, an input or a message. A longer text is cut, which the prompt and the
	// warnings of the result say; a longer structured value is withheld. A limit of the
	// dependency or the input itself takes precedence. The default is 256 KiB, and 64 KiB
	// for a dependency that is delivered as structured or both. At most 4 MiB.
	MaxContextBytes int

	// MaxPromptBytes limits the user message of a prompt. In a longer one, all texts are
	// cut to one common length. In a conversation with tools it limits all messages together:
	// above it, the oldest results are moved out. The default is 512 KiB, the maximum 4 MiB.
	MaxPromptBytes int
}

// An Intake narrows what a member receives, whatever the policy delivers to it. The zero value
// narrows nothing.
type Intake struct {
	// AllowedContextFields are the paths that it receives of other agents' results if no rule of the
	// policy states a mode. With them, Handoff is scoped, and the default of the policy may narrow
	// further. Nil means all paths; an empty list is an error.
	AllowedContextFields []task.Path

	// BlockedContextFields are paths that it never receives, and Translate rewrites what it
	// receives. Both apply together with all rules of the policy, as a rule from everyone to this
	// member does. Of context that is no JSON value, nothing is delivered to a member with blocked
	// fields.
	BlockedContextFields []task.Path
	Translate            *handoff.Translation

	// MaxContextTokens limits what a task is granted in one prompt: its inputs, results, entries of
	// the shared memory and messages together, with four bytes counted as one token. Above it, all
	// texts are cut to one common length, and structured values that do not fit are withheld or fail
	// the task. Results of tools do not count. Zero means no limit.
	MaxContextTokens int
}

// A ToolCall is a call of a tool that is about to be made.
type ToolCall struct {
	Run       string // ID of the run
	Task      task.ID
	Title     string // of the task
	Agent     string
	Tool      string
	Arguments json.RawMessage // as the tool gets them: redacted by the gate
	Effect    tool.Effect
}

// LoopDetection detects that an agent makes the same calls of tools, or writes the same text
// beside its calls, in several turns. Calls are the same if their names and arguments are; the
// order within a turn makes no difference. The zero value has the defaults.
type LoopDetection struct {
	MaxRepetitions int // equal turns within the window that count as a loop; zero means 3
	Window         int // how many of the last turns are compared; zero means 4, or MaxRepetitions if that is more

	// OnLoop is "warn", the default, or "terminate". A warning is a message to the agent, once in
	// an attempt; if the agent continues, the task fails with LOOP_DETECTED. With "terminate" it
	// fails at once. The calls of the turn that ends it are not made.
	OnLoop string
}

// Spawning lets an agent spawn children: copies of itself that each pursue a goal, with an empty
// history, a workspace of their own and those of its tools that it names. A child reads the system
// prompt of the agent and the goal, and only its answer returns, and what it changed of files that it was passed. It works in the attempt of its parent,
// whose budgets, label and time limit bound it. The zero value has the defaults.
type Spawning struct {
	Max      int           // children in one attempt at a task, with the children of children; zero means 8
	Depth    int           // 2 lets children spawn children, and so on, up to 16; zero means 1
	Timeout  time.Duration // longest time that a child may work, and the limit unless the call asks for less; zero means 5 minutes
	MaxTurns int           // model calls of a child; zero means 20
	Files    []string      // globs of files of its workspace, such as src/**, that a call may pass to a child; none unless set
}

// A Budget limits the tokens and the cost of model calls; zero means no limit.
//
// Before each call, an estimate is reserved: one token for every four bytes that are
// sent, plus the limit on the reply, or 1,000 tokens if it has none. After the call, the
// tokens that the endpoint counted replace the estimate. A call that does not fit waits
// for calls in progress; if it still does not fit, it is not made. A call that takes more
// than its estimate can exceed the budget by the difference.
type Budget struct {
	MaxTokenBudget int // input and output tokens

	// MaxCostBudget limits the cost by [Config].Prices. Each reservation assumes uncached
	// input and the higher output price. A model without a price is an error before the
	// run.
	MaxCostBudget llm.Money
}

// A Backend describes the model and endpoint behind an agent. The zero value takes both
// from the agent's own methods.
type Backend struct {
	Model string // shown in plans, and to the coordinator

	// Endpoint is the base URL that prompts are sent to. If it is empty, the result of the
	// Agent's method Endpoint() string is used. If that is also empty, the endpoint is
	// treated as unknown and may receive at most confidential context. An agent without
	// the method, such as an [AgentFunc], is treated as one that sends its prompts nowhere.
	//
	// An agent with several endpoints, such as an [agent.LLM] with a fallback, has a
	// method Endpoints() []string. Each endpoint is a reader, and the lowest of their
	// clearances applies. Endpoint then replaces the first one.
	Endpoint string

	// EndpointNames are the names of the endpoints in plans, decisions and records, for
	// base URLs that should not be shown. A missing or empty name means the base URL.
	EndpointNames []string

	// Version names everything besides the prompt that answers depend on: the model, its
	// endpoint, the parameters of a call, the program. If it is empty, the result of the
	// Agent's method Version() string is used. Other runs do not reuse answers without a
	// version.
	Version string
	Reuse   string // "never": answers are not taken from earlier runs; empty: they may be
}

// A Member is an agent of a team and its settings. Name and Agent are required.
type Member struct {
	Name  string
	Agent Agent

	SystemPrompt string
	OutputSchema json.RawMessage // for tasks without one of their own; nil means free text

	Accepts    label.Classification  // the most sensitive level that it may read; zero means internal
	Produces   *label.Classification // the most sensitive level that it may write; nil means Accepts
	OutputTags []string              // tags that its results may carry

	// Tools are the tools that its tasks may call, unless a task names fewer; nil means none. An [agent.LLM] passes them to its
	// model; another Agent finds them in [prompt.Prompt.Tools] and returns
	// [agent.Reply].ToolCalls. Each raises the label of its tasks to at least what the tool
	// produces. Members may share a tool; two different tools of one name are an error.
	Tools []*tool.Tool

	// AllowUntrusted names the external tools that it may call with untrusted context. That is
	// anything it read that the policy does not endorse: an input, the result of a task or a
	// tool, the definition of an MCP tool. An attacker who controls such a text can cause
	// these calls.
	AllowUntrusted []string

	// LoopDetection ends the work of an agent that repeats itself; nil means that only the
	// MaxTurns of an [agent.LLM] bound it.
	LoopDetection *LoopDetection

	// Spawn lets it spawn children with the tool spawn_agent; nil means that it has none.
	Spawn *Spawning

	// Handoff is the mode in which it receives other agents' results if no rule of the
	// policy states one. It may narrow [handoff.Policy].Default; empty narrows nothing.
	Handoff handoff.Mode
	Intake

	MaxSession  time.Duration // limit on one attempt; a task with a longer Timeout is an error; zero means none
	MaxParallel int           // attempts at the same time; zero means as many as the run allows

	Limits
	Budget // a task whose call does not fit fails, and the run continues
	Backend

	// The scheduler and the coordinator choose an agent by these.
	Provider     string // such as "openai"; matched by a task's requirements
	Description  string
	Capabilities []string
}

// A Coordinator plans the tasks for a goal and writes the answer from their results. It
// is a reader like any other: it has the name coordinator and a clearance, and the gate
// decides on what it reads. It sees the agents (names, models, descriptions), the goal,
// the results of tasks, and the shared memory of earlier runs.
type Coordinator struct {
	// Agent is required. It gets one prompt to plan, one more if the plan must be
	// corrected, and one or more to answer. [prompt.Prompt.Layout] tells an agent written in
	// Go which of them it has.
	Agent Agent

	SystemPrompt string // its role; empty means the default
	Instructions string // added to its duties

	// Accepts is the most sensitive level that it may read; nil means the user's. It
	// never reads more than the user. Of a result above its level, it gets the title and
	// the status.
	Accepts *label.Classification

	MayGrant synth.Grants     // what its plans may grant besides dependencies; the zero value means nothing
	MayPlan  synth.Constructs // conditions, loops, lists and judges that its plans may have; the zero value means none

	// Approve names the member, a [person.Agent], who is asked before the tasks of a plan run;
	// empty asks no one. The person reads the plan, and may edit it. A refusal with a reason has
	// the coordinator plan again.
	Approve string

	Limits // results that do not fit into one prompt are first digested in parts
	Budget
	Backend
}

// A Goal is what the coordinator plans tasks for and answers from their results.
type Goal struct {
	Text           string               // required; at most 256 KiB
	Classification label.Classification // of Text; zero means internal
	Source         provenance.Source    // where Text comes from, for receipts; package spec sets it
}

// Format writes the label and the size, so that no verb prints the text.
func (g Goal) Format(f fmt.State, c rune) { plan.Goal(g).Format(f, c) }

// An Input is a text of the user, or a result of an earlier run, that tasks may be
// granted by name.
type Input struct {
	Name           string
	Text           string
	Classification label.Classification // of Text; zero means internal

	// Envelope is a result of an earlier run, such as [TaskResult].Envelope or what a
	// journal returns. Text is then empty, or the text of that result. Classification can
	// only raise its label; its expiry and its provenance become the input's. An expired
	// result is an error before the run.
	Envelope *envelope.Envelope

	// Folder is a folder in place of Text, see [ReadFolder]. A task that uses the input gets
	// its files in the workspace of its tools, each redacted for the agent, and a list of
	// them in its prompt. Paths of grants and rules are paths of files.
	Folder *Folder

	TTL time.Duration // life from the start of the run; zero means unlimited

	// MaxContextBytes limits what is delivered of the text; zero means the limit of the
	// agent that reads it. An input that exceeds its limit is an error before the run,
	// unless Cut allows it to be cut.
	MaxContextBytes int
	Cut             bool

	// ListFormat says how Text is read as a list, for [task.ForEach]: "json", the default, "ndjson", a
	// value on each line, or "csv", a table with a header, whose rows are objects of texts. What
	// tasks and rules say about parts of the input is then about that value.
	ListFormat string

	Origin provenance.Position // where a file has the input; package spec sets it
}

// Format writes the name and the size, so that no verb prints the text.
func (i Input) Format(f fmt.State, c rune) { plan.Input(i).Format(f, c) }

// MarshalJSON writes the name, the label and the size, without the text.
func (i Input) MarshalJSON() ([]byte, error) { return plan.Input(i).MarshalJSON() }

// A Message is sent from one member of the team to another before the run begins. It is
// itself the grant for that pair. Labels and redaction apply as to any context.
type Message struct {
	From           string               // an agent, or "user"; required
	To             string               // an agent, or "*" for every agent but the sender; required
	Text           string               // required
	Classification label.Classification // of Text; zero means internal
	TTL            time.Duration        // life from the start of the run; zero means unlimited
}

// Format writes the pair and the size, so that no verb prints the text.
func (m Message) Format(f fmt.State, c rune) { plan.Message(m).Format(f, c) }

func (g *Goal) internal() plan.Goal { return plan.Goal(*g) }

func (c *Config) internal() plan.Config {
	out := plan.Config{
		Name: c.Name, Endpoints: c.Endpoints, Policy: c.Policy, Edges: c.Edges, Prices: c.Prices,
		Limits: plan.Limits(c.Limits), MaxMessageBytes: c.MaxMessageBytes, Logger: c.Logger,
	}
	if ask := c.OnToolCall; ask != nil {
		out.OnToolCall = func(ctx context.Context, call plan.ToolCall) error { return ask(ctx, ToolCall(call)) }
	}
	for i := range c.Agents {
		m := &c.Agents[i]
		out.Agents = append(out.Agents, plan.Member{
			Name: m.Name, Agent: m.Agent, SystemPrompt: m.SystemPrompt, OutputSchema: m.OutputSchema,
			Accepts: m.Accepts, Produces: m.Produces, OutputTags: m.OutputTags, Tools: m.Tools, AllowUntrusted: m.AllowUntrusted, Conversation: plan.Conversation{LoopDetection: (*plan.LoopDetection)(m.LoopDetection), Spawn: (*plan.Spawning)(m.Spawn)}, Receives: plan.Receives{Handoff: m.Handoff, Intake: plan.Intake(m.Intake)},
			MaxSession: m.MaxSession, MaxParallel: m.MaxParallel,
			Limits: plan.Limits(m.Limits), Budget: plan.Budget(m.Budget), Backend: plan.Backend(m.Backend),
			Provider: m.Provider, Description: m.Description, Capabilities: m.Capabilities,
		})
	}
	if k := c.Coordinator; k != nil {
		out.Coordinator = &plan.Coordinator{
			Agent: k.Agent, SystemPrompt: k.SystemPrompt, Instructions: k.Instructions, Accepts: k.Accepts, MayGrant: k.MayGrant, MayPlan: k.MayPlan, Approve: k.Approve,
			Limits: plan.Limits(k.Limits), Budget: plan.Budget(k.Budget), Backend: plan.Backend(k.Backend),
		}
	}
	return out
}
