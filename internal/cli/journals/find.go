package journals

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/spf13/cobra"
)

// ReadFlags name a stored run and, for some commands, one of its tasks.
type ReadFlags struct {
	Flags
	Run  string // an ID or its beginning; empty means the newest run
	Task string // a title, a key, an ID or a name; empty means the whole run

	mayBeTask bool // RUN may be a task of the newest run
	MayBeFile bool // RUN may be the path of a file
}

// Arguments returns a check that takes RUN, and TASK if the command accepts two arguments. What
// names the arguments for the message about too many.
func (l *ReadFlags) Arguments(most int, what string) cobra.PositionalArgs {
	l.mayBeTask = most > 1
	return func(cmd *cobra.Command, args []string) error {
		if err := flags.AtMost(most, what)(cmd, args); err != nil {
			return err
		}
		for i, into := range []*string{&l.Run, &l.Task}[:len(args)] {
			if *into = args[i]; args[i] == "" {
				return exit.Usagef("%s is empty: write a value, or leave the argument out", [...]string{"RUN", "TASK"}[i])
			}
		}
		return nil
	}
}

// Open opens the journal to read it. The caller closes it.
func (l *ReadFlags) Open(cmd *cobra.Command, con *console.Console) (*journal.Journal, error) {
	if err := l.Check(cmd); err != nil {
		return nil, err
	}
	j, _, err := Open(con, &l.Flags, ToRead)
	return j, err
}

// OpenRun opens the journal and finds the run. The caller closes the journal.
func (l *ReadFlags) OpenRun(cmd *cobra.Command, con *console.Console) (*journal.Journal, journal.Summary, error) {
	j, err := l.Open(cmd, con)
	if err != nil {
		return nil, journal.Summary{}, l.orFile(err)
	}
	found, err := Find(cmd.Context(), j, l.Run)
	if _, unknown := errors.AsType[*journal.UnknownRunError](err); unknown && l.mayBeTask && l.Run != "" && l.Task == "" {
		found, err = l.findTask(cmd.Context(), j, err)
	} else if err != nil {
		err = l.orFile(err)
	}
	if err != nil {
		_ = j.Close() // nothing was written
	}
	return j, found, err
}

// findTask finds the task of the newest run that an unknown RUN names, and returns that run. If
// there is none, its error suggests the task with the nearest title, or says why the run is unknown.
func (l *ReadFlags) findTask(ctx context.Context, j *journal.Journal, unknown error) (journal.Summary, error) {
	newest, err := Find(ctx, j, "")
	if err != nil {
		return newest, l.orFile(unknown)
	}
	_, err = journal.FindTask(ctx, j, newest.Run, l.Run)
	other, ok := errors.AsType[*naming.UnknownTaskError](err)
	switch {
	case err == nil:
		l.Run, l.Task = newest.Run, l.Run
		return newest, nil
	case ok && other.Nearest == "" && !l.MayBeFile && strings.HasSuffix(l.Run, "]"): // an item, since no run is called that
		return newest, &exit.Error{Kind: exit.KindUsage, Err: err}
	case !ok || other.Nearest == "":
		return newest, l.orFile(unknown)
	}
	kinds := "run or task"
	if l.MayBeFile {
		kinds = "file, run or task"
	}
	return newest, exit.Usagef("no %s %q; did you mean the task %q?", kinds, l.Run, other.Nearest)
}

// orFile extends the error about an argument that is neither a run nor an existing file.
func (l *ReadFlags) orFile(err error) error {
	switch {
	case !l.MayBeFile || l.Run == "":
		return err
	case filepath.Base(l.Run) != l.Run:
		return exit.Errorf(exit.KindIO, "%s: there is no such file, and no run with this ID", l.Run)
	}
	return exit.Errorf(exit.KindOf(err), "%s: no such file, and no such run: %w", l.Run, err)
}

// FindUnended completes the summaries of the runs that did not end and for which want reports true:
// with their tasks, and whether they are paused. A run that was removed meanwhile stays as it is.
func FindUnended(ctx context.Context, j *journal.Journal, list []journal.Summary, want func(*journal.Summary) bool) error {
	for i := range list {
		if !list[i].Ended.IsZero() || !want(&list[i]) {
			continue
		}
		s, err := j.Find(ctx, list[i].Run)
		switch {
		case errors.Is(err, journal.ErrUnknownRun):
		case err != nil:
			return ReadError(ctx, err)
		default:
			list[i] = s
		}
	}
	return nil
}

// Find returns the run whose ID begins with a prefix. Without one it returns the newest run that
// is not an experiment, or the newest of all. The tasks of a run that did not end are
// not counted, and it is not known whether it is paused.
func Find(ctx context.Context, j *journal.Journal, prefix string) (journal.Summary, error) {
	most := 2 // a second run makes the prefix ambiguous
	if prefix == "" {
		most = math.MaxInt
	}
	list, err := j.Newest(ctx, prefix, most)
	i := slices.IndexFunc(list, func(s journal.Summary) bool { return s.Command != ExperimentCommand })
	switch {
	case err != nil:
		return journal.Summary{}, ReadError(ctx, err)
	case len(list) == 1:
		return list[0], nil
	case prefix == "" && i >= 0:
		return list[i], nil
	}
	found, err := j.Find(ctx, prefix)
	return found, ReadError(ctx, err)
}

// ReadError returns the error of a command that could not read a run. The name of a run is an
// argument, so an unknown one is a usage error. It returns nil for nil.
func ReadError(ctx context.Context, err error) error {
	_, classified := errors.AsType[*exit.Error](err)
	switch {
	case err == nil || classified:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, journal.ErrUnknownRun):
		if unknown, ok := errors.AsType[*journal.UnknownRunError](err); ok && unknown.Newest != "" {
			err = fmt.Errorf("%w; `runteam runs` lists all runs", err)
		}
		return &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	return &exit.Error{Kind: exit.KindRuntime, Err: addKeyHint(err)}
}

// RecordError returns the error of a command that could not read the record with this name.
func RecordError(ctx context.Context, name string, err error) error {
	kind := exit.KindIO
	if _, ok := errors.AsType[*journal.Error](err); ok {
		kind = exit.KindRuntime
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		kind, err = exit.KindRuntime, context.Cause(ctx)
	}
	return exit.Errorf(kind, "%s: %w", name, err)
}

// minShortID is the least number of characters shown of an ID.
const minShortID = 8

// ShortRun returns the beginning of a run's ID. Another run may begin with it too.
func ShortRun(id string) string { return id[:min(len(id), minShortID)] }

// ShortIDs returns the shortest unique beginning of the ID of each run.
func ShortIDs(runs []journal.Summary) map[string]string {
	out := make(map[string]string, len(runs))
	for left, n := runs, minShortID; len(left) > 0; n++ {
		count := map[string]int{}
		for i := range left {
			count[left[i].Run[:min(n, len(left[i].Run))]]++
		}
		var ambiguous []journal.Summary
		for i := range left {
			id := left[i].Run
			if short := id[:min(n, len(id))]; count[short] == 1 || n >= len(id) {
				out[id] = short
			} else {
				ambiguous = append(ambiguous, left[i])
			}
		}
		left = ambiguous
	}
	return out
}
