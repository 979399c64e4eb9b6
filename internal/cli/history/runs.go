package history

import (
	"cmp"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/spf13/cobra"
)

// RunsCommand returns the command runs.
func RunsCommand(con *console.Console) *cobra.Command {
	l := &journals.ReadFlags{}
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs of the journal, the newest first",
		Long: `runs lists the runs of the journal, the newest first: the shortest unique beginning
of the id, status, start, duration and how many tasks are done. A run that a
process works on is running; a run without a process and without an end is
interrupted. "runteam resume" resumes it, and also one that failed, was cancelled or
ran out of time or budget. What "replay --without" made is marked as an experiment;
commands without RUN ignore it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("%s takes no argument: write runteam show %s", cmd.CommandPath(), format.ShellPath(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runs(con, cmd, l) },
	}
	l.AddTo(cmd)
	return cmd
}

// ListedRun is a run in the list, in JSON.
type ListedRun struct {
	Run      string          `json:"runId"`
	Name     string          `json:"name"`
	Status   string          `json:"status"`
	Started  time.Time       `json:"startedAt"`
	Ended    time.Time       `json:"endedAt,omitzero"`
	Tasks    journal.Counts  `json:"tasks"`
	Outcomes record.Outcomes `json:"outcomes"`

	Experiment *journals.Experiment `json:"experiment,omitempty"`
}

func runs(con *console.Console, cmd *cobra.Command, l *journals.ReadFlags) error {
	list, err := listRuns(con, cmd, l)
	if err != nil {
		return err
	}
	if con.Settings.JSON() {
		all := make([]ListedRun, len(list))
		for i, s := range list {
			all[i] = ListedRun{s.Run, s.Name, s.Status, s.Started, s.Ended, s.Tasks, s.Outcomes, s.experiment}
			if all[i].Tasks == nil {
				all[i].Tasks = journal.Counts{}
			}
		}
		return exit.IgnoreClosedPipe(con.PrintJSON(all))
	}
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	short, table := map[string]string{}, format.NewTable(&b, "")
	for i := range list {
		short[list[i].Run] = list[i].short
	}
	table.Row("run", "name", "status", "started", "took", "tasks", "")
	for i := range list {
		s := &list[i]
		next := s.next
		if e := s.experiment; e != nil {
			next = e.Text(cmp.Or(short[e.Of], journals.ShortRun(e.Of)))
		}
		table.Row(terminal.CleanLine(short[s.Run]), cmp.Or(terminal.CleanLine(s.Name), "-"), terminal.CleanLine(s.Status), format.Time(s.Started), durationText(&s.Summary, con.Now()), tasksOf(&s.Summary), next)
	}
	table.Flush()
	return exit.IgnoreClosedPipe(con.PrintText(b.String()))
}

// foundRun is a run in the list.
type foundRun struct {
	journal.Summary
	experiment *journals.Experiment // nil if it is none
	short      string               // how its ID begins, as no other does
	next       string               // see [journaling.nextStep]; of runs that failed, only the newest has one
}

// listRuns returns the runs of the journal, the newest first. A journal without
// runs, or none at all, is reported on stderr and is no error.
func listRuns(con *console.Console, cmd *cobra.Command, l *journals.ReadFlags) ([]foundRun, error) {
	if err := l.Check(cmd); err != nil {
		return nil, err
	}
	if where, none := journals.Missing(con, &l.Flags); none {
		con.Say(`runteam: there is no journal yet: "runteam run" keeps its runs in %s`, terminal.CleanLine(where))
		return nil, nil
	}
	j, err := l.Open(cmd, con)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	list, err := j.Runs(cmd.Context())
	if err == nil && len(list) == 0 {
		con.Say("runteam: the journal has no runs")
	}
	found := make([]foundRun, len(list))
	short, failed := journals.ShortIDs(list), false
	for i, s := range list {
		found[i] = foundRun{Summary: s, short: short[s.Run], experiment: journals.ReadExperiment(cmd.Context(), j, &s)}
		if found[i].experiment != nil || s.Status != journal.Interrupted && failed {
			continue
		}
		info := func() (*journal.Info, error) { return j.LoadInfo(cmd.Context(), s.Run) }
		if found[i].next = l.NextStep(&s, short[s.Run], info); s.Status != journal.Interrupted {
			failed = failed || found[i].next != "" && found[i].next != journals.StartedByProgram
		}
	}
	return found, journals.ReadError(exit.Cause(cmd.Context(), err))
}

// durationText says how long a run took, or takes by now.
func durationText(s *journal.Summary, now time.Time) string {
	switch {
	case !s.Ended.IsZero():
		return format.Elapsed(s.Ended.Sub(s.Started))
	case s.Status == journal.Running:
		return format.Seconds(now.Sub(s.Started))
	}
	return "-"
}
