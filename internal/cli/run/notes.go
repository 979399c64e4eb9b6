package run

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/task"
)

// printJournalNotes reports what a stored run reused, where it is stored, and what to do next.
func printJournalNotes(con *console.Console, j *Job, res outcome) {
	if res.journal == nil {
		return
	}
	if j.Progress != "none" {
		con.Say("%s", strings.Join(journalNotes(j, &res), "\n"))
	}
	if res.digestOnly {
		warnNoKey(con)
	}
	if res.JournalErr != nil {
		con.Say("runteam: the journal does not have the end of the run: %s", terminal.Clean(res.JournalErr.Error()))
		con.Say("         completed results are printed, and tasks that had not begun were skipped")
	}
}

// warnNoKey warns of results that cannot be read from the journal.
func warnNoKey(con *console.Console) {
	if con.Settings.Level <= slog.LevelWarn {
		con.Say("runteam: warning: the journal stores only digests of what is above confidential, so a resumed run repeats it; to store it encrypted, give --journal-key FILE or %s", journals.EnvJournalKey)
	}
}

// journalNotes returns the lines of the notes.
func journalNotes(j *Job, res *outcome) (lines []string) {
	if j.resumed != nil {
		lines = append(lines, "resumed: "+res.journal.describeResume(res.Result))
	}
	if saved := report.Savings(res.Result).String(); saved != "" {
		lines = append(lines, "reused:  "+saved)
	}
	run := res.journal.shortID(res.RunID)
	lines = append(lines, "", fmt.Sprintf("Run %s is saved in %s. Next:", run, terminal.CleanLine(res.journal.folder)))
	for _, next := range nextCommands(j, res, run) {
		lines = append(lines, "  # "+next.question, "  "+next.command)
	}
	return lines
}

// A nextCommand is a command to type after a run, and its purpose.
type nextCommand struct{ question, command string }

// nextCommands returns what to do after a run: resume it if it did not succeed, else explain one
// of its prompts and repeat it without one of its results.
func nextCommands(j *Job, res *outcome, run string) []nextCommand {
	command := func(verb string, words ...string) string { return j.Journal.Command(verb, words...) }
	show := nextCommand{"See each task and its result:", command("show", run)}
	if !res.Success() || res.JournalErr != nil {
		return []nextCommand{{"Resume it; completed tasks are not repeated:", command("resume", run)}, show}
	}
	last, joined := cmp.Or(res.withheld.NarrowedTask(res.Result), lastPrompt(res.Result)), joinedTask(res.Result)
	if last == nil {
		return []nextCommand{show}
	}
	all := []nextCommand{{"What was in this prompt, and where did each byte come from?", command("explain", taskName(last))}}
	if joined == nil {
		return append(all, show)
	}
	replay := command("replay") + " --without " + format.ShellWord(taskName(joined))
	if j.Offline {
		replay += " --offline"
	}
	question := fmt.Sprintf("Did the result of %q matter? Run again without it:", terminal.Clip(terminal.CleanLine(joined.Title), 24))
	return append(all, nextCommand{question, replay})
}

// lastPrompt returns the last completed task whose agent was called; nil if there is none.
func lastPrompt(res *engine.Result) *engine.TaskResult {
	for i := range slices.Backward(res.Tasks) {
		if t := &res.Tasks[i]; t.Status == task.Completed && t.Reused == "" {
			return t
		}
	}
	return nil
}

// joinedTask returns the last dependency of the first task with the most dependencies, counting up
// to three. It is nil if no task has two.
func joinedTask(res *engine.Result) (found *engine.TaskResult) {
	most := 1
	for i := range res.Tasks {
		if n := len(res.Tasks[i].DependsOn); min(n, 3) > most {
			most = min(n, 3)
			found, _ = res.Task(string(res.Tasks[i].DependsOn[n-1]))
		}
	}
	return found
}

// taskName returns the title of a task, or its ID if the title is too long for a command.
func taskName(t *engine.TaskResult) string {
	if title := t.Title; terminal.CleanLine(title) == title && terminal.Width(title) <= maxTypedTitle {
		return title
	}
	return string(t.ID)
}

// maxTypedTitle is how long a title in a command may be, in cells.
const maxTypedTitle = 36

// shortID returns the beginning of the run's ID if it is unique in the journal, else the whole ID.
func (c *JournalWriter) shortID(run string) string {
	if same, err := c.journal.Newest(context.Background(), journals.ShortRun(run), 2); err != nil || len(same) != 1 {
		return run
	}
	return journals.ShortRun(run)
}

// describeResume says what had completed before the run was resumed.
func (c *JournalWriter) describeResume(res *engine.Result) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if res.Success() && c.calls == 0 {
		return "every task was completed before, and no agent was called"
	}
	text := fmt.Sprintf("%s completed before", format.Plural(c.earlier, "task"))
	interrupted := 0
	for i := range res.Tasks {
		interrupted += res.Tasks[i].Metrics.Interrupted
	}
	for i := range res.Steps {
		interrupted += res.Steps[i].Metrics.Interrupted
	}
	if c.unused != "" {
		text += "; " + c.unused
	}
	if interrupted > 0 {
		text += fmt.Sprintf("; %s had been interrupted", format.Plural(interrupted, "attempt"))
	}
	return text
}
