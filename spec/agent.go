package spec

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/team"
)

// An Agent is what the file says about one agent or the coordinator, for the
// connect function of [File.Build].
type Agent struct {
	Member  team.Member     // its Agent is nil
	Models  []openai.Config // its model, then those of its fallback; an empty BaseURL means OPENAI_BASE_URL or, if that is not set, api.openai.com
	Options agent.Options   // settings of its calls, without Fallback
	Process *agent.Process  // the command that the agent is; nil for a model and a person. It has no Models
	Person  bool            // the agent is a person, and has no Models: see [person.New]
	Users   []string        // names of who can answer for the person: see [person.Agent.For]; none if anybody can
}

// agent returns what the file says about an agent.
func (f *File) agent(a specfile.Agent) Agent {
	out := Agent{Member: member(&a.Member), Options: agent.Options{
		MaxTurns: a.MaxTurns, Settings: a.Settings, TextToolCalls: a.TextToolCalls,
		Timeout: a.Timeout, CallTimeout: a.CallTimeout, Limits: f.limits,
	}}
	if out.Process, out.Person, out.Users = a.Process, a.Person, a.Users; !a.HasModel() {
		return out
	}
	for _, c := range append([]specfile.Connection{a.Connection}, a.Fallback...) {
		out.Models = append(out.Models, openai.Config{
			Model: c.Model, BaseURL: c.BaseURL, APIKey: openai.NewKey(c.APIKey.Reveal()), Headers: c.Headers,
			MaxTokensKey: c.MaxTokensKey, SystemRole: c.SystemRole, ExtraBody: c.ExtraBody,
			StructuredOutput: string(c.StructuredOutput),
		})
	}
	return out
}

// connect returns an agent that calls the models that the file names, the command, or a
// person whose questions stay open.
func (f *File) connect(a Agent) (team.Agent, error) {
	if a.Process != nil {
		return a.Process, nil
	}
	if a.Person {
		return person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater }).For(a.Users...), nil
	}
	lookup := f.lookup
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	var models []llm.Model
	for i, cfg := range a.Models {
		cfg.LookupEnv = lookup
		m, err := openai.New(cfg)
		if err != nil {
			return nil, fmt.Errorf("model %d: %w", i+1, err)
		}
		models = append(models, m)
	}
	a.Options.Fallback = models[1:]
	return agent.New(models[0], a.Options), nil
}

func member(m *plan.Member) team.Member {
	return team.Member{
		Name: m.Name, SystemPrompt: m.SystemPrompt, OutputSchema: m.OutputSchema, Accepts: m.Accepts, Produces: m.Produces,
		OutputTags: m.OutputTags, Tools: m.Tools, AllowUntrusted: m.AllowUntrusted, LoopDetection: (*team.LoopDetection)(m.LoopDetection), Spawn: (*team.Spawning)(m.Spawn),
		Handoff: m.Handoff, Intake: team.Intake(m.Intake), MaxSession: m.MaxSession, MaxParallel: m.MaxParallel,
		Limits: team.Limits(m.Limits), Budget: team.Budget(m.Budget), Backend: team.Backend(m.Backend),
		Provider: m.Provider, Description: m.Description, Capabilities: m.Capabilities,
	}
}

// runOptions returns the options of a file in their public form.
func runOptions(o *engine.RunOptions) team.RunOptions {
	out := team.RunOptions{
		Output: o.Output, MaxConcurrency: o.MaxConcurrency, Timeout: o.Timeout, Strategy: string(o.Strategy), Auto: o.Auto,
		Budget: team.Budget(o.Budget), Answer: (*team.Goal)(o.Answer),
		UserAccepts: o.UserAccepts, Reuse: o.Reuse,
	}
	for _, in := range o.Inputs {
		out.Inputs = append(out.Inputs, team.Input(in))
	}
	for _, m := range o.Messages {
		out.Messages = append(out.Messages, team.Message(m))
	}
	for _, a := range o.Assert {
		out.Assert = append(out.Assert, a.String())
	}
	return out
}
