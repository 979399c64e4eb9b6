// Package agent turns prompts into replies.
//
// An [LLM] calls a model, validates the answer against the schema of the prompt, and lets
// the model correct it once:
//
//	writer := agent.New(model, agent.Options{Settings: llm.Settings{MaxTokens: 500}})
//	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: writer}}})
//
// The model reads nothing but the prompt, its own answer and what was wrong with it. An
// agent can also be written in Go: see [Agent] and [Func].
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
)

// defaultCallTimeout bounds one call, from the connection to the last byte.
const defaultCallTimeout = 5 * time.Minute

// defaultMaxTurns bounds the turns of an agent that sets no bound.
const defaultMaxTurns = 10

// A Reply is an agent's answer to one prompt. The gate checks it before anyone else sees
// it.
type Reply struct {
	Text  string
	JSON  envelope.JSON         // the structured answer, if the agent read one; else the zero value
	Tags  []string              // tags that the agent claims for its result
	Claim *label.Classification // level that the agent claims; the gate may refuse it, and it never lowers a label
	Usage llm.Usage             // tokens of all its calls; also set with an error
	Turns int                   // model calls that answered

	// ToolCalls requests calls of tools in place of an answer. The team makes the calls and runs the
	// agent again with a prompt that has the results. A call of a tool that the prompt does not list
	// has an error as its result.
	ToolCalls []llm.ToolCall

	// TextCall says that ToolCalls is a call that the model wrote as text; see [Options].TextToolCalls. If a person
	// approves the calls of the tool, this one is asked about also after an approval of all further calls.
	TextCall bool

	// Provider is what the provider of the model needs back with the calls of tools; nil if it needs
	// nothing. The team keeps it for this conversation alone and does not show it: an [LLM] sends it
	// with the later turns, to the endpoint and the model that attached it.
	Provider *llm.ProviderData `json:"-"`

	Reasoning string // what the model wrote before its answer; not part of Text, and never shown to an agent

	Call     llm.CallInfo // the last call that was answered
	Warnings []string     // of all its calls; see [llm.Response]

	// Truncated says that a limit on tokens ended the answer. An [LLM] sets it beside
	// an error that wraps [Condition] ANSWER_TRUNCATED; a team accepts the answer nevertheless if
	// the task asks for that.
	Truncated bool
}

// Options tune an [LLM]. The zero value is a good default.
type Options struct {
	llm.Settings // of each model call

	// MaxTurns limits the model calls of one attempt at a task: one for each round of tool
	// calls, the answer, and one correction if the answer does not match the output schema.
	// Zero means 10; 1 allows neither tools nor a correction. Retries of a failed call are not
	// counted. An attempt that needs more fails with MAX_TURNS; calls of tools that the last of
	// them asks for are not made.
	MaxTurns int

	// TextToolCalls takes an answer that is one call of a tool, written as text, for that call. Some models of
	// small size and some servers write calls so. It is taken only if its arguments match the schema of the tool
	// and were not in what the agent has read, if the tool has no effect or a person approves its calls, and if the
	// text is not the structured answer that the prompt asks for.
	// Without it, and for any other call, the text is the answer, with a warning.
	TextToolCalls bool

	// Timeout bounds the work for one prompt, with retries and waits: in a conversation with
	// tools each turn, without the time of the tools. Zero means none. The Timeout of a task
	// bounds the whole attempt.
	Timeout     time.Duration
	CallTimeout time.Duration // bound on one model call; zero means 5 minutes

	// Retry tunes how often a failed model call is made again; zero means two
	// more times. The count restarts with each task attempt, so a task with
	// MaxRetries 1 makes up to 6 calls to an endpoint that is down.
	Retry llm.RetryOptions

	// Limits holds the rate limits of the models' endpoints; nil means [limit.DefaultGroup],
	// so that all agents of a process share the limits of an endpoint. A call that the
	// endpoint refuses because of its rate limit waits and is made again, which is not
	// counted as a retry. The wait ends when the endpoint refuses all calls for longer
	// than Retry.MaxRetryAfter. It counts towards Timeout, but not towards CallTimeout.
	Limits *limit.Group

	// Fallback are the models that are called in this order when the agent's model
	// fails, after all retries, because of its endpoint; see [llm.Fallback]. Each of them
	// may read the agent's prompts. A call without an answer fails after CallTimeout,
	// which must be shorter than Timeout for the next model to be called.
	Fallback []llm.Model
}

// An LLM is an agent that calls a model. It remembers nothing between prompts and is safe
// for concurrent use.
type LLM struct {
	models  []llm.Model // the model and its fallback
	wrapped []llm.Model // models, wrapped with limits and a check of each reply
	options Options
}

// New returns an agent that calls the model. With a nil model, or a nil pointer as
// the model, [LLM.Check] and every Run fail with [llm.ErrNoModel].
func New(m llm.Model, o Options) *LLM {
	o.MaxTurns = cmp.Or(max(o.MaxTurns, 0), defaultMaxTurns)
	o.CallTimeout = cmp.Or(max(o.CallTimeout, 0), defaultCallTimeout)
	o.Stop = slices.Clone(o.Stop)
	a := &LLM{models: append([]llm.Model{m}, o.Fallback...), options: o}
	if a.Check() != nil {
		return a
	}
	for i, m := range a.models {
		a.wrapped = append(a.wrapped, o.limited(&bounded{m, o.CallTimeout}, i == len(o.Fallback)))
	}
	return a
}

// fallbackMaxWait bounds the wait for an endpoint that refuses all calls if another
// model can answer.
const fallbackMaxWait = 10 * time.Second

// limited returns a model whose calls wait for the rate limits of an endpoint. last says
// that no other model can answer, so that a call waits longer.
func (o *Options) limited(m llm.Model, last bool) llm.Model {
	maxWait := max(o.Retry.MaxRetryAfter, 0)
	if !last {
		maxWait = min(cmp.Or(maxWait, fallbackMaxWait), fallbackMaxWait)
	}
	return cmp.Or(o.Limits, &limit.DefaultGroup).Model(m, maxWait)
}

// Check returns an error that wraps [llm.ErrNoModel] if the agent cannot work: it is
// nil or the zero value, or one of its models is nil. A team checks its agents with it.
func (a *LLM) Check() error {
	if a == nil || len(a.models) == 0 || isNil(a.models[0]) {
		return fmt.Errorf("%w: make the agent with agent.New and a model", llm.ErrNoModel)
	}
	if i := slices.IndexFunc(a.models, isNil); i > 0 {
		return fmt.Errorf("%w: Fallback[%d] is nil; give it a model or remove it", llm.ErrNoModel, i-1)
	}
	return nil
}

// isNil reports whether a model is nil, or a nil pointer or function.
func isNil(m llm.Model) bool {
	if m == nil {
		return true
	}
	switch v := reflect.ValueOf(m); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// Endpoints returns every base URL that the agent's prompts may be sent to: those of its
// model, then those of its fallback. "" is an unnamed endpoint.
func (a *LLM) Endpoints() []string {
	if a.Check() != nil {
		return []string{""}
	}
	return endpoint.All(llm.Fallback(a.models...))
}

// Models returns the names of the models that the agent may call, by which a team finds
// their prices: that of its model, then those of its fallback. The name of a model is
// the result of its method Name() string, which models of llm/openai have, or "".
func (a *LLM) Models() []string {
	if a.Check() != nil {
		return []string{""}
	}
	names := make([]string, len(a.models))
	for i, m := range a.models {
		names[i] = nameOf(m)
	}
	return names
}

// TakesTextCalls reports whether the agent takes calls that its models write as text; see [Options].
func (a *LLM) TakesTextCalls() bool { return a.options.TextToolCalls }

// CallLimits returns how many model calls the agent makes for one attempt at a task at most, and
// how many tokens one answer may have; zero means that the settings set no bound.
func (a *LLM) CallLimits() (calls, answerTokens int) {
	return a.options.MaxTurns, max(a.options.MaxTokens, 0)
}

// Run calls the model with p and returns its answer. Its errors wrap an [*llm.Error], one
// [Condition], or the context's cause; the Reply then still
// carries the usage.
//
// A nil ctx and an agent that [LLM.Check] refuses are errors.
func (a *LLM) Run(ctx context.Context, p prompt.Prompt) (Reply, error) {
	if err := a.Check(); err != nil {
		return Reply{}, err
	}
	if ctx == nil {
		return Reply{}, errors.New("agent: the context is nil; use context.Background")
	}
	if a.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.options.Timeout, fmt.Errorf("%w: more than %v", Condition(codes.Timeout), a.options.Timeout))
		defer cancel()
	}
	output, err := schemaOf(p)
	if err != nil {
		return Reply{}, err
	}
	turn, supervised := supervise.Turn(ctx)
	if turn > a.options.MaxTurns {
		return Reply{}, a.noTurn()
	}
	c := a.conversation(ctx, p, output)
	for corrected := false; ; corrected = true {
		err := c.turn(ctx)
		switch {
		case len(c.reply.ToolCalls) == 0:
		case supervised && turn == a.options.MaxTurns: // nothing could read the results
			c.reply.ToolCalls, c.reply.TextCall, c.reply.Provider = nil, false, nil
			return c.reply, a.noTurn()
		default:
			return c.reply, err
		}
		if output == nil || err != nil && !c.reply.Truncated {
			return c.reply, err
		}
		problem := c.reply.read(ctx, output)
		switch {
		case err != nil:
			// The answer may be complete. If it fails a guard, that is the error: after
			// ANSWER_TRUNCATED, another attempt could repeat the call until the guard passes.
			if errors.Is(problem, schema.ErrGuard) {
				err = schema.Reject(problem)
			}
			return c.reply, err
		case problem == nil:
			return c.reply, nil
		case ctx.Err() != nil:
			return c.reply, context.Cause(ctx)
		case errors.Is(problem, schema.ErrGuard):
			return c.reply, schema.Reject(problem)
		case corrected:
			return c.reply, fmt.Errorf("%w, also after a second try: %w", Condition(codes.Schema), problem)
		case supervised && turn == a.options.MaxTurns:
			return c.reply, a.noTurn()
		case supervised:
			return c.reply, schema.Reject(problem)
		}
		c.add(llm.Assistant, c.reply.Text)
		c.add(llm.User, "That answer cannot be used: "+schema.Problem(problem)+". Answer again with one JSON value that matches the schema, and with nothing else.")
	}
}

// conversation returns the conversation that begins with a prompt.
func (a *LLM) conversation(ctx context.Context, p prompt.Prompt, output *schema.Schema) conversation {
	c := conversation{agent: a, messages: messagesOf(p), tools: toolsOf(p), offered: p.Tools(), system: p.System(), schema: replySchema(p, output), output: output}
	giveBack(ctx, c.messages)
	if len(c.tools) > 0 {
		c.schema = nil // most endpoints that follow a schema then call no tool; the system prompt has it
	}
	return c
}

// noTurn returns the error of an answer that needs more turns than the agent has.
func (a *LLM) noTurn() error {
	return fmt.Errorf("%w: maxTurns is %d, and the model has not answered; raise it", Condition(codes.MaxTurns), a.options.MaxTurns)
}

// A conversation is the work on one prompt.
type conversation struct {
	agent    *LLM
	system   string
	messages []llm.Message
	tools    []llm.Tool
	offered  []prompt.Tool   // the same
	schema   json.RawMessage // nil means text
	output   *schema.Schema  // of the answer; nil means text
	reply    Reply
	lowered  int // the limit of the reply in tokens that a budget set in place of maxTokens; zero if it did not
}

// messagesOf returns the conversation of a prompt.
func messagesOf(p prompt.Prompt) []llm.Message {
	var list []llm.Message
	for _, m := range p.Messages() {
		out := llm.Message{Role: m.Role, Text: m.Text, ToolCallID: m.CallID}
		for _, c := range m.Calls {
			out.ToolCalls = append(out.ToolCalls, llm.ToolCall(c))
		}
		list = append(list, out)
	}
	return list
}

// giveBack sets on what the agent said in the turns before this one what its providers need back. In a
// session, the messages before those are of other conversations.
func giveBack(ctx context.Context, messages []llm.Message) {
	turn, _ := supervise.Turn(ctx)
	provider := supervise.ProviderData(ctx)
	for i := len(messages) - 1; i >= 0 && len(provider) > 0; i-- {
		if messages[i].Role != llm.Assistant {
			continue
		}
		if turn--; turn < 1 {
			return
		}
		if turn <= len(provider) {
			messages[i].Provider = provider[turn-1]
		}
	}
}

// toolsOf returns the tools of a prompt.
func toolsOf(p prompt.Prompt) []llm.Tool {
	var list []llm.Tool
	for _, t := range p.Tools() {
		list = append(list, llm.Tool{Name: t.Name, Description: t.Description, Parameters: json.RawMessage(t.Parameters)})
	}
	return list
}

func (c *conversation) add(role, text string) {
	c.messages = append(c.messages, llm.Message{Role: role, Text: text})
}

// turn makes one model call.
func (c *conversation) turn(ctx context.Context) error {
	o := c.agent.options
	if c.reply.Turns == o.MaxTurns {
		return c.agent.noTurn()
	}
	res, err := c.agent.chain(ctx, &c.lowered).Call(ctx, llm.Request{System: c.system, Messages: c.messages, Settings: o.Settings, Tools: c.tools, Schema: c.schema}, streamTo(supervise.StreamOf(ctx)))
	c.reply.Usage = c.reply.Usage.Add(res.Usage)
	if err != nil {
		if failed, ok := errors.AsType[*llm.Error](err); ok {
			c.reply.Usage = c.reply.Usage.Add(failed.Usage)
		}
		return err
	}
	c.reply.Turns++
	c.reply.Call, c.reply.Warnings = callinfo.Clean(res.CallInfo), append(c.reply.Warnings, res.Warnings...)
	c.reply.Text, c.reply.Reasoning = res.Text, res.Reasoning
	if len(res.ToolCalls) == 0 || !slices.Contains([]callinfo.Finish{callinfo.Stopped, callinfo.ToolUse}, callinfo.FinishOf(&res)) || c.isCut(&res) {
		err := c.finishError(&res)
		if err == nil && len(c.tools) > 0 {
			c.takeTextCall(ctx, res.Provider)
		}
		return err
	}
	turn, supervised := supervise.Turn(ctx)
	unknown := c.unknownTool(res.ToolCalls)
	switch {
	case len(c.tools) > 0 && unknown != "":
		c.reply.Warnings = append(c.reply.Warnings, fmt.Sprintf("the model called the tool %s, which it was not given", unknown))
	case len(c.tools) > 0:
	case strings.TrimSpace(res.Text) != "":
		c.reply.Warnings = append(c.reply.Warnings, fmt.Sprintf("the model called the tool %s, which it was not given; the text beside the call is the answer", unknown))
		return nil
	case !supervised || turn == o.MaxTurns: // no later turn can answer the call
		return fmt.Errorf("%w: %s", Condition(codes.ToolCall), oneline.Of(res.ToolCalls[0].Name))
	}
	c.reply.ToolCalls, c.reply.Provider = res.ToolCalls, res.Provider
	return nil
}

// toolName matches what providers take as the name of a tool. Any other text of a model is not quoted.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,64}$`) })

// unknownTool returns the name of the first tool in calls that the agent does not have, or "" if it has all.
func (c *conversation) unknownTool(calls []llm.ToolCall) string {
	for i := range calls {
		if !slices.ContainsFunc(c.tools, func(t llm.Tool) bool { return t.Name == calls[i].Name }) {
			if name, _, err := redact.All().Text(calls[i].Name); err == nil && toolName().MatchString(calls[i].Name) {
				return name
			}
			return "without a usable name"
		}
	}
	return ""
}

// chain returns the models of the agent as one, each metered and retried separately; for lowered see [meteredAs].
func (a *LLM) chain(ctx context.Context, lowered *int) llm.Model {
	models := make([]llm.Model, len(a.wrapped))
	for i, m := range a.wrapped {
		models[i] = llm.Retry(meteredAs(ctx, m, nameOf(a.models[i]), lowered), a.options.Retry)
	}
	return llm.Fallback(models...)
}

// A bounded model has a time limit for each call, and checks each reply.
type bounded struct {
	model llm.Model
	limit time.Duration
}

// Endpoint returns the base URL of the model.
func (b *bounded) Endpoint() string { return endpoint.Of(b.model) }

// Call makes one call.
func (b *bounded) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, &llm.Error{Kind: callfault.Timeout, Message: fmt.Sprintf("the call took longer than %v", b.limit)})
	defer cancel()
	res, err := b.model.Call(ctx, req, emit)
	res.Endpoint = cmp.Or(res.Endpoint, b.Endpoint())
	switch u := res.Usage; {
	case err != nil:
		return res, err
	case u.InputTokens < 0 || u.OutputTokens < 0:
		return llm.Response{}, &llm.Error{Kind: callfault.BadResponse, Message: "the model reports a negative number of tokens", Usage: llm.Usage{}.Add(u)}
	case callinfo.FinishOf(&res) == callinfo.Failed:
		return llm.Response{}, failedReply(b.model, &res)
	}
	return res, checkAnswer(b.model, &res)
}
