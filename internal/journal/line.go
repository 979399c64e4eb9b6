package journal

import (
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/llm"
)

// infoLine is the stored form of an Info.
type infoLine struct {
	Info
	Files []fileLine   `json:"files,omitempty"`
	Args  *hidden      `json:"args,omitempty"`  // the invocation, if it is above the plaintext limit
	Tasks []trace.Task `json:"tasks,omitempty"` // in files before version 10
}

type fileLine struct {
	File
	Hidden *hidden       `json:"hidden,omitempty"` // the text, if it is above the plaintext limit
	Digest record.Digest `json:"digest"`
}

// digestInput returns what the digest of a file covers.
func (l *fileLine) digestInput(run string) []byte {
	return joinLengths(run, l.Path, l.Label.String(), l.Text)
}

// exchangeLine is the stored form of a record.AgentCall.
type exchangeLine struct {
	record.AgentCall
	Key    *record.Digest `json:"key,omitempty"`
	Core   *record.Digest `json:"core,omitempty"`
	Reuse  *record.Digest `json:"reuse,omitempty"`
	Files  *record.Digest `json:"files,omitempty"`
	Result *resultLine    `json:"result,omitempty"`
	Hidden *hidden        `json:"hidden,omitempty"` // the payload, if it is above the plaintext limit

	Provider *providerLine `json:"provider,omitempty"`
}

// providerLine is the stored form of a record.ProviderData.
type providerLine struct {
	Before string      `json:"before,omitempty"` // the session of the turn before
	Sealed *sealedText `json:"sealed,omitempty"` // the providerBytes; nil if there was no key
}

// providerBytes is an llm.ProviderData whose members stay as the provider wrote them, byte for byte.
type providerBytes struct {
	Endpoint string              `json:"endpoint"`
	Model    string              `json:"model"`
	Message  []byte              `json:"message,omitempty"`
	Calls    []providerCallBytes `json:"calls,omitempty"`
}

type providerCallBytes struct {
	ID       []byte `json:"id,omitempty"`
	Members  []byte `json:"members,omitempty"`
	Function []byte `json:"function,omitempty"`
}

// startLine is the stored form of a record.CallStart.
type startLine struct {
	record.CallStart
	Key *record.Digest `json:"key,omitempty"`
}

// resultLine is the stored form of an envelope, with or without its payload.
type resultLine struct {
	envelope.Header
	words
	Digest record.Digest `json:"digest"`
}

// words is the stored form of a payload.
type words struct {
	Text string          `json:"text,omitempty"`
	Raw  []byte          `json:"raw,omitempty"` // the text, if JSON cannot hold it
	JSON json.RawMessage `json:"json,omitempty"`
}

// messageLine is the stored form of a record.SentMessage.
type messageLine struct {
	record.SentMessage
	Key     *record.Digest `json:"key,omitempty"` // masked
	Message resultLine     `json:"message"`
	Hidden  *hidden        `json:"hidden,omitempty"` // the payload, if it is above the plaintext limit
}

// digestInput returns what the digest of a message covers: the envelope, the run, the
// sender, the call, the reader and the task that reads it.
func (l *messageLine) digestInput(run string, d record.Digest) []byte {
	parts := []string{run, l.ID, l.From, l.To, l.Session, fmt.Sprint(l.Given), string(d[:])}
	if l.Task != "" { // lines of earlier versions have none
		parts = append(parts, string(l.Task))
	}
	if l.Shown {
		parts = append(parts, "", "shown")
	}
	if l.Key != nil { // lines of earlier versions have none
		parts = append(parts, "call", l.Call, string(l.Key[:]))
	}
	return joinLengths(parts...)
}

// secrets are the texts of an agent call above the plaintext limit.
type secrets struct {
	words
	Shown *record.ShownResult `json:"shown,omitempty"`
	Error string              `json:"error,omitempty"`
	Tags  []string            `json:"tags,omitempty"`

	EventError string `json:"eventError,omitempty"`

	Sizes *sizes `json:"sizes,omitempty"` // the exact ones, if those of the line are classes

	Refused   *record.LabeledText `json:"refused,omitempty"`
	Reasoning *record.LabeledText `json:"reasoning,omitempty"`
	Call      llm.CallInfo        `json:"call,omitzero"`
	Warnings  []string            `json:"warnings,omitempty"`
}

// sizes are the token counts and byte counts of an agent call.
type sizes struct {
	record.Spent
	record.SavedTokens
	Context event.Context `json:"context,omitzero"`
}

// set sets the sizes of an agent call.
func (s sizes) set(x *record.AgentCall) {
	s.Partial, s.Turns = x.Partial, x.Turns // of every viewer
	x.Spent, x.SavedTokens, x.Context = s.Spent, s.SavedTokens, s.Context
}

// classes returns the sizes for a viewer who may not see the texts. It leaves out
// cached tokens, reasoning tokens and the cost, which would reveal more than the classes.
func (s sizes) classes() sizes {
	token, bytes := gate.TokenClass, bytesize.Class
	return sizes{
		Spent:       record.Spent{Input: token(s.Input), Output: token(s.Output)},
		SavedTokens: record.SavedTokens{SavedInput: token(s.SavedInput), SavedOutput: token(s.SavedOutput)},
		Context:     event.Context{Prompts: s.Context.Prompts, Sent: bytes(s.Context.Sent), Shared: bytes(s.Context.Shared)},
	}
}

// areClasses reports whether the sizes of a line are classes of other sizes. Its exact sizes could be so only by chance.
func (s sizes) areClasses() bool {
	s.Partial, s.Turns = false, 0
	return s != sizes{Context: event.Context{Prompts: s.Context.Prompts}} && s == s.classes()
}

// endLine is the stored form of a record.RunEnd.
type endLine struct {
	record.RunEnd
	Tasks  []record.TaskEnd `json:"tasks,omitempty"`  // of earlier versions
	Hidden *hidden          `json:"hidden,omitempty"` // the whole RunEnd, if texts of it are above the plaintext limit
}

// sealedLine has the pieces of the prompt in the line before it, which has only those up to
// the plaintext limit.
type sealedLine struct {
	Session string `json:"session"`
	Hidden  hidden `json:"hidden"`
}
