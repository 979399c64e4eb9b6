package connect

import (
	"context"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
)

// Absent returns a person whose questions stay open, with who can answer for them.
func Absent(users []string) engine.Agent { return person.New(later).For(users...) }

func later(context.Context, prompt.Prompt) (agent.Reply, error) {
	return agent.Reply{}, person.ErrLater
}

// person returns a person with who can answer for them, for whom the script answers if there is one.
func (c *Connector) person(users []string) (engine.Agent, error) {
	if c.Server == nil {
		ask := c.Ask
		if ask == nil {
			ask = later
		}
		return person.New(c.recording.recordPerson(ask)).For(users...), nil
	}
	m, err := c.newModel(openai.Config{Model: plan.ScriptedModel, BaseURL: c.Server.URL()})
	if err != nil {
		return nil, connectionError(err)
	}
	return person.New(c.recording.recordPerson(agent.New(fromScript(m, plan.ScriptedModel), agent.Options{}).Run)).For(users...), nil
}
