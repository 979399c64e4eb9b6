package journals

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/spf13/cobra"
)

// completionRuns is how many runs a completion offers at most.
const completionRuns = 50

// A Completer completes runs of a journal and their tasks. If it cannot read the journal, it
// offers nothing and prints nothing.
type Completer struct {
	con     *console.Console
	journal *Flags
}

// NewCompleter returns a completer for the journal that flags name.
func NewCompleter(con *console.Console, flags *Flags) Completer { return Completer{con, flags} }

// Runs offers the newest runs whose IDs begin with the word.
func (c Completer) Runs(cmd *cobra.Command, word string) []cobra.Completion {
	return c.offer(cmd, func(ctx context.Context, j *journal.Journal) ([]cobra.Completion, error) {
		list, err := j.Newest(ctx, word, completionRuns)
		if err == nil {
			err = FindUnended(ctx, j, list, func(*journal.Summary) bool { return true })
		}
		var out []cobra.Completion
		short := ShortIDs(list)
		for _, s := range list {
			id := short[s.Run]
			if len(id) < len(word) {
				id = s.Run
			}
			about := fmt.Sprintf("%s, %s, %s", cmp.Or(terminal.CleanLine(s.Name), "no name"), s.Status, age(c.con.Now().Sub(s.Started)))
			out = append(out, cobra.CompletionWithDesc(id, about))
		}
		return out, err
	})
}

// Tasks offers the tasks of a run that begin with the word.
func (c Completer) Tasks(cmd *cobra.Command, run, word string) []cobra.Completion {
	return c.tasks(cmd, run, "", word)
}

// tasks offers the tasks of a run, or of the newest if run is empty.
func (c Completer) tasks(cmd *cobra.Command, run, before, word string) []cobra.Completion {
	return c.offer(cmd, func(ctx context.Context, j *journal.Journal) ([]cobra.Completion, error) {
		found, err := Find(ctx, j, run)
		if err != nil {
			return nil, err
		}
		stored, err := j.LoadStart(ctx, found.Run)
		if err != nil {
			return nil, err
		}
		tasks, err := Tasks(ctx, j, found.Run, stored.History.Begins)
		if err != nil {
			return nil, err
		}
		var out []cobra.Completion
		for _, t := range tasks {
			if name := TaskName(t.Title, t.ID); strings.HasPrefix(name, word) {
				out = append(out, cobra.CompletionWithDesc(before+name, terminal.CleanLine(t.Assignee)))
			}
		}
		return out, nil
	})
}

// offer returns what read finds in the journal, within the time limit.
func (c Completer) offer(cmd *cobra.Command, read func(context.Context, *journal.Journal) ([]cobra.Completion, error)) []cobra.Completion {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), cmp.Or(c.con.CompletionTime, time.Second))
	defer cancel()
	out, err := files.Await(ctx, func() ([]cobra.Completion, error) {
		at, err := find(c.con, c.journal, ToRead)
		if err != nil {
			return nil, err
		}
		o := journal.Options{Dir: c.con.WorkDir, ReadOnly: true, Now: c.con.Now}
		if at.address != "" { // which requires it
			if o.Key, err = JournalKey(c.con, c.journal.KeyFile); err != nil {
				return nil, err
			}
		}
		j, err := at.Open(c.con, o)
		if err != nil {
			return nil, err
		}
		defer j.Close() //nolint:errcheck // nothing was written
		return read(ctx, j)
	})
	if err != nil {
		return nil
	}
	return out
}

// Arguments completes RUN, and TASK if the command takes one. If RUN may be a file, shells offer
// files when no run matches.
func (c Completer) Arguments(cmd *cobra.Command, takesTask, takesFile bool) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		files := cobra.ShellCompDirectiveNoFileComp
		switch {
		case len(args) == 0:
			if takesFile {
				files = cobra.ShellCompDirectiveDefault
			}
			out := c.Runs(cmd, word)
			if takesTask { // TASK alone is a task of the newest run
				out = append(out, c.tasks(cmd, "", "", word)...)
			}
			return out, files
		case len(args) == 1 && takesTask:
			return c.tasks(cmd, args[0], "", word), files
		}
		return nil, files
	}
}

// TaskFlag completes the value of a flag that names a task: of the run in the first argument if
// the command takes one, else of the newest run.
func (c Completer) TaskFlag(cmd *cobra.Command, flag string, takesRun bool) {
	flags.CompleteBy(cmd, flag, func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		run := ""
		if takesRun && len(args) > 0 {
			run = args[0]
		}
		return c.tasks(cmd, run, "", word), cobra.ShellCompDirectiveNoFileComp
	})
}

// InputFlag completes run:RUN/TASK in the value of --input, NAME=FILE.
func (c Completer) InputFlag(cmd *cobra.Command) {
	flags.CompleteBy(cmd, "input", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const mark = "run:"
		name, value, named := strings.Cut(word, "=")
		run, title, inRun := strings.Cut(strings.TrimPrefix(value, mark), "/")
		switch {
		case !named || !strings.HasPrefix(value, mark) && (value == "" || !strings.HasPrefix(mark, value)):
			return nil, cobra.ShellCompDirectiveDefault
		case !strings.HasPrefix(value, mark):
			return []cobra.Completion{name + "=" + mark}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case inRun:
			return c.tasks(cmd, run, name+"="+mark+run+"/", title), cobra.ShellCompDirectiveNoFileComp
		}
		out := c.Runs(cmd, run)
		for i, id := range out {
			id, about, _ := strings.Cut(id, "\t")
			out[i] = cobra.CompletionWithDesc(name+"="+mark+id+"/", about)
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// age writes how long ago something was, for people.
func age(d time.Duration) string {
	switch day := 24 * time.Hour; {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d/day))
	}
}
