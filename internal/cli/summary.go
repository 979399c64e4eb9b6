package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// maxFailures bounds how many different failures are explained one by one.
const maxFailures = 10

// summarize says on stderr what became of a run: counts, what the prompts
// held, and for each failure its cause and what to do next. It leaves out what
// the table of live progress ends in; after none, it says nothing but failures.
// It goes out in one piece, so that nothing lands between its lines.
func (a *app) summarize(res *team.Result, mode string) {
	if mode == "none" && res.Success() {
		return
	}
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	defer func() {
		if b.Len() > 0 {
			a.say("%s", b.String())
		}
	}()
	if mode != "live" {
		say("runteam: %s", totals(res))
	}
	if text := receipt(res); text != "" && mode != "none" {
		say("context: %s", text)
	}
	causes := causesOf(res)
	for i, c := range causes {
		if i == maxFailures {
			say("… and %d more kinds of failure; --output json has all", len(causes)-i)
			break
		}
		say("failed:  %s: %s", listed(c.who, 3), indented(c.message))
		if c.next != "" {
			say("         %s", c.next)
		}
		if len(c.hit) > 0 {
			say("         not run because of it: %s", listed(c.hit, 3))
		}
	}
	switch res.Status {
	case team.StatusTimeout:
		say("runteam: %v: raise --timeout, or timeoutMs of the spec", res.Cause)
	case team.StatusError:
		if !res.Answered {
			say("runteam: could not run: every model call failed before a model answered")
		}
	}
}

// totals counts tasks, time and tokens, and says whether a goal has no answer.
func totals(res *team.Result) string {
	text := doneOf(res.Outcomes(), plural(len(res.Tasks), "task"))
	switch {
	case len(res.Tasks) == 0:
		text = "no task was run"
	case res.Goal != "" && res.Output == "":
		text += ", no answer"
	}
	return text + " in " + elapsed(res.EndedAt.Sub(res.StartedAt)) + tokens(res.Usage, about(res, "; "))
}

// about returns the words before token or byte counts of a run, with a mark if some
// are rounded because the caller may not see what was counted.
func about(res *team.Result, before string) string {
	for i := range res.Tasks {
		if res.Tasks[i].Metrics.Rounded {
			return before + "~"
		}
	}
	for i := range res.Steps {
		if res.Steps[i].Metrics.Rounded {
			return before + "~"
		}
	}
	return before
}

// receipt says what of all context was sent.
func receipt(res *team.Result) string {
	c := &res.Context
	if c.Prompts == 0 {
		return ""
	}
	done := "sent"
	if !res.Answered {
		done = "offered to endpoints that did not answer"
	}
	text := fmt.Sprintf("%s %s · %s if everything were shared · %s redacted · %s withheld", about(res, "")+label.SizeText(c.Sent), done, about(res, "")+label.SizeText(c.Shared), plural(c.Redacted, "value"), plural(c.Withheld, "path"))
	if c.Revealed > 0 {
		text += fmt.Sprintf(" · %s revealed", plural(c.Revealed, "value"))
	}
	if c.Truncated > 0 {
		text += fmt.Sprintf(" · %s cut to fit", plural(c.Truncated, "text"))
	}
	return text
}

// A cause is one reason for which tasks failed by themselves, or the
// coordinator's work.
type cause struct {
	message string
	next    string   // what to do about it; may be empty
	who     []string // "task (agent)"
	hit     []string // titles of the tasks that did not run because of them
}

// causesOf groups the failures of a run by what they say: of tasks in the
// order of the spec, then of the coordinator.
func causesOf(res *team.Result) []*cause {
	var all []*cause
	byText := make(map[string]*cause)
	byRoot := make(map[task.ID]*cause)
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if t.Error == nil || t.Error.Root != "" {
			continue
		}
		key := t.Error.Code + "\x00" + t.Error.Message
		c := byText[key]
		if c == nil {
			c = &cause{message: t.Error.Message, next: nextSteps[t.Error.Code]}
			byText[key] = c
			all = append(all, c)
		}
		c.who = append(c.who, t.Title+" ("+t.Assignee+")")
		byRoot[t.ID] = c
	}
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if t.Error != nil && byRoot[t.Error.Root] != nil {
			c := byRoot[t.Error.Root]
			c.hit = append(c.hit, t.Title)
		}
	}
	for i := range res.Errors {
		if e := &res.Errors[i]; e.Task == "" && !endedWith(res, e) {
			all = append(all, &cause{message: e.Message, next: coordinatorNext(e), who: []string{e.Title + " (" + handoff.Coordinator + ")"}})
		}
	}
	return all
}

// endedWith reports whether a step of the coordinator failed because the run
// ended, of which the rest of the summary tells.
func endedWith(res *team.Result, e *team.TaskError) bool {
	return res.Cause != nil && (errors.Is(e, team.ErrCanceled) || errors.Is(e, team.ErrTimeout))
}

// indented prints a message of several lines under its first.
func indented(message string) string {
	return strings.ReplaceAll(clean(strings.TrimRight(message, "\n")), "\n", "\n         ")
}
