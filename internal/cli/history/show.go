// Package history is the commands runs, show and gc: they list, show and remove stored runs.
package history

import (
	"io"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/spf13/cobra"
)

// showFlags are the arguments and flags of show.
type showFlags struct {
	journals.ReadFlags
	usage     bool
	reasoning bool
	handoffs  bool
}

// ShowCommand returns the command show.
func ShowCommand(con *console.Console) *cobra.Command {
	s := &showFlags{}
	cmd := &cobra.Command{
		Use:   "show [RUN] [TASK]",
		Short: "Show a run of the journal: its tasks, their results, tokens and cost",
		Long: `show prints a run of the journal: the newest, or the one whose ID begins with RUN.
It prints how the run ended, its answer, the outcome of each task and the beginning
of each other result. With TASK (a title, the name of an item such as Mail[ann@x.org],
a key, an ID, or a step of the coordinator) it prints everything about one task,
including rejected answers, and with --reasoning what its models wrote before their
answers. TASK alone is a task of the newest run. With --usage it prints the tokens of each task, agent and model, and
their cost by the prices: of the spec. With --handoffs it prints what agents sent to each other along
edges, and which tasks have read it; with TASK, what that task sent, read or has not read. Results are shown as the user of the run may
see them: what is above that clearance, or has expired since, is withheld.`,
		Example: `  runteam show                                 the newest run
  runteam show 0195c3a1 "Score fraud"
  runteam show "Score fraud" --reasoning
  runteam show --usage
  runteam show --handoffs`,
		Args: s.Arguments(2, "a RUN and a TASK (quote a title of several words)"),
		RunE: func(cmd *cobra.Command, _ []string) error { return show(con, cmd, s) },
	}
	s.AddTo(cmd)
	journals.NewCompleter(con, &s.Flags).Arguments(cmd, true, false)
	cmd.Flags().BoolVar(&s.reasoning, "reasoning", false, "show what the models of a TASK wrote before their answers")
	cmd.Flags().BoolVar(&s.usage, "usage", false, "show the tokens and the cost of each task, agent and model")
	cmd.Flags().BoolVar(&s.handoffs, "handoffs", false, "show what agents sent to each other, and who has read it")
	return cmd
}

// check refuses flags that contradict each other.
func (s *showFlags) check() error {
	switch {
	case s.handoffs && (s.usage || s.reasoning):
		return exit.Usagef("--handoffs shows handoffs alone: leave --usage and --reasoning out")
	case s.usage && s.Task != "":
		return exit.Usagef("--usage shows the whole run: leave TASK out")
	case s.usage && s.reasoning:
		return exit.Usagef("--reasoning shows one task and --usage the whole run: leave one of them out")
	}
	return nil
}

func show(con *console.Console, cmd *cobra.Command, s *showFlags) error {
	if err := s.check(); err != nil {
		return err
	}
	j, found, err := s.OpenRun(cmd, con) // RUN may turn out to be a TASK
	if err != nil {
		return err
	}
	defer j.Close()
	if err := s.check(); err != nil {
		return err
	}
	if s.reasoning && s.Task == "" {
		return exit.Usagef("--reasoning needs a task: write runteam show RUN TASK --reasoning")
	}
	var k *journals.StoredRun
	switch {
	case s.handoffs: // other tasks have read what one has sent
		k, err = journals.Load(cmd.Context(), con, j, found, "")
	case s.Task != "":
		k, err = journals.Load(cmd.Context(), con, j, found, s.Task)
	default:
		k, err = journals.LoadOutline(cmd.Context(), con, j, found)
	}
	if err != nil {
		return err
	}
	switch {
	case s.handoffs:
		return showHandoffs(con, k, s.Task)
	case s.usage:
		u := view.Of(k).Usages()
		return con.PrintResult(u, func(w io.Writer) { writeUsage(w, u, con.TitleWidth()) })
	case s.Task != "":
		t, err := view.TaskOf(k, s.Task, s.reasoning)
		if err != nil {
			return err
		}
		return con.PrintResult(t, func(w io.Writer) { writeTask(w, t, journals.Heading(k.Name, k.Run), s.reasoning) })
	}
	r := &runText{run: view.Of(k), summary: &k.Summary, shortID: k.ShortID, now: k.Now, journal: &s.Flags, titleWidth: con.TitleWidth()}
	r.nameInputs(cmd.Context(), j)
	if r.outlook, err = journals.FindOutlook(cmd.Context(), j, &k.Summary); err != nil {
		return journals.ReadError(cmd.Context(), err)
	}
	return con.PrintResult(r.run, r.write)
}

// showHandoffs prints the handoffs of a run, or of one of its tasks unless that is empty.
func showHandoffs(con *console.Console, k *journals.StoredRun, name string) error {
	d := sent.NewDocument(k, "", "")
	if name != "" {
		t, err := k.FindTask(name)
		if err != nil {
			return err
		}
		d = sent.NewDocument(k, t.ID, t.Agent)
	}
	return con.PrintResult(d, d.Write)
}
