package team

import (
	"errors"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/llm"
)

// explain returns the text of an error in the form that the caller is cleared
// for. What an agent or an endpoint said may quote the prompt, so the text is
// as sensitive as the prompt was and takes the same road to the caller as a
// result does. If that road fails, only the code is told.
func (r *run) explain(a *attempt, code, said string) string {
	if a.contract.Session == "" { // nothing was sent yet: the words are ours
		return said
	}
	now := time.Now()
	e, err := envelope.New(envelope.Header{
		ID: envelope.ID(a.contract.Session + "/error"), Producer: a.contract.Callee, Task: a.task.ID, Run: r.id,
		Classification: a.contract.MaxInput, CreatedAt: now,
	}, envelope.Text(strings.ToValidUTF8(said, "\uFFFD")))
	if err != nil {
		return code
	}
	text, _, err := r.forUser(e, a.task.ID, now)
	if err != nil || text == "" {
		return code
	}
	return text
}

// What a failed attempt says about its endpoint.
type reach uint8

const (
	noModel       reach = iota // no model was called
	modelAnswered              // it answered, if only to refuse
	modelMissing               // nobody answered, or nobody knows the model
)

// reached says whether the endpoint behind an error answered as one that knows the model.
func reached(err error) reach {
	failed, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok:
		return noModel
	case failed.Kind == llm.UnknownModel || !failed.Answered():
		return modelMissing
	}
	return modelAnswered
}

func upperSnake(words string) string {
	return strings.ToUpper(strings.ReplaceAll(words, " ", "_"))
}

func lower(name string) string { return strings.ToLower(name) }
