package run

import (
	"context"
	"slices"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
)

// reuseFlags say which answers of earlier runs may replace calls.
type reuseFlags struct {
	on    bool
	given bool // --reuse is given
	fresh []string
}

// override returns the value of --reuse; nil if it is not given.
func (r *reuseFlags) override() *bool {
	if !r.given {
		return nil
	}
	return &r.on
}

// apply applies the flags to a spec, and refuses those that contradict it. A resumed run has its own
// answers.
func (r *reuseFlags) apply(file *specfile.File, hasJournal bool, again *resumed) error {
	if r.given {
		file.Run.Reuse = r.on
	}
	switch {
	case file.Run.Reuse && !hasJournal && r.given:
		return exit.Usagef("--reuse needs a journal: leave out --reuse or --no-journal")
	case file.Run.Reuse && !hasJournal:
		return exit.Usagef("the spec says reuse: true, which needs a journal: leave out --no-journal, or add --reuse=false")
	}
	names := source.NewTaskNames(file)
	if again != nil && file.Goal != nil && len(names) == 0 {
		names = again.names
	} else if again != nil {
		names.AddNames(again.names)
	}
	if err := r.resolve(file, names); err != nil {
		return err
	}
	if len(r.fresh) > 0 && !file.Run.Reuse && again == nil {
		return exit.Usagef("--fresh %s: every task is run anyway; --fresh makes exceptions from --reuse", r.fresh[0])
	}
	return nil
}

// resolve sets the tasks of --fresh, and refuses unknown ones. The tasks of a goal are not known
// before they are planned.
func (r *reuseFlags) resolve(file *specfile.File, names source.TaskNames) error {
	if len(names) == 0 {
		file.Run.Fresh = r.fresh
		return nil
	}
	file.Run.Fresh = nil
	for _, name := range r.fresh {
		if names.NamesItem(name) { // which may be at another place of its list now
			file.Run.Fresh = append(file.Run.Fresh, name)
			continue
		}
		found := names.FindAll(name)
		if len(found) == 0 {
			return exit.Usagef("--fresh: %w", &naming.UnknownTaskError{Name: name, Hint: names.Suggest(name)})
		}
		for _, id := range found {
			file.Run.Fresh = append(file.Run.Fresh, string(id))
		}
	}
	return nil
}

// printReuse reports if the script has changed since the last run of the same spec, so that none of
// its answers are reused.
func (x *execution) printReuse(ctx context.Context) error {
	file, j := x.file, x.journal.journal
	if x.job.resumed != nil || !file.Run.Reuse || !x.job.Offline {
		return nil
	}
	list, err := j.Runs(ctx)
	i := slices.IndexFunc(list, func(s journal.Summary) bool { return s.Name == file.Name })
	if err != nil || i < 0 {
		return journals.ReadError(ctx, err)
	}
	last, err := j.Load(ctx, list[i].Run)
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	if was, err := ReadInvocation(&last.Info); err == nil { // another program may have begun the run
		if why := x.job.ScriptChange(&was.Invocation, file); why != "" && was.Offline {
			x.con.Say("reuse:   %s: its answers are requested again", why)
		}
	}
	return nil
}
