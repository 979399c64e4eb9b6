// Package report writes the end of a run: its answer, counts, failures and what to do about them.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Savings is "3 tasks reused, 12,300 tokens saved", by the answers that a run took from other runs; empty
// if there are none.
func Savings(res *engine.Result) string {
	var tasks, steps, tokens int
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Reused != "" && t.Reused != res.RunID {
			tasks++
			tokens += t.Saved.InputTokens + t.Saved.OutputTokens
		}
	}
	for i := range res.Steps {
		if s := &res.Steps[i]; s.Reused != "" && s.Reused != res.RunID {
			steps++
			tokens += s.Saved.InputTokens + s.Saved.OutputTokens
		}
	}
	if tasks+steps == 0 {
		return ""
	}
	text := format.Plural(tasks, "task")
	if steps > 0 {
		text += " and " + format.Plural(steps, "step") + " of the coordinator"
	}
	text += " reused"
	if tokens > 0 {
		text += fmt.Sprintf(", %s saved", format.Plural(tokens, "token"))
	}
	return text
}

// ExitStatus returns the exit status of a run.
func ExitStatus(res *engine.Result) int {
	if stop, ok := errors.AsType[*exit.Interrupted](res.Cause); ok {
		return stop.Status()
	}
	switch {
	case res.JournalErr != nil:
		return exit.StatusNoRun
	case res.Success():
		return exit.StatusOK
	case keyless(res):
		return exit.StatusNoRun
	case res.Status == engine.StatusSuspended:
		return exit.StatusWaiting
	case res.Status == engine.StatusBudget, res.Status == engine.StatusTimeout, res.Status == engine.StatusCanceled: // the user ended it, whether or not an endpoint would have answered
		return exit.StatusFailed
	case !res.Answered:
		return exit.StatusNoRun
	}
	return exit.StatusFailed
}

// keyless reports whether a model was not called because its key is missing. An
// endpoint that answers that it requires one has been called.
func keyless(res *engine.Result) bool {
	return slices.ContainsFunc(res.Errors, func(e engine.TaskError) bool {
		failed, ok := errors.AsType[*llm.Error](&e)
		return ok && failed.Status == 0 && errors.Is(failed, llm.ErrNoKey)
	})
}

// MaxFailures bounds how many different failures are explained one by one.
const MaxFailures = 10

// An Ending is a run that ended, as stderr reports it.
type Ending struct {
	Result   *engine.Result
	Mode     string           // of the progress: "none" reports only warnings and failures, "live" has shown the counts
	Scripted bool             // a script answered
	Unstored bool             // there is no journal
	Spec     string           // the path of the spec
	Withheld *Withheld        // nil to omit what agents did not see
	Findings []engine.Finding // of the plan
}

// Print reports the run on stderr.
func (e *Ending) Print(con *console.Console) {
	if text := e.Text(); text != "" {
		con.Say("%s", text)
	}
}

// Text returns the report of the run: counts, what its agents did not see, and for each failure its
// cause and what to do.
func (e *Ending) Text() string {
	res := e.Result
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if e.Mode == "none" { // no progress has shown them
		for _, w := range res.Warnings[:min(len(res.Warnings), MaxFailures)] {
			say("warning: %s", w)
		}
		if res.Success() {
			return b.String()
		}
	}
	if e.Mode != "live" {
		say("%s", e.totals())
	}
	causes := causesOf(res, e.Unstored)
	for i, c := range causes {
		if i == MaxFailures {
			say("… and %d more kinds of failure; --output json has all", len(causes)-i)
			break
		}
		word := "failed: "
		if c.isAccepted {
			word = format.Failed + format.Accepted + ":"
		}
		say("%s %s: %s", word, format.List(c.who, 3), format.Indent(format.Readers(c.message)))
		if c.next != "" {
			say("         %s", c.next)
		}
		if len(c.skipped) > 0 {
			say("         skipped because of it: %s", format.List(c.skipped, 3))
		}
	}
	switch res.Status {
	case engine.StatusTimeout:
		say("runteam: %v: raise --timeout, or timeoutMs of the spec", res.Cause)
	case engine.StatusError:
		if !res.Answered {
			say("runteam: could not run: every model call failed before a model answered")
		}
	}
	if e.Mode != "none" {
		e.writeContext(&b)
	}
	return b.String()
}

// totals returns the counts of tasks and tokens and the time, and says if a goal has no answer.
func (e *Ending) totals() string {
	res := e.Result
	titles := make([]string, len(res.Tasks))
	for i := range res.Tasks {
		titles[i] = res.Tasks[i].Title
	}
	text := format.OutcomeCounts(res.Outcomes(), format.TaskRuns(titles))
	switch {
	case len(res.Tasks) == 0 && res.Status == engine.StatusSuspended:
		text = "no task was run, the plan waits for a person"
	case len(res.Tasks) == 0:
		text = "no task was run"
	case res.Status == engine.StatusSuspended:
		text += fmt.Sprintf(", %s waiting for a person", format.Number(waiting(res)))
	case res.Goal != "" && res.Output == "":
		text += ", no answer"
	}
	text += " in " + format.Elapsed(res.EndedAt.Sub(res.StartedAt))
	if since, resumed := res.Resumed(); resumed {
		text += cmp.Or(format.Tokens(since, "; "), "; no tokens") + format.Tokens(res.Usage, " ("+format.ApproximationMark(estimated(res))) + " in total)"
	} else {
		text += format.Tokens(res.Usage, "; ")
	}
	text = format.Partial(text, res.IsPartial())
	if e.Scripted {
		text += " (scripted)"
	}
	return text
}

// estimated reports whether the tokens of calls that a crash ended are estimates.
func estimated(res *engine.Result) bool {
	return slices.ContainsFunc(res.Tasks, func(t engine.TaskResult) bool { return t.Metrics.Interrupted > 0 }) ||
		slices.ContainsFunc(res.Steps, func(s engine.Step) bool { return s.Metrics.Interrupted > 0 })
}

// waiting counts the tasks that wait for people.
func waiting(res *engine.Result) (n int) {
	for i := range res.Tasks {
		if res.Tasks[i].WaitingFor != "" {
			n++
		}
	}
	return n
}

// writeContext writes what the agents did not see, and how much context was sent.
func (e *Ending) writeContext(b *strings.Builder) {
	c := &e.Result.Context
	if c.Prompts == 0 && !e.Result.IsPartial() {
		return
	}
	if w := e.Withheld; w != nil {
		w.addProven(e.Findings)
		titles := map[task.ID]string{}
		for i := range e.Result.Tasks {
			titles[e.Result.Tasks[i].ID] = e.Result.Tasks[i].ShownName()
		}
		rows := w.rows()
		writeRows(b, rows, e.Spec, titles)
		if len(rows) == 0 {
			b.WriteString("\n")
		}
		switch {
		case w.hidden:
			b.WriteString("What was withheld of values above your clearance is not shown.\n")
		case len(rows) == 0:
			b.WriteString("Nothing was withheld from the agents.\n")
		}
		if text := w.counted(c); text != "" {
			b.WriteString(text + "\n")
		}
	}
	if c.Truncated > 0 {
		fmt.Fprintf(b, "%s cut to fit.\n", format.Plural(c.Truncated, "text"))
	}
	verb := "Sent"
	if !e.Result.Answered {
		verb = "No endpoint answered; offered"
	}
	if c.TokensSaved > 0 {
		fmt.Fprintf(b, "The gate left out ~%s of context.\n", format.Plural(c.TokensSaved, "token"))
	}
	if c.Prompts == 0 {
		return
	}
	if c.TokensSaved > 0 && c.Sent >= c.Shared { // what stands in their place is as long
		fmt.Fprintf(b, "%s %s of context, which includes what the prompts say in its place.\n", verb, format.Bytes(c.Sent))
		return
	}
	fmt.Fprintf(b, "%s %s of context; sharing everything would have sent %s.\n", verb, format.Bytes(c.Sent), format.Bytes(c.Shared))
}

// A cause is one reason why tasks, or steps of the coordinator, failed.
type cause struct {
	message string   // as in the events
	next    string   // what to do about it; may be empty
	who     []string // "task (agent)"
	skipped []string // names of the tasks that did not run because of them

	isAccepted bool // the run can succeed all the same
}

// causesOf groups the failures of a run by code and message: those of tasks in the order of the spec,
// then those of the coordinator.
func causesOf(res *engine.Result, unstored bool) []*cause {
	var all []*cause
	byText := make(map[string]*cause)
	byRoot := make(map[task.ID]*cause)
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if t.Error == nil || t.Error.Root != "" {
			continue
		}
		key := fmt.Sprintf("%t %s\x00%s", t.Error.Accepted, t.Error.Code, t.Error.Message)
		c := byText[key]
		if c == nil {
			c = &cause{isAccepted: t.Error.Accepted, message: t.Error.LogMessage(), next: adviceOn(t, unstored)}
			byText[key] = c
			all = append(all, c)
		}
		c.who = append(c.who, t.ShownName()+" ("+t.Assignee+")")
		byRoot[t.ID] = c
	}
	skipped := map[*cause][]*engine.TaskResult{}
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Error != nil && byRoot[t.Error.Root] != nil {
			c := byRoot[t.Error.Root]
			if skipped[c] = append(skipped[c], t); c.isAccepted && !t.Error.Accepted {
				c.next = "tasks that need its result fail the run: write optional: true in their dependsOn, or onFailure: continue"
			}
		}
	}
	for c, tasks := range skipped {
		c.skipped = namesOf(tasks)
	}
	for i := range res.Errors {
		if e := &res.Errors[i]; e.Task == "" && !endedBecause(res, e) {
			all = append(all, &cause{message: e.LogMessage(), next: CoordinatorAdvice(e), who: []string{e.Title + " (" + handoff.Coordinator + ")"}})
		}
	}
	return all
}

// namesOf names tasks, those in several rounds or for several items together.
func namesOf(tasks []*engine.TaskResult) (names []string) {
	n := map[string]int{} // by the title as written
	for _, t := range tasks {
		n[naming.WithoutInstance(t.Title)]++
	}
	for _, t := range tasks {
		switch written := naming.WithoutInstance(t.Title); n[written] {
		case 0: // named with another one
		case 1:
			names = append(names, t.ShownName())
		default:
			names = append(names, format.Instances(written, n[written]))
			n[written] = 0
		}
	}
	return names
}

// endedBecause reports whether a step of the coordinator failed because the run ended, which the
// summary reports elsewhere.
func endedBecause(res *engine.Result, e *engine.TaskError) bool {
	return res.Cause != nil && (errors.Is(e, engine.ErrCanceled) || errors.Is(e, engine.ErrTimeout))
}
