package llm

import "strings"

// A CallInfo identifies the model call that gave an answer, and says how the reply
// ended. Each field is what the endpoint reported, as one line of at most 300 bytes;
// it is empty if the endpoint did not report it.
type CallInfo struct {
	Model        string `json:"model,omitempty"`        // the model that answered
	Endpoint     string `json:"endpoint,omitempty"`     // the base URL that answered, without credentials
	RequestID    string `json:"requestId,omitempty"`    // the provider's ID of the call, for its support
	FinishReason string `json:"finishReason,omitempty"` // as reported; see [Response.Finish]
}

// Info returns the call info of the response, cleaned as [CallInfo.Clean] does.
func (r *Response) Info() CallInfo {
	return CallInfo{Model: r.Model, Endpoint: r.Endpoint, RequestID: r.RequestID, FinishReason: r.FinishReason}.Clean()
}

// Clean returns c with each field passed through [OneLine].
func (c CallInfo) Clean() CallInfo {
	return CallInfo{
		Model: OneLine(c.Model), Endpoint: OneLine(c.Endpoint),
		RequestID: OneLine(c.RequestID), FinishReason: OneLine(c.FinishReason),
	}
}

// Outline returns c for a reader who may not see the answer. It leaves out the model's
// name, the request ID and an unknown finish reason: the endpoint chose them after it
// had read the prompt. A known finish reason is in lower case for the same reason.
func (c CallInfo) Outline() CallInfo {
	out := CallInfo{Endpoint: c.Endpoint}
	if r := (Response{FinishReason: c.FinishReason}); r.Finish() != Unknown {
		out.FinishReason = strings.ToLower(c.FinishReason)
	}
	return out
}
