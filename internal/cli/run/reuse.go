package run

import (
	"context"
	"slices"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

// reuseFlags says what of earlier runs may be taken in the place of calls.
type reuseFlags struct {
	on    bool
	given bool // by --reuse
	fresh []string
}

// freshFlag adds the flag that asks agents again.
func (r *reuseFlags) freshFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.fresh, "fresh", nil, "run `TASK`, by title or key, whatever answers there are (repeatable)")
}

func (r *reuseFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.on, "reuse", false, "take answers of earlier runs in the journal where an agent would be asked the very same (default: as the spec says)")
	r.freshFlag(cmd)
}

// override returns what --reuse says; nil means as the spec does.
func (r *reuseFlags) override() *bool {
	if !r.given {
		return nil
	}
	return &r.on
}

// settle applies the flags to a spec, and refuses what contradicts it or what
// it does not know. A run that is resumed has answers of its own.
func (r *reuseFlags) settle(file *specfile.File, keeps bool, again *resumed) error {
	if r.given {
		file.Run.Reuse = r.on
	}
	switch {
	case file.Run.Reuse && !keeps && r.given:
		return exit.Usagef("--reuse takes answers from the journal, and with --no-journal there is none: take one of them back")
	case file.Run.Reuse && !keeps:
		return exit.Usagef("the spec says reuse: true, which takes answers from the journal, and with --no-journal there is none: take --no-journal back, or add --reuse=false")
	}
	names := source.NewTaskNames(file)
	if again != nil && file.Goal != nil && len(names) == 0 {
		names = again.names
	}
	if err := r.resolve(file, names); err != nil {
		return err
	}
	if len(r.fresh) > 0 && !file.Run.Reuse && again == nil {
		return exit.Usagef("--fresh %s: every task is run anyway; --fresh makes exceptions from --reuse", r.fresh[0])
	}
	return nil
}

// resolve has the run take the tasks of --fresh, and refuses one that is not
// there. Of a goal that is not planned nobody knows the tasks yet.
func (r *reuseFlags) resolve(file *specfile.File, names source.TaskNames) error {
	if len(names) == 0 {
		file.Run.Fresh = r.fresh
		return nil
	}
	file.Run.Fresh = nil
	for _, name := range r.fresh {
		id, ok := names.Find(name)
		if !ok {
			return exit.Usagef("--fresh %q: no task is called that: %s", name, names.Suggest(name))
		}
		file.Run.Fresh = append(file.Run.Fresh, string(id))
	}
	return nil
}

// printReuse says it if a script is not what it was in the last run of the same
// spec: nothing that it answered is taken.
func printReuse(ctx context.Context, con *console.Console, j *Job, file *specfile.File, told *JournalWriter) error {
	if told == nil || j.resumed != nil || !file.Run.Reuse || !j.Offline {
		return nil
	}
	list, err := told.journal.Runs(ctx)
	i := slices.IndexFunc(list, func(s journal.Summary) bool { return s.Name == file.Name })
	if err != nil || i < 0 {
		return journals.ReadError(ctx, err)
	}
	last, err := told.journal.Load(ctx, list[i].Run)
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	if was, err := ReadInvocation(&last.Info); err == nil { // else another program made it
		if why := j.ScriptChange(&was.Invocation, file); why != "" && was.Offline {
			con.Say("reuse:   %s: what it answers is asked again", why)
		}
	}
	return nil
}
