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

// Absent returns a person whose questions stay open.
func Absent() engine.Agent { return person.New(later) }

func later(context.Context, prompt.Prompt) (agent.Reply, error) {
	return agent.Reply{}, person.ErrLater
}

// person returns a person, for whom the script answers if there is one.
func (c *Connector) person() (engine.Agent, error) {
	if c.Server == nil {
		ask := c.Ask
		if ask == nil {
			ask = later
		}
		return person.New(c.recording.recordPerson(ask)), nil
	}
	m, err := c.newModel(openai.Config{Model: plan.ScriptedModel, BaseURL: c.Server.URL()})
	if err != nil {
		return nil, connectionError(err)
	}
	return person.New(c.recording.recordPerson(agent.New(fromScript(m, plan.ScriptedModel), agent.Options{}).Run)), nil
}
