package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// A form is a reply in a form that a provider sends, streamed and whole, and what it says.
type form struct {
	Name, Source string
	Text         string
	Reasoning    string
	Finish       string
	Usage        struct{ Input, Output, Cached, Reasoning int }
	Members      string // of the message, beyond the protocol
	Calls        []struct{ ID, Name, Arguments, Members, Function string }
	Whole        json.RawMessage
	Chunks       []json.RawMessage
}

// recordedForms reads the table, which foreign/forms_test.go serves.
func recordedForms(tb testing.TB) (all []form) {
	tb.Helper()
	text, err := os.ReadFile("testdata/forms.json")
	require.NoError(tb, err)
	require.NoError(tb, json.Unmarshal(text, &all))
	return all
}

// stream returns the chunks as a stream of events.
func (f *form) stream() string {
	var b strings.Builder
	for _, c := range f.Chunks {
		b.WriteString("data: " + string(c) + "\n\n")
	}
	return b.String() + done + "\n\n"
}

// response returns the response that the form says.
func (f *form) response(m *openai.Model) llm.Response {
	res := llm.Response{
		Text: f.Text, Reasoning: f.Reasoning,
		Usage:    llm.Usage{InputTokens: f.Usage.Input, OutputTokens: f.Usage.Output, CachedTokens: f.Usage.Cached, ReasoningTokens: f.Usage.Reasoning},
		CallInfo: llm.CallInfo{Model: "m", Endpoint: m.Endpoint(), RequestID: "c", FinishReason: f.Finish},
	}
	d := &llm.ProviderData{Endpoint: m.Endpoint(), Model: m.Name(), Message: rawOf(f.Members)}
	for _, c := range f.Calls {
		res.ToolCalls = append(res.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		d.Calls = append(d.Calls, llm.ProviderCall{ID: c.ID, Members: rawOf(c.Members), Function: rawOf(c.Function)})
	}
	if d.Size() > 0 {
		res.Provider = d
	}
	return res
}

// rawOf returns a JSON text; nil if it is empty.
func rawOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// calculate is a request with the tools that the forms call.
var calculate = llm.Request{
	Messages: []llm.Message{{Role: llm.User, Text: "Calculate."}},
	Tools:    []llm.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}, {Name: "mul", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}},
}

// answering returns a model whose endpoint answers each request with a body.
func answering(tb testing.TB, body string) *openai.Model {
	tb.Helper()
	m, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1, Request: r}, nil
	})}})
	require.NoError(tb, err)
	return m
}

// asked returns the response of a model to a request, streamed or not.
func asked(tb testing.TB, m *openai.Model, req llm.Request, stream bool) (llm.Response, error) {
	tb.Helper()
	var text strings.Builder
	var emit func(llm.Delta) error
	if stream {
		emit = func(d llm.Delta) error {
			text.WriteString(d.Text)
			return nil
		}
	}
	res, err := m.Call(tb.Context(), req, emit)
	if stream && err == nil {
		require.Equal(tb, res.Text, text.String(), "the deltas are the text")
	}
	res.FirstTokenMs = 0
	return res, err
}

// TestForms reads each form of the table: the response is the same whether the reply is streamed or whole, and
// whichever was requested.
func TestForms(t *testing.T) {
	t.Parallel()
	all := recordedForms(t)
	require.GreaterOrEqual(t, len(all), 25)
	for _, f := range all {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for kind, body := range map[string]string{"whole": string(f.Whole), "streamed": f.stream()} {
				for _, requested := range []bool{false, true} {
					m := answering(t, body)
					res, err := asked(t, m, calculate, requested)
					require.NoError(t, err, kind)
					require.Equal(t, f.response(m), res, kind)
				}
			}
		})
	}
}
