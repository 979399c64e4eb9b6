package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/report"
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
	res, err := t.run(cmd.Context(), con, team)
	if err != nil {
		return file.Locate(err)
	}
	return t.report(con, cmd, res)
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
	j := &run.Job{Command: journals.ExperimentCommand, AnswerFlags: connect.AnswerFlags{Offline: m.Offline, Script: m.Script}, Journal: r.Flags, Progress: "auto"}
	j.SpecFlags, _ = m.Source() // loadSpec has reported its errors
	j.SpecFlags.Models = append(j.SpecFlags.Models, r.models...)
	if j.Script != "" && !filepath.IsAbs(j.Script) {
		j.Script = filepath.Join(m.Folder, j.Script)
	}
	j.Concurrency, j.Budget, j.Cost = m.MaxConcurrency, m.MaxTokenBudget, m.MaxCostBudget
	return j
}

// omit finds the tasks that --without names. It refuses to omit what the run did not have.
func (t *variant) omit() error {
	r, tasks := t.flags, 0
	var known []trace.Task
	for _, tk := range t.prior.Trace.Tasks() {
		if s := t.prior.Find(tk.ID); s != nil && t.prior.State.IsTask(s) {
			known = append(known, tk)
		}
	}
	for _, s := range t.prior.Tasks {
		if t.prior.State.IsTask(s) {
			tasks++
		}
	}
	t.omitted, t.without = map[task.ID]bool{}, slices.Clone(r.without)
	for i, name := range r.without {
		s, err := t.prior.FindTask(name)
		if err != nil || !t.prior.State.IsTask(s) {
			return exit.Usagef("--without: %w", trace.Existing(known).Unknown(name))
		}
		t.omitted[s.ID] = true
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
func (t *variant) run(ctx context.Context, con *console.Console, team *engine.Team) (*engine.Result, error) {
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
		o.Subscribers, o.Stream = observer.Events, observer.Stream
		return team.Replay(ctx, t.prior.Run, &o)
	})
}

// updateInfo adds to what the journal stores about the new run which run it repeats and what it omits.
func (t *variant) updateInfo(omits journals.ReplayArguments) error {
	info := &t.journal.Info
	v := journals.InvocationOf(info)
	v.Folder, v.Found, v.ReplayArguments = t.invocation.Folder, t.invocation.Found, omits
	var err error
	info.Invocation, err = json.Marshal(v)
	return err
}

// report prints how the new run differs from the prior one, and returns its exit status.
func (t *variant) report(con *console.Console, cmd *cobra.Command, res *engine.Result) error {
	ending := report.Ending{Result: res, Mode: progress.Mode(con, t.job.Progress), Scripted: t.job.Offline}
	defer ending.Print(con)
	if res.JournalErr != nil {
		return exit.Errorf(exit.KindRuntime, "the journal does not have the whole run: %w", res.JournalErr)
	}
	stored := t.flags.ReadFlags
	stored.Run = res.RunID
	after, err := loadRun(con, cmd, &stored)
	if err != nil {
		return err
	}
	d := Compare(t.prior, after)
	for i := range d.Tasks {
		d.Tasks[i].Omitted = t.omitted[d.Tasks[i].ID]
	}
	d.Verdict = d.sentence(journals.OmittedText(t.flags.without, t.flags.withoutInputs))
	if err := con.PrintResult(d, func(w io.Writer) { d.write(w, con.TitleWidth()) }); err != nil {
		return err
	}
	if status := report.ExitStatus(res); status != exit.StatusOK {
		return exit.Status(status)
	}
	return nil
}

// sentence says whether the omitted context mattered.
func (d *ComparedRuns) sentence(omitted string) string {
	var prompts, differ, unclear int
	var results []string
	for _, c := range d.Tasks {
		if c.Omitted || c.unfinished() {
			continue
		}
		switch c.Prompt { // a task that calls no agent has none
		case Same:
			prompts++
			continue
		case Changed:
			prompts++
			differ++
		}
		switch {
		case c.Result == Changed || c.Before != nil && c.After != nil && c.Before.Status != c.After.Status:
			results = append(results, c.shownName())
		case c.Result == withheld:
			unclear++
		}
	}
	text := "Without " + omitted + ", "
	changed := fmt.Sprintf("%d of %s", differ, format.Plural(prompts, "prompt"))
	switch {
	case differ == 0 && len(results) == 0 && unclear == 0:
		return text + "no prompt changed, so it did not matter."
	case len(results) == 0 && unclear == 0:
		return text + changed + " changed, but no result did, so it did not matter."
	case len(results) == 0:
		return fmt.Sprintf("%s%s changed; it may have mattered: the results of %s are withheld.", text, changed, format.Plural(unclear, "task"))
	}
	return fmt.Sprintf("%s%s and %s changed, so it mattered for %s.", text, changed, format.Plural(len(results), "result"), format.List(results, 5))
}

// unfinished reports whether the task did not end in the stored run, so that it cannot be compared.
func (c *ComparedTask) unfinished() bool {
	return c.Before != nil && c.Before.Status != task.Completed && c.Before.Status != task.Failed && c.Before.Status != task.NotNeeded
}
