package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A sideCall is a prompt that served another one: it translated context before it, or
// corrected its answer.
type sideCall struct {
	receipt *prompt.Receipt // nil if no prompt could be built
	usage   llm.Usage       // as the caller may see it
	sent    int             // bytes, as the caller may see them; zero if its agent was not called
	rulings []*gate.Decision
	partial bool // the caller may not see all of it
	inner   bool // it is a turn or a child of the call that it served

	warnings []string  // of its model calls, as the caller may see them
	cost     llm.Money // as the caller may see it
}

// asSideCall returns what counts of a model call that served another one.
func (x *modelCall) asSideCall() sideCall {
	v := x.visibility()
	return sideCall{x.receipt, v.usage(x.reply.Usage), x.sent, x.rulings, x.isPartial(), x.isInner(), v.warnings(x.reply.Warnings), x.shownOwnCost()}
}

// A neededTranslation is an offer that must be translated, and the gate's ruling about it.
type neededTranslation struct {
	offer  int
	ruling gate.Ruling
}

// A translator has the reader's own agent translate one piece of context. The agent sees
// what the reader would have been given, under a contract of its own, and nothing else.
type translator struct {
	call         modelCall
	system       string // the system prompt of the reader
	systemParams []provenance.Param
	systemOrigin string
}

// translateAll has offers translated, one after another, and returns those that could
// not be. After one without which the model call fails, no other is started.
func (x *modelCall) translateAll(ctx context.Context, wanted []neededTranslation) map[int]*translator {
	failed := map[int]*translator{}
	for k := range wanted {
		w := &wanted[k]
		o := &x.offers[w.offer]
		s := x.translate(ctx, o, w)
		if o.Translated = s.call.envelope; s.call.err == nil {
			continue
		}
		if failed[w.offer] = s; s.isRequired(o) {
			break
		}
	}
	return failed
}

// isRequired reports whether the model call cannot be made without the translation: the
// context is needed, or the run is at its end.
func (s *translator) isRequired(o *gate.Offer) bool {
	return !o.Optional || s.call.aborted || s.call.broke != notExhausted
}

// translate has an offer translated as the gate requires. The envelope of the answer
// derives from what was translated.
func (x *modelCall) translate(ctx context.Context, o *gate.Offer, w *neededTranslation) *translator {
	s := &translator{call: modelCall{run: x.run, request: x.side("/retell/"+strconv.Itoa(w.offer+1), time.Now())}}
	s.call.schema, s.call.turn = nil, 0
	s.call.declassified = true // only the reader's own agent reads the translation
	s.call.task = &task.Task{
		ID: x.task.ID, Spec: task.Spec{Title: "Retell " + o.Title, Assignee: x.task.Assignee, Source: provenance.Source{Origin: x.task.Source.Origin}, Timeout: x.task.Timeout, Classification: label.Public, Description: fmt.Sprintf("Retell what stands below in at most %d tokens, for somebody who will read it in its place. Keep facts, numbers and names; add nothing.", w.ruling.Translate.MaxTokens)},
	}
	if limit := x.contract.Duration; limit > 0 {
		s.call.task.Timeout = max(limit-x.worked, 1) // it takes from the time of the call that it serves
	}
	if m, ok := x.run.team.Index(x.caps.Agent); ok {
		member := &x.run.team.Config.Agents[m]
		s.system, s.systemParams, s.systemOrigin = member.SystemPrompt, member.SystemParams, member.Origin.String()
	} else if c := x.run.team.Config.Coordinator; c != nil {
		s.system, s.systemParams, s.systemOrigin = c.SystemPrompt, c.SystemParams, c.Origin.String()
	}
	if x.run.team.Find(x.caps.Agent).Process() != nil { // the check before the run reports it too
		s.call.setError(ctx, errors.New("a command cannot summarize context"))
		return s
	}
	if x.isPerson() { // likewise
		s.call.setError(ctx, errors.New("a person cannot summarize context"))
		return s
	}
	offer, grant, err := (&gate.Compartment{Contract: x.contract}).TranslationOffer(o, &w.ruling, x.start)
	if err != nil {
		s.call.setError(ctx, err)
		return s
	}
	s.call.offers, s.call.grants = []gate.Offer{offer}, []gate.Grant{grant}
	serve(ctx, x, &s.call, s)
	x.showCost()
	x.worked += s.call.worked
	return s
}

// side returns the request of a model call with the same agent that serves that of r.
func (r request) side(part string, now time.Time) request {
	r.part += part
	r.tools = nil // a translation has none, and a turn those of its conversation
	r.start, r.began = now, now
	return r
}

// serve performs a model call that serves x, whose usage then counts as that of x.
func serve(ctx context.Context, x, side *modelCall, o purpose) {
	perform(ctx, side, o)
	if side.needsJournalEntry() {
		x.run.ledger.note(side.journalEntry())
	}
	x.spent = append(append(x.spent, side.spent...), side.asSideCall())
	x.broke, x.gone = cmp.Or(x.broke, side.broke), x.gone || side.gone
}

// open builds the prompt.
func (s *translator) open(ctx context.Context) (prompt.Prompt, error) {
	if err := s.call.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	b := brief.Brief{System: s.system, SystemParams: s.systemParams, SystemOrigin: s.systemOrigin}
	if s.call.offers[0].Source.Kind == handoff.Input {
		b.Inputs = s.call.sealed
	} else {
		b.Dependencies = s.call.sealed
	}
	return s.call.build(&b)
}

func (s *translator) started() *Outbox { return nil }

func (s *translator) ended(context.Context) {}

// shownUsage returns the usage of a model call, with the calls that translated context
// for it, as the caller may see it.
func (x *modelCall) shownUsage() llm.Usage {
	u := x.visibility().usage(x.reply.Usage)
	for _, s := range x.spent {
		u = u.Add(s.usage)
	}
	return u
}
