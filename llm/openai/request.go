package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// A request is one request of a call, in the form that its endpoint accepts as far as that
// is known.
type request struct {
	llm.Request
	model    *Model
	changes  changes // how it differs from the usual form
	stream   bool    // it asks for a stream
	format   format
	tools    []sentTool // of Tools, in the same order
	warnings []string   // what was left out or changed
}

// A chatRequest is the body of a request without the messages. Its own fields replace those of
// go-openai, which cannot send a temperature of zero.
type chatRequest struct {
	openai.ChatCompletionRequest
	Messages         struct{}   `json:"messages,omitzero"` // written apart
	Temperature      *float64   `json:"temperature,omitempty"`
	TopP             *float64   `json:"top_p,omitempty"`
	FrequencyPenalty *float64   `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64   `json:"presence_penalty,omitempty"`
	Seed             *int64     `json:"seed,omitempty"`
	Tools            []function `json:"tools,omitempty"`
}

// A function is a tool that the model may call.
type function struct {
	Type     string             `json:"type"`
	Function functionDefinition `json:"function"`
}

type functionDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// warn adds a warning to the response: which part of the request was left out or
// changed, and what that means. Warnings quote nothing but the names of tools.
func (r *request) warn(warning string) { r.warnings = append(r.warnings, warning) }

// encode returns the body.
func (r *request) encode() ([]byte, error) {
	if r.stream && r.changes.noUsage {
		r.warn("stream_options: the endpoint refused it; the tokens of streamed replies are not counted")
	}
	s := r.acceptedSettings()
	tools := r.functions() // before the messages, whose calls depend on them
	body := chatRequest{
		Tools: tools, Temperature: s.Temperature, TopP: s.TopP,
		FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty, Seed: s.Seed,
		ChatCompletionRequest: openai.ChatCompletionRequest{
			Model: r.model.name, Stream: r.stream, Stop: s.Stop, ReasoningEffort: s.ReasoningEffort, ResponseFormat: r.responseFormat(),
		},
	}
	if r.stream && !r.changes.noUsage {
		body.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	switch limit := max(s.MaxTokens, 0); r.tokensKey() {
	case maxTokens:
		body.MaxTokens = limit
	default:
		body.MaxCompletionTokens = limit
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, r.model.fault(callfault.BadRequest, "the request cannot be written as JSON; check that every setting is a finite number")
	}
	raw, err = r.appendMessages(append(raw[:len(raw)-1], `,"messages":`...))
	if err != nil {
		return nil, err
	}
	raw = append(raw, '}')
	if len(r.model.extra) > 0 {
		raw = append(append(raw[:len(raw)-1], ','), joinMembers(r.model.extra)[1:]...)
	}
	return raw, nil
}

// send sends the request.
func (r *request) send(ctx context.Context) (*http.Response, error) {
	body, err := r.encode()
	if err != nil {
		return nil, err
	}
	accept := "application/json"
	if r.stream {
		accept = "text/event-stream"
	}
	return r.model.do(ctx, http.MethodPost, "/chat/completions", body, accept)
}

// do sends an HTTP request to the endpoint.
func (m *Model) do(ctx context.Context, method, path string, body []byte, accept string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, m.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = m.query
	r.Header.Set("Accept", accept)
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case m.key == (Key{}):
	case m.azure:
		r.Header.Set("Api-Key", m.key.secret())
	default:
		r.Header.Set("Authorization", "Bearer "+m.key.secret())
	}
	maps.Copy(r.Header, m.headers)
	return m.client.Do(r)
}

// joinMembers returns the JSON object with these members, whose names need no escapes.
func joinMembers(members map[string]json.RawMessage) []byte {
	object := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			object = append(object, ',')
		}
		object = append(object, '"')
		object = append(object, name...)
		object = append(object, '"', ':')
		object = append(object, members[name]...)
	}
	return append(object, '}')
}

// role returns how the system prompt is sent.
func (r *request) role() string { return cmp.Or(r.changes.role, r.model.role) }

// tokensKey returns the name under which the limit on the reply is sent.
func (r *request) tokensKey() string {
	switch {
	case !r.changes.otherTokens:
		return r.model.maxTokens
	case r.model.maxTokens == maxTokens:
		return maxCompletionTokens
	}
	return maxTokens
}

// acceptedSettings returns the settings without those that the endpoint refused. It adds
// a warning for each of these.
func (r *request) acceptedSettings() llm.Settings {
	accepted := r.Settings
	for i, s := range settings {
		if r.changes.leftOut[i] && s.unset(&accepted) {
			r.warn(s.key + ": the endpoint does not take it for this model; requests are sent without it")
		}
	}
	return accepted
}
