package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

// finishError returns nil if the model ended its reply with a normal stop, else an error
// that says how the reply ended and what to do.
func (c *conversation) finishError(res *llm.Response) error {
	reason, finish := oneline.Of(res.FinishReason), callinfo.FinishOf(res)
	if len(res.ToolCalls) > 0 && (finish == callinfo.Stopped || finish == callinfo.ToolUse) {
		finish = callinfo.Truncated // some servers report calls that a limit cut as complete
	}
	switch finish {
	case callinfo.Stopped, callinfo.ToolUse:
		return nil // without a call, the text is the answer
	case callinfo.Truncated:
		c.reply.Truncated = strings.TrimSpace(res.Text) != "" && len(res.ToolCalls) == 0
		return fmt.Errorf("%w: %s", Condition(codes.Truncated), c.limitReached(res, reason))
	case callinfo.Filtered:
		return wrapReason(Condition(codes.Filtered), reason, res.Refusal, "change the prompt, or the filter settings at the provider")
	case callinfo.Refused:
		return wrapReason(Condition(codes.Refused), reason, cmp.Or(res.Refusal, res.Text), "change the prompt, or use another model")
	}
	return fmt.Errorf("%w: finish reason %q; use another endpoint, or report the reason as a bug", Condition(codes.UnknownFinish), reason)
}

// limitReached says which limit truncated a reply and what to set. No task accepts an empty
// answer or an incomplete JSON value.
func (c *conversation) limitReached(res *llm.Response, reason string) string {
	limit, raise := "the model's own limit", "set maxTokens on the agent"
	switch own := c.agent.options.MaxTokens; {
	case strings.Contains(strings.ToLower(reason), "context"):
		limit, raise = "the context window of the model", "shorten the prompt"
	case c.lowered > 0:
		limit, raise = fmt.Sprintf("the %d tokens to which the budget limited the reply", c.lowered), "raise maxTokenBudget or maxCostBudget"
	case own > 0 && (res.Usage.OutputTokens == 0 || res.Usage.OutputTokens >= own):
		limit, raise = fmt.Sprintf("maxTokens %d of the agent", own), "raise maxTokens"
	case own > 0:
		limit = fmt.Sprintf("the model's own limit, at %d tokens, before maxTokens %d of the agent", res.Usage.OutputTokens, own)
		raise = "use a model with a larger limit"
	}
	switch {
	case len(res.ToolCalls) > 0:
		return fmt.Sprintf("it reached %s in a call of the tool %s (finish reason %q); %s, or ask for shorter arguments", limit, oneline.Of(res.ToolCalls[len(res.ToolCalls)-1].Name), reason, raise)
	case strings.TrimSpace(res.Text) == "" && res.Reasoning != "":
		return fmt.Sprintf("it reached %s in the reasoning, before the answer began (finish reason %q); %s, or lower reasoningEffort", limit, reason, raise)
	case strings.TrimSpace(res.Text) == "" || c.schema != nil:
		return fmt.Sprintf("it reached %s (finish reason %q); %s, or ask for a shorter answer", limit, reason, raise)
	}
	return fmt.Sprintf("it reached %s (finish reason %q); %s, ask for a shorter answer, or set acceptTruncated on the task", limit, reason, raise)
}

// wrapReason words a condition with the finish reason and the provider's words, if any.
func wrapReason(condition error, reason, words, hint string) error {
	if words = strings.TrimRight(oneline.Of(words), "."); words != "" {
		words = ": " + words
	}
	return fmt.Errorf("%w (finish reason %q)%s; %s", condition, reason, words, hint)
}

// failedReply is the error of a call whose reply ended because the endpoint failed.
func failedReply(m llm.Model, res *llm.Response) error {
	return &llm.Error{
		Kind: callfault.ServerError, Status: 200, Endpoint: endpoint.Of(m), Model: res.Model,
		Message: fmt.Sprintf("the reply ended with finish reason %q", oneline.Of(res.FinishReason)), Usage: res.Usage,
	}
}

// isCut reports whether the limit of the agent cut the last call: some servers report such a reply as complete. Other
// arguments that are no JSON are a mistake of the model, which it can correct.
func (c *conversation) isCut(res *llm.Response) bool {
	var value json.RawMessage
	err := json.NewDecoder(strings.NewReader(res.ToolCalls[len(res.ToolCalls)-1].Arguments)).Decode(&value)
	limit := cmp.Or(c.lowered, c.agent.options.MaxTokens)
	return limit > 0 && res.Usage.OutputTokens >= limit && errors.Is(err, io.ErrUnexpectedEOF)
}

// checkAnswer moves reasoning from the start of a reply's text to its own field. A reply that ended with a
// normal stop, or with calls of tools, and has neither an answer nor a call is an error, as an empty reply is.
func checkAnswer(m llm.Model, res *llm.Response) error {
	reasoning, answer, whole := jsonvalue.CutReasoning(res.Text)
	cut, finish := reasoning != "" || answer != res.Text, callinfo.FinishOf(res)
	if res.Text = answer; !strings.Contains(res.Reasoning, reasoning) { // endpoints that report it may repeat it
		res.Reasoning = strings.TrimSpace(res.Reasoning + "\n\n" + reasoning)
	}
	if strings.TrimSpace(answer) != "" || len(res.ToolCalls) > 0 || finish != callinfo.ToolUse && (finish != callinfo.Stopped || !cut) {
		return nil
	}
	message := "the model wrote reasoning and no answer"
	switch {
	case !cut:
		message = "the reply says that it calls tools, and has no call"
	case !whole:
		message = "the model did not end its reasoning"
	}
	return &llm.Error{Kind: callfault.Empty, Status: 200, Endpoint: endpoint.Of(m), Model: res.Model, Message: message, Usage: res.Usage}
}
