// Package llm answers one question: what is a model call?
//
// A [Model] takes a [Request] of texts and gives back a [Response], or an
// [*Error] that says what went wrong and what to set. [Retry] calls a model
// again where that can help, and [Fallback] calls other models when one fails. Package
// llm/openai implements Model for any OpenAI-compatible endpoint, and package
// llm/scripted is such an endpoint for work without a network.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/url"
	"path"
	"strings"
	"time"
)

// Limits of one call, for every implementation that is not told otherwise.
const (
	// DefaultTimeout bounds one call, from the connection to the last byte.
	DefaultTimeout = 5 * time.Minute
	// DefaultMaxReply bounds the text and the reasoning of one reply, in bytes.
	DefaultMaxReply = 4 << 20
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

// Endpoint returns the base URL that the calls of a model go to, if it has a
// method Endpoint() string that says so, as those of llm/openai have; otherwise
// "". A model with several endpoints, such as that of [Fallback], returns "" too; see
// [Endpoints]. A model that does not name its endpoint counts as one of unknown
// clearance.
func Endpoint(m Model) string {
	if named, ok := m.(interface{ Endpoint() string }); ok {
		return named.Endpoint()
	}
	return ""
}

// Endpoints returns every base URL that calls of a model may go to, in the order in
// which they are called: the result of its method Endpoints() []string if it has one,
// else its [Endpoint]. The list has at least one entry, and "" is an unnamed endpoint.
// Each endpoint may read what is sent to the model.
func Endpoints(m Model) []string {
	if named, ok := m.(interface{ Endpoints() []string }); ok {
		if all := named.Endpoints(); len(all) > 0 {
			return all
		}
	}
	return []string{Endpoint(m)}
}

// NormalizeEndpoint returns the form of a base URL by which endpoints are compared:
// scheme and host in lower case, and no final dot of the host, default port, final
// slash or path of the chat completions. A text that is not a URL is returned as it is.
func NormalizeEndpoint(baseURL string) string {
	u, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil || u.Host == "" {
		return baseURL
	}
	scheme, host, port := strings.ToLower(u.Scheme), strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port != "" && !(scheme == "https" && port == "443") && !(scheme == "http" && port == "80") {
		host = net.JoinHostPort(host, port)
	}
	where := strings.TrimSuffix(path.Clean("/"+u.Path), "/chat/completions")
	return scheme + "://" + host + strings.TrimSuffix(where, "/")
}

// ErrNoModel reports a call or a configuration without a model. An [*Error] may wrap it.
var ErrNoModel = errors.New("no model")

// errNoContext reports a call with a nil context.
var errNoContext = errors.New("llm: the context is nil; use context.Background")

// A Request is what a model reads. The model reads it and does not keep it.
type Request struct {
	System   string    // the system prompt; empty means that none is sent
	Messages []Message // the conversation, oldest first; at least one

	MaxTokens   int      // bound on the reply in tokens; zero means the endpoint's own
	Temperature *float64 // nil means the endpoint's own; a pointer to 0 sends 0
	TopP        *float64 // nil means the endpoint's own; a pointer to 0 sends 0

	FrequencyPenalty *float64 // nil means the endpoint's own
	PresencePenalty  *float64 // nil means the endpoint's own
	Seed             *int64   // nil sends none; an endpoint may ignore it
	Stop             []string // texts at which the reply ends; the reply does not contain them
	ReasoningEffort  string   // in the words of the model, such as "low"; empty sends none

	// Format asks for a reply in JSON; nil asks for text. A model whose endpoint
	// cannot be asked for JSON leaves it out, so the caller validates the reply in
	// any case.
	Format *Format
}

// A Format is the JSON that a reply has to be.
type Format struct {
	Name   string          // for the endpoint: letters, digits, _ and -, at most 64
	Schema json.RawMessage // a JSON Schema
}

// A Message is one turn of a conversation.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
}

// Role says whose turn a [Message] is.
type Role string

// The roles of messages. The system prompt is a field of [Request].
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Delta is a piece of a reply while it arrives.
//
// Attempt counts from 1. A delta whose Attempt differs from that of the one
// before starts the text afresh: what came earlier belongs to an attempt that
// failed.
type Delta struct {
	Text    string
	Attempt int
}

// A Response is a whole reply. It has a text, tool calls, or both, unless its
// finish reason says that it was truncated, filtered or refused.
type Response struct {
	Text         string
	FinishReason string // as the endpoint said: "stop", "length", "tool_calls", …; see [Response.Finish]
	Refusal      string // why the model declined to answer, if the endpoint reports it apart; Text may repeat it
	Reasoning    string // what the model wrote before its answer, if the endpoint reports it apart or Text began with it; not part of Text
	Model        string // the model that answered, as the endpoint named it; may be empty
	Endpoint     string // the base URL that answered, without credentials; may be empty
	RequestID    string // the provider's name for this call, for its support; may be empty
	Usage        Usage  // zero if the endpoint did not count
	ToolCalls    []ToolCall

	// Warnings say what was left out of the request because the endpoint refused it,
	// whether the endpoint may have cut the prompt, and which part of the reply was not
	// used. They quote neither prompt nor reply.
	Warnings []string
}

// A ToolCall is a call that a model asks for, from the endpoint's structured
// channel; a text that looks like one never becomes one.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // JSON, as the model wrote it: not validated
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
