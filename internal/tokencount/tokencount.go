// Package tokencount estimates how many tokens a model call takes.
package tokencount

import "github.com/runteam/runteam/llm"

// Reply is the estimate of a reply without a bound.
const Reply = 1000

// LongReply is what is set aside for a reply without a bound: few models write more, unless they are asked to.
const LongReply = 16_384

// bytesPerToken is the length of a token in estimates.
const bytesPerToken = 4

// OfBytes returns the estimate of a text of n bytes, rounded up.
func OfBytes(n int) int { return (n + bytesPerToken - 1) / bytesPerToken }

// Bytes around the texts of a conversation and of definitions, as a request has them.
const (
	aroundMessage = len(`{"role":"assistant","content":"","tool_call_id":""},`)
	aroundCall    = len(`{"id":"","type":"function","function":{"name":"","arguments":""}},`)
	aroundTool    = len(`{"type":"function","function":{"name":"","description":"","parameters":}},`)
	aroundTools   = len(`"tools":[],`)
)

// Estimate returns what a call is expected to take at most: a token for each four bytes
// that are sent, and the bound on the reply, or [Reply]. The texts and the provider data are counted, and what is
// around each message after the first, each call and each definition of a tool.
func Estimate(req *llm.Request) llm.Usage {
	sent := len(req.System) + len(req.Schema) + max(len(req.Messages)-1, 0)*aroundMessage + len(req.Tools)*aroundTool
	for i := range req.Messages {
		m := &req.Messages[i]
		sent += len(m.Text) + len(m.ToolCallID) + len(m.ToolCalls)*aroundCall + m.Provider.Size()
		for _, c := range m.ToolCalls {
			sent += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
	}
	if len(req.Tools) > 0 {
		sent += aroundTools
	}
	for i := range req.Tools {
		sent += len(req.Tools[i].Name) + len(req.Tools[i].Description) + len(req.Tools[i].Parameters)
	}
	reply := req.MaxTokens
	if reply <= 0 {
		reply = Reply
	}
	return llm.Usage{InputTokens: OfBytes(sent), OutputTokens: reply}
}
