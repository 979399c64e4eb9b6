package connect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// A Recording collects the answers of the models and people of a run as a script. A nil *Recording
// collects nothing.
type Recording struct {
	File   *files.Output
	Models *scripted.Recorder
	note   error // a warning about the file that was written

	questions sync.Map // to people that are open, by session: each a *scripted.Question
}

// record returns a model whose answers are recorded.
func (r *Recording) record(m llm.Model) llm.Model {
	if r == nil {
		return m
	}
	return r.Models.Model(m)
}

// An asking is how a person is asked.
type asking func(context.Context, prompt.Prompt) (agent.Reply, error)

// recordPerson returns ask with its questions recorded, and the answers that it returns.
func (r *Recording) recordPerson(ask asking) asking {
	if r == nil {
		return ask
	}
	return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		session := p.Receipt().Session
		r.questions.Store(session, r.Models.Question(ctx, p.System(), p.Text()))
		reply, err := ask(ctx, p)
		if err == nil {
			r.Answered(session, cmp.Or(reply.Text, reply.JSON.Canonical()))
		}
		return reply, err
	}
}

// Answered records the answer to the question of a session. Only the first one counts.
func (r *Recording) Answered(session, text string) {
	if q, ok := r.questions.LoadAndDelete(session); ok {
		q.(*scripted.Question).Answered(text)
	}
}

// Save writes the answers. A script that is too large to be read again is written with a warning.
func (r *Recording) Save() error {
	if r == nil {
		return nil
	}
	r.questions.Range(func(_, q any) bool {
		q.(*scripted.Question).Unanswered()
		return true
	})
	if r.Empty() { // an empty recording must not replace another one
		return nil
	}
	var text bytes.Buffer
	_, err := r.Models.WriteTo(&text)
	if errors.Is(err, scripted.ErrTooLarge) {
		r.note = err
	} else if err != nil {
		return fmt.Errorf("--record %s: %w", r.File.Path, err)
	}
	return r.File.Write(text.Bytes())
}

// Empty reports whether there are no answers. A run that was interrupted before the first one must not replace
// another recording.
func (r *Recording) Empty() bool { return r.Models.Empty() }

// Summary says what is in the file, or why there is none, and how to replay it if the run was not
// interrupted.
func (r *Recording) Summary(res *engine.Result) string {
	if r.Empty() {
		return "nothing was answered, so nothing was recorded"
	}
	text := fmt.Sprintf("recorded: %s in %s", format.Plural(len(r.Models.Script().Replies), "answer"), terminal.CleanLine(r.File.Path))
	switch {
	case r.note != nil:
		return text + "; " + r.note.Error()
	case res.Cause != nil, res.Status == engine.StatusSuspended: // a replay may need answers that are missing
		return text + r.missing("\n"+terminal.CleanLine(r.File.Path), res)
	}
	without := "--record"
	if r.File.Force {
		without += " and --force"
	}
	return fmt.Sprintf("%s; to replay it: the same command without %s, with --offline --script %s", text, without, format.ShellPath(r.File.Path))
}

// missing says which answers of people the record lacks; it is empty unless the run is suspended.
func (r *Recording) missing(subject string, res *engine.Result) string {
	var asked []string
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.WaitingFor != "" {
			asked = append(asked, strconv.Quote(terminal.CleanLine(t.ShownName())))
		}
	}
	for i := range res.Steps {
		if s := &res.Steps[i]; s.WaitingFor != "" {
			asked = append(asked, "the question about the plan")
		}
	}
	if res.Status != engine.StatusSuspended || len(asked) == 0 {
		return ""
	}
	noun := "answer"
	if len(asked) > 1 {
		noun = "answers"
	}
	return fmt.Sprintf("%s lacks the %s to %s: answers given after the run was suspended are not recorded", subject, noun, format.List(asked, 3))
}
