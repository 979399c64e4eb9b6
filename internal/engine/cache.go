package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// ErrReplay reports a prompt to which the run that is replayed has no answer.
var ErrReplay = errors.New("the journal of the run has no answer to this prompt")

// A ReplayError reports a prompt that differs from the one that was sent. It wraps [ErrReplay].
type ReplayError struct{ Prompt promptview.Shown } // as the caller may see it

func (e *ReplayError) Error() string { return ErrReplay.Error() + ": it is not the one that was sent" }

// Unwrap returns [ErrReplay].
func (e *ReplayError) Unwrap() error { return ErrReplay }

// isReusable reports whether answers of an agent about a task may serve other
// runs, and those of others this one.
func isReusable(m *plan.Member, r *request) bool {
	return !r.isPerson() && m.AnswerVersion() != "" && m.Reuse != "never" && r.task.Reuse != "never"
}

// takeCachedAnswer takes the answer to the same prompt that there is already: e, of this run before it was interrupted or
// of the run that it repeats, or that of another one if the options allow that. e is nil if there is none. It reports
// whether the model call has ended with an answer.
func (x *modelCall) takeCachedAnswer(ctx context.Context, p prompt.Prompt, e *record.AgentCall) (done bool, err error) {
	r := x.run
	if !r.keyed() {
		return false, nil
	}
	if e != nil {
		own := r.memo.Is(memo.Own)
		x.repeated = r.repeats()
		if !e.Completed() {
			x.recalled, x.own = e, own
			x.reply.Call, x.reply.Warnings = e.Call, e.Warnings
			return true, &repeatedError{e.Code, e.Error}
		}
		if taken, err := x.reissueAnswer(ctx, e, own); taken || err != nil {
			return true, err
		}
	}
	if r.memo.Is(memo.Strict) {
		return true, &ReplayError{r.shown(p, x.whole)}
	}
	if !r.options.Reuse || r.log == nil || r.fresh.has(x.task.ID) || !isReusable(r.team.Find(x.caps.Agent), &x.request) {
		return false, nil
	}
	return x.reuseAnswer(ctx, p)
}

// reuseAnswer looks for an answer of another run to the same prompt.
func (x *modelCall) reuseAnswer(ctx context.Context, p prompt.Prompt) (done bool, err error) {
	r := x.run
	for answer, err := range r.log.CachedAnswers(ctx, reuseKeyOf(x.key, r.accepts, r.team.Find(x.caps.Agent).Origins(r.options.Machine))) {
		if err != nil {
			return false, fmt.Errorf("%w: %w", ErrJournal, err)
		}
		taken, err := x.reissueAnswer(ctx, answer, false)
		if taken && err == nil {
			err = r.credit(ctx, x, p)
		}
		if taken || err != nil {
			return true, err
		}
	}
	return false, nil
}

// credit records what an answer of another run rests on here, as if its prompt
// had been sent.
func (r *recorder) credit(ctx context.Context, x *modelCall, p prompt.Prompt) error {
	handed := r.handoffs(x, time.Now())
	if err := r.callSink(ctx, &x.request, record.Prompt{Handoffs: handed, Prompt: new(r.shown(p, x.whole))}); err != nil {
		return err
	}
	r.ledger.add(x.batch, record.Entry{Record: &record.Prompt{Handoffs: handed, Prompt: new(r.shown(p, x.whole))}})
	r.emitUses(x)
	return nil
}

// reissueAnswer takes an answer that was given before through the gate, as a reply
// to this prompt. It is at least as sensitive as it was and lives no longer. An answer
// that has expired, does not verify, cannot be read any more, or is more sensitive than
// the task may be is not taken, and the agent is called.
func (x *modelCall) reissueAnswer(ctx context.Context, e *record.AgentCall, own bool) (taken bool, err error) {
	if e.CallsTools {
		if e.Sends && !x.run.memo.Is(memo.Strict) {
			return false, nil
		}
		if taken, err = x.reissueTurn(e); taken {
			x.recalled, x.own = e, own
		}
		return taken, err
	}
	now := time.Now()
	reply, old, ok := storedAnswer(x.run.memo, e, x.caps.Agent, now)
	if !ok || reply.Truncated && !x.task.AcceptTruncated || x.contract.MaxInput.Join(old.Classification()) > x.bound {
		return false, nil
	}
	isTurn := x.part != record.ChildOf(x.part)
	hasFiles := len(x.task.OutputFiles) > 0 && !isTurn // what tools wrote before a later turn is in the workspace
	if len(x.task.OutputFiles) > 0 && isTurn && !x.run.memo.Is(memo.Strict) && x.run.team.Find(x.caps.Agent).Process() != nil {
		return false, nil // what a command wrote in an attempt that did not end is gone
	}
	of := e.Session
	if x.holders != "" {
		of = strings.TrimSuffix(of, e.Part) // those of the last holder are stored as those of the attempt
	}
	changed, before, ok := cachedFiles(x.run.memo, of, x.bound, now)
	if !ok && hasFiles {
		return false, nil
	}
	made, err := x.admit(reply, now)
	if err != nil {
		return false, nil // the gate does not take it any more
	}
	if naming.IsChain(old.Producer()) { // it transferred the conversation
		if made, err = gate.AsBefore(made, old); err != nil {
			return false, err
		}
	}
	if own && !x.run.repeats() && sameBut(made.Header(), old.Header()) {
		made = old // it is this run's own, and is what it was
	}
	if hasFiles {
		if x.outputs, err = outputsOf(made, changed, before, filesAmong(x.sealed)); err != nil {
			return false, err
		}
	}
	x.reply, x.recalled, x.own = agent.Reply{Text: reply.Text, JSON: reply.JSON, Tags: reply.Tags, Truncated: reply.Truncated, Call: e.Call, Warnings: e.Warnings}, e, own
	return true, x.accept(ctx, made, now)
}

// storedAnswer returns a recorded answer of an agent as a reply, and the envelope that it had.
// It is not ok if the answer has expired, does not verify, or cannot be read any more.
func storedAnswer(m *memo.Memo, e *record.AgentCall, agent string, now time.Time) (reply gate.Reply, old *envelope.Envelope, ok bool) {
	if e.Result == nil || e.Missing != "" {
		return reply, nil, false
	}
	if m.Is(memo.Strict) { // no agent is called: what had not expired then has not expired in the replay
		now = time.Time{}
	}
	reply, old, err := gate.Reissue(e.Result, now)
	return reply, old, err == nil && naming.First(old.Producer()) == agent
}

// sameBut reports whether a result that was issued again differs from the first in its
// time of creation alone.
func sameBut(a, b envelope.Header) bool {
	return a.Run == b.Run && a.Task == b.Task && a.Producer == b.Producer && a.Classification == b.Classification &&
		a.Truncated == b.Truncated && a.ExpiresAt.Equal(b.ExpiresAt) && slices.Equal(a.Tags, b.Tags) && slices.Equal(a.DerivedFrom, b.DerivedFrom)
}

// repeats reports whether the run repeats another one.
func (r *runScope) repeats() bool { return r.options.Replay != nil }

// savedUsage returns the usage of a cached answer that another run paid for, as the
// caller may see it, and the ID of that run. e is nil if there is no cached answer, and own says
// that it is one of this run.
func (v visibility) savedUsage(e *record.AgentCall, own bool) (from string, took llm.Usage) {
	if v.hidden {
		return "", llm.Usage{}
	}
	return savedBy(e, own)
}

// savedBy returns the run that paid for a cached answer, and what the answer took there.
func savedBy(e *record.AgentCall, own bool) (from string, took llm.Usage) {
	if e == nil || own && e.From == "" {
		return "", llm.Usage{}
	}
	if e.From != "" { // it was not made there either
		return e.From, e.Saved()
	}
	return runOf(e), e.Usage()
}

// runOf returns the ID of the run that made a call, as the session of the call says.
func runOf(e *record.AgentCall) string {
	run, _, _ := strings.Cut(e.Session, "/"+string(e.Task)+"/")
	return run
}

// A repeatedError is a failure of the run that is replayed, which its replay
// has again.
type repeatedError struct{ code, message string }

// Error says what the failure said, in the form for the caller.
func (e *repeatedError) Error() string { return e.message }

// needsJournalEntry reports whether the journal stores a model call that has ended. It has a
// cached answer already, and a call that was cut off, or that a later process makes, has nothing to store.
func (x *modelCall) needsJournalEntry() bool {
	return x.run.ledger != nil && !x.own && !x.run.memo.Is(memo.Strict) && !errors.Is(x.err, errDrained) && !(x.aborted && x.reply.Usage == (llm.Usage{}) && len(x.spent) == 0)
}

// messageIDs returns the IDs of the messages among offers.
func messageIDs(offers []gate.Offer) (ids []string) {
	for i := range offers {
		if s := &offers[i].Source; s.Kind == handoff.Message {
			ids = append(ids, s.Name)
		}
	}
	return ids
}

// memoryTasks returns the tasks whose results in the shared memory are among offers.
func memoryTasks(offers []gate.Offer) (ids []task.ID) {
	for i := range offers {
		o := &offers[i]
		if o.Source.Kind != handoff.Memory || o.Envelope == nil {
			continue
		}
		if of := o.Envelope.Header().Task; of != "" {
			ids = append(ids, of)
		}
	}
	return ids
}

// journalEntry returns what a journal stores of a model call that has ended.
func (x *modelCall) journalEntry() record.Entry {
	e := x.journalCall()
	if x.err != nil {
		e.Code, e.Error, e.EventError = x.code, x.message, x.run.bus.differing(x.message, x.code)
		return record.Entry{Exchange: e}
	}
	e.Result = gate.RecordOf(x.envelope)
	// In a replay, an agent of another version may have given the answer.
	isOfVersion := x.recalled == nil || x.prior == x.key
	m := x.run.team.Find(x.caps.Agent)
	if e.Reusable = isOfVersion && isReusable(m, &x.request) && len(x.outbox.end()) == 0 && len(x.tools) == 0; e.Reusable { // another run would lack the messages
		e.Reuse = reuseKeyOf(x.key, x.run.accepts, m.Origins(x.run.options.Machine))
	}
	e.CallsTools, e.Provider = len(x.reply.ToolCalls) > 0, providerEntry(&x.reply, x.before)
	e.Sends = e.CallsTools && x.outbox.used()
	if x.part == "" && !gate.IsShownWhole(e.Result, x.text, x.structured) {
		e.Shown = &record.ShownResult{Text: x.text, Structured: x.structured, KeptBack: isPartWithheld(x.envelope, x.run.accepts, x.run.governed())}
	}
	return record.Entry{Exchange: e}
}

// isPartWithheld reports whether a result is above the caller's clearance and the policy
// would withhold some of it from a caller with every clearance. The run that takes it as
// an input has another policy.
func isPartWithheld(e *envelope.Envelope, accepts label.Classification, policy *plan.Roster) bool {
	level := e.Classification()
	if level <= accepts || policy.Rules == nil {
		return false
	}
	return !plan.PassesWhole(policy.Terms(e.Producer(), handoff.User), e.Producer(), gate.Source{Kind: handoff.Dependency}, level, label.Secret)
}

// journalCall returns what a journal stores of a model call in addition to its result.
func (x *modelCall) journalCall() *record.AgentCall {
	v := x.visibility()
	took := x.reply.Usage
	e := &record.AgentCall{
		Start:  x.began,
		End:    x.end,
		CallID: record.CallID{Session: x.contract.Session, Task: x.task.ID, Title: x.task.Title, Agent: x.caps.Agent, Model: x.run.team.Find(x.caps.Agent).FirstModel(), Attempt: x.number, Part: x.part},
		Keys:   record.Keys{Key: x.key, Core: x.core},
		Spent:  record.Spent{Input: took.InputTokens, Output: took.OutputTokens, CachedTokens: took.CachedTokens, ReasoningTokens: took.ReasoningTokens, Cost: x.cost, Partial: v.hidden, Turns: x.reply.Turns},
	}
	e.Policy, e.ReadBy = x.run.named(x.by), x.run.named(x.readBy)
	e.Call, e.Warnings = v.callInfo(x.reply.Call), v.warnings(x.reply.Warnings)
	e.Refused, e.Reasoning = x.rejected, x.reasoning
	if e.Session == "" {
		e.Session = x.session() // it was refused before there was a contract
	}
	if x.part == "" {
		e.Context = x.measureContext()
	}
	from, saved := savedBy(x.recalled, x.own)
	e.From, e.SavedInput, e.SavedOutput, e.SavedCached, e.SavedReasoning = from, saved.InputTokens, saved.OutputTokens, saved.CachedTokens, saved.ReasoningTokens
	e.Messages, e.Memory, e.Reads = messageIDs(x.offers), memoryTasks(x.offers), readsOf(x.run.options.Turn, x.caps.Agent, x.rulings)
	return e
}
