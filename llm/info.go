package llm

import "strings"

// A CallInfo says which call gave an answer, and how the reply ended. Each word is
// the endpoint's own, as one line of at most 300 bytes; it is empty if the endpoint
// did not report it.
type CallInfo struct {
	Model        string `json:"model,omitempty"`        // the model that answered
	Endpoint     string `json:"endpoint,omitempty"`     // the base URL that answered, without credentials
	RequestID    string `json:"requestId,omitempty"`    // the provider's name for the call, for its support
	FinishReason string `json:"finishReason,omitempty"` // as reported; see [Response.Finish]
}

// Info returns which call gave the reply.
func (r *Response) Info() CallInfo {
	return CallInfo{Model: r.Model, Endpoint: r.Endpoint, RequestID: r.RequestID, FinishReason: r.FinishReason}.Clean()
}

// Clean returns c with each word as [OneLine] writes it.
func (c CallInfo) Clean() CallInfo {
	return CallInfo{Model: OneLine(c.Model), Endpoint: OneLine(c.Endpoint), RequestID: OneLine(c.RequestID), FinishReason: OneLine(c.FinishReason)}
}

// Outline returns c for a reader who may not see the answer: the endpoint chose
// the model's name, the request ID and an unknown finish reason after it had read
// the prompt, so these are left out. So is the case of a known finish reason.
func (c CallInfo) Outline() CallInfo {
	out := CallInfo{Endpoint: c.Endpoint}
	if r := (Response{FinishReason: c.FinishReason}); r.Finish() != Unknown {
		out.FinishReason = strings.ToLower(c.FinishReason)
	}
	return out
}
