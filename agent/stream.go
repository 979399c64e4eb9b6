package agent

import (
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
)

// Streams reports that the text which the model writes is the result of the agent, so that a team
// can pass it on while it arrives; see [team.RunOptions]. Agents in Go have no such method, unless
// they do nothing but call an LLM.
//
// [team.RunOptions]: https://pkg.go.dev/github.com/runteam/runteam/team#RunOptions
func (a *LLM) Streams() bool { return true }

// streamTo returns what passes the answer of a model on while it arrives, without the reasoning
// that it begins with; nil if nobody watches.
func streamTo(to supervise.Stream) func(llm.Delta) error {
	if to == nil {
		return nil
	}
	var answer jsonvalue.AnswerStream
	from, attempt := 0, 0
	return func(d llm.Delta) error {
		if attempt == 0 || d.Attempt != from {
			answer, from, attempt = jsonvalue.AnswerStream{}, d.Attempt, attempt+1
		}
		text, again := answer.Add(d.Text)
		if again {
			attempt++
		}
		if text != "" || again {
			to(llm.Delta{Text: text, Attempt: attempt})
		}
		return nil
	}
}
