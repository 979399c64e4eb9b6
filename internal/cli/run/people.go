package run

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/person"
)

// maxAnswerCommands bounds how many open questions are listed after a run.
const maxAnswerCommands = 3

// openAsker asks the people of the spec on the terminal, if there is one.
func (x *execution) openAsker() {
	var names, others []string
	for i := range x.file.Agents {
		switch a := &x.file.Agents[i]; {
		case a.Person && x.isUser(a):
			names = append(names, a.Member.Name)
		case a.Person:
			others = append(others, fmt.Sprintf("questions to %s stay open, since only %s can answer them, and you are %s: they answer with runteam answer --by NAME, or on a server", a.Member.Name, record.OneOf(a.Users), x.con.UserName()))
		}
	}
	if x.job.Offline || x.job.noInput || !people.CanAsk(x.con) {
		return
	}
	for _, why := range others {
		x.con.Say("runteam: %s", terminal.CleanLine(why))
	}
	if len(names) == 0 {
		return
	}
	x.asker = people.NewAsker(x.con, names)
	x.connector.Ask = x.asker.Ask
}

// isUser reports whether the user of this computer can answer for a person.
func (x *execution) isUser(a *specfile.Agent) bool {
	_, is := people.UserOf(a.Users, x.con.UserName())
	return is
}

// awaitAnswer leaves a question open, and waits while the run works if an attendant takes answers: they
// come through the journal. It does not wait in a process that stops. If the team has commands that are not
// confined, such answers are refused, so the run does not wait for them.
func awaitAnswer(ctx context.Context, x *execution, t *engine.Team) error {
	if a := x.attendant; a != nil && a.Answers && t.Unconfined() == "" {
		if x.job.inspect {
			x.con.Say("runteam: a question waits for an answer in the inspector, or by runteam answer; Ctrl-C ends the run, and the question stays open")
		}
		select {
		case <-ctx.Done():
		case <-x.job.drain:
		}
	}
	return person.ErrLater
}

// checkPeople returns an error if a person can neither be asked nor answer later.
func (x *execution) checkPeople() error {
	if !x.job.Journal.None || x.job.Offline {
		return nil
	}
	isPerson := map[string]bool{}
	for i := range x.file.Agents {
		if a := &x.file.Agents[i]; a.Person && (x.asker == nil || !x.isUser(a)) {
			isPerson[a.Member.Name] = true
			if x.plan == nil { // a goal may give any agent a task
				return exit.Usagef("agent %q is a person, who cannot answer: run it on a terminal, or without --no-journal", a.Member.Name)
			}
		}
	}
	if x.plan == nil {
		return nil
	}
	for _, t := range x.plan.Tasks {
		if isPerson[t.Assignee] {
			return exit.Usagef("task %q is for the person %q, who cannot answer: run it on a terminal, or without --no-journal", t.Title, t.Assignee)
		}
	}
	return nil
}

// purposeOf says what answering a question does. Name is what people know its task by.
func purposeOf(q *runstate.Question, name string) string {
	title, who := terminal.CleanLine(name), terminal.CleanLine(q.Agent)
	switch {
	case people.ApprovesPlan(q.Approval, q.Task):
		return fmt.Sprintf("Approve the plan, which waits for %s:", who)
	case q.Approval != "":
		return fmt.Sprintf("Approve %s for %q, which waits for %s:", terminal.CleanLine(q.Approval), title, who)
	case q.Tool == "":
		return fmt.Sprintf("Answer %q for %s:", title, who)
	}
	return fmt.Sprintf("Approve the call of %s in %q, which waits for %s:", terminal.CleanLine(q.Tool), title, who)
}

// answerCommands returns the commands that answer the open questions of the run.
func (x *execution) answerCommands(run string) (list []nextCommand) {
	all, err := x.journal.journal.Questions(context.Background(), x.result.RunID)
	if err != nil {
		return []nextCommand{{"See what it asks:", x.job.Journal.Command("questions", run)}}
	}
	more := 0
	for _, q := range all {
		switch {
		case !q.Open():
		case len(list) == maxAnswerCommands:
			more++
		default:
			name := q.Title
			if t, ok := x.result.Task(string(q.Task)); ok {
				name = t.ShownName()
			}
			list = append(list, nextCommand{
				purposeOf(q, name),
				people.CommandFor(&x.job.Journal, run, &journal.OpenQuestion{ID: q.ID(), Task: q.Task, Title: q.Title, Name: name, Call: q.Call, Approval: q.Approval, Users: q.Users, Schema: q.Schema}),
			})
		}
	}
	if more > 0 {
		list = append(list, nextCommand{fmt.Sprintf("See these and %s:", format.Plural(more, "more question")), x.job.Journal.Command("questions", run)})
	}
	return list
}
