package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
)

// An approvalList are the questions about the calls of one turn. All of them are open before the first
// one is asked, each has an answer of its own, and no call among them is made before all are answered: a
// run that waits for people is suspended and resumed once for the list.
type approvalList struct {
	of    *turnCalls
	files string        // a digest of the workspace
	key   record.Key    // of the turn
	open  []*listedCall // those without a decision
}

// A listedCall is a call that a person has to approve.
type listedCall struct {
	call    *toolCall // nil if it is not to be made, for which answer says why
	answer  toolAnswer
	refusal string // why the program, or an interrupt, forbids it
	problem string // why the person cannot be asked

	approval *callApproval
	text     prompt.Prompt
	given    *record.Answer // from the journal
	ctx      context.Context
	question *question // while it is open
	later    bool      // the person does not answer now
	decision *decision
}

// asks reports whether a person has to approve a call.
func (c *turnCalls) asks(i int) bool {
	name := c.x.reply.ToolCalls[i].Name
	f := c.attempt.tool(name)
	return f != nil && f.Approve != "" && c.attempt.runtimeTool(name) == nil
}

// askTogether has people decide about a call and all later ones of the turn. If an answer is missing, the
// error is errLater.
func (c *turnCalls) askTogether(first int) error {
	if c.listed[first] != nil {
		return nil
	}
	l := &approvalList{of: c}
	l.identify()
	if c.listed == nil {
		c.listed = map[int]*listedCall{}
	}
	for i := first; i < len(c.answers); i++ {
		if !c.asks(i) {
			continue
		}
		if i > first && c.attempt.atFiles() != nil { // a call between has been made, and comes first
			break
		}
		p, err := l.prepare(i)
		if err != nil {
			return err
		}
		c.listed[i] = p
	}
	return l.decide(c.ctx)
}

// identify sets what the questions have in common: the calls of the turn, and the workspace as it is now.
func (l *approvalList) identify() {
	a, parts := l.of.attempt, []string{"runteam/approvals/1", l.of.x.part}
	for i := range l.of.x.reply.ToolCalls {
		call := &l.of.x.reply.ToolCalls[i]
		parts = append(parts, call.Name, call.Arguments)
	}
	l.key = digestOf(parts...)
	l.files = "none"
	if !a.hasFiles.Load() {
		return
	}
	f, sizes := a.current()
	if of, err := f.Measure(a.place.limits, sizes); err != nil {
		l.files = "above its limits"
	} else {
		l.files = hex.EncodeToString(of[:])
	}
}

// prepare takes the arguments of a call to the tool and to the person, and adds the question.
func (l *approvalList) prepare(i int) (p *listedCall, err error) {
	c := l.of
	a, ctx, call := c.attempt, c.ctx, c.x.reply.ToolCalls[i]
	p = &listedCall{}
	if refusal := refuseLowered(a, call.Name, c.said); refusal != "" {
		p.answer, err = refuseCall(a, c.x, c.said, call, refusal)
		return p, err
	}
	if p.call, p.answer, err = c.prepare(call); p.call == nil || err != nil {
		return p, err
	}
	if p.refusal, err = c.askProgram(p.call); err != nil || p.refusal != "" {
		return p, err
	}
	if a.run.repeats() {
		p.problem = "a replay asks no questions"
		return p, nil
	}
	p.approval = p.call.newApproval(l, c.x)
	p.text, err = p.approval.open(ctx)
	if err == nil && !p.approval.showsAll() {
		err = fmt.Errorf("%s may not see all of its arguments, and so cannot approve it", p.call.tool.Approve)
	}
	switch starts, always := p.call.approvals(); {
	case err != nil && ctx.Err() != nil:
		return p, withCause(ctx, err)
	case err != nil:
		p.problem = refusalOf(err)
	case always && !p.call.isTextCall() && (starts > 0 || !a.run.memo.Is(memo.Own) || !a.run.memo.Call(p.call.id).Asked): // else the person was shown this call too
		p.call.approved = permission{p.call.tool.Approve, true}
	default:
		l.open = append(l.open, p)
	}
	return p, nil
}

// make makes a call that has been decided about, or answers it.
func (p *listedCall) make(ctx, interruptible context.Context, of *turnCalls) (toolAnswer, error) {
	a, c := of.attempt, p.call
	switch {
	case c == nil:
		return p.answer, nil
	case p.refusal != "":
		return c.refuse(ctx, a, of.x, p.refusal)
	case p.problem != "":
		if err := a.run.recordArguments(ctx, c, false); err != nil {
			return p.answer, err
		}
		return refuseCall(a, of.x, c.from, c.call, "Call refused: "+p.problem+".")
	case p.decision != nil && p.decision.Decision == decidedNo:
		refused, err := p.approval.refused(ctx, a, p.decision.Reason)
		return orZero(refused), err
	}
	return c.make(ctx, interruptible, a, of.x, p.answer)
}

// decide opens the questions and waits for the answers. While people are asked, the attempt holds no
// slot.
func (l *approvalList) decide(ctx context.Context) (err error) {
	a, known := ofTask(l.of.attempt), 0
	defer func() {
		if !errors.Is(err, errLater) {
			a.approver, a.approves = "", ""
		}
	}()
	for _, p := range l.open {
		if p.given, err = p.approval.begin(ctx, p.text); err != nil {
			return err
		}
		if p.given != nil {
			known++
		}
	}
	if known < len(l.open) {
		a.scheduler.freeSlot(a)
		defer a.scheduler.takeSlot(a)
	}
	defer l.close()
	l.register(ctx)
	for {
		if err := l.ask(ctx, a); err != nil {
			return err
		}
		if len(l.open) == 0 {
			return nil
		}
		if a.run.questions.log == nil {
			return errLater
		}
		if err := l.park(ctx, a); err != nil {
			return err
		}
	}
}

// register opens the questions, so that other processes can answer them.
func (l *approvalList) register(ctx context.Context) {
	for _, p := range l.open {
		if p.given == nil {
			p.ctx, p.question = p.approval.call.run.questions.ask(ctx, p.approval.call.key)
		}
	}
}

// close closes the questions that are still open.
func (l *approvalList) close() {
	for _, p := range l.open {
		p.close()
	}
}

// close closes the question, and returns the answer of another process, if one has come.
func (p *listedCall) close() (given *record.Answer) {
	if p.question != nil {
		given = p.approval.call.run.questions.end(p.approval.call.key, p.question)
		p.question = nil
	}
	return given
}

// ask asks about one call after the other, and takes the answers that are there. Those that come later
// stay open.
func (l *approvalList) ask(ctx context.Context, a *attempt) error {
	var open []*listedCall
	for i, p := range l.open {
		if p.later && !a.run.questions.isAnswered(p.question) {
			open = append(open, p)
			continue
		}
		a.approver, a.approves = p.call.tool.Approve, p.call.tool.Name
		v, err := p.approval.settle(ctx, p.text, p.given, p.wait)
		switch {
		case errors.Is(err, errLater):
			p.given, p.later = nil, true
			open = append(open, p)
		case err != nil:
			l.open = append(open, l.open[i:]...)
			return err
		default:
			p.decision, p.call.approved = v, permission{p.call.tool.Approve, v.Decision == decidedAlways}
		}
	}
	if l.open = open; len(open) > 0 {
		a.approver, a.approves = open[0].call.tool.Approve, open[0].call.tool.Name
	}
	return nil
}

// wait is the [await] of a question in a list. The question stays open if the person does not answer now.
func (p *listedCall) wait(ctx context.Context, key record.Key, ask func(context.Context) error) (given *record.Answer, err error) {
	d := p.approval.call.run.questions
	if p.question == nil {
		p.ctx, p.question = d.ask(ctx, key)
	}
	if !d.isAnswered(p.question) {
		err = ask(p.ctx)
	}
	if err == nil || d.isAnswered(p.question) {
		given = p.close()
	}
	return given, err
}

// park waits until another process has answered one of the questions. If the run has nothing else to do
// before, the error is errLater.
func (l *approvalList) park(ctx context.Context, a *attempt) error {
	ctx, arrive := context.WithCancelCause(ctx)
	defer arrive(nil)
	for _, p := range l.open {
		if !a.run.questions.notify(p.question, arrive) {
			return nil
		}
	}
	err := a.scheduler.park(ctx, a)
	switch {
	case errors.Is(err, errLater), errors.Is(context.Cause(ctx), ErrAttemptTimeout):
		return errLater
	case errors.Is(err, ErrAnswered):
		return nil
	}
	return withCause(ctx, err)
}
