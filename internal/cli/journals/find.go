package journals

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// FileError words a failure to read a record, or what a signal made of it.
func FileError(path string, err error) error {
	if cause, ok := errors.AsType[*exit.Interrupted](err); ok {
		return &exit.Error{Kind: exit.KindRuntime, Err: fmt.Errorf("%s: %w", path, err), Status: cause.Status()}
	}
	k := exit.KindIO
	if _, ok := errors.AsType[*journal.Error](err); ok {
		k = exit.KindRuntime
	}
	return &exit.Error{Kind: k, Err: fmt.Errorf("%s: %w", path, err)}
}

// ResolveRun returns the run that a command means: the named one, or without a name
// the newest that is no experiment. Empty means the newest of all.
func ResolveRun(ctx context.Context, j *journal.Journal, run string) (string, error) {
	if run != "" {
		return run, nil
	}
	list, err := j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return "", ReadError(exit.Cause(ctx, err))
	}
	for i := range list {
		if list[i].Command != ExperimentCommand {
			return list[i].Run, nil
		}
	}
	return "", nil
}

// A MissingRunError says that the run whose result is an input is not in the journal.
type MissingRunError struct {
	Run, Task string
	Err       error
}

// Error says which result is missing.
func (e *MissingRunError) Error() string {
	return fmt.Sprintf("it is the result of task %q in run %s, which is not in the journal: it may have been removed by gc", terminal.CleanLine(e.Task), terminal.CleanLine(e.Run))
}

// Unwrap returns the error of the journal.
func (e *MissingRunError) Unwrap() error { return e.Err }

// ShortRun is enough of the id of a run to name it.
func ShortRun(id string) string {
	const enough = 8
	return id[:min(len(id), enough)]
}

// ReadError words that a run cannot be read: a wrong name is a fault of the call.
func ReadError(err error) error {
	if err == nil {
		return nil
	}
	if cause, ok := errors.AsType[*exit.Interrupted](err); ok {
		return &exit.Error{Kind: exit.KindRuntime, Err: err, Status: cause.Status()}
	}
	if errors.Is(err, journal.ErrUnknownRun) || errors.Is(err, journal.ErrAmbiguousRun) {
		return &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	return &exit.Error{Kind: exit.KindRuntime, Err: err}
}

// NeitherFileNorRun completes the error of an argument that is neither a file nor a run.
func NeitherFileNorRun(arg string, err error) error {
	f, ok := errors.AsType[*exit.Error](err)
	if !ok || arg == "" {
		return err
	}
	said := *f
	if said.Err = fmt.Errorf("%s: there is no such file; as a run: %w", arg, f.Err); filepath.Base(arg) != arg {
		said.Kind, said.Err = exit.KindIO, fmt.Errorf("%s: there is no such file, and no run has such an id", arg)
	}
	return &said
}

// SuggestTask adds to the error of a name that is no run the task of the newest run that
// was probably meant.
func SuggestTask(ctx context.Context, j *journal.Journal, name string, err error) error {
	f, ok := errors.AsType[*exit.Error](err)
	if !ok || !errors.Is(err, journal.ErrUnknownRun) {
		return err
	}
	run, unread := ResolveRun(ctx, j, "")
	if unread != nil {
		return err
	}
	info, unread := j.LoadInfo(ctx, run)
	if unread != nil {
		return err
	}
	var titles []string
	for i := range info.Tasks {
		titles = append(titles, info.Tasks[i].Title)
	}
	near, ok := naming.Nearest(name, titles)
	if !ok {
		return err
	}
	said := *f
	said.Err = fmt.Errorf("%w; did you mean the task %q of the newest run?", f.Err, near)
	return &said
}

// minShortID is how many characters of an id are shown at least.
const minShortID = 8

// ShortIDs returns for each run the beginning of its id that no other has.
func ShortIDs(runs []journal.Summary) map[string]string {
	out := make(map[string]string, len(runs))
	for _, r := range runs {
		out[r.Run] = ""
	}
	for n := minShortID; len(out) > 0; n++ {
		seen, left := map[string]int{}, 0
		for id, short := range out {
			if short == "" {
				seen[id[:min(n, len(id))]]++
			}
		}
		for id, short := range out {
			if short != "" {
				continue
			}
			if begin := id[:min(n, len(id))]; seen[begin] == 1 || n >= len(id) {
				out[id] = begin
			} else {
				left++
			}
		}
		if left == 0 {
			break
		}
	}
	return out
}

// LoadRun reads a run.
func LoadRun(ctx context.Context, con *console.Console, j *journal.Journal, run string) (*StoredRun, error) {
	run, err := ResolveRun(ctx, j, run)
	if err != nil {
		return nil, err
	}
	found, err := j.Find(ctx, run)
	if err != nil {
		return nil, ReadError(exit.Cause(ctx, err))
	}
	loaded, err := j.Load(ctx, found.Run)
	if err != nil {
		return nil, ReadError(exit.Cause(ctx, err))
	}
	t, err := j.Trace(ctx, found.Run)
	if err != nil {
		return nil, ReadError(exit.Cause(ctx, err))
	}
	all, err := j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, ReadError(exit.Cause(ctx, err))
	}
	k := &StoredRun{Summary: found, ShortID: ShortIDs(all)[found.Run], Info: loaded.Info, History: loaded.History, Trace: t, Now: con.Now(), ByID: map[task.ID]int{}}
	k.collect()
	return k, nil
}

// LoadTask reads what there is of one task of a run, and not of the others.
func LoadTask(ctx context.Context, con *console.Console, j *journal.Journal, run, name string) (*StoredRun, error) {
	run, err := ResolveRun(ctx, j, run)
	if err != nil {
		return nil, err
	}
	found, err := findUncounted(ctx, j, run)
	if err != nil {
		return nil, ReadError(exit.Cause(ctx, err))
	}
	t, loaded, err := j.LoadTask(ctx, found.Run, name)
	if err != nil {
		return nil, ReadError(exit.Cause(ctx, err))
	}
	if _, err := t.Find(name); err != nil {
		return nil, &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	k := &StoredRun{Summary: found, Info: loaded.Info, History: loaded.History, Trace: t, Now: con.Now(), ByID: map[task.ID]int{}}
	k.collect()
	return k, nil
}

// findUncounted finds a run as [journal.Journal.Find] does, but does not read the
// run to count the tasks of one that did not end.
func findUncounted(ctx context.Context, j *journal.Journal, run string) (journal.Summary, error) {
	most := 2 // a second one makes the prefix ambiguous
	if run == "" {
		most = 1
	}
	list, err := j.Newest(ctx, run, most)
	if err != nil || len(list) != 1 {
		return j.Find(ctx, run)
	}
	return list[0], nil
}
