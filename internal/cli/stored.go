package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
)

// looking is what a command that reads stored runs is asked for.
type looking struct {
	journaling
	run string // an id or how one begins; empty means the newest run
}

// arguments takes RUN from the arguments of a command, which may have more.
func (l *looking) arguments(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if l.run = args[0]; l.run == "" {
		return usageError("RUN is empty: write an id, or leave it out for the newest run")
	}
	return nil
}

// open opens the journal to read it. The caller closes it.
func (l *looking) open(cmd *cobra.Command, a *app) (*journal.Journal, error) {
	if err := l.check(cmd); err != nil {
		return nil, err
	}
	j, _, err := a.openJournal(&l.journaling, toRead)
	return j, err
}

// unloaded words that a run cannot be read: a wrong name is a fault of the call.
func unloaded(err error) error {
	if err == nil {
		return nil
	}
	if cause, ok := errors.AsType[*interrupted](err); ok {
		return &fault{kind: kindRuntime, err: err, exit: cause.status()}
	}
	if errors.Is(err, journal.ErrUnknownRun) || errors.Is(err, journal.ErrAmbiguousRun) {
		return &fault{kind: kindUsage, err: err}
	}
	return &fault{kind: kindRuntime, err: err}
}

// whyEnded makes of an error that came with the end of a context why it ended.
func whyEnded(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// isFile reports whether an argument that may be a file or a run is a file.
func isFile(arg string) bool {
	if arg == "-" {
		return true
	}
	_, err := os.Lstat(arg)
	return err == nil
}

// neither completes the error of an argument that is neither a file nor a run.
func neither(arg string, err error) error {
	f, ok := errors.AsType[*fault](err)
	if !ok || arg == "" {
		return err
	}
	said := *f
	if said.err = fmt.Errorf("%s: there is no such file; as a run: %w", arg, f.err); filepath.Base(arg) != arg {
		said.kind, said.err = kindIO, fmt.Errorf("%s: there is no such file, and no run has such an id", arg)
	}
	return &said
}

// nearTask adds to the error of a name that is no run the task of the newest run that
// was probably meant.
func nearTask(ctx context.Context, j *journal.Journal, name string, err error) error {
	f, ok := errors.AsType[*fault](err)
	if !ok || !errors.Is(err, journal.ErrUnknownRun) {
		return err
	}
	run, unread := meant(ctx, j, "")
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
	said.err = fmt.Errorf("%w; did you mean the task %q of the newest run?", f.err, near)
	return &said
}

// shortest is how many characters of an id are shown at least.
const shortest = 8

// shortIDs returns for each run the beginning of its id that no other has.
func shortIDs(runs []journal.Summary) map[string]string {
	out := make(map[string]string, len(runs))
	for _, r := range runs {
		out[r.Run] = ""
	}
	for n := shortest; len(out) > 0; n++ {
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
