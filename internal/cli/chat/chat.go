// Package chat is the command chat: a person talks to an agent of a spec, or to its coordinator.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/spf13/cobra"
)

// chatFlags are the flags of chat.
type chatFlags struct {
	run.TurnJob
	messages []string
	label    string
	level    label.Classification
}

// Command returns the command chat.
func Command(con *console.Console) *cobra.Command {
	c := &chatFlags{}
	cmd := &cobra.Command{
		Use:   "chat [SPEC]",
		Short: "Talk to an agent of a spec, or to its coordinator",
		Long: `chat sends what you write to one agent, or to the coordinator, and prints the
answer. Each turn is a run, and gets what was said in the turns before it through the
gate. The journal stores the turns, so that --resume continues the session, also after
a crash: no turn that was answered is asked again.

On a terminal, Enter sends a line, and a line that ends with \ goes on in the next one.
Ctrl-C cancels the turn that is being answered, and Ctrl-D ends the session. /help
lists the commands. Otherwise each line of standard input is a turn, and so is each
--message; standard output then has the answers only, with -o json one document on a
line for each turn, and the first turn that is not answered ends the command.`,
		Example: `  runteam chat team.yaml --agent writer
  runteam chat --resume 1f3c                   the session of the run whose ID begins with 1f3c
  runteam chat --continue                      the newest session
  runteam chat team.yaml --message "Hello." --message "And now in French." -o json
  runteam chat team.yaml --offline < turns.txt`,
		Args: c.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return chat(con, cmd, c) },
	}
	c.AddTo(cmd, con)
	f := cmd.Flags()
	f.StringArrayVar(&c.messages, "message", nil, "send `TEXT` as a turn instead of reading turns (repeatable)")
	f.StringVar(&c.label, "label", label.Internal.String(), "the `LABEL` of what you write: public, internal, confidential or secret")
	flags.Complete(cmd, "label", label.Classifications())
	flags.Complete(cmd, "message", nil)
	return cmd
}

func chat(con *console.Console, cmd *cobra.Command, c *chatFlags) (err error) {
	if err := c.Check(cmd); err != nil {
		return err
	}
	if c.level, err = label.ParseClassification(c.label); err != nil {
		return exit.UnknownWord("--label", c.label, label.Classifications())
	}
	ctx := cmd.Context()
	s := &session{con: con, level: c.level}
	typed := len(c.messages) == 0 && people.CanAsk(con) && !con.Settings.JSON()
	if typed {
		s.keys = newKeyboard(ctx, con)
		c.ReadLine = s.keys.line
	}
	if s.turns, err = run.OpenTurns(ctx, con, cmd.Flags().Changed, &c.TurnJob); err != nil {
		return err
	}
	defer s.turns.Close()
	if err := s.finish(ctx); err != nil {
		return err
	}
	switch {
	case typed:
		return s.talk(ctx)
	case len(c.messages) > 0:
		for _, text := range c.messages {
			if err := s.send(ctx, text); err != nil {
				return err
			}
		}
		return nil
	}
	return s.pipe(ctx)
}

// A session is one invocation of the command.
type session struct {
	con   *console.Console
	turns *run.Turns
	level label.Classification // of what is written
	keys  *keyboard            // nil unless a person types
}

// finish continues the last turn of a session that is resumed, if it did not end.
func (s *session) finish(ctx context.Context) error {
	text, _, unfinished := s.turns.Session().Unfinished()
	if !unfinished {
		return nil
	}
	if s.keys != nil {
		s.con.Say("runteam: turn %d goes on: %s", s.turns.Session().Turns(), terminal.Clip(terminal.CleanLine(strings.Join(strings.Fields(text), " ")), 60))
	}
	return s.answer(ctx, s.turns.Session().Turns(), s.turns.Resume)
}

// send sends a turn and prints the answer.
func (s *session) send(ctx context.Context, text string) error {
	return s.answer(ctx, s.turns.Session().Turns()+1, func(ctx context.Context, v run.View) (*engine.Result, error) {
		return s.turns.Send(ctx, text, s.level, v)
	})
}

// answer has a turn answered and prints the answer. The error of a turn that was not answered has been
// printed, unless a person may go on.
func (s *session) answer(ctx context.Context, turn int, start func(context.Context, run.View) (*engine.Result, error)) error {
	var v run.View
	var out *run.Answer
	if s.keys != nil {
		own := *s.con
		own.Stdout = &gutter{w: s.con.Stdout}
		if !s.con.IsTerminal(s.con.Stdout) {
			own.Stdout = s.con.Stdout
		}
		out = s.turns.NewAnswer(&own, turn)
		v = run.View{Stream: out.Take, Events: s.notice}
	}
	part, stop := ctx, func() {}
	if s.keys != nil {
		part, stop = s.con.Part(ctx)
	}
	res, err := start(part, v)
	stop()
	if err != nil {
		return err
	}
	switch {
	case out != nil:
		err = out.End(answerOf(res))
	case s.con.Settings.JSON():
		err = s.con.PrintJSON(s.document(turn, res))
	default:
		err = s.con.PrintText(answerOf(res))
	}
	if text := s.turns.Problem(); text != "" && err == nil {
		if s.keys != nil && res.Status == engine.StatusCanceled && res.JournalErr == nil {
			text = "runteam: the turn was cancelled, and is not part of the conversation"
		}
		if s.keys != nil || !s.con.Settings.JSON() {
			s.con.Say("%s", terminal.Clean(text))
		}
		err = exit.Status(report.ExitStatus(res))
	}
	return err
}

// answerOf returns the answer of a turn; empty if it was not answered.
func answerOf(res *engine.Result) string {
	if !res.Success() {
		return ""
	}
	return res.Output
}

// A turnDocument is a turn in JSON.
type turnDocument struct {
	Session string               `json:"session"`
	Turn    int                  `json:"turn"`
	Run     string               `json:"runId"`
	Agent   string               `json:"agent"`
	Status  engine.Status        `json:"status"`
	Success bool                 `json:"success"`
	Answer  string               `json:"answer"`
	Label   label.Classification `json:"label"` // of the answer, at most
	Usage   usageDocument        `json:"tokenUsage"`
	Errors  []errorDocument      `json:"errors"`
}

type usageDocument struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

type errorDocument struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (s *session) document(turn int, res *engine.Result) turnDocument {
	d := turnDocument{
		Session: s.turns.Session().ID(), Turn: turn, Run: res.RunID, Agent: s.turns.Session().Agent(), Status: res.Status, Success: res.Success(), Answer: answerOf(res),
		Label: s.level, Usage: usageDocument{res.Usage.InputTokens, res.Usage.OutputTokens}, Errors: []errorDocument{},
	}
	for i := range res.Tasks {
		d.Label = d.Label.Join(res.Tasks[i].Label)
	}
	for i := range res.Errors {
		d.Errors = append(d.Errors, errorDocument{res.Errors[i].Code, res.Errors[i].Message})
	}
	return d
}

// maxLine bounds a turn that is read from a pipe, in bytes. The limit for an agent is lower, and its
// error names the size.
const maxLine = 16 << 20

// pipe sends each line of standard input. Empty lines are no turns.
func (s *session) pipe(ctx context.Context) error {
	in := newLines(ctx, s.con.Stdin)
	for {
		line, err := in.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(line) > maxLine:
			return exit.Usagef("a line of standard input has more than %d MiB: move long texts to inputs", maxLine>>20)
		case strings.TrimSpace(line) == "":
			continue
		}
		if err := s.send(ctx, line); err != nil {
			return err
		}
	}
}

// talk sends what a person types until the end of the input.
func (s *session) talk(ctx context.Context) error {
	at := s.turns.Session()
	s.con.Say("Chat with %s. /help lists the commands; Ctrl-D ends.", terminal.CleanLine(at.Agent()))
	ed := &editor{con: s.con, keys: s.keys}
	for {
		text, err := ed.read(ctx, "you> ", "...> ")
		if err != nil {
			s.con.Say("")
		}
		switch {
		case errors.Is(err, io.EOF):
			s.goodbye()
			return nil
		case err != nil:
			s.goodbye()
			return err
		case strings.TrimSpace(text) == "":
			continue
		}
		if name, ok := strings.CutPrefix(text, "/"); ok && !strings.HasPrefix(name, "/") {
			done, err := s.command(ctx, name)
			if err != nil {
				s.con.PrintError(err)
			}
			if done {
				s.goodbye()
				return nil
			}
			continue
		} else if ok {
			text = name // a second slash
		}
		if err := s.send(ctx, text); err != nil && ctx.Err() != nil {
			s.goodbye()
			return err
		} else if status := exit.Status(0); err != nil && !errors.As(err, &status) {
			s.con.PrintError(fmt.Errorf("the turn was not sent: %w", err))
		}
	}
}

// goodbye says how to continue the session.
func (s *session) goodbye() {
	if s.turns.Journal() != nil && s.turns.Session().Turns() > 0 {
		s.con.Say("Continue with: %s", s.turns.ResumeCommand())
	}
}
