package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/tool"
)

// ErrEffectsUncertain reports that an external call may have taken effect, so neither it nor
// its task is run again.
var ErrEffectsUncertain = errors.New("a tool with an external effect may have been called")

// A toolAnswer is what a call gave: the envelope of the result, or of what went wrong.
type toolAnswer struct {
	id       string // of the call, in the conversation
	envelope *envelope.Envelope
	failed   bool
	title    string           // beside the result, in the words of the runtime; empty if there is none
	limit    int              // bytes that the agent gets; zero means the default
	made     *ToolCallMetrics // nil if no tool was called in this process
	reply    *mailbox.Message // that the call waited for, in place of the envelope; nil for any other call
	awaits   *replyCall       // the call waits for a reply and has no answer yet; nil for any other call
}

// A toolCall is one call of a tool. The gate decides on its arguments as on context for an
// agent: a contract with the tool, a grant, the terms of the pair.
type toolCall struct {
	delivery   modelCall
	tool       *tool.Tool
	parameters *schema.Schema
	call       llm.ToolCall
	from       *envelope.Envelope // what the agent said
	id         string             // unique in the run, and the same in every process
	key        record.Key         // of the arguments before the gate
	title      string             // of the task
	approved   permission
}

// turnCalls are the calls that an agent asks for in one turn.
type turnCalls struct {
	attempt            *attempt
	x                  *modelCall         // the turn
	said               *envelope.Envelope // what the agent said in it
	answers            []toolAnswer       // by the place of the call
	ctx, interruptible context.Context    // of the calls to come
	end                func()             // of interruptible
	group              errgroup.Group     // of the calls without effects
	children           childGroup
	listed             map[int]*listedCall // the calls that people have been asked about, by their place
}

// callTools makes the calls that the agent asked for. Calls without effects run at the same
// time, and the others one at a time, in the order of the calls. The first call that needs an approval waits
// until people have decided about all of them.
func (a *attempt) callTools(ctx context.Context, x *modelCall, said *envelope.Envelope) ([]toolAnswer, error) {
	c := &turnCalls{attempt: a, x: x, said: said, answers: make([]toolAnswer, len(x.reply.ToolCalls)), ctx: ctx, children: childGroup{of: a, x: x, said: said}}
	defer a.countCalls(c.answers) // also those made before one that fails: nothing runs any more when this returns
	a.output.Store(0)
	c.group.SetLimit(maxParallelCalls)
	c.interruptible, c.end = a.run.steering.call(ctx, a)
	defer func() { c.end() }()
	defer c.children.settle()
	a.stopped = false
	for i := range c.answers {
		if err := c.call(i); err != nil {
			return nil, err
		}
	}
	err := c.wait()
	if err == nil {
		err = c.awaitReplies()
	}
	if err != nil {
		return nil, err
	}
	return c.answers, c.children.answers(c.answers)
}

// call makes one of the calls, or begins it if others may run at the same time.
func (c *turnCalls) call(i int) error {
	if c.attempt.run.isDraining() {
		return cmp.Or(c.wait(), errDrained)
	}
	call := c.x.reply.ToolCalls[i]
	asks, refusal := c.asks(i), ""
	if !asks {
		refusal = refuseLowered(c.attempt, call.Name, c.said)
	}
	perform := func() (err error) {
		switch {
		case asks:
			c.answers[i], err = c.listed[i].make(c.ctx, c.interruptible, c)
		case refusal != "":
			c.answers[i], err = refuseCall(c.attempt, c.x, c.said, call, refusal)
		default:
			c.answers[i], err = c.callTool(call)
		}
		return err
	}
	if t := c.attempt.runtimeTool(call.Name); hasGoal(t) && refusal == "" {
		refused, err := c.children.start(c.interruptible, i, t)
		if err != nil {
			return cmp.Or(c.wait(), err)
		}
		c.answers[i] = orZero(refused)
		return nil
	}
	if f := c.attempt.tool(call.Name); f != nil && f.Effect == tool.None && !asks && len(c.answers) > 1 {
		c.group.Go(perform)
		return nil
	}
	err := c.wait()
	if err == nil { // no effect after a failure
		err = c.ctx.Err()
	}
	if err == nil && !c.attempt.sendsHandoff(call.Name) {
		err = c.awaitReplies()
	}
	if err == nil && asks {
		err = c.askTogether(i)
	}
	if err == nil {
		err = perform()
	}
	return err
}

// wait waits for the calls without effects and for the children that have begun.
func (c *turnCalls) wait() error {
	err := c.group.Wait()
	waited, failed := c.children.wait()
	c.renew(waited)
	if err = cmp.Or(err, failed); err == nil {
		err = c.children.takeFiles(c.ctx)
	}
	return err
}

// awaitReplies waits for the replies to the handoffs of the turn so far.
func (c *turnCalls) awaitReplies() error {
	waited, err := c.attempt.awaitReplies(c.x, c.said, c.answers)
	c.renew(waited && err == nil)
	return err
}

// renew makes the contexts of the calls to come after a wait: a pause of the run meanwhile has moved the
// end of the time limit.
func (c *turnCalls) renew(waited bool) {
	if waited {
		c.end()
		c.ctx, c.interruptible, c.end = c.attempt.contextsAfterWait()
	}
}

// maxParallelCalls bounds the calls of one turn that run at the same time.
const maxParallelCalls = 8

// callTool makes one call, until the task is interrupted. It returns an error only if the attempt must
// end; a failed call has an answer that says so.
func (c *turnCalls) callTool(call llm.ToolCall) (toolAnswer, error) {
	a, x := c.attempt, c.x
	if t := a.runtimeTool(call.Name); t != nil && x.contract.Discloses(call.Name) {
		return a.callRuntimeTool(c.interruptible, x, c.said, call, t)
	}
	p, answer, err := c.prepare(call)
	if p == nil || err != nil {
		return answer, err
	}
	refusal, err := c.askProgram(p)
	switch {
	case err != nil:
		return answer, err
	case refusal != "":
		return p.refuse(c.ctx, a, x, refusal)
	}
	return p.make(c.ctx, c.interruptible, a, x, answer)
}

// askProgram asks the program whether a call may be made, unless the task was interrupted. It
// returns why not.
func (c *turnCalls) askProgram(p *toolCall) (refusal string, err error) {
	if c.interruptible.Err() != nil {
		return notMade, nil
	}
	return p.askProgram(c.ctx, c.attempt)
}

// prepare takes the arguments of a call to the tool. The call is nil if it is not to be made: then it
// has its answer, or there is an error that ends the attempt.
func (c *turnCalls) prepare(call llm.ToolCall) (prepared *toolCall, answer toolAnswer, err error) {
	a, x, ctx := c.attempt, c.x, c.ctx
	answer = toolAnswer{id: call.ID}
	refuse := func(reason string) (*toolCall, toolAnswer, error) {
		answer, err := refuseCall(a, x, c.said, call, reason)
		return nil, answer, err
	}
	f := a.tool(call.Name)
	switch {
	case len(x.contract.Tools) == 0:
		return refuse("Unknown tool: you have no tools. Answer without them.")
	case f == nil || !x.contract.Discloses(call.Name):
		return refuse("Unknown tool. Available tools: " + strings.Join(x.contract.Tools, ", ") + ".")
	}
	p := &toolCall{tool: f, parameters: a.run.team.Parameters[f.Name], call: call, from: c.said, title: a.task.Title}
	p.id, p.key = a.run.calls.of(x, &call)
	answer.limit = cmp.Or(p.tool.MaxOutput, tool.DefaultMaxOutput)
	if from := a.untrusted(x); from != "" && p.isExternal() && !slices.Contains(a.run.team.Config.Agents[a.member].AllowUntrusted, p.tool.Name) {
		return refuse(fmt.Sprintf("Call refused: %s has external effects, and the context is untrusted: it contains %s.", p.tool.Name, from))
	}
	value, err := p.arguments(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, answer, withCause(ctx, ctx.Err())
	case err != nil:
		return refuse("Invalid arguments: " + err.Error() + ".")
	}
	if p.isExternal() && a.run.repeats() {
		return refuse("Call refused: a replay calls no tool with external effects.")
	}
	if problem := p.deliverArguments(ctx, a, x, value); problem != "" {
		if err := a.run.recordArguments(ctx, p, false); err != nil {
			return nil, answer, err
		}
		return refuse(problem)
	}
	reached := a.atFiles()
	a.know(p.id)
	if done, err := p.answered(a, &answer); done || err != nil {
		return nil, answer, err
	}
	return p, answer, reached
}

// make makes a call that nothing forbids, unless the task was interrupted.
func (c *toolCall) make(ctx, interruptible context.Context, a *attempt, x *modelCall, answer toolAnswer) (toolAnswer, error) {
	if interruptible.Err() != nil {
		return c.refuse(ctx, a, x, notMade)
	}
	if a.run.isDraining() { // nothing begins any more, and a resumed run can begin it
		return answer, errDrained
	}
	if ctx.Err() != nil { // likewise
		return answer, withCause(ctx, ctx.Err())
	}
	if c.once() { // such calls are made one at a time
		a.external = true
	}
	if err := a.run.recordArguments(ctx, c, true); err != nil {
		return answer, err
	}
	if ctx.Err() != nil { // meanwhile
		return answer, withCause(ctx, ctx.Err())
	}
	err := c.perform(interruptible, a, &answer)
	return answer, err
}

// refuse records that the call is not made, and answers it.
func (c *toolCall) refuse(ctx context.Context, a *attempt, x *modelCall, reason string) (toolAnswer, error) {
	if err := a.run.recordArguments(ctx, c, false); err != nil {
		return toolAnswer{id: c.call.ID}, err
	}
	answer, err := refuseCall(a, x, c.from, c.call, reason)
	if err == nil && a.run.ledger != nil {
		c.recordRefusal(a, &answer)
	}
	return answer, err
}

// What the agent is told of calls that somebody interrupts.
const (
	notMade        = "Call not made: the user interrupted the task before."
	callStopped    = "The user interrupted the call."
	callMayHaveRun = "The user interrupted the call. It may have taken effect."
)

// refuseCall answers a call that is not made.
func refuseCall(a *attempt, x *modelCall, said *envelope.Envelope, call llm.ToolCall, reason string) (toolAnswer, error) {
	e, err := a.runtimeAnswer(x, said, call, reason)
	return toolAnswer{id: call.ID, envelope: e, failed: true}, err
}

// tool returns the tool with this name that the agent may call, or nil.
func (a *attempt) tool(name string) *tool.Tool {
	if i := slices.IndexFunc(a.tools, func(t *tool.Tool) bool { return t.Name == name }); i >= 0 {
		return a.tools[i]
	}
	return nil
}

// isExternal reports whether the call reaches anything outside the task.
func (c *toolCall) isExternal() bool { return c.effect() == tool.External }

// effect returns what the call changes.
func (c *toolCall) effect() tool.Effect { return cmp.Or(c.tool.Effect, tool.External) }

// know notes that a call is in the conversation. Calls without effects run at the same time.
func (c *conversation) know(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]bool{}
	}
	c.made[id] = true
}

// once reports whether the call must not be made twice.
func (c *toolCall) once() bool { return c.isExternal() && !c.tool.Repeatable }

// untrusted names a piece of the conversation that no entry of the policy endorses; empty if
// there is none. What the agent itself said is as trusted as what it was given.
func (a *attempt) untrusted(x *modelCall) string {
	for _, t := range a.tools {
		if t.Foreign {
			return "the definition of " + t.Name + ", written by a server"
		}
	}
	for _, of := range append(slices.Clip(a.earlier), x) {
		if from := untrustedAmong(of.sealed); from != "" {
			return from
		}
	}
	return untrustedAmong(a.returned.sealed)
}

// untrustedAmong names one of the pieces that no entry of the policy endorses; empty if there is none.
func untrustedAmong(sealed []gate.Sealed) string {
	for i := range sealed {
		s := &sealed[i]
		if s.Withheld() || s.Trust() == label.Endorsed || s.Source().Kind == handoff.Draft || s.Decision().From == gate.Runtime {
			continue
		}
		return fmt.Sprintf("%s %q of %s", s.Source().Kind, cmp.Or(s.Title(), s.Source().Name), s.Decision().From)
	}
	return ""
}

// answered takes the result that the call had before the run was interrupted, or what the
// program said when it refused the call. A call of which only the start is known is made again,
// unless it may have had an external effect. A conversation that starts over makes all its calls
// again.
func (c *toolCall) answered(a *attempt, answer *toolAnswer) (done bool, err error) {
	m := c.delivery.run.memo
	if !m.Is(memo.Own) || !a.cachedTurn {
		return false, nil
	}
	if e := m.Call(c.id).Result; e != nil && e.Result != nil && e.Missing == "" {
		if _, old, err := gate.Reissue(e.Result, time.Now()); err == nil {
			answer.envelope, answer.failed = old, !e.Completed()
			return true, nil
		}
	}
	if c.once() && m.Call(c.id).Begun {
		return false, fmt.Errorf("%w: %s was called before the run was interrupted, and its result is not known", ErrEffectsUncertain, c.delivery.caps.Agent)
	}
	return false, nil
}

// errToolLate ends a call of a tool that took longer than it may.
var errToolLate = errors.New("the tool timed out")

// limited returns the context of the call, which ends after its time limit. run is the context of the run.
func (c *toolCall) limited(ctx, run context.Context) (within context.Context, end func()) {
	limit := cmp.Or(c.tool.Timeout, tool.DefaultTimeout)
	late := fmt.Errorf("%w after %v", errToolLate, limit)
	if !c.isExternal() {
		return context.WithTimeoutCause(ctx, limit, late)
	}
	ctx, stop := awaited(ctx, run)
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w; the call may have taken effect", late))
	return within, func() { cancel(); stop() }
}

// perform calls the tool and takes its result through the gate.
func (c *toolCall) perform(ctx context.Context, a *attempt, answer *toolAnswer) error {
	limited, end := c.limited(ctx, cmp.Or(a.root, a).lasting)
	defer end()
	limited, giveBack := membudget.Within(limited, membudget.Attempt)
	defer giveBack()
	arguments, _ := c.delivery.sealed[0].Payload().JSON()
	began := time.Now()
	files, shared := c.workspaceOf(a), &a.shared // a call that is abandoned may outlive the attempt
	c.delivery.run.underWay.Add(1)
	result, err := runOutside(limited, "the tool", c.delivery.run.team.Log.With("tool", c.tool.Name), func() (tool.Result, error) {
		return c.tool.Run(limited, tool.Call{ID: c.id, Arguments: json.RawMessage(arguments), Workspace: files, Shared: shared})
	})
	c.delivery.run.underWay.Add(-1)
	interrupted := errors.Is(context.Cause(ctx), ErrInterrupted)
	if limited.Err() != nil && !interrupted && !errors.Is(context.Cause(limited), errToolLate) {
		return withCause(ctx, ctx.Err())
	}
	if err == nil && limited.Err() != nil && !interrupted {
		err = context.Cause(limited)
	}
	if errors.Is(err, tool.ErrUncertain) && c.once() && !interrupted {
		answer.made = &ToolCallMetrics{Tool: c.tool.Name, Duration: time.Since(began), Failed: true}
		return fmt.Errorf("%w: tool %s: %s", ErrEffectsUncertain, c.tool.Name, a.run.errorText(err.Error()))
	}
	if err == nil {
		err = membudget.Take(limited, membudget.Decoded(result.JSON))
	}
	switch {
	case err != nil && interrupted && c.isExternal():
		result = tool.Result{Text: callMayHaveRun, IsError: true}
	case err != nil && interrupted:
		result = tool.Result{Text: callStopped, IsError: true}
	case err != nil:
		result = tool.Result{Text: a.run.errorText(err.Error()), IsError: true}
	}
	measured, err := c.measureFiles(a, &result)
	if err != nil {
		return err
	}
	if a.output.Add(int64(len(result.Text)+len(result.JSON))) > maxTurnOutput {
		result = tool.Result{Text: fmt.Sprintf("The result was dropped: the results of one turn have more than %d MiB together. Ask for less at once.", maxTurnOutput>>20), IsError: true}
	}
	e, err := c.gateResult(&result)
	if err != nil {
		result = tool.Result{Text: "The result was withheld: " + refusalOf(err) + ".", IsError: true}
		if e, err = c.gateResult(&result); err != nil {
			return err
		}
	}
	answer.envelope, answer.failed = e, result.IsError
	answer.made = &ToolCallMetrics{Tool: c.tool.Name, Duration: time.Since(began), Failed: result.IsError}
	c.recordEnd(a, answer, began, measured)
	return nil
}

// checkEffects returns an error if an agent is to be asked although an earlier process made
// an external call for the task that is not in the conversation: the agent would not know of
// it. So it does for a command that must not run again.
func checkEffects(o purpose) error {
	a := attemptOf(o)
	if a == nil {
		return nil
	}
	if err := checkCommand(a); err != nil {
		return err
	}
	if err := a.atFiles(); err != nil {
		return err
	}
	if len(a.tools) == 0 {
		return nil
	}
	for _, s := range a.run.memo.Counted(a.task.ID).Tools {
		if isWithin(s.Session, a) && s.Effect == string(tool.External) && !s.Repeatable && (a.conversation == nil || !a.made[s.Session]) {
			err := fmt.Errorf("%w: %s was called before the run was interrupted, and the conversation is another one now", ErrEffectsUncertain, s.Agent)
			if a.filesLeft != "" {
				err = fmt.Errorf("%w: its files were left %s", err, a.filesLeft)
			}
			return err
		}
	}
	return nil
}
