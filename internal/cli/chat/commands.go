package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
)

const help = `/explain         what the last prompt contained, and where each byte came from
/cost            the tokens and the cost of the session so far
/runs            the turns of the session, with their run IDs, status and tokens
/label [LABEL]   the label of what you write from now on: public, internal, confidential, secret
/help            this list
/exit            end the session, as Ctrl-D does
//TEXT           send a text that begins with /
A line that ends with \ goes on in the next one. Ctrl-C cancels the turn that is being answered.`

var names = []string{"explain", "cost", "runs", "label", "help", "exit", "quit"}

// command carries out a command of the chat, and reports whether it ends the session.
func (s *session) command(ctx context.Context, line string) (done bool, err error) {
	words := strings.Fields(line)
	name := ""
	if len(words) > 0 {
		name = words[0]
	}
	if len(words) > 1 && name != "label" && slices.Contains(names, name) {
		return false, exit.Usagef("/%s takes no argument; to send this text, write /%s", name, "/"+terminal.CleanLine(line))
	}
	switch name {
	case "exit", "quit":
		return true, nil
	case "help":
		s.con.Say("%s", help)
	case "explain":
		return false, s.explain(ctx)
	case "cost":
		s.con.Say("%s", s.cost())
	case "runs":
		s.con.Say("%s", s.runs())
	case "label":
		return false, s.setLabel(words[1:])
	default:
		hint := "/help lists the commands"
		if near, ok := naming.Nearest(name, names); ok {
			hint = "did you mean /" + near + "?"
		}
		return false, exit.Usagef("unknown command /%s: %s; to send a text that begins with /, write //", terminal.CleanLine(name), hint)
	}
	return false, nil
}

// explain shows the prompt of the last turn.
func (s *session) explain(ctx context.Context) error {
	j := s.turns.Journal()
	switch {
	case j == nil:
		return exit.Usagef("/explain reads the journal, and the session has none: leave out --no-journal")
	case s.turns.Last == nil:
		return exit.Usagef("there was no turn in this process yet; runteam explain shows those before")
	}
	text, err := explain.Text(ctx, j, s.turns.Last.RunID)
	if err == nil {
		s.con.Say("%s", strings.TrimRight(terminal.Clean(text), "\n"))
	}
	return err
}

// cost says what the session has used.
func (s *session) cost() string {
	u, money := s.turns.Session().Spent()
	at := s.turns.Session()
	turns := format.Plural(at.Turns(), "turn")
	if n := at.Answered(); n < at.Turns() {
		turns = fmt.Sprintf("%d of %s answered", n, turns)
	}
	text := fmt.Sprintf("%s, %s in and %s out", turns, format.Plural(u.InputTokens, "token"), format.Number(u.OutputTokens))
	if money > 0 {
		text += ", " + money.String()
	}
	return text
}

// runs lists the turns of the session.
func (s *session) runs() string {
	list := s.turns.Session().Runs()
	if len(list) == 0 {
		return "the session has no turns yet"
	}
	var b strings.Builder
	table := format.NewTable(&b, "")
	table.Row("turn", "run", "status", "tokens in", "out", "cost")
	for _, r := range list {
		cost := ""
		if r.Cost > 0 {
			cost = r.Cost.String()
		}
		table.Row(format.Number(r.Turn), s.turns.ShortID(r.Run), cmp.Or(string(r.Status), journal.Interrupted), format.Number(r.Usage.InputTokens), format.Number(r.Usage.OutputTokens), cost)
	}
	table.Flush()
	if s.turns.Journal() == nil {
		b.WriteString("no journal has these runs, since --no-journal is set")
	}
	return strings.TrimRight(b.String(), "\n")
}

// setLabel sets or shows the label of what is written.
func (s *session) setLabel(words []string) error {
	if len(words) > 1 {
		return exit.Usagef("/label takes one LABEL")
	}
	if len(words) == 1 {
		level, err := label.ParseClassification(words[0])
		if err != nil {
			return exit.UnknownWord("/label", words[0], label.Classifications())
		}
		s.level = level
	}
	s.con.Say("what you write is %v", s.level)
	return nil
}

// notice shows what a person should know of a turn while it is answered.
func (s *session) notice(e event.Event) {
	switch e.Type {
	case event.ToolStart:
		s.con.Say("runteam: %s calls %s", terminal.CleanLine(e.Agent), terminal.CleanLine(format.Readers(e.From)))
	case event.Warning:
		s.con.Say("runteam: warning: %s", terminal.CleanLine(e.Message))
	case event.PlanReady:
		s.con.Say("runteam: a plan of %s", progress.PlannedTasks(e.Plan))
	}
}
