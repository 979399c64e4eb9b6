package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/journal"
)

func (a *app) runsCommand() *cobra.Command {
	l := &looking{}
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
				return usageError("%s takes no argument: write runteam show %s", cmd.CommandPath(), shellWord(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runs(cmd, l) },
	}
	l.flags(cmd)
	return cmd
}

// listedRun is a run in the list, in JSON.
type listedRun struct {
	Run      string         `json:"runId"`
	Name     string         `json:"name"`
	Status   string         `json:"status"`
	Started  time.Time      `json:"startedAt"`
	Ended    time.Time      `json:"endedAt,omitzero"`
	Tasks    journal.Counts `json:"tasks"`
	Outcomes event.Outcomes `json:"outcomes"`

	Experiment *experiment `json:"experiment,omitempty"`
}

func (a *app) runs(cmd *cobra.Command, l *looking) error {
	list, err := a.allRuns(cmd, l)
	if err != nil {
		return err
	}
	if a.settings.json() {
		all := make([]listedRun, len(list))
		for i, s := range list {
			all[i] = listedRun{s.Run, s.Name, s.Status, s.Started, s.Ended, s.Tasks, s.Outcomes, s.experiment}
			if all[i].Tasks == nil {
				all[i].Tasks = journal.Counts{}
			}
		}
		return satisfied(a.printJSON(all))
	}
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	short, table := map[string]string{}, newRows(&b, "")
	for i := range list {
		short[list[i].Run] = list[i].short
	}
	table.row("run", "name", "status", "started", "took", "tasks", "")
	for i := range list {
		s := &list[i]
		next := s.next
		if e := s.experiment; e != nil {
			next = e.text(cmp.Or(short[e.Of], shortRun(e.Of)))
		}
		table.row(cleanLine(short[s.Run]), cmp.Or(cleanLine(s.Name), "-"), cleanLine(s.Status), moment(s.Started), tookOf(&s.Summary, a.now()), tasksOf(&s.Summary), next)
	}
	table.flush()
	return satisfied(a.printText(b.String()))
}

// foundRun is a run in the list.
type foundRun struct {
	journal.Summary
	experiment *experiment // nil if it is none
	short      string      // how its ID begins, as no other does
	next       string      // see [journaling.nextStep]; of runs that failed, only the newest has one
}

// allRuns returns the runs of the journal, the newest first. A journal without
// runs, or none at all, is reported on stderr and is no error.
func (a *app) allRuns(cmd *cobra.Command, l *looking) ([]foundRun, error) {
	if err := l.check(cmd); err != nil {
		return nil, err
	}
	if where, none := a.noJournal(&l.journaling); none {
		a.say(`runteam: there is no journal yet: "runteam run" keeps its runs in %s`, cleanLine(where))
		return nil, nil
	}
	j, err := l.open(cmd, a)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	list, err := j.Runs(cmd.Context())
	if err == nil && len(list) == 0 {
		a.say("runteam: the journal has no runs")
	}
	found := make([]foundRun, len(list))
	short, failed := shortIDs(list), false
	for i, s := range list {
		found[i] = foundRun{Summary: s, short: short[s.Run], experiment: experimentOf(cmd.Context(), j, &s)}
		if found[i].experiment != nil || s.Status != journal.Interrupted && failed {
			continue
		}
		info := func() (*journal.Info, error) { return j.LoadInfo(cmd.Context(), s.Run) }
		if found[i].next = l.nextStep(&s, short[s.Run], info); s.Status != journal.Interrupted {
			failed = failed || found[i].next != "" && found[i].next != begunByProgram
		}
	}
	return found, unloaded(whyEnded(cmd.Context(), err))
}

// noJournal reports whether no flag names a journal and none was made yet, and
// where it would be.
func (a *app) noJournal(g *journaling) (where string, none bool) {
	if g.path != "" {
		return g.path, false
	}
	folder, _, err := a.journalFolder()
	if err != nil {
		return "", false // opening says why
	}
	where = filepath.Join(folder, journalFile)
	_, err = os.Stat(where)
	return where, errors.Is(err, fs.ErrNotExist)
}

// moment writes a time of a run for people.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// tookOf says how long a run took, or takes by now.
func tookOf(s *journal.Summary, now time.Time) string {
	switch {
	case !s.Ended.IsZero():
		return elapsed(s.Ended.Sub(s.Started))
	case s.Status == journal.Running:
		return seconds(now.Sub(s.Started))
	}
	return "-"
}

// tasksOf counts the tasks of a run by how they ended.
func tasksOf(s *journal.Summary) string {
	total := 0
	for _, n := range s.Tasks {
		total += n
	}
	return doneOf(s.Outcomes, number(total))
}
