package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// offerConversation offers an attempt what was said in the earlier turns of the session, if its task
// answers the person.
func offerConversation(a *attempt, r *results) {
	o := r.plan.Options()
	if o.Answer != nil {
		return // the coordinator answers
	}
	for k := range o.Conversation {
		offer := o.Conversation[k].Offer(a.caps.Agent)
		g := gate.WholeOf(offer.Source, "")
		g.MaxBytes = a.limits.On(offer.Source, 0)
		g.Terms = plan.ReadBy(r.plan, a.index).Terms(o.Conversation[k].MadeBy(a.caps.Agent), a.caps.Agent)
		a.offers, a.grants = append(a.offers, offer), append(a.grants, g)
	}
	a.said = len(o.Conversation)
}

// conversationFor offers a step of the coordinator what was said in earlier turns. Digests of results do
// without: the answer is made from them with the conversation.
func conversationFor(c *coordinator, kind StepKind) []gate.Offer {
	if kind == StepDigest {
		return nil
	}
	offers := make([]gate.Offer, len(c.run.options.Conversation))
	for k := range offers {
		offers[k] = c.run.options.Conversation[k].Offer(handoff.Coordinator)
	}
	return offers
}

// answerEnvelope returns the answer of a run that is a turn of a session; nil if it has none.
func answerEnvelope(r *run, res *Result) *envelope.Envelope {
	switch {
	case r.options.Turn == nil || res.Status != StatusOK:
		return nil
	case r.answers:
		return r.coordinator.synthesis
	case len(r.tasks) == 1:
		return r.tasks[0].Envelope
	}
	return nil
}

// LoadConversation returns what a run that is a turn of a session needs of the other turns, to be
// resumed or replayed.
func LoadConversation(ctx context.Context, store record.SessionStore, turn *record.SessionTurn) (plan.OfSession, error) {
	turns, err := store.LoadSession(ctx, turn.Session)
	if err != nil {
		return plan.OfSession{}, err
	}
	of := plan.OfSession{Turn: turn}
	for i := range turns {
		if turns[i].Turn != turn.Turn {
			of.EarlierCalls = append(of.EarlierCalls, paidIn(&turns[i])...)
		}
	}
	of.Conversation, err = conversationOf(turns, turn.After)
	return of, err
}

// conversationOf returns what was said up to the turn with a run, the oldest first.
func conversationOf(turns []record.StoredTurn, run string) (said []plan.ConversationText, err error) {
	for run != "" {
		i := slices.IndexFunc(turns, func(t record.StoredTurn) bool { return t.Run == run })
		if i < 0 {
			return nil, fmt.Errorf("session %s: run %s of an earlier turn is not in the journal", turns[0].Session, run)
		}
		t := &turns[i]
		answer := plan.ConversationText{Turn: t.Turn, From: t.Agent, Envelope: answerIn(t), Reads: readsIn(t)}
		said = append(said, answer, personSaid(t))
		turns, run = turns[:i], t.After // so that it ends
	}
	slices.Reverse(said)
	return said, nil
}

// personSaid returns what the person said in a turn.
func personSaid(t *record.StoredTurn) plan.ConversationText {
	said := plan.ConversationText{Turn: t.Turn, From: handoff.User}
	if t.Missing != "" {
		return said
	}
	h := envelope.Header{ID: "message", Producer: handoff.User, Run: t.Run, Classification: t.Label, CreatedAt: t.Began}
	if e, err := envelope.New(h, envelope.Text(t.Text)); err == nil {
		said.Envelope = e
	}
	return said
}

// answerIn returns the answer of a turn; nil if the journal does not have it.
func answerIn(t *record.StoredTurn) *envelope.Envelope {
	x := lastAnswer(t)
	if x == nil || x.Result == nil {
		return nil
	}
	e, err := x.Result.Envelope()
	if err != nil || e.Genuine() != nil {
		return nil
	}
	return e
}

// lastAnswer returns the last call of a turn that answered the person; nil if there is none.
func lastAnswer(t *record.StoredTurn) (last *record.AgentCall) {
	by := task.ID(handoff.Coordinator + "/" + string(StepSynthesis))
	if end := t.History.End; end != nil && len(end.Output) == 1 {
		by = end.Output[0]
	}
	for i := range t.History.Log {
		if x := t.History.Log[i].Exchange; x != nil && x.Part == "" && x.Task == by && x.Completed() {
			last = x
		}
	}
	return last
}

// hasEnded reports whether nothing is left to do of a turn: it was answered, or it failed or was canceled.
func hasEnded(t *record.StoredTurn) bool {
	end := t.History.End
	return end != nil && end.Status != string(StatusSuspended)
}

// isAnswered reports whether a turn is part of the conversation.
func isAnswered(t *record.StoredTurn) bool {
	end := t.History.End
	return end != nil && end.Status == string(StatusOK) && lastAnswer(t) != nil
}

// readsIn returns what agents were delivered in a turn.
func readsIn(t *record.StoredTurn) (list []record.Read) {
	for i := range t.History.Log {
		if x := t.History.Log[i].Exchange; x != nil {
			list = addReads(list, x.Reads)
		}
	}
	return list
}

// addReads returns the union of two lists.
func addReads(list, more []record.Read) []record.Read {
	for _, r := range more {
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// readsOf returns what a reader was delivered in a turn of a session; nil if turn is, in any other run.
func readsOf(turn *record.SessionTurn, reader string, rulings []*gate.Decision) (list []record.Read) {
	if turn == nil {
		return nil
	}
	for _, d := range rulings {
		if !d.IsDelivered() || d.From == "" {
			continue
		}
		r := record.Read{Reader: reader, From: d.From, Kind: d.Source.Kind}
		if r.Kind == handoff.Input {
			r.Input = d.Source.Name
		}
		list = addReads(list, []record.Read{r})
	}
	return list
}

// paidIn returns the calls that were paid for a turn.
func paidIn(t *record.StoredTurn) []plan.PriorCall {
	return plan.PriorCalls(memo.Of(t.History, memo.Own|memo.Lean))
}

// readAsBefore returns a conversation for a run that is replayed: an expiry that had not passed when
// that run began does not count.
func readAsBefore(said []plan.ConversationText, prior *record.History) []plan.ConversationText {
	if len(prior.Begins) == 0 {
		return said
	}
	said = slices.Clone(said)
	for i := range said {
		e := said[i].Envelope
		if e == nil || e.Fresh(prior.Begins[0].Time) != nil {
			continue
		}
		said[i].Envelope = gate.WithoutExpiry(e)
	}
	return said
}
