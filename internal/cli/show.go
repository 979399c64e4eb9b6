package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/journal"
)

// showing is one look at a stored run, as the arguments ask for it.
type showing struct {
	looking
	task      string
	usage     bool
	reasoning bool
}

func (a *app) showCommand() *cobra.Command {
	s := &showing{}
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
				return usageError("%s takes a RUN and a TASK, not %d arguments: quote a title of several words", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.arguments(args); err != nil {
				return err
			}
			if len(args) == 2 {
				if s.task = args[1]; s.task == "" {
					return usageError("TASK is empty: write a title, a key or an id, or leave it out")
				}
			}
			return a.show(cmd, s)
		},
	}
	s.flags(cmd)
	newCompleter(a, &s.journaling).arguments(cmd, true, false)
	cmd.Flags().BoolVar(&s.reasoning, "reasoning", false, "show what the models of a TASK wrote before their answers")
	cmd.Flags().BoolVar(&s.usage, "usage", false, "show what each task, agent and model took, and what it cost")
	return cmd
}

func (a *app) show(cmd *cobra.Command, s *showing) error {
	if s.usage && s.task != "" {
		return usageError("--usage is of the whole run: leave TASK out")
	}
	if s.usage && s.reasoning {
		return usageError("--reasoning shows one task and --usage the whole run: leave one of them out")
	}
	j, err := s.open(cmd, a)
	if err != nil {
		return err
	}
	defer j.Close()
	var k *storedRun
	if s.task != "" {
		k, err = a.storedTask(cmd.Context(), j, s.run, s.task)
	} else {
		k, err = a.stored(cmd.Context(), j, s.run)
	}
	if errors.Is(err, journal.ErrUnknownRun) && s.task == "" && !s.usage {
		if newest := a.withTask(cmd.Context(), j, s.run); newest != nil {
			k, err, s.task = newest, nil, s.run
		}
	}
	if err != nil {
		if s.task == "" {
			err = nearTask(cmd.Context(), j, s.run, err)
		}
		return err
	}
	var b strings.Builder
	var document any
	switch {
	case s.usage:
		u := k.bill()
		document, u.room = u, a.roomForTitles()
		u.write(&b)
	case s.task != "":
		id, err := k.find(s.task)
		if err != nil {
			return &fault{kind: kindUsage, err: err}
		}
		t := k.task(id, s.reasoning)
		document = t
		t.write(&b)
	case s.reasoning:
		return usageError("--reasoning needs a task: write runteam show RUN TASK --reasoning")
	default:
		r := k.show()
		r.nameInputs(cmd.Context(), j)
		document, r.room, r.journal = r, a.roomForTitles(), &s.journaling
		r.write(&b)
	}
	if a.settings.json() {
		return satisfied(a.printJSON(document))
	}
	return satisfied(a.printText(b.String()))
}

// withTask returns the newest run if it has a task of this name; nil if not.
func (a *app) withTask(ctx context.Context, j *journal.Journal, name string) *storedRun {
	k, err := a.storedTask(ctx, j, "", name)
	if err != nil {
		return nil
	}
	return k
}
