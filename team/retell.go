package team

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A retelling is a prompt that had context retold before it crossed.
type retelling struct {
	receipt *prompt.Receipt
	usage   llm.Usage
	sent    int
}

// A translator has the reader's own agent retell one piece of context. It sees
// what the reader would have been given, under a contract of its own, and
// nothing else.
type translator struct {
	exchange
	system *Member
}

// retell has an offer retold as the gate asks for, and returns the envelope
// of the answer, which derives from what was retold.
func (x *exchange) retell(ctx context.Context, gate *handoff.Compartment, i int, d *handoff.Ruling) (*envelope.Envelope, error) {
	offer, grant, err := gate.Retelling(&x.offers[i], d, x.start)
	if err != nil {
		return nil, err
	}
	m, ok := x.run.team.member(x.caps.Agent)
	if !ok {
		return nil, fmt.Errorf("retell %q: only agents of the team retell", offer.Title)
	}
	s := &translator{system: &x.run.team.config.Agents[m]}
	s.run, s.number, s.does, s.caps, s.bound = x.run, x.number, x.does, x.caps, x.bound
	s.apart, s.start = x.apart+"/retell/"+strconv.Itoa(i+1), time.Now()
	s.task = &task.Task{
		ID: x.task.ID, Title: "Retell " + offer.Title, Assignee: x.task.Assignee, Origin: x.task.Origin, Timeout: x.task.Timeout, TTL: x.task.TTL,
		Description: fmt.Sprintf("Retell what stands below in at most %d tokens, for somebody who will read it in its place. Keep facts, numbers and names; add nothing.", d.Translate.MaxTokens),
	}
	s.offers, s.grants = []handoff.Offer{offer}, []handoff.Grant{grant}
	perform(ctx, &s.exchange, s)
	x.spent = append(append(x.spent, s.spent...), retelling{s.receipt, s.reply.Usage, s.sent})
	x.broke, x.gone = x.broke || s.broke, x.gone || s.gone
	return s.envelope, s.err
}

// open builds the prompt.
func (s *translator) open(ctx context.Context) (prompt.Prompt, error) {
	if err := s.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	b := prompt.Brief{System: s.system.SystemPrompt, SystemParams: s.system.SystemParams, SystemOrigin: s.system.Origin.String()}
	if s.offers[0].Source.Kind == handoff.Input {
		b.Inputs = s.sealed
	} else {
		b.Dependencies = s.sealed
	}
	return s.build(&b)
}

func (s *translator) begun() {}

func (s *translator) over(context.Context) {}

// usage returns what an exchange and the retellings before it took.
func (x *exchange) usage() llm.Usage {
	u := x.reply.Usage
	for _, s := range x.spent {
		u = u.Add(s.usage)
	}
	return u
}
