// Package connect connects agents to the models that answer them: an endpoint, or a script.
package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/prompt"
)

// A Connector connects each agent of a spec to its models.
type Connector struct {
	Lookup        func(string) (string, bool)
	log           *slog.Logger
	Server        *scripted.Server   // replaces every endpoint; nil means the real ones
	UnusedReplies []specfile.Problem // warnings about replies of the script for unknown tasks or goals
	recording     *Recording         // of the answers of all models; nil without --record
	limits        *limit.Group       // of the endpoints
	AllowNoKey    bool               // a missing key is an error only when a model is called
	open          []openModel

	// Ask asks people; nil leaves their questions open. A script answers in its place.
	Ask func(context.Context, prompt.Prompt) (agent.Reply, error)
}

// openModel is a model with its configuration.
type openModel struct {
	config openai.Config
	model  *openai.Model
}

// newModel returns the model with this configuration. Agents with equal configurations share a model
// and what it learned about its endpoint.
func (c *Connector) newModel(cfg openai.Config) (*openai.Model, error) {
	for _, o := range c.open {
		if reflect.DeepEqual(o.config, cfg) {
			return o.model, nil
		}
	}
	m, err := openai.New(cfg)
	if err == nil {
		c.open = append(c.open, openModel{cfg, m})
	}
	return m, err
}

// Connect returns the agent with these settings; [specfile.File.Build] calls it. For the gate, the
// agent has the endpoints of its settings even if a script answers.
func (c *Connector) Connect(ag specfile.Agent) (engine.Agent, error) {
	if ag.Process != nil {
		return ag.Process, nil
	}
	if ag.Person {
		return c.person(ag.Users)
	}
	var models []llm.Model
	var bases []string
	for i, one := range connections(ag.Connection) {
		m, base, err := c.model(one)
		if err != nil {
			return nil, inFallback(i, err)
		}
		models, bases = append(models, pricedModel{m, one.ModelAsWritten()}), append(bases, base)
	}
	llmAgent := agent.New(models[0], agent.Options{
		MaxTurns: ag.MaxTurns, Settings: ag.Settings, TextToolCalls: ag.TextToolCalls,
		Timeout: ag.Timeout, CallTimeout: ag.CallTimeout, Fallback: models[1:], Limits: c.limits,
	})
	return EndpointAgent{llmAgent, bases, modelNames(ag), isDeterministic(&ag), callLimits(&ag), ag.TextToolCalls}, nil
}

// pricedModel is a model with its name in the spec, which prices refer to.
type pricedModel struct {
	llm.Model
	name string
}

// Name returns the name in the spec.
func (m pricedModel) Name() string { return m.name }

// Endpoint returns the base URL of the model.
func (m pricedModel) Endpoint() string { return endpoint.Of(m.Model) }

// modelNames returns the names in the spec of the models of all connections of an agent.
func modelNames(ag specfile.Agent) (names []string) {
	for _, one := range connections(ag.Connection) {
		names = append(names, one.ModelAsWritten())
	}
	return names
}

// connections returns a connection and then each entry of its fallback.
func connections(own specfile.Connection) []specfile.Connection {
	return append([]specfile.Connection{own}, own.Fallback...)
}

// inFallback adds the number of the fallback entry to an error. Entry 0 is the agent's own connection.
func inFallback(entry int, err error) error {
	if entry == 0 {
		return err
	}
	if f, ok := errors.AsType[*exit.Error](err); ok {
		f.Err = fmt.Errorf("fallback %d: %w", entry, f.Err)
		return f
	}
	return fmt.Errorf("fallback %d: %w", entry, err)
}

// model returns the model of one connection, and its base URL.
func (c *Connector) model(to specfile.Connection) (llm.Model, string, error) {
	if c.Server != nil {
		return c.standIn(to)
	}
	base, key, err := connection.Resolve(to.BaseURL, to.APIKey.Reveal(), c.Lookup)
	if err = concealed(to, err); c.AllowNoKey && errors.Is(err, llm.ErrNoKey) {
		return c.keyless(to, err)
	}
	if err != nil {
		return nil, "", resolveError(to, c.Lookup, err)
	}
	m, err := c.newModel(openai.Config{
		Model: to.Model, BaseURL: base, APIKey: openai.NewKey(key), Headers: to.Headers,
		MaxTokensKey: to.MaxTokensKey, SystemRole: to.SystemRole, ExtraBody: to.ExtraBody,
		StructuredOutput: to.StructuredOutput,
	})
	if err = concealed(to, err); err != nil {
		return nil, "", connectionError(err)
	}
	return c.recording.record(concealing(m, to)), m.Endpoint(), nil
}

// concealing returns a model whose responses and errors do not contain values of environment variables
// from its connection, even if the endpoint repeats one.
func concealing(m llm.Model, c specfile.Connection) llm.Model {
	return located{endpoint.Of(m), func(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		res, err := m.Call(ctx, req, emit)
		if written := c.URLAsWritten(); res.Endpoint != "" && written != c.BaseURL {
			res.Endpoint = written
		}
		res.Model, res.RequestID, res.FinishReason = c.Conceal(res.Model), c.Conceal(res.RequestID), c.Conceal(res.FinishReason)
		res.Warnings = slices.Clone(res.Warnings)
		for i := range res.Warnings {
			res.Warnings[i] = c.Conceal(res.Warnings[i])
		}
		return res, concealed(c, err)
	}}
}

// located is a model function with an endpoint, whose limits apply to its calls.
type located struct {
	endpoint string
	llm.ModelFunc
}

// Endpoint returns the base URL.
func (l located) Endpoint() string { return l.endpoint }

// concealed returns an error of a connection with the names of variables instead of their values.
func concealed(c specfile.Connection, err error) error {
	failed, ok := err.(*llm.Error) //nolint:errorlint // a wrapped error keeps its wrapping
	if !ok {
		if err == nil || c.Conceal(err.Error()) == err.Error() {
			return err
		}
		return &concealedError{c.Conceal(err.Error()), err}
	}
	clean := *failed
	clean.Message = c.Conceal(failed.Message)
	if written := c.URLAsWritten(); written != c.BaseURL {
		clean.Endpoint = written
	}
	if failed.Model == c.Model {
		clean.Model = c.ModelAsWritten()
	}
	if offer, ok := errors.AsType[*callfault.OfferError](failed.Err); ok {
		names := make([]string, len(offer.Models))
		for i, name := range offer.Models {
			names[i] = c.Conceal(name)
		}
		clean.Err = &callfault.OfferError{Models: names}
	}
	return &clean
}

// keyless returns a model without a key, which fails when it is called.
func (c *Connector) keyless(to specfile.Connection, why error) (llm.Model, string, error) {
	base, err := BaseURLOf(to, c.Lookup)
	return llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{}, connectionError(why)
	}), base, err
}

// standIn returns a model of the scripted endpoint, and the base URL of the settings.
func (c *Connector) standIn(to specfile.Connection) (llm.Model, string, error) {
	base, err := BaseURLOf(to, c.Lookup)
	if err != nil {
		return nil, "", err
	}
	m, err := c.newModel(openai.Config{Model: cmp.Or(to.Model, plan.ScriptedModel), BaseURL: c.Server.URL()})
	if err != nil {
		return nil, "", connectionError(err)
	}
	return c.recording.record(fromScript(m, to.Model)), base, nil
}

// A concealedError replaces the text of an error.
type concealedError struct {
	text string
	err  error
}

func (e *concealedError) Error() string { return e.text }

func (e *concealedError) Unwrap() error { return e.err }

// Close closes connections and the scripted endpoint. It may be called twice.
func (c *Connector) Close() {
	for _, o := range c.open {
		_ = o.model.Close() // idle connections only
	}
	if c.Server != nil {
		if err := c.Server.Close(); err != nil {
			c.log.Warn("the scripted endpoint did not end well", "err", err)
		}
	}
}

// BaseURLOf returns the base URL of a connection. It needs no key. A URL with a variable, which is not
// replaced if no model is called, is returned unchanged.
func BaseURLOf(to specfile.Connection, lookup func(string) (string, bool)) (string, error) {
	if strings.Contains(to.BaseURL, "${") {
		return to.BaseURL, nil
	}
	base, _, err := connection.Resolve(to.BaseURL, "none-is-sent", lookup)
	if err != nil {
		return "", resolveError(to, lookup, err)
	}
	base, _, _ = strings.Cut(base, "?") // the name of an endpoint does not include the version of its API
	return base, nil
}

// offlineScript is the name of the script's endpoint in messages.
const offlineScript = "the offline script"

// fromScript returns a model that names the script instead of its endpoint, which has a random port, and instead of the
// model with a name, unless the script says which model answered.
func fromScript(m llm.Model, name string) llm.Model {
	return located{endpoint.Of(m), func(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		res, err := m.Call(ctx, req, emit)
		if res.Endpoint != "" {
			res.Endpoint = offlineScript
		}
		if res.Model == name {
			res.Model = plan.ScriptedModel
		}
		if failed, ok := errors.AsType[*llm.Error](err); ok {
			if ended := scripted.EndOf(failed); ended != nil {
				return res, ended
			}
			named := *failed
			named.Endpoint = offlineScript
			err = &named
		}
		return res, err
	}}
}

// An EndpointAgent is an agent whose prompts count as sent to these endpoints, even if a script
// answers.
type EndpointAgent struct {
	engine.Agent
	endpoints []string
	models    []string

	deterministic bool
	callLimits    func() (calls, answerTokens int)
	textToolCalls bool
}

// CallLimits returns the most model calls of an attempt, and the most tokens of an answer.
func (e EndpointAgent) CallLimits() (calls, answerTokens int) { return e.callLimits() }

// TakesTextCalls reports whether the agent takes calls of tools that its models write as text.
func (e EndpointAgent) TakesTextCalls() bool { return e.textToolCalls }

// callLimits is [agent.LLM.CallLimits] for the settings of an agent.
func callLimits(ag *specfile.Agent) func() (calls, answerTokens int) {
	return agent.New(nil, agent.Options{MaxTurns: ag.MaxTurns, Settings: ag.Settings}).CallLimits
}

// Streams reports that the model of the agent writes its result.
func (e EndpointAgent) Streams() bool { return true }

// IsDeterministic reports whether equal prompts have equal answers, by the settings of the agent.
func (e EndpointAgent) IsDeterministic() bool { return e.deterministic }

// isDeterministic is [EndpointAgent.IsDeterministic] for the settings of an agent.
func isDeterministic(ag *specfile.Agent) bool {
	return len(ag.Fallback) == 0 && ag.Settings.IsDeterministic()
}

// Models returns the names of its models in the spec.
func (e EndpointAgent) Models() []string { return e.models }

// Endpoints returns the base URLs whose clearances apply.
func (e EndpointAgent) Endpoints() []string { return e.endpoints }

// Unconnected returns agents that are not called, for a team that is only planned.
func Unconnected(lookup func(string) (string, bool)) func(specfile.Agent) (engine.Agent, error) {
	return func(ag specfile.Agent) (engine.Agent, error) {
		if ag.Process != nil {
			return ag.Process, nil
		}
		if ag.Person {
			return Absent(ag.Users), nil
		}
		bases, err := AllBaseURLs(ag.Connection, lookup)
		if err != nil {
			return nil, err
		}
		return SilentAgent(ag, bases, modelNames(ag)), nil
	}
}

// SilentAgent returns an agent with these settings that is not called, with its endpoints and models.
func SilentAgent(ag specfile.Agent, bases, models []string) engine.Agent {
	return EndpointAgent{engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{}, errors.New("this agent is not called")
	}), bases, models, isDeterministic(&ag), callLimits(&ag), ag.TextToolCalls}
}

// resolveError says why a connection has no endpoint. If only the environment determines the endpoint,
// the error is not about the agent.
func resolveError(to specfile.Connection, lookup func(string) (string, bool), err error) error {
	err = connectionError(err)
	f, ok := errors.AsType[*exit.Error](err)
	if !ok || strings.TrimSpace(to.BaseURL) != "" || !to.APIKey.IsZero() {
		return err
	}
	f.Ambient = true
	if value, _ := lookup("OPENAI_BASE_URL"); f.Kind == exit.KindValidation && !strings.ContainsAny(value, "@?#") && !strings.Contains(f.Err.Error(), value) {
		f.Err = fmt.Errorf("%w; it is %q", f.Err, value)
	}
	return f
}

// BuildTeam builds the team of a spec. An error of the environment is reported once, without an agent.
func BuildTeam(file *specfile.File, connect func(specfile.Agent) (engine.Agent, error)) (*engine.Team, error) {
	t, err := file.Build(connect)
	if f, ok := errors.AsType[*exit.Error](err); ok && f.Ambient {
		return nil, f
	}
	return t, err
}

// connectionError says why no connection is possible and what to do.
func connectionError(err error) error {
	if errors.Is(err, llm.ErrNoKey) {
		err = fmt.Errorf("%w; or add --offline, which needs no key and no network", err)
	}
	if errors.Is(err, llm.ErrNoModel) {
		err = fmt.Errorf("%w with model in the spec, or with --model", err)
	}
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return &exit.Error{Kind: exit.KindRuntime, Err: err}
	}
	return &exit.Error{Kind: exit.KindValidation, Err: err}
}
