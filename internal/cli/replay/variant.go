package replay

import (
	"cmp"
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
	omitted    map[task.ID]bool      // the tasks that --without names
	without    []string              // what the engine knows them by
	job        *run.Job
	file       *specfile.File
	journal    *run.JournalWriter
}

// replayWithout repeats a run without some of its context.
func replayWithout(con *console.Console, cmd *cobra.Command, r *replayFlags) error {
	k, err := loadRun(con, cmd, &r.ReadFlags)
	if err != nil {
		return err
	}
	s, err := r.loadSpec(cmd.Context(), con, k, true)
	if err != nil {
		return err
	}
	m, file := s.Invocation, s.File
	t := &variant{flags: r, prior: k, invocation: m, job: r.job(m), file: file}
	if err := t.omit(); err != nil {
		return err
	}
	if err := journals.CheckOutputs(con, &r.Flags, &r.events.File); err != nil {
		return err
	}
	events, err := r.events.Begin(cmd, con, r.force, append(t.job.Reads(file), t.job.ScriptPath(file), r.Flags.Path, r.Flags.KeyFile)...)
	if err != nil {
		return err
	}
	file.Run.RunID, file.Run.Assert = uuid.NewString(), nil
	c, err := connect.NewConnector(cmd.Context(), con, &t.job.AnswerFlags, file, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	c.AllowNoKey = true
	team, err := connect.BuildTeam(file, c.Connect)
	if err != nil {
		return err
	}
	if t.journal, err = run.NewJournalWriter(cmd.Context(), con, t.job, file); err != nil {
		return err
	}
	defer t.journal.Release()
	res, err := t.run(cmd.Context(), con, team, events)
	unwritten := events.Close()
	if err != nil {
		return file.Locate(err)
	}
	if err = t.report(con, res); err == nil {
		return unwritten
	}
	if unwritten != nil {
		con.PrintError(unwritten)
	}
	return err
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

// omit finds the tasks that --without names. It refuses to omit what the run did not have.
func (t *variant) omit() error {
	r, tasks := t.flags, 0
	var known []trace.Task
	for i := range t.prior.Trace.Tasks {
		if s := t.prior.ByID[t.prior.Trace.Tasks[i].ID]; s != nil && s.IsTask() {
			known = append(known, t.prior.Trace.Tasks[i])
		}
	}
	for _, s := range t.prior.Tasks {
		if s.IsTask() {
			tasks++
		}
	}
	t.omitted, t.without = map[task.ID]bool{}, slices.Clone(r.without)
	for i, name := range r.without {
		id, err := t.prior.FindTask(name)
		s := t.prior.ByID[id]
		if err != nil || s == nil || !s.IsTask() {
			return exit.Usagef("--without %q: the run has no such task; %s", name, naming.Suggest(name, trace.Known(known)))
		}
		t.omitted[id] = true
		if t.file.Goal != nil || s.Name != "" { // the plan knows tasks of a goal, and instances, only by title
			t.without[i], r.without[i] = s.Title, cmp.Or(s.Name, s.Title)
		}
	}
	if tasks > 0 && len(t.omitted) == tasks {
		return exit.Usagef("--without: no task would be left")
	}
	return t.checkInputs()
}

// checkInputs refuses to omit inputs that the run did not have.
func (t *variant) checkInputs() error {
	var inputs []string
	for i := range t.file.Run.Inputs {
		inputs = append(inputs, t.file.Run.Inputs[i].Name)
	}
	for _, name := range t.flags.withoutInputs {
		if !slices.ContainsFunc(inputs, func(known string) bool { return strings.EqualFold(known, name) }) {
			return exit.Usagef("--without-input %q: the run has no such input; %s", name, naming.Suggest(name, inputs))
		}
	}
	return nil
}

// run performs the new run. Its journal stores what it omits, so that it can be replayed.
func (t *variant) run(ctx context.Context, con *console.Console, team *engine.Team, events *records.EventWriter) (*engine.Result, error) {
	omits := journals.ReplayArguments{
		Of: t.prior.Run, Without: slices.Concat(t.invocation.Without, t.without), WithoutInputs: slices.Concat(t.invocation.WithoutInputs, t.flags.withoutInputs),
	}
	if err := t.updateInfo(omits); err != nil {
		return nil, err
	}
	o := t.job.Options(t.file)
	o.Reuse = false // answers to equal prompts come from the run itself
	o.Replay = &engine.Replay{Ask: true, Without: omits.Without, WithoutInputs: omits.WithoutInputs}
	var plan *engine.Plan
	if t.file.Goal == nil {
		var err error
		if plan, err = team.Plan(t.file.Tasks, &o); err != nil {
			return nil, err
		}
	}
	history := t.prior.History
	history.Versions = t.invocation.Versions
	o.Journal = run.ReplayJournal{History: &history, Writer: t.journal}
	run.SetTasks(&o, t.file)
	return progress.Follow(ctx, con, progress.View{Mode: t.job.Progress, Plan: plan}, func(ctx context.Context, observer progress.Observer) (*engine.Result, error) {
		o.Subscribers, o.Stream = append(observer.Events, events.Subscribers()...), observer.Stream
		return team.Replay(ctx, t.prior.Run, &o)
	})
}

// updateInfo adds to what the journal stores about the new run which run it repeats and what it omits.
func (t *variant) updateInfo(omits journals.ReplayArguments) error {
	if t.journal == nil {
		return nil
	}
	info := &t.journal.Info
	info.Tasks = slices.DeleteFunc(info.Tasks, func(planned trace.Task) bool {
		omittedBefore := t.invocation.OmitsContext() && t.prior.ByID[planned.ID] == nil
		return t.omitted[planned.ID] || omittedBefore
	})
	v := journals.InvocationOf(info)
	v.Folder, v.Found, v.ReplayArguments = t.invocation.Folder, t.invocation.Found, omits
	var err error
	info.Invocation, err = json.Marshal(v)
	return err
}
