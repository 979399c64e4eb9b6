package journal

import (
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
)

// infoLine is an Info as it is kept.
type infoLine struct {
	Info
	Files []fileLine `json:"files,omitempty"`
}

type fileLine struct {
	File
	Hidden *hidden       `json:"hidden,omitempty"` // the text, if it is above the plainLimit
	Digest record.Digest `json:"digest"`
}

// standing is what the digest of a file covers.
func (l *fileLine) digestInput(run string) []byte {
	return joinLengths(run, l.Path, l.Label.String(), l.Text)
}

// beginLine is an record.RunStart as it is kept.
type beginLine struct {
	record.RunStart
	Inputs []inputLine `json:"inputs,omitempty"`
}

type inputLine struct {
	record.Input
	Key *record.Digest `json:"key,omitempty"`
}

// exchangeLine is an record.AgentCall as it is kept.
type exchangeLine struct {
	record.AgentCall
	Key    *record.Digest `json:"key,omitempty"`
	Core   *record.Digest `json:"core,omitempty"`
	Reuse  *record.Digest `json:"reuse,omitempty"`
	Result *resultLine    `json:"result,omitempty"`
	Hidden *hidden        `json:"hidden,omitempty"` // the words, if they are above the plainLimit
}

// resultLine is an envelope as it is kept, with its words or without them.
type resultLine struct {
	envelope.Header
	words
	Digest record.Digest `json:"digest"`
}

// words are a payload.
type words struct {
	Text string          `json:"text,omitempty"`
	Raw  []byte          `json:"raw,omitempty"` // the text, if JSON cannot hold it
	JSON json.RawMessage `json:"json,omitempty"`
}

// messageLine is an record.SentMessage as it is kept.
type messageLine struct {
	record.SentMessage
	Message resultLine `json:"message"`
	Hidden  *hidden    `json:"hidden,omitempty"` // the words, if they are above the plainLimit
}

// standing is what the digest of a message covers: the envelope, and who sent it
// to whom in which run.
func (l *messageLine) digestInput(run string, d record.Digest) []byte {
	return joinLengths(run, l.ID, l.From, l.To, l.Session, fmt.Sprint(l.Given), string(d[:]))
}

// secrets are the words of an exchange above the plaintext limit.
type secrets struct {
	words
	Shown *record.ShownResult `json:"shown,omitempty"`
	Error string              `json:"error,omitempty"`
	Tags  []string            `json:"tags,omitempty"`
	Sizes *sizes              `json:"sizes,omitempty"` // the exact ones, if those of the line are classes

	Refused   *record.SideText `json:"refused,omitempty"`
	Reasoning *record.SideText `json:"reasoning,omitempty"`
	Call      llm.CallInfo     `json:"call,omitzero"`
	Corrected *llm.CallInfo    `json:"corrected,omitempty"`
	Warnings  []string         `json:"warnings,omitempty"`
}

// sizes are the token counts and byte counts of an exchange.
type sizes struct {
	Input       int           `json:"inputTokens,omitempty"`
	Output      int           `json:"outputTokens,omitempty"`
	SavedInput  int           `json:"savedInputTokens,omitempty"`
	SavedOutput int           `json:"savedOutputTokens,omitempty"`
	Context     event.Context `json:"context,omitzero"`

	CachedTokens    int       `json:"cachedTokens,omitempty"`
	ReasoningTokens int       `json:"reasoningTokens,omitempty"`
	SavedCached     int       `json:"savedCachedTokens,omitempty"`
	SavedReasoning  int       `json:"savedReasoningTokens,omitempty"`
	Cost            llm.Money `json:"cost,omitempty"`
}

func sizesOf(x *record.AgentCall) sizes {
	return sizes{x.Input, x.Output, x.SavedInput, x.SavedOutput, x.Context, x.CachedTokens, x.ReasoningTokens, x.SavedCached, x.SavedReasoning, x.Cost}
}

// set gives the sizes to an exchange.
func (s sizes) set(x *record.AgentCall) {
	x.Input, x.Output, x.SavedInput, x.SavedOutput, x.Context = s.Input, s.Output, s.SavedInput, s.SavedOutput, s.Context
	x.CachedTokens, x.ReasoningTokens, x.SavedCached, x.SavedReasoning, x.Cost = s.CachedTokens, s.ReasoningTokens, s.SavedCached, s.SavedReasoning, s.Cost
}

// classes returns the sizes for a viewer who may not see what they are of. It leaves out
// cached tokens, reasoning tokens and the cost, which would reveal more than the classes.
func (s sizes) classes() sizes {
	token, bytes := gate.TokenClass, bytesize.Class
	return sizes{
		Input: token(s.Input), Output: token(s.Output), SavedInput: token(s.SavedInput), SavedOutput: token(s.SavedOutput),
		Context: event.Context{Prompts: s.Context.Prompts, Sent: bytes(s.Context.Sent), Shared: bytes(s.Context.Shared)},
	}
}

// endLine is an record.RunEnd as it is kept.
type endLine struct {
	record.RunEnd
	Hidden *hidden `json:"hidden,omitempty"` // the End as it was, if words of it are above the plainLimit
}

// sealedLine is a prompt of which the line before it has no words above the plaintext limit.
type sealedLine struct {
	Session string `json:"session"`
	Hidden  hidden `json:"hidden"`
}
