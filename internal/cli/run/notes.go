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
func (x *execution) printJournalNotes() {
	if x.journal == nil {
		return
	}
	if err := x.result.JournalErr; err != nil {
		x.con.Say("runteam: the journal does not have the end of the run: %s", terminal.Clean(err.Error()))
		x.con.Say("         completed results are printed, and tasks that had not begun were skipped;")
		x.con.Say("         runteam show has only what was saved, so it may count fewer tasks as completed")
	}
	if x.job.Progress != "none" {
		x.con.Say("%s", strings.Join(x.journalNotes(), "\n"))
	}
	if !x.warned && x.journal.digestOnly(x.result) {
		warnNoKey(x.con)
	}
}

// printWorkspaces prints where the workspaces that were kept are.
func (x *execution) printWorkspaces() {
	for i := range x.result.Tasks {
		if t := &x.result.Tasks[i]; t.Workspace != "" {
			x.con.Say("workspace of %q: %s", terminal.CleanLine(t.ShownName()), format.ShellPath(t.Workspace))
		}
	}
}

// warnNoKey warns of results that cannot be read from the journal.
func warnNoKey(con *console.Console) {
	if con.Settings.Level <= slog.LevelWarn {
		con.Say("runteam: warning: the journal stores only digests of what is above confidential, so a resumed run repeats it; to store it encrypted, give --journal-key FILE or %s", journals.EnvJournalKey)
	}
}

// journalNotes returns the lines of the notes.
func (x *execution) journalNotes() (lines []string) {
	if again := x.job.resumed; again != nil {
		lines = append(lines, "resumed: "+again.describe(x.result))
	}
	if saved := report.Savings(x.result); saved != "" {
		lines = append(lines, "reused:  "+saved)
	}
	run := x.journal.shortID(x.result.RunID)
	lines = append(lines, "", fmt.Sprintf("Run %s is saved in %s%s. Next:", run, x.journal.at.Place(), withoutEnd(x.result)))
	for _, next := range x.nextCommands(run) {
		lines = append(lines, "  # "+next.question, "  "+next.command)
	}
	return lines
}

// withoutEnd says that the journal does not have all of the run; it is empty if it has.
func withoutEnd(res *engine.Result) string {
	if res.JournalErr == nil {
		return ""
	}
	return " without its end"
}

// A nextCommand is a command to type after a run, and its purpose.
type nextCommand struct{ question, command string }

// nextCommands returns what to do after a run: resume it if it did not succeed, else explain one
// of its prompts and repeat it without one of its results.
func (x *execution) nextCommands(run string) []nextCommand {
	res, command := x.result, x.job.Journal.Command
	show := nextCommand{"See each task and its result:", command("show", run)}
	if res.Status == engine.StatusSuspended && res.JournalErr == nil {
		return append(x.answerCommands(run), nextCommand{"Then resume it; completed tasks are not repeated:", x.resumeCommand(run)})
	}
	if refused, err := journals.IsRefused(context.Background(), x.journal.journal, res.RunID); refused && err == nil && res.JournalErr == nil {
		return []nextCommand{{"It was refused, and resuming it changes nothing. Start a new run, with the flags of this one:", command("run", x.file.Path)}, show}
	}
	if !res.Success() || res.JournalErr != nil {
		return []nextCommand{{"Resume it; completed tasks are not repeated:", x.resumeCommand(run)}, show}
	}
	last, joined := cmp.Or(x.withheld.NarrowedTask(res), lastPrompt(res)), joinedTask(res)
	if last == nil {
		return []nextCommand{show}
	}
	all := []nextCommand{{"What was in this prompt, and where did each byte come from?", command("explain", taskName(last))}}
	if joined == nil {
		return append(all, show)
	}
	replay := command("replay") + " --without " + format.ShellWord(taskName(joined))
	question := fmt.Sprintf("Did the result of %q matter? Run again without it:", terminal.Clip(terminal.CleanLine(joined.ShownName()), 24))
	return append(all, nextCommand{question, replay})
}

// resumeCommand returns the command that resumes the run, and saves its results where this command did.
func (x *execution) resumeCommand(run string) string {
	text := x.job.Journal.Command("resume", run)
	if x.folder != nil {
		text += " --save " + format.ShellPath(x.folder.Path) + " --force"
	}
	return text
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

// joinedTask returns the last dependency of the first task with the most dependencies that
// completed, counting up to three. It is nil if no task has two. It is none that decides which tasks run.
func joinedTask(res *engine.Result) (found *engine.TaskResult) {
	most, byID := 1, make(map[task.ID]*engine.TaskResult, len(res.Tasks))
	for i := range res.Tasks {
		byID[res.Tasks[i].ID] = &res.Tasks[i]
	}
	for i := range res.Tasks {
		var last *engine.TaskResult
		n := 0
		for _, id := range res.Tasks[i].DependsOn {
			if up := byID[id]; up != nil && up.Status == task.Completed {
				if n++; !res.Decides(id) {
					last = up
				}
			}
		}
		if last != nil && min(n, 3) > most {
			most, found = min(n, 3), last
		}
	}
	return found
}

// taskName returns the name or the title of a task, or its ID if that is too long for a command.
func taskName(t *engine.TaskResult) string {
	if title := t.ShownName(); terminal.CleanLine(title) == title && terminal.Width(title) <= maxTypedTitle {
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

// describe says what had completed before the run was resumed.
func (r *resumed) describe(res *engine.Result) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if res.Success() && len(r.called) == 0 && r.completed == 0 { // else a person had answered
		return "every task was completed before, and no agent was called"
	}
	text := fmt.Sprintf("%s completed before", format.Plural(r.earlier, "task"))
	interrupted := 0
	for i := range res.Tasks {
		interrupted += res.Tasks[i].Metrics.Interrupted
	}
	for i := range res.Steps {
		interrupted += res.Steps[i].Metrics.Interrupted
	}
	if r.unused != "" {
		text += "; " + r.unused
	}
	if interrupted > 0 {
		text += fmt.Sprintf("; %s had been interrupted", format.Plural(interrupted, "attempt"))
	}
	return text
}
