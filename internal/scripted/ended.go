package scripted

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// How the endpoint tells a client that a call ended. Other clients than runs read a timeout of a gateway.
const (
	endedStatus = http.StatusGatewayTimeout
	endedPrefix = "the script ends this call: "
)

// endedWords are the words for ends, in messages.
const endedWords = "timeout, task timeout, child timeout, canceled or interrupted"

// endedText returns the word for an end.
func endedText(e *callfault.EndedError) string {
	switch {
	case e.By != callfault.TimeLimit || e.Depth == callfault.OwnLimit:
		return e.By
	case e.Depth == 0:
		return "task " + e.By
	case e.Depth == 1:
		return "child " + e.By
	}
	return fmt.Sprintf("child %d %s", e.Depth, e.By)
}

// parseEnded returns the end that a word stands for, or nil. "timeout" is the time limit of the work that made the
// call, "task timeout" that of the task of a child, "child timeout" or "child 2 timeout" that of a parent of a child,
// by its depth.
func parseEnded(text string) *callfault.EndedError {
	switch text {
	case callfault.Canceled, callfault.Interrupted:
		return &callfault.EndedError{By: text}
	}
	whose, ok := strings.CutSuffix(text, callfault.TimeLimit)
	e := &callfault.EndedError{By: callfault.TimeLimit}
	switch number, isChild := strings.CutPrefix(whose, "child "); {
	case !ok:
		return nil
	case whose == "":
		e.Depth = callfault.OwnLimit
	case whose == "task ":
	case whose == "child ":
		e.Depth = 1
	case isChild:
		e.Depth, _ = strconv.Atoi(strings.TrimSuffix(number, " "))
	}
	if e.Depth < callfault.OwnLimit || endedText(e) != text {
		return nil
	}
	return e
}

// checkEnded says what is wrong with how a call ended; it is empty if nothing is.
func (r *Reply) checkEnded() string {
	switch {
	case r.Ended == "":
	case parseEnded(r.Ended) == nil:
		return fmt.Sprintf("ended: want %s, not %q", endedWords, r.Ended)
	case r.Text != "" || len(r.ToolCalls) > 0 || r.Status != 0 || r.Body != "" || r.Cut || r.Usage != nil || r.RetryAfter != 0:
		return "ended: a call that ended without an answer has no text, toolCalls, status, retryAfter, body, cut or usage; remove them"
	}
	return ""
}

// EndOf returns how a script ended a call that failed with e, or nil if it failed otherwise.
func EndOf(e *llm.Error) *callfault.EndedError {
	text, ok := strings.CutPrefix(e.Message, endedPrefix)
	if !ok || e.Status != endedStatus {
		return nil
	}
	return parseEnded(text)
}

// endedReply is the reply that ends a call in the same way.
func endedReply(e *callfault.EndedError, got *received) Reply {
	return Reply{Ended: endedText(e), Messages: got.messages().agents()}
}

// endOf returns how a call ended whose context did, or nil if it is left out.
func (r *Recorder) endOf(ctx context.Context, got *received) *callfault.EndedError {
	if r.Ended == nil {
		return nil
	}
	e := r.Ended(context.Cause(ctx))
	if e != nil && e.By == callfault.Interrupted && got.child == "" { // a task makes the call again
		return nil
	}
	return e
}
