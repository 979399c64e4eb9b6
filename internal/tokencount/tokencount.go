// Package tokencount estimates how many tokens a model call takes.
package tokencount

import "github.com/runteam/runteam/llm"

// Reply is the estimate of a reply without a bound.
const Reply = 1000

// bytesPerToken is the length of a token in estimates.
const bytesPerToken = 4

// OfBytes returns the estimate of a text of n bytes, rounded up.
func OfBytes(n int) int { return (n + bytesPerToken - 1) / bytesPerToken }

// Estimate returns what a call is expected to take at most: a token for each four bytes
// that are sent, and the bound on the reply, or [Reply].
func Estimate(req *llm.Request) llm.Usage {
	sent := len(req.System) + len(req.Schema)
	for i := range req.Messages {
		sent += len(req.Messages[i].Text)
		for _, c := range req.Messages[i].ToolCalls {
			sent += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
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
