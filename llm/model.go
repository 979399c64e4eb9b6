// Package llm defines the Model interface and its request, response and error types.
//
// A [Model] takes a [Request] of texts and returns a [Response], or an [*Error] that says
// what went wrong and what to set. Package llm/openai implements Model for
// OpenAI-compatible endpoints, and llm/scripted runs such an endpoint for tests. [Retry]
// repeats a failed call where that can help, and [Fallback] calls other models when one
// fails:
//
//	model := llm.Fallback(llm.Retry(primary, llm.RetryOptions{}), secondary)
//	res, err := model.Call(ctx, llm.Request{
//		Messages: []llm.Message{{Role: llm.User, Text: "What is two and two?"}},
//		Settings: llm.Settings{MaxTokens: 100},
//	}, nil)
//
// A Model may say more about itself with optional methods. Endpoint() string returns the
// base URL that its calls go to; with several, Endpoints() []string lists them. A model
// without them is treated as one whose endpoint is unknown. Name() string returns the name by
// which prices are found, and Version() string the configuration that answers depend on.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"math"
)

// Model is one language model behind one endpoint.
//
// Call sends one request and returns the whole reply. If emit is not nil, the
// reply is streamed: emit gets each piece as it arrives, in order, from the
// goroutine of the caller; the Response is complete either way. An error of
// emit ends the call and is returned, wrapped. Call returns when ctx ends,
// with an error that wraps its cause; other failures of the call are an
// [*Error]. A Model is safe for use by several goroutines at once.
type Model interface {
	Call(ctx context.Context, req Request, emit func(Delta) error) (Response, error)
}

// ModelFunc lets a function be a [Model].
type ModelFunc func(ctx context.Context, req Request, emit func(Delta) error) (Response, error)

// Call calls f. A nil f is an error that wraps [ErrNoModel]; a nil ctx is an error too.
func (f ModelFunc) Call(ctx context.Context, req Request, emit func(Delta) error) (Response, error) {
	if f == nil {
		return Response{}, ErrNoModel
	}
	if ctx == nil {
		return Response{}, errNoContext
	}
	return f(ctx, req, emit)
}

// ErrNoModel reports a call or a configuration without a model. An [*Error] may wrap it.
var ErrNoModel = errors.New("no model")

// errNoContext reports a call with a nil context.
var errNoContext = errors.New("llm: the context is nil; use context.Background")

// A Request is what a model reads. The model reads it and does not keep it.
type Request struct {
	System   string    // the system prompt; empty means that none is sent
	Messages []Message // the conversation, oldest first; at least one
	Settings

	// Tools are the functions that the model may call. Most endpoints let a model either
	// call tools or follow a Schema, so a caller sets one of the two.
	Tools []Tool

	// Schema is the JSON Schema of the reply; nil requests text. A model whose endpoint
	// does not support schemas does not send it, so the caller must validate the reply.
	Schema json.RawMessage
}

// Settings tune how a model writes its reply. Settings that are not set are left to the
// endpoint.
type Settings struct {
	MaxTokens        int      // bound on the reply in tokens; zero sets none
	Temperature      *float64 // a pointer to 0 sends 0
	TopP             *float64 // a pointer to 0 sends 0
	FrequencyPenalty *float64
	PresencePenalty  *float64
	Seed             *int64   // an endpoint may ignore it
	Stop             []string // texts at which the reply ends; the reply does not contain them
	ReasoningEffort  string   // a value that the model knows, such as "low"
}

// IsDeterministic reports whether equal requests have equal replies, as far as settings can say that:
// the temperature is 0, or there is a seed.
func (s *Settings) IsDeterministic() bool {
	return s.Seed != nil || s.Temperature != nil && *s.Temperature == 0
}

// A Message is one message of a conversation.
type Message struct {
	Role string `json:"role"` // [User], [Assistant] or [ToolResult]
	Text string `json:"text"`

	ToolCalls  []ToolCall `json:"toolCalls,omitempty"`  // of the assistant; each must be answered by a message with its ID
	ToolCallID string     `json:"toolCallId,omitempty"` // of a tool result: the call that it answers

	Provider *ProviderData `json:"-"` // of the assistant: what the reply had beside its text and calls; may be nil
}

// The roles of messages. The system prompt is a field of [Request].
const (
	User       = "user"
	Assistant  = "assistant"
	ToolResult = "tool"
)

// A Tool is a function that a model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments
}

// A Delta is a piece of a reply while it arrives.
//
// Attempt counts from 1. If it differs from that of the previous delta, the text begins
// again, because the earlier text belongs to an attempt that failed.
type Delta struct {
	Text    string
	Attempt int
}

// A CallInfo identifies the model call that gave an answer, and says how the reply
// ended. Each field is what the endpoint reported; it is empty if the endpoint did not
// report it.
type CallInfo struct {
	Model        string `json:"model,omitempty"`        // the model that answered
	Endpoint     string `json:"endpoint,omitempty"`     // the base URL that answered, without credentials
	RequestID    string `json:"requestId,omitempty"`    // the provider's ID of the call, for its support
	FinishReason string `json:"finishReason,omitempty"` // such as "stop", "length" or "tool_calls"

	// FirstTokenMs is how long it took from the request to the first part of the reply or of its reasoning, in
	// milliseconds, at least 1; zero if the reply came in one piece.
	FirstTokenMs int64 `json:"firstTokenMs,omitempty"`
}

// A Response is a whole reply. It has a text, tool calls, or both, unless its
// finish reason says that it was truncated, filtered or refused.
type Response struct {
	Text      string
	Refusal   string // why the model declined to answer, if the endpoint reports it separately; Text may repeat it
	Reasoning string // what the model wrote before its answer, if the endpoint reports it separately or Text began with it; not part of Text
	ToolCalls []ToolCall
	Provider  *ProviderData `json:"-"` // what the provider needs back with this reply; nil if it needs nothing
	Usage     Usage         // zero if the endpoint did not count
	CallInfo

	// Warnings say what was left out of the request because the endpoint refused it,
	// whether the endpoint may have cut the prompt, and which part of the reply was not
	// used. They quote neither prompt nor reply.
	Warnings []string
}

// A ToolCall is a call that a model requests in the member tool_calls of the reply. A text
// that looks like a tool call is a text.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, as the model wrote it: not validated
}

// Usage counts the tokens of calls, as the endpoint counted them. The zero
// value means none, or not counted.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`

	CachedTokens    int `json:"cached_tokens,omitempty"`    // of InputTokens, those that the endpoint read from its cache
	ReasoningTokens int `json:"reasoning_tokens,omitempty"` // of OutputTokens, those of the reasoning
}

// Add returns the sum of u and v. A count below zero counts as zero.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens: addTokens(u.InputTokens, v.InputTokens), OutputTokens: addTokens(u.OutputTokens, v.OutputTokens),
		CachedTokens: addTokens(u.CachedTokens, v.CachedTokens), ReasoningTokens: addTokens(u.ReasoningTokens, v.ReasoningTokens),
	}
}

// addTokens adds two counts. A sum that would overflow is the largest count.
func addTokens(a, b int) int {
	a, b = max(a, 0), max(b, 0)
	if b > math.MaxInt-a {
		return math.MaxInt
	}
	return a + b
}
