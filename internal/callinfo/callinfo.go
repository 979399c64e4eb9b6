// Package callinfo reads what endpoints report of a model call: why the reply ended, and
// which model gave it.
package callinfo

import (
	"strings"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

// Clean returns c with each field as one short line.
func Clean(c llm.CallInfo) llm.CallInfo {
	return llm.CallInfo{
		Model: oneline.Of(c.Model), Endpoint: oneline.Of(c.Endpoint),
		RequestID: oneline.Of(c.RequestID), FinishReason: oneline.Of(c.FinishReason), FirstTokenMs: c.FirstTokenMs,
	}
}

// Outline returns c for a reader who may not see the answer. It leaves out the model's
// name, the request ID, the time to the first token and an unknown finish reason: the endpoint
// chose them after it had read the prompt. A known finish reason is in lower case for the same reason.
func Outline(c llm.CallInfo) llm.CallInfo {
	out := llm.CallInfo{Endpoint: c.Endpoint}
	if reason := strings.ToLower(c.FinishReason); finishes[reason] != "" {
		out.FinishReason = reason
	}
	return out
}
