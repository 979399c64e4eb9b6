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
	m, file, err := r.loadSpec(cmd.Context(), con, k, true)
	if err != nil {
		return err
	}
	omitted, err := r.omittedTasks(k, file)
	if err != nil {
		return err
	}
	t := &variant{flags: r, prior: k, invocation: m, omitted: omitted, job: r.job(m), file: file}
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

// omittedTasks returns the tasks that --without names. It refuses to omit what the run did not have.
func (r *replayFlags) omittedTasks(k *journals.StoredRun, file *specfile.File) (map[task.ID]bool, error) {
	var titles, inputs []string
	for _, t := range k.Tasks {
		if t.IsTask() {
			titles = append(titles, t.Title)
		}
	}
	for i := range file.Run.Inputs {
		inputs = append(inputs, file.Run.Inputs[i].Name)
	}
	omitted := map[task.ID]bool{}
	for i, name := range r.without {
		id, err := k.FindTask(name)
		t := k.ByID[id]
		if err != nil || t == nil || !t.IsTask() {
			return nil, exit.Usagef("--without %q: the run has no such task; %s", name, naming.Suggest(name, titles))
		}
		omitted[id] = true
		if file.Goal != nil { // the plan knows its tasks only by title
			r.without[i] = t.Title
		}
	}
	for _, name := range r.withoutInputs {
		if !slices.ContainsFunc(inputs, func(known string) bool { return strings.EqualFold(known, name) }) {
			return nil, exit.Usagef("--without-input %q: the run has no such input; %s", name, naming.Suggest(name, inputs))
		}
	}
	if len(titles) > 0 && len(omitted) == len(titles) {
		return nil, exit.Usagef("--without: no task would be left")
	}
	return omitted, nil
}

// run performs the new run. Its journal stores what it omits, so that it can be replayed.
func (t *variant) run(ctx context.Context, con *console.Console, team *engine.Team, events *records.EventWriter) (*engine.Result, error) {
	omits := journals.ReplayArguments{
		Of: t.prior.Run, Without: slices.Concat(t.invocation.Without, t.flags.without), WithoutInputs: slices.Concat(t.invocation.WithoutInputs, t.flags.withoutInputs),
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
	o.Journal = run.ReplayJournal{History: &t.prior.History, Writer: t.journal}
	run.SetTasks(&o, t.file)
	return progress.Follow(ctx, con, t.job.Progress, plan, func(ctx context.Context, observer progress.Observer) (*engine.Result, error) {
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
