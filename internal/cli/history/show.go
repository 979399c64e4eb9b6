// Package history is the commands runs, show and gc: they list, show and remove stored runs.
package history

import (
	"context"
	"errors"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/spf13/cobra"
)

// showFlags is one look at a stored run, as the arguments ask for it.
type showFlags struct {
	journals.ReadFlags
	task      string
	usage     bool
	reasoning bool
}

// ShowCommand returns the command show.
func ShowCommand(con *console.Console) *cobra.Command {
	s := &showFlags{}
	cmd := &cobra.Command{
		Use:   "show [RUN] [TASK]",
		Short: "Show a run of the journal: its tasks, their results, tokens and cost",
		Long: `show prints a run of the journal: the newest, or the one whose id begins with RUN.
It prints how the run ended, its answer, the outcome of each task and the beginning
of each other result. With TASK (a title, a key, an id, or a step of the
coordinator) it prints all of one task, including answers that were not accepted, and
with --reasoning what its models wrote before their answers; TASK alone is one of the
newest run. With --usage it prints the tokens of each task, agent and model, and their cost by the
prices: of the spec. Results are shown as the user of the run may see them: what is
above that clearance, or has expired since, is withheld.`,
		Example: `  runteam show                                 the newest run
  runteam show 0195c3a1 "Score fraud"
  runteam show "Score fraud" --reasoning
  runteam show --usage`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return exit.Usagef("%s takes a RUN and a TASK, not %d arguments: quote a title of several words", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.ParseRun(args); err != nil {
				return err
			}
			if len(args) == 2 {
				if s.task = args[1]; s.task == "" {
					return exit.Usagef("TASK is empty: write a title, a key or an id, or leave it out")
				}
			}
			return show(con, cmd, s)
		},
	}
	s.AddTo(cmd)
	journals.NewCompleter(con, &s.Flags).Arguments(cmd, true, false)
	cmd.Flags().BoolVar(&s.reasoning, "reasoning", false, "show what the models of a TASK wrote before their answers")
	cmd.Flags().BoolVar(&s.usage, "usage", false, "show what each task, agent and model took, and what it cost")
	return cmd
}

func show(con *console.Console, cmd *cobra.Command, s *showFlags) error {
	if s.usage && s.task != "" {
		return exit.Usagef("--usage is of the whole run: leave TASK out")
	}
	if s.usage && s.reasoning {
		return exit.Usagef("--reasoning shows one task and --usage the whole run: leave one of them out")
	}
	j, err := s.Open(cmd, con)
	if err != nil {
		return err
	}
	defer j.Close()
	var k *journals.StoredRun
	if s.task != "" {
		k, err = journals.LoadTask(cmd.Context(), con, j, s.Run, s.task)
	} else {
		k, err = journals.LoadRun(cmd.Context(), con, j, s.Run)
	}
	if errors.Is(err, journal.ErrUnknownRun) && s.task == "" && !s.usage {
		if newest := withTask(cmd.Context(), con, j, s.Run); newest != nil {
			k, err, s.task = newest, nil, s.Run
		}
	}
	if err != nil {
		if s.task == "" {
			err = journals.SuggestTask(cmd.Context(), j, s.Run, err)
		}
		return err
	}
	var b strings.Builder
	var document any
	switch {
	case s.usage:
		u := newUsageDocument(k)
		document, u.room = u, con.TitleWidth()
		u.write(&b)
	case s.task != "":
		id, err := k.FindTask(s.task)
		if err != nil {
			return &exit.Error{Kind: exit.KindUsage, Err: err}
		}
		t := newFullTaskDocument(k, id, s.reasoning)
		document = t
		t.write(&b)
	case s.reasoning:
		return exit.Usagef("--reasoning needs a task: write runteam show RUN TASK --reasoning")
	default:
		r := newRunDocument(k)
		r.nameInputs(cmd.Context(), j)
		document, r.room, r.journal = r, con.TitleWidth(), &s.Flags
		r.write(&b)
	}
	if con.Settings.JSON() {
		return exit.IgnoreClosedPipe(con.PrintJSON(document))
	}
	return exit.IgnoreClosedPipe(con.PrintText(b.String()))
}

// withTask returns the newest run if it has a task of this name; nil if not.
func withTask(ctx context.Context, con *console.Console, j *journal.Journal, name string) *journals.StoredRun {
	k, err := journals.LoadTask(ctx, con, j, "", name)
	if err != nil {
		return nil
	}
	return k
}
