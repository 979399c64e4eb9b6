package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/trace"
)

// A resumption is a run that is taken up where it is.
type resumption struct {
	journal *journal.Journal
	keyed   bool
	stored  *journal.Stored
	memory  *remembered
	names   naming // of its tasks, also of those that the coordinator planned
	anew    bool   // flags ask for something else than the run did
}

func (a *app) resumeCommand() *cobra.Command {
	j := &job{stage: stage{alone: true}}
	cmd := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Go on with a run that was interrupted or failed, and pay for nothing twice",
		Long: `resume takes up a run of the journal: the last one, or the one whose id begins
with RUN. What completed is not asked for again, unless what its agent would see
has changed since; what failed, was skipped or was interrupted runs again. The
spec and its files are read from where they were, or, if they are gone or came
from standard input, from the copies in the journal. Flags are those of the run,
unless they are given anew.`,
		Example: `  runteam resume                               the last run of this folder's journal
  runteam resume 1f3c                          the one whose id begins so
  runteam resume 1f3c --model gpt-4o           with another model: what it affects is asked again
  runteam resume --fresh "Score fraud"         and this task in any case`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.resume(cmd, j, strings.Join(args, ""))
		},
	}
	j.source.flags(cmd)
	j.stage.flags(cmd)
	j.limits.flags(cmd, "the work of this command")
	j.viewFlags(cmd)
	j.trace.flags(cmd)
	cmd.Flags().BoolVar(&j.record.force, "force", false, "with --trace and --audit-anchor: replace a file that exists")
	j.reuse.freshFlag(cmd)
	j.journal.flags(cmd)
	return cmd
}

// oneRun accepts one RUN or none.
func oneRun(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return usageError("%s takes one RUN, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " "))
	case len(args) == 1 && args[0] == "":
		return usageError("RUN is empty: write the id of a run, or leave it out for the last one")
	}
	return nil
}

// resume goes on with a run.
func (a *app) resume(cmd *cobra.Command, j *job, run string) error {
	if err := j.check(cmd, a); err != nil {
		return err
	}
	again, err := a.resumption(cmd.Context(), j, run)
	if err != nil {
		return err
	}
	defer again.journal.Close() //nolint:errcheck // what of it matters, the run has said
	if err := j.takeUp(cmd, again); err != nil {
		return err
	}
	return a.runJob(cmd, j)
}

// resumption finds the run and reads what the journal has of it.
func (a *app) resumption(ctx context.Context, j *job, run string) (*resumption, error) {
	key, err := a.journalKey(j.journal.keyFile)
	if err != nil {
		return nil, err
	}
	again := &resumption{keyed: key != nil}
	if again.journal, _, err = a.openJournal(&j.journal, toChange); err != nil {
		return nil, err
	}
	if err := again.load(ctx, j, run); err != nil {
		_ = again.journal.Close() // nothing was written
		return nil, err
	}
	return again, nil
}

// load reads what the journal has of a run, and refuses one that cannot go on.
func (r *resumption) load(ctx context.Context, j *job, run string) (err error) {
	if run, err = meant(ctx, r.journal, run); err != nil {
		return err
	}
	if r.stored, err = r.journal.Load(ctx, run); err != nil {
		return unloaded(whyEnded(ctx, err))
	}
	if r.memory, err = remember(&r.stored.Info); err != nil {
		return err
	}
	if r.memory.leavesOut() {
		return usageError("run %s is another run without some of its context, and is not resumed: runteam replay makes it again", shortRun(r.stored.Info.Run))
	}
	if r.names, err = r.named(ctx); err != nil {
		return err
	}
	return j.readable(r)
}

// named returns the tasks of the run. What the coordinator planned stands in the
// record alone.
func (r *resumption) named(ctx context.Context) (naming, error) {
	if len(r.stored.Info.Tasks) > 0 {
		return r.stored.Info.Tasks, nil
	}
	t, err := r.journal.Trace(ctx, r.stored.Info.Run)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	return slices.DeleteFunc(naming(t.Tasks), func(t trace.Task) bool { return t.Assignee == handoff.Coordinator }), nil
}

// sealed begins why a result cannot be read that another key would open.
const sealed = "encrypted under the key "

// readable refuses a run with results that another key would open: they would
// be paid for again for want of a flag.
func (j *job) readable(again *resumption) error {
	var titles []string
	why, fresh := "", again.names.ids(j.reuse.fresh)
	for _, x := range latest(&again.stored.History) {
		if strings.HasPrefix(x.Missing, sealed) && !slices.Contains(fresh, x.Task) {
			titles, why = append(titles, x.Title), x.Missing
		}
	}
	if len(titles) == 0 {
		return nil
	}
	return &fault{kind: kindRuntime, err: fmt.Errorf("run %s: the results of %s are %s; --fresh TASK runs one again instead", shortRun(again.stored.Info.Run), listed(titles, 3), why)}
}

// latest returns the last exchange of each task that completed.
func latest(h *event.History) []*event.Exchange {
	at := map[task.ID]int{}
	var out []*event.Exchange
	for i := range h.Log {
		x := h.Log[i].Exchange
		if x == nil || x.Part != "" || !x.Completed() {
			continue
		}
		if k, known := at[x.Task]; known {
			out[k] = x
			continue
		}
		at[x.Task] = len(out)
		out = append(out, x)
	}
	return out
}

// takeUp asks for a run as it was asked for, but for what flags say anew.
func (j *job) takeUp(cmd *cobra.Command, again *resumption) error {
	m := again.memory
	if err := j.moveTo(m); err != nil {
		return err
	}
	own := j.source
	was, err := m.source()
	if err != nil && !(m.missing[paramTexts] != "" && j.covers(m.Params)) {
		return err
	}
	was.storedOnly = j.storedOnly
	was.inputs, was.params = replaced(was.inputs, own.inputs), replaced(was.params, own.params)
	was.models = append(slices.Clone(was.models), own.models...)
	if slices.ContainsFunc(own.inputs, func(given string) bool { return strings.HasSuffix(given, "=-") }) && was.path != "-" {
		was.stored = slices.DeleteFunc(was.stored, func(s spec.StoredFile) bool { return s.Path == "-" }) // somebody writes it again
	}
	j.source = was
	changed := cmd.Flags().Changed
	if !changed("offline") {
		j.offline = m.Offline || changed("script")
	}
	if j.offline && !changed("script") {
		j.script = m.Script
	}
	j.concurrency, j.budget = cmp.Or(j.concurrency, m.MaxConcurrency), cmp.Or(j.budget, m.MaxTokenBudget)
	if m.Reuse != nil {
		j.reuse.on, j.reuse.given = *m.Reuse, true
	}
	j.reuse.fresh = append(again.undone(m.Fresh), j.reuse.fresh...)
	again.anew = len(own.inputs)+len(own.params)+len(own.models) > 0
	j.command, j.again = again.stored.Info.Command, again
	return nil
}

// covers reports whether flags give all parameters of a list.
func (j *job) covers(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(j.params, func(given string) bool { return strings.HasPrefix(given, name+"=") })
	})
}

// replaced returns pairs of NAME=VALUE with those of anew in the place of those
// of the same name.
func replaced(old, anew []string) []string {
	out := slices.DeleteFunc(slices.Clone(old), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(anew, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	})
	return append(out, anew...)
}

// undone returns the tasks that were to be run whatever there is and have not
// completed by now: those that have, have done so.
func (r *resumption) undone(fresh []string) []string {
	done := latest(&r.stored.History)
	return slices.DeleteFunc(slices.Clone(fresh), func(name string) bool {
		id, known := r.names.find(name)
		return known && slices.ContainsFunc(done, func(x *event.Exchange) bool { return x.From == "" && x.Task == id })
	})
}

// moveTo makes the working directory of the run that of the command, so that
// paths lead where they did. If it is gone, so are the files, and the copies
// serve.
func (j *job) moveTo(m *remembered) error {
	here, err := os.Getwd()
	if err != nil || here == m.Folder {
		return err
	}
	if err := j.anchor(here); err != nil {
		return err
	}
	if at, err := os.Stat(m.Folder); err != nil || !at.IsDir() {
		j.storedOnly = true
		return nil
	}
	if err := os.Chdir(m.Folder); err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("the working directory of the run, %s: %w", m.Folder, plainly(err))}
	}
	return nil
}

// anchor makes the paths that flags name lead from anywhere where they lead from here.
func (j *job) anchor(here string) error {
	for _, path := range []*string{&j.script, &j.trace.file.path, &j.trace.anchor.path, &j.trace.keyFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(here, *path)
		}
	}
	given, err := pairs("input", "NAME=FILE", j.inputs)
	if err != nil {
		return err
	}
	j.inputs = nil
	for name, path := range given {
		if path != "-" && path != "" && !filepath.IsAbs(path) {
			path = filepath.Join(here, path)
		}
		j.inputs = append(j.inputs, name+"="+path)
	}
	slices.Sort(j.inputs)
	return nil
}

// tellMissing says of which files the journal has a copy that cannot be read,
// when a run cannot be resumed for want of a file.
func (a *app) tellMissing(again *resumption) {
	if again == nil {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(again.memory.missing)) {
		if !strings.HasPrefix(path, "--") {
			a.say("resume:  the copy of %s in the journal cannot be read: %s", placeOf(path), cleanLine(again.memory.missing[path]))
		}
	}
}

// placeOf names where a text was.
func placeOf(path string) string {
	if path == "-" {
		return "standard input"
	}
	return cleanLine(path)
}

// tellChanges says of what a run is resumed that is not as it was.
func (a *app) tellChanges(j *job, file *spec.File) {
	again := j.again
	if again == nil {
		return
	}
	for _, path := range file.Restored() {
		a.say("resume:  %s is not there any more: its copy in the journal is used", placeOf(path))
	}
	if was := again.stored.Info.Fingerprint; was != "" && again.journal.Masked(file.Fingerprint()) != was {
		text := "the spec has changed since"
		if again.anew {
			text = "flags or the spec ask for something else than before"
		}
		a.say("resume:  %s: what that affects runs again", text)
	}
	a.tellScript("resume: ", &j.stage, &again.memory.invocation, file)
	for _, name := range changedInputs(&again.stored.History, file) {
		a.say("resume:  input %s has changed since: what it affects runs again", cleanLine(name))
	}
	for _, x := range latest(&again.stored.History) {
		if x.Missing != "" {
			a.say("resume:  the result of %s cannot be read, so it runs again: %s", cleanLine(x.Title), cleanLine(x.Missing))
		}
	}
}

// changedInputs names the inputs whose text is not what it was.
func changedInputs(h *event.History, file *spec.File) (names []string) {
	if len(h.Begins) == 0 {
		return nil
	}
	was := map[string]event.Key{}
	for _, in := range h.Begins[len(h.Begins)-1].Inputs {
		was[in.Name] = in.Key
	}
	for i := range file.Run.Inputs {
		in := &file.Run.Inputs[i]
		key := event.Key(sha256.Sum256([]byte(in.Text)))
		if h.Mask != nil {
			key = h.Mask(key)
		}
		if old, known := was[in.Name]; known && old != key {
			names = append(names, in.Name)
		}
	}
	return names
}
