package history

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/spf13/cobra"
)

// RunsCommand returns the command runs.
func RunsCommand(con *console.Console) *cobra.Command {
	l := &runsFlags{given: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs of the journal, the newest first",
		Long: `runs lists the runs of the journal, the newest first, with the shortest unique
beginning of the ID, the status, start, duration and number of completed tasks. A run
is running while a process works on it, paused after "runteam pause", and interrupted if
it did not end and has no process. "runteam resume" resumes runs that were paused or
interrupted, failed, were cancelled or ran out of time or budget. Runs made by "replay --without" are marked as
experiments; commands without RUN ignore them. Turns of "runteam chat" are marked with
their session.

The list can be limited to runs that fit all of --search, --status, --spec, --since,
--until, --min-cost and --max-cost. A run of which a model has no price has no cost to
compare. With --limit, a line on standard error says how to list the runs that follow,
also if new runs have begun meanwhile.`,
		Example: `  runteam runs --status error,interrupted --since 7d
  runteam runs --search "claims letter" --limit 20
  runteam runs --spec team.yaml --min-cost 0.50`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("%s takes no argument: write runteam show %s", cmd.CommandPath(), format.ShellPath(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runs(con, cmd, l) },
	}
	l.AddTo(cmd)
	for _, term := range FilterTerms {
		l.given[term.Name] = cmd.Flags().String(term.Name, "", term.Usage)
		flags.Complete(cmd, term.Name, map[string][]string{"status": RunStatuses}[term.Name])
	}
	cmd.Flags().IntVar(&l.limit, "limit", 0, "list at most `N` runs (default all)")
	cmd.Flags().StringVar(&l.before, "before", "", "list the runs that come after this `RUN` in the list")
	flags.Complete(cmd, "limit", nil)
	flags.Complete(cmd, "before", nil)
	return cmd
}

// runsFlags are the flags of runs.
type runsFlags struct {
	journals.ReadFlags
	given  map[string]*string // of terms of the filter
	limit  int
	before string
}

// A ListedRun is a run in the list, in JSON.
type ListedRun struct {
	Run      string          `json:"runId"`
	Name     string          `json:"name"`
	Spec     string          `json:"spec,omitempty"`    // its name; empty of a run of a program, or of an earlier version
	Starter  string          `json:"starter,omitempty"` // who started it, as a server authenticated the person
	Status   string          `json:"status"`
	Started  time.Time       `json:"startedAt"`
	Ended    time.Time       `json:"endedAt,omitzero"`
	Took     int64           `json:"tookMs,omitempty"` // for which processes worked on it; 0 if it did not end
	Tasks    journal.Counts  `json:"tasks"`
	Outcomes record.Outcomes `json:"outcomes"`

	Experiment *journals.Experiment `json:"experiment,omitempty"` // nil if it is none

	Session string `json:"session,omitempty"` // of which it is a turn; empty if it is none
	Turn    int    `json:"turn,omitempty"`    // which, from 1

	Queue *journal.QueuePlace `json:"queue,omitempty"` // nil unless it was submitted, and needs a worker

	summary journal.Summary
	outlook journals.Outlook // known of suspended runs, and of the newest that failed
}

func runs(con *console.Console, cmd *cobra.Command, l *runsFlags) error {
	list, err := listRuns(con, cmd, l)
	if err != nil {
		return err
	}
	return con.PrintResult(list, func(w io.Writer) {
		if len(list) > 0 {
			writeRuns(w, list, &l.Flags, con.Now())
		}
	})
}

// writeRuns writes a list of runs with their next steps; of the runs that failed, only the newest
// has one.
func writeRuns(w io.Writer, list []ListedRun, from *journals.Flags, now time.Time) {
	summaries := make([]journal.Summary, len(list))
	for i := range list {
		summaries[i] = list[i].summary
	}
	short, table := journals.ShortIDs(summaries), format.NewTable(w, "")
	table.Row("run", "name", "status", "started", "took", "tasks", "")
	failed := false
	for i := range list {
		r := &list[i]
		next := ""
		unended := r.Ended.IsZero()
		if e := r.Experiment; e != nil {
			next = e.Text(cmp.Or(short[e.Of], journals.ShortRun(e.Of)))
		} else if unended || !failed {
			next = from.NextStep(&r.summary, short[r.Run], r.outlook)
			failed = failed || !unended && next != "" && next != journals.StartedByProgram
		}
		if r.Session != "" {
			of := fmt.Sprintf("turn %d of %s", r.Turn, cmp.Or(short[r.Session], journals.ShortRun(r.Session)))
			next = strings.Trim(of+"; "+next, "; ")
		}
		table.Row(short[r.Run], cmp.Or(r.Name, "-"), r.Status, format.Time(r.Started), durationText(&r.summary, now), tasksOf(&r.summary), next)
	}
	table.Flush()
}

// listRuns returns the runs of the journal, the newest first. A missing or empty journal is
// reported on stderr and is no error.
func listRuns(con *console.Console, cmd *cobra.Command, l *runsFlags) ([]ListedRun, error) {
	if err := l.Check(cmd); err != nil {
		return nil, err
	}
	filter, err := ParseRunFilter(func(term string) string { return *l.given[term] }, func(term string) string { return "--" + term }, con.Now())
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("limit") && l.limit < 1 {
		return nil, exit.Usagef("--limit %d: write a number from 1 on, or leave it out", l.limit)
	}
	if journals.Missing(con, &l.Flags) {
		con.Say("runteam: %s", journals.NoJournal)
		return []ListedRun{}, nil
	}
	j, err := l.Open(cmd, con)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	list, err := l.find(con, cmd, j, &filter)
	if err != nil {
		return nil, err
	}
	found := make([]ListedRun, len(list))
	failed := false
	for i, s := range list {
		found[i] = Listed(cmd.Context(), j, &s)
		isError := s.Status == string(engine.StatusError)
		if err == nil && found[i].Experiment == nil && !(isError && failed) {
			found[i].outlook, err = journals.FindOutlook(cmd.Context(), j, &s)
			failed = failed || isError && s.Command != ""
		}
	}
	return found, journals.ReadError(cmd.Context(), err)
}

// find returns the runs to list. What else there is to know of the list it reports on stderr.
func (l *runsFlags) find(con *console.Console, cmd *cobra.Command, j *journal.Journal, filter *RunFilter) ([]journal.Summary, error) {
	ctx := cmd.Context()
	list, err := j.Newest(ctx, "", math.MaxInt)
	switch {
	case err != nil:
		return nil, journals.ReadError(ctx, err)
	case len(list) == 0:
		con.Say("runteam: the journal has no runs")
		return nil, nil
	case l.before != "":
		of, err := journals.Find(ctx, j, l.before)
		if err != nil {
			return nil, err
		}
		list = list[1+slices.IndexFunc(list, func(s journal.Summary) bool { return s.Run == of.Run }):]
	}
	finder := RunFinder{Journal: j, Now: con.Now}
	found, err := finder.Find(ctx, list, filter, cmp.Or(l.limit, math.MaxInt), time.Time{})
	switch {
	case err != nil:
		return nil, err
	case len(found.Runs) == 0 && !filter.IsEmpty():
		con.Say("runteam: no run fits the filter")
	case found.Next != "":
		con.Say("runteam: more runs follow: add --before %s", journals.ShortRun(found.Next))
	}
	return found.Runs, nil
}

// Listed returns a run as the list has it.
func Listed(ctx context.Context, j *journal.Journal, s *journal.Summary) ListedRun {
	r := ListedRun{s.Run, s.Name, s.Spec, s.Starter, s.Status, s.Started, s.Ended, view.TookMs(s), s.Tasks, s.Outcomes, journals.ReadExperiment(ctx, j, s), s.Session, s.Turn, s.Queue, *s, journals.Outlook{}}
	if r.Tasks == nil {
		r.Tasks = journal.Counts{}
	}
	return r
}

// durationText returns for how long processes have worked on a run.
func durationText(s *journal.Summary, now time.Time) string {
	took, known := s.Took(now)
	switch {
	case !known:
		return "-"
	case s.Ended.IsZero():
		return format.Seconds(took)
	}
	return format.Elapsed(took)
}
