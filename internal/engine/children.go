package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/tool"
)

// A child works on a goal as a part of the attempt of its parent, which calls spawn_agent or
// delegate_to_agent. It has its own session, contract, workspace and an empty history. The goal passes
// the gate to it, its answer passes the gate to its parent, and nothing else passes either way.

// attemptRelations are the attempts that an attempt belongs to: its parents, and earlier holders.
type attemptRelations struct {
	root     *attempt // whose task it is; nil for the attempt at the task itself
	after    *attempt // of a later holder, the one that transferred the conversation to it; nil for any other
	depth    int      // zero for the attempt at the task itself
	maxTurns int      // of a child; zero for any other attempt

	// What the attempt at the task itself counts for all that descend from it, guarded by the lock of
	// the run.
	spawned, delegated int
}

// isChild reports whether the attempt is a child. A later holder is none.
func (r *attemptRelations) isChild() bool { return r.root != nil && r.after == nil }

// A childGroup are the children that an attempt has in one turn.
type childGroup struct {
	of   *attempt
	x    *modelCall         // the turn
	said *envelope.Envelope // what the agent said in it
	list []*childCall
	work sync.WaitGroup
	loan slotLoan
	life childLife
	idle bool // all children whose calls were made have ended
}

// A childCall is a call of spawn_agent or delegate_to_agent.
type childCall struct {
	goalCall
	call     llm.ToolCall
	at       int        // among the calls of the turn
	id       string     // of the call, unique in the run
	key      record.Key // of its arguments
	link     string     // the ID that the events of the child have
	child    *attempt   // nil if an earlier process has had its result
	tool     *plan.RuntimeTool
	began    time.Time
	took     time.Duration // until it ended
	outcome  childOutcome
	outputs  *envelope.Envelope // what the child changed of them; nil if nothing is to be taken
	returned bool               // some of that is in the workspace of the parent
	err      error              // ends the attempt of the parent
}

// A goalCall is what an agent passes to a tool that has a goal pursued.
type goalCall struct {
	To        string   `json:"to"`
	Goal      string   `json:"goal"`
	Tools     []string `json:"tools"`
	TimeoutMs int64    `json:"timeoutMs"`
	Files     []string `json:"files"`
}

// A childOutcome is what came of a child.
type childOutcome struct {
	envelope *envelope.Envelope // its result, or what the runtime says in its place
	code     string             // why it failed; empty if it completed
}

// Statuses of a child, as its parent reads them.
const (
	childComplete = "complete"
	childTimeout  = "timeout"
	childFailed   = "failed"
)

// status returns the status of a child that has ended.
func (o *childOutcome) status() string {
	switch o.code {
	case "":
		return childComplete
	case codes.Timeout:
		return childTimeout
	}
	return childFailed
}

// hasGoal reports whether a tool of the runtime has a goal pursued.
func hasGoal(t *plan.RuntimeTool) bool {
	return t != nil && (t.Name == plan.SpawnAgent || t.Name == plan.DelegateToAgent)
}

// start makes the call at a place of the turn: it begins the work of a child, or returns the answer
// of a call that is refused. An interrupt of ctx ends the work.
func (g *childGroup) start(ctx context.Context, at int, t *plan.RuntimeTool) (refused *toolAnswer, err error) {
	a, call := g.of, g.x.reply.ToolCalls[at]
	c := &childCall{call: call, at: at, tool: t, began: time.Now()}
	refuse := func(reason string) (*toolAnswer, error) {
		answer, err := refuseCall(a, g.x, g.said, call, reason)
		return &answer, err
	}
	if err := c.parse(t); err != nil {
		return refuse("Invalid arguments: " + err.Error() + ".")
	}
	c.id, c.key = a.run.calls.of(g.x, &call)
	c.link = record.HandoffID(strings.TrimPrefix(c.id, a.run.id))
	of, problem := g.descendant(c)
	if problem != "" {
		return refuse("Call refused: " + problem + ".")
	}
	reached := a.atFiles()
	a.know(c.id)
	if c.recall(a) {
		g.list = append(g.list, c)
		return nil, nil
	}
	if reached != nil {
		return nil, reached
	}
	goal, err := g.goalFor(c, &of)
	if err != nil {
		return refuse("Call refused: " + refusalOf(err) + ".")
	}
	files, err := g.passedFiles(ctx, c, of.files, goal)
	if err != nil {
		return refuse("Call refused: files: " + a.run.errorText(err.Error()) + ".")
	}
	c.child = g.newChild(goal, c, &of)
	if len(c.Files) > 0 {
		g.offerFiles(c.child, &of, files)
	}
	g.list = append(g.list, c)
	g.idle = false
	c.begin(a)
	slot := g.loan.request(c.child) // in the order of the calls
	c.child.ctx = g.life.follow(a, ctx)
	g.work.Go(func() { g.perform(c.child.ctx, c, slot) })
	return nil, nil
}

// parse reads the arguments.
func (c *childCall) parse(t *plan.RuntimeTool) error {
	v, err := jsonvalue.Parse(c.call.Arguments)
	if err != nil {
		return err
	}
	if err := t.Arguments().Validate(v); err != nil {
		return errors.New(schema.Problem(err))
	}
	if err := json.Unmarshal([]byte(v.Canonical()), &c.goalCall); err != nil {
		return err
	}
	if strings.TrimSpace(c.Goal) == "" {
		return errors.New("the goal has no text")
	}
	if line, opener := brief.Opener(c.Goal); line > 0 {
		return fmt.Errorf("line %d of the goal begins with %q, which is reserved for the prompt's own lines; reword it", line, opener)
	}
	return nil
}

// A descendant is what the settings of the team make of a child.
type descendant struct {
	member  int
	tools   []*tool.Tool
	runtime []plan.RuntimeTool // among the tools
	limits  plan.Spawning
	files   []string       // globs of the files that it may be passed
	edge    *plan.Neighbor // along which the goal is delegated; nil if it is not
}

// descendant returns the child that a call asks for and counts it, or says why there cannot be one.
func (g *childGroup) descendant(c *childCall) (of descendant, problem string) {
	a := g.of
	r, root := a.run, cmp.Or(a.root, a)
	m := &r.team.Config.Agents[a.member]
	if c.tool.Name == plan.DelegateToAgent {
		named, _ := plan.NeighborShownAs(a.by, a.member, c.To) // the schema names the neighbors
		of.member, _ = r.team.Index(named)
		to, _ := r.team.Network.Reaches(a.member, of.member)
		of.edge, of.tools, of.limits = &to, plan.ForChildren(r.team.Config.Agents[of.member].Tools), plan.Spawning{}.WithDefaults()
		of.files = r.team.Config.Edges[to.Edge].Files
		return of, countChild(root, &root.delegated, plan.MaxDelegations, "delegates at most %d goals")
	}
	of.member, of.limits = a.member, m.Spawn.WithDefaults()
	of.files = of.limits.Files
	own := plan.ForChildren(ownTools(a))
	for _, name := range c.Tools {
		i := slices.IndexFunc(own, func(t *tool.Tool) bool { return t.Name == name })
		if i < 0 {
			return of, fmt.Sprintf("you do not have the tool %s, or cannot give it to another agent; your tools: %s", name, cmp.Or(strings.Join(plan.ToolNames(own), ", "), "none"))
		}
		of.tools = append(of.tools, own[i])
	}
	if a.depth+1 < of.limits.Depth {
		of.runtime = []plan.RuntimeTool{*c.tool}
		of.tools = append(of.tools, c.tool.Tool)
	}
	return of, countChild(root, &root.spawned, of.limits.Max, "has at most %d children")
}

// countChild counts a child of an attempt at a task, or says why it may have no more.
func countChild(a *attempt, n *int, most int, words string) (problem string) {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	if *n >= most {
		return fmt.Sprintf("an attempt at a task "+words, most)
	}
	*n++
	return ""
}

// ownTools returns the tools of the agent without those of the runtime.
func ownTools(a *attempt) []*tool.Tool {
	return slices.DeleteFunc(slices.Clone(a.tools), func(t *tool.Tool) bool { return a.runtimeTool(t.Name) != nil })
}

// recall takes the result that a child had in an earlier process. The effects of its calls are then
// known to its parent.
func (c *childCall) recall(a *attempt) bool {
	m := a.run.memo
	if !m.Is(memo.Own) || !a.cachedTurn {
		return false
	}
	e := m.Call(c.id).Result
	if e == nil || e.Result == nil || e.Missing != "" {
		return false
	}
	_, old, err := gate.Reissue(e.Result, time.Now())
	if err != nil {
		return false
	}
	if c.outcome = (childOutcome{old, e.Code}); !c.recallFiles(m) {
		return false
	}
	within := a.run.id + "/" + string(a.task.ID) + c.part(a) + "/"
	for _, s := range m.Counted(a.task.ID).Tools {
		if strings.HasPrefix(s.Session, within) {
			a.know(s.Session)
		}
	}
	return true
}

// part returns the end of the session of the child of an attempt.
func (c *childCall) part(a *attempt) string { return a.part + record.ChildPrefix + c.call.ID }

// begin records that the call is made.
func (c *childCall) begin(a *attempt) {
	a.run.ledger.add(nil, record.Entry{ToolCall: &record.CallStart{
		Session: c.id, Key: c.key, Task: a.task.ID, Agent: gate.ToolReader(c.tool.Name), Attempt: a.number, Time: c.began, Bytes: a.run.sizeOf(c.child.offers[0].Envelope), Effect: string(tool.None),
		To: c.child.caps.Agent, Child: c.part(a), Spawn: &event.Spawn{Tools: plan.ToolNames(c.child.tools), TimeoutMs: c.child.task.Timeout.Milliseconds()},
	}})
}

// perform has the child work, and takes what comes of it. It does so also if an agent ends its goroutine.
func (g *childGroup) perform(ctx context.Context, c *childCall, slot slotRequest) {
	child := c.child
	defer g.loan.end(g.of, child) // behind what is recorded of it, so that the next child begins after that
	defer func() { c.err = g.end(ctx, c) }()
	if err := awaitSlot(ctx, child, slot); err != nil {
		child.setError(ctx, withCause(ctx, err))
		return
	}
	child.run.steering.await(ctx)
	child.start = time.Now()
	child.began = child.start
	perform(ctx, &child.modelCall, child)
}

// end takes the answer of the child, or why there is none.
func (g *childGroup) end(ctx context.Context, c *childCall) error {
	a, child := g.of, c.child
	if child.needsJournalEntry() {
		a.run.ledger.note(child.journalEntry())
	}
	interrupted := errors.Is(context.Cause(ctx), ErrInterrupted)
	if outer := outerEnd(a, child, child.err); outer != nil {
		return outer
	}
	switch err := child.err; {
	case err != nil && ctx.Err() != nil && !interrupted, isContinuedLater(err), errors.Is(err, ErrJournal), errors.Is(err, ErrRecord):
		return err
	case errors.Is(err, ErrEffectsUncertain) && !child.external: // what was called before the run was interrupted
		return err
	case err == nil && a.output.Add(int64(child.envelope.Size())) > maxTurnOutput:
		c.outcome.code = codes.Reply
	case err == nil:
		c.outcome.envelope = child.envelope
	default:
		c.outcome.code = cmp.Or(child.code, codes.Agent)
	}
	if c.outcome.code != "" {
		var err error
		if c.outcome.envelope, err = g.notice(c, "No result: "+c.outcome.code+"."); err != nil {
			return err
		}
	}
	if err := c.keepFiles(a); err != nil {
		return err
	}
	c.recordEnd(a)
	return nil
}

// notice makes the envelope of what the runtime says of a child. It is as sensitive as what the
// parent said and as what the child had read.
func (g *childGroup) notice(c *childCall, text string) (*envelope.Envelope, error) {
	e, err := g.of.runtimeAnswer(g.x, g.said, c.call, text)
	if err != nil {
		return nil, err
	}
	h, level := e.Header(), e.Classification()
	if c.child != nil {
		level = level.Join(c.child.contract.MaxInput)
	}
	if c.outcome.envelope != nil {
		level = level.Join(c.outcome.envelope.Classification())
	}
	h.Classification = level
	return envelope.New(h, envelope.Text(text))
}

// recordEnd records what came of a child.
func (c *childCall) recordEnd(a *attempt) {
	c.took = time.Since(c.began)
	if a.run.ledger == nil {
		return
	}
	end := record.Entry{ToolResult: &record.AgentCall{
		CallID: record.CallID{Session: c.id, Task: a.task.ID, Title: a.task.Title, Agent: gate.ToolReader(c.tool.Name), Attempt: a.number, Part: "/tool"},
		Start:  c.began, End: c.began.Add(c.took), Result: gate.RecordOf(c.outcome.envelope), Code: c.outcome.code,
	}}
	if len(c.Files) > 0 {
		f, _ := a.current()
		end.ToolResult.Folder = f.Base()
	}
	if c.outputs != nil {
		a.run.ledger.note(c.filesEntry(a), end)
		return
	}
	a.run.ledger.note(end)
}

// wait waits for the children, which work in the slot of their parent meanwhile. It reports whether there
// were any.
func (g *childGroup) wait() (waited bool, err error) {
	if g.idle || len(g.list) == 0 || g.life.ctx == nil {
		return false, nil
	}
	a, stop := g.of, g.life.watch(g.of, g.x)
	g.loan.lend(a)
	g.work.Wait()
	g.idle = true
	err = g.loan.awaitBack(g.life.parent, a)
	stop()
	a.stopped = a.stopped || errors.Is(context.Cause(g.life.ctx), ErrInterrupted)
	if err != nil {
		return true, endOfWait(a, g.life.parent, err)
	}
	for _, c := range g.list {
		if c.err != nil {
			return true, c.err
		}
	}
	return true, nil
}

// settle adds what the children took to their parent, in the order of the calls.
func (g *childGroup) settle() {
	g.life.end()
	a := g.of
	for _, c := range g.list {
		if child := c.child; child != nil {
			child.showCost()
			takeUsage(a, child)
		}
	}
}

// takeUsage adds what a child took, and what it called.
func takeUsage(a, child *attempt) {
	own := child.asSideCall()
	before := len(child.spent) - child.later
	a.spent = append(append(append(a.spent, child.spent[:before]...), own), child.spent[before:]...)
	a.later = len(a.spent)
	a.costShown += child.costShown
	a.broke, a.gone = cmp.Or(a.broke, child.broke), a.gone || child.gone
	removeFiles(a.run, child)
	if child.conversation == nil {
		return
	}
	a.external = a.external || child.external
	a.toolCalls = append(a.toolCalls, child.toolCalls...)
	for id := range child.made {
		a.know(id)
	}
}
