package scripted

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

// answered returns the reply that repeats the response of a model to a prompt with these tools.
func answered(res llm.Response, offered []llm.Tool, got *received) Reply {
	calls, ok := toolCallsOf(res.ToolCalls, offered, got)
	finish := callinfo.FinishOf(&res)
	if !ok || finish != callinfo.Stopped && (finish != callinfo.ToolUse || len(calls) == 0) {
		return Reply{Body: unfinished(res)}
	}
	return Reply{Text: literal(sent(res.Text)), ToolCalls: calls, Usage: counted(res.Usage)}
}

// counted returns the tokens of a call, within the bounds of a script.
func counted(u llm.Usage) *Usage {
	within := func(n int) int { return min(max(n, 0), maxWhole) }
	return &Usage{Input: within(u.InputTokens), Output: within(u.OutputTokens)}
}

// unfinished returns the body of a reply that text and toolCalls cannot express: it has no
// normal stop, or calls that a script cannot have.
func unfinished(res llm.Response) string {
	u, finish := counted(res.Usage), res.FinishReason
	switch {
	case len(res.ToolCalls) > 0:
		finish = "tool_calls"
	case callinfo.FinishOf(&res) == callinfo.Refused: // the text repeats the refusal
		finish = "refusal"
	}
	body, err := json.Marshal(completion{
		Object:  "chat.completion",
		Choices: []choice{{Message: messageOf(res), FinishReason: &finish}},
		Usage:   &tokens{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output},
	})
	if err != nil {
		return err.Error() // texts and numbers can always be encoded
	}
	return string(body)
}

// failed returns the reply that repeats the failure of a call. A call without an answer
// becomes a status that is retried.
func failed(err error) Reply {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		e = &llm.Error{Message: err.Error()}
	}
	switch e.Kind {
	case callfault.Cut:
		return Reply{Cut: true, Usage: counted(e.Usage)}
	case callfault.Empty:
		return Reply{Usage: counted(e.Usage)}
	case callfault.BadResponse:
		return Reply{Body: refusal(said(e), "")}
	case callfault.UnknownModel:
		return Reply{Status: http.StatusNotFound, Body: refusal(said(e), "model_not_found")}
	}
	r := Reply{Status: statusOf(e)}
	if message := said(e); message != "" {
		r.Body = refusal(message, "")
	}
	return r
}

// statusOf returns the status of a failure, or one with the same meaning.
func statusOf(e *llm.Error) int {
	of, own := http.StatusInternalServerError, false
	switch e.Kind {
	case callfault.Unauthorized:
		of, own = http.StatusUnauthorized, e.Status == http.StatusForbidden
	case callfault.RateLimited:
		of = http.StatusTooManyRequests
	case callfault.NoCredit:
		of = http.StatusPaymentRequired
	case callfault.ServerError:
		own = e.Status >= 500 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooEarly
	case callfault.NotFound:
		of = http.StatusNotFound
	case callfault.BadRequest, callfault.Moderated:
		of, own = http.StatusBadRequest, e.Status > 400 && e.Status < 500 && !slices.Contains(otherwise, e.Status)
	case callfault.PromptTooLong:
		of = http.StatusRequestEntityTooLarge
	case callfault.TooLarge:
		of = http.StatusBadRequest
	case callfault.Unreachable:
		of = http.StatusServiceUnavailable
	case callfault.Timeout:
		of = http.StatusGatewayTimeout
	}
	if own && e.Status <= 599 {
		return e.Status
	}
	return of
}

// otherwise lists the statuses from 400 to 499 with a meaning of their own.
var otherwise = []int{401, 402, 403, 404, 405, 408, 413, 425, 429}

// said returns the message of an error. For a call without an answer it adds the kind of the
// failure.
func said(e *llm.Error) string {
	message := oneline.Of(e.Message)
	if e.Status != 0 {
		return message
	}
	words := []string{"when this was recorded", e.Kind, message}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ": ")
}

// refusal returns the body of an error in the form of the API.
func refusal(message, code string) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
			Code    string `json:"code,omitempty"`
		} `json:"error"`
	}
	body.Error.Message, body.Error.Code = message, code
	text, err := json.Marshal(body)
	if err != nil {
		return err.Error() // texts can always be encoded
	}
	return string(text)
}
