// Package person makes a person a member of a team:
//
//	editor := person.New(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
//		fmt.Println(p.Text())
//		…
//		return agent.Reply{Text: answer}, nil
//	})
//	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "editor", Agent: editor}}})
//
// A person gets what every agent gets: a prompt that the gate has built under a contract,
// and a receipt for it. While a person is asked, the task holds no slot of MaxConcurrency.
// If the person does not answer now, ask returns [ErrLater], and the question stays open:
// the run performs everything else and then ends with the status suspended. Resuming it
// asks again, unless an answer to exactly the same prompt is in the journal by then.
package person

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// ErrLater reports that the person does not answer now. The question stays open.
var ErrLater = errors.New("the person has not answered yet")

// An Agent is a person. It is safe for concurrent use if the function that asks is.
type Agent struct {
	ask   func(context.Context, prompt.Prompt) (agent.Reply, error)
	users []string
}

// New returns a person whom ask asks. It is called once for each question, perhaps several
// times at once, and must return when its context ends. If the prompt has a schema, the
// answer is the JSON of the reply or, if that is not set, its text read as JSON.
func New(ask func(context.Context, prompt.Prompt) (agent.Reply, error)) *Agent {
	return &Agent{ask: ask}
}

// For returns the same person, whom only people with these names can answer for: a journal takes no answer by anybody else.
// Names are compared as they are. The function that asks must see to it itself whom it asks. Without names, anybody can answer.
func (a *Agent) For(users ...string) *Agent { return &Agent{a.ask, slices.Clone(users)} }

// Users returns the names of [Agent.For].
func (a *Agent) Users() []string { return slices.Clone(a.users) }

// Check returns an error if there is no function that asks. A team checks its agents with it.
func (a *Agent) Check() error {
	if a == nil || a.ask == nil {
		return errors.New("nothing asks the person; pass a function to person.New")
	}
	return nil
}

// Run asks the person.
func (a *Agent) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	if err := a.Check(); err != nil {
		return agent.Reply{}, err
	}
	reply, err := a.ask(ctx, p)
	reply.Usage, reply.Turns = llm.Usage{}, 0
	if err != nil || p.Schema() == "" || reply.JSON.Canonical() != "" {
		return reply, err
	}
	form, err := schema.Parse(p.Schema())
	if err != nil {
		return agent.Reply{}, err
	}
	v, err := jsonvalue.Parse(reply.Text)
	if err == nil {
		err = form.Validate(v) // also if ctx has ended: the person has answered
	}
	if err != nil {
		return reply, fmt.Errorf("%w: %w", agent.Condition(codes.Schema), err)
	}
	reply.JSON = v
	return reply, nil
}

// Version is the same for all people: what a person answers depends on the prompt alone.
func (*Agent) Version() string { return "person" }
