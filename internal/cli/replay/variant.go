package replay

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/records"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// A variant is a run that is repeated without some of its context.
type variant struct {
	flags      *replayFlags
	prior      *journals.StoredRun
	invocation *run.StoredInvocation // of the prior run
	job        *run.Job
	file       *specfile.File
	team       *engine.Team
	journal    *run.JournalWriter

	events *records.EventWriter // nil without --events
}

// replayWithout repeats a run without some of its context.
func replayWithout(con *console.Console, cmd *cobra.Command, r *replayFlags) error {
	k, err := loadRun(con, cmd, &r.ReadFlags)
	if err != nil {
		return err
	}
	m, file, err := r.loadSpec(cmd.Context(), con, k, true)
	if err != nil {
		return err
	}
	if err := r.checkOmitted(k, file); err != nil {
		return err
	}
	t := &variant{flags: r, prior: k, invocation: m, job: r.job(m), file: file}
	if err := journals.CheckOutputs(con, &r.Flags, &r.events.File); err != nil {
		return err
	}
	if t.events, err = r.events.Begin(cmd, con, r.force, append(t.job.Reads(file), t.job.ScriptPath(file), r.Flags.Path, r.Flags.KeyFile)...); err != nil {
		return err
	}
	file.Run.RunID, file.Run.Assert = uuid.NewString(), nil
	c, err := connect.NewConnector(cmd.Context(), con, &t.job.AnswerFlags, file, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	c.AllowNoKey = true
	if t.team, err = connect.BuildTeam(file, c.Connect); err != nil {
		return err
	}
	if t.journal, err = run.NewJournalWriter(con, t.job, file); err != nil {
		return err
	}
	defer t.journal.Release()
	if err := r.updateInfo(t.journal, m, k); err != nil {
		return err
	}
	res, err := runVariant(cmd.Context(), con, t)
	unwritten := t.events.Close()
	if err != nil {
		return file.Locate(err)
	}
	if err := reportWithout(con, t, res); err != nil || unwritten == nil {
		if unwritten != nil {
			con.PrintError(unwritten, nil)
		}
		return err
	}
	return unwritten
}

// loadRun reads a run, and closes the journal.
func loadRun(con *console.Console, cmd *cobra.Command, l *journals.ReadFlags) (*journals.StoredRun, error) {
	j, found, err := l.OpenRun(cmd, con)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	return journals.Load(cmd.Context(), con, j, found, "")
}

// job returns the new run, with the settings of the stored one and the flags.
func (r *replayFlags) job(m *run.StoredInvocation) *run.Job {
	j := &run.Job{Command: journals.ExperimentCommand, AnswerFlags: connect.AnswerFlags{Offline: m.Offline, Script: m.Script}, Journal: r.Flags, Progress: r.progress, Reveal: r.reveal}
	j.Journal.None = r.noJournal
	j.SpecFlags, _ = m.Source() // loadSpec has reported its errors
	j.SpecFlags.Models = append(j.SpecFlags.Models, r.models...)
	if j.Script != "" && !filepath.IsAbs(j.Script) {
		j.Script = filepath.Join(m.Folder, j.Script)
	}
	if r.Offline {
		j.AnswerFlags = r.AnswerFlags
	}
	j.Concurrency, j.Budget, j.Cost = m.MaxConcurrency, m.MaxTokenBudget, m.MaxCostBudget
	return j
}

// updateInfo stores what is omitted, so that the new run can be replayed.
func (r *replayFlags) updateInfo(w *run.JournalWriter, m *run.StoredInvocation, k *journals.StoredRun) error {
	if w == nil {
		return nil
	}
	omitted := omittedTasks(k, r.without)
	w.Info.Tasks = slices.DeleteFunc(w.Info.Tasks, func(t trace.Task) bool { return omitted[t.ID] || alreadyOmitted(k, t.ID, m) })
	v := &journals.Invocation{}
	err := json.Unmarshal(w.Info.Invocation, v)
	v.Folder, v.Found = m.Folder, m.Found
	v.Of = k.Run
	v.Without, v.WithoutInputs = r.omitted(m)
	if err == nil {
		w.Info.Invocation, err = json.Marshal(v)
	}
	return err
}

// omitted returns what the new run omits, including what the stored one omitted.
func (r *replayFlags) omitted(m *run.StoredInvocation) (tasks, inputs []string) {
	return slices.Concat(m.Without, r.without), slices.Concat(m.WithoutInputs, r.withoutInputs)
}

// checkOmitted refuses to omit what the run did not have.
func (r *replayFlags) checkOmitted(k *journals.StoredRun, file *specfile.File) error {
	var titles, inputs []string
	for i := range k.Tasks {
		if t := &k.Tasks[i]; t.IsTask() {
			titles = append(titles, t.Title)
		}
	}
	for i := range file.Run.Inputs {
		inputs = append(inputs, file.Run.Inputs[i].Name)
	}
	for i, name := range r.without {
		id, err := k.FindTask(name)
		at, known := k.ByID[id]
		if err != nil || !known || !k.Tasks[at].IsTask() {
			return exit.Usagef("--without %q: the run has no such task; %s", name, naming.Suggest(name, titles))
		}
		if file.Goal != nil { // the plan knows its tasks only by title
			r.without[i] = k.Tasks[at].Title
		}
	}
	for _, name := range r.withoutInputs {
		if !slices.ContainsFunc(inputs, func(known string) bool { return strings.EqualFold(known, name) }) {
			return exit.Usagef("--without-input %q: the run has no such input; %s", name, naming.Suggest(name, inputs))
		}
	}
	if len(titles) > 0 && len(omittedTasks(k, r.without)) == len(titles) {
		return exit.Usagef("--without: no task would be left")
	}
	return nil
}

// alreadyOmitted reports whether the stored run omitted a task of the spec.
func alreadyOmitted(k *journals.StoredRun, id task.ID, m *run.StoredInvocation) bool {
	_, there := k.ByID[id]
	return m.OmitsContext() && !there
}

// omittedTasks returns the IDs of the tasks with these names.
func omittedTasks(k *journals.StoredRun, names []string) map[task.ID]bool {
	out := map[task.ID]bool{}
	for _, name := range names {
		if id, err := k.FindTask(name); err == nil {
			out[id] = true
		}
	}
	return out
}

// runVariant performs the new run.
func runVariant(ctx context.Context, con *console.Console, t *variant) (*engine.Result, error) {
	o := t.job.Options(t.file)
	o.Reuse = false // answers to equal prompts come from the run itself
	history := t.prior.History
	o.Replay = &engine.Replay{Ask: true}
	o.Replay.Without, o.Replay.WithoutInputs = t.flags.omitted(t.invocation)
	var plan *engine.Plan
	if t.file.Goal == nil {
		var err error
		if plan, err = t.team.Plan(t.file.Tasks, &o); err != nil {
			return nil, err
		}
	}
	o.Journal = run.ReplayJournal{History: &history, Writer: t.journal}
	run.SetTasks(&o, t.file)
	return progress.Follow(ctx, con, t.job.Progress, plan, func(ctx context.Context, observers []func(event.Event)) (*engine.Result, error) {
		o.Subscribers = t.journal.Subscribers(append(observers, t.events.Subscribers()...))
		return t.team.Replay(ctx, t.prior.Run, &o)
	})
}
