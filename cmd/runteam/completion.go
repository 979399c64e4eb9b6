package main

import (
	"github.com/spf13/cobra"

	"github.com/runteam/runteam/journal"
)

// takesRuns lists the commands whose first argument is a run, and whether a task
// may follow it or stand in its place.
var takesRuns = map[string]struct{ task bool }{
	"resume": {}, "replay": {}, "verify": {}, "show": {task: true}, "explain": {task: true},
}

// completeRuns lets shells complete the IDs of runs and the titles of their tasks
// from the journal, in all commands below cmd that take them.
func (a *app) completeRuns(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.completeRuns(sub)
	}
	takes, ok := takesRuns[cmd.Name()]
	if !ok {
		return
	}
	files := cobra.ShellCompDirectiveNoFileComp
	if cmd.Name() == "explain" || cmd.Name() == "verify" { // a trace may stand in the place of a run
		files = cobra.ShellCompDirectiveDefault
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 && takes.task:
			return append(a.runIDs(cmd), a.taskTitles(cmd, "")...), files
		case len(args) == 0:
			return a.runIDs(cmd), files
		case len(args) == 1 && takes.task:
			return a.taskTitles(cmd, args[0]), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, flag := range []string{"diff", "without", "fresh"} {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if flag == "diff" {
				return a.runIDs(cmd), cobra.ShellCompDirectiveNoFileComp
			}
			run := ""
			if len(args) > 0 {
				run = args[0]
			}
			return a.taskTitles(cmd, run), cobra.ShellCompDirectiveNoFileComp
		})
		if err != nil {
			panic(err) // the flag exists, and nothing else completes it
		}
	}
}

// offeredRuns is how many runs a shell is offered at most, the newest first.
const offeredRuns = 100

// runIDs returns the shortest ID of each run, with its name and status as the
// description. Without a journal that can be read there are none.
func (a *app) runIDs(cmd *cobra.Command) []cobra.Completion {
	j, err := a.journalToComplete(cmd)
	if err != nil {
		return nil
	}
	defer j.Close() //nolint:errcheck // nothing was written
	runs, err := j.Runs(cmd.Context())
	if err != nil {
		return nil
	}
	short := shortIDs(runs)
	var all []cobra.Completion
	for i := range runs[:min(len(runs), offeredRuns)] {
		r := &runs[i]
		all = append(all, cobra.CompletionWithDesc(short[r.Run], cleanLine(r.Name+", "+r.Status+", "+moment(r.Started))))
	}
	return all
}

// taskTitles returns the titles of the tasks of a run, or of the newest one.
func (a *app) taskTitles(cmd *cobra.Command, run string) []cobra.Completion {
	j, err := a.journalToComplete(cmd)
	if err != nil {
		return nil
	}
	defer j.Close() //nolint:errcheck // nothing was written
	if run, err = meant(cmd.Context(), j, run); err != nil {
		return nil
	}
	info, err := j.LoadInfo(cmd.Context(), run)
	if err != nil {
		return nil
	}
	tasks := info.Tasks
	if len(tasks) == 0 { // the coordinator planned them during the run
		t, err := j.Trace(cmd.Context(), run)
		if err != nil {
			return nil
		}
		tasks = t.Tasks
	}
	var all []cobra.Completion
	for i := range tasks {
		all = append(all, cobra.CompletionWithDesc(cleanLine(tasks[i].Title), cleanLine(tasks[i].Assignee)))
	}
	return all
}

// journalToComplete opens the journal that the command line names.
func (a *app) journalToComplete(cmd *cobra.Command) (*journal.Journal, error) {
	path, _ := cmd.Flags().GetString("journal")
	j, _, err := a.openJournal(&journaling{path: path}, toRead)
	return j, err
}
