package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A trial is a run that is made again without some of its context.
type trial struct {
	asked *replaying
	past  *storedRun
	how   *remembered // how that was asked for
	job   *job
	file  *specfile.File
	team  *team.Team
	told  *chronicle

	events *eventWriter // nil if no flag asks for events
}

// replayWithout makes a run again without some of its context.
func (a *app) replayWithout(cmd *cobra.Command, r *replaying) error {
	k, err := a.lookUp(cmd, r)
	if err != nil {
		return err
	}
	m, file, err := r.specOf(cmd.Context(), a, k, true)
	if err != nil {
		return err
	}
	if err := r.known(k, file); err != nil {
		return err
	}
	t := &trial{asked: r, past: k, how: m, job: r.job(m), file: file}
	if err := a.checkOutputs(&r.journaling, &r.events.file); err != nil {
		return err
	}
	if t.events, err = r.events.begin(cmd, a, r.force, append(t.job.reads(file), t.job.scriptOf(file), r.journaling.path, r.journaling.keyFile)...); err != nil {
		return err
	}
	file.Run.RunID, file.Run.Assert = uuid.NewString(), nil
	c, err := a.connector(cmd.Context(), &t.job.stage, file, nil)
	if err != nil {
		return err
	}
	defer c.close()
	c.lazy = true
	if t.team, err = build(file, c.connect); err != nil {
		return err
	}
	if t.told, err = a.chronicle(t.job, file); err != nil {
		return err
	}
	defer t.told.close()
	if err := r.remember(t.told, m, k); err != nil {
		return err
	}
	res, err := a.try(cmd.Context(), t)
	unwritten := t.events.end()
	if err != nil {
		return file.Locate(err)
	}
	t.told.end(res)
	if err := a.reportWithout(t, res); err != nil || unwritten == nil {
		if unwritten != nil {
			a.complain(unwritten, nil)
		}
		return err
	}
	return unwritten
}

// lookUp reads the run and closes the journal, in which a run is kept afterwards.
func (a *app) lookUp(cmd *cobra.Command, r *replaying) (*storedRun, error) {
	j, err := r.open(cmd, a)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	return a.stored(cmd.Context(), j, r.run)
}

// job is the run that is made, as the stored one was but for flags.
func (r *replaying) job(m *remembered) *job {
	j := &job{command: experimenting, stage: stage{offline: m.Offline, script: m.Script}, journal: r.journaling, progress: r.progress, reveal: r.reveal}
	j.journal.none = r.unkept
	j.source, _ = m.source() // it was asked for once already
	j.source.models = append(j.source.models, r.models...)
	if j.script != "" && !filepath.IsAbs(j.script) {
		j.script = filepath.Join(m.Folder, j.script)
	}
	if r.offline {
		j.stage = r.stage
	}
	j.concurrency, j.budget, j.cost = m.MaxConcurrency, m.MaxTokenBudget, m.MaxCostBudget
	return j
}

// remember has the journal keep what is left out, so that the new run can be replayed.
func (r *replaying) remember(told *chronicle, m *remembered, k *storedRun) error {
	if told == nil {
		return nil
	}
	left := k.leftOut(r.without)
	told.info.Tasks = slices.DeleteFunc(told.info.Tasks, func(t trace.Task) bool { return left[t.ID] || k.gone(t.ID, m) })
	v := &invocation{}
	err := json.Unmarshal(told.info.Invocation, v)
	v.Folder, v.Found = m.Folder, m.Found
	v.Of = k.Run
	v.Without, v.WithoutInputs = r.leftOut(m)
	if err == nil {
		told.info.Invocation, err = json.Marshal(v)
	}
	return err
}

// leftOut is what is left out of the new run: also what the stored one was without.
func (r *replaying) leftOut(m *remembered) (tasks, inputs []string) {
	return slices.Concat(m.Without, r.without), slices.Concat(m.WithoutInputs, r.withoutInputs)
}

// known refuses to leave out what the run had not.
func (r *replaying) known(k *storedRun, file *specfile.File) error {
	var titles, inputs []string
	for i := range k.tasks {
		if t := &k.tasks[i]; t.task() {
			titles = append(titles, t.title)
		}
	}
	for i := range file.Run.Inputs {
		inputs = append(inputs, file.Run.Inputs[i].Name)
	}
	for i, name := range r.without {
		id, err := k.find(name)
		at, known := k.byID[id]
		if err != nil || !known || !k.tasks[at].task() {
			return usageError("--without %q: no task of the run is called that; %s", name, naming.Suggest(name, titles))
		}
		if file.Goal != nil { // whose tasks are known by what the plan calls them
			r.without[i] = k.tasks[at].title
		}
	}
	for _, name := range r.withoutInputs {
		if !slices.ContainsFunc(inputs, func(known string) bool { return strings.EqualFold(known, name) }) {
			return usageError("--without-input %q: no input of the run is called that; %s", name, naming.Suggest(name, inputs))
		}
	}
	if len(titles) > 0 && len(k.leftOut(r.without)) == len(titles) {
		return usageError("--without: no task would be left")
	}
	return nil
}

// gone reports whether a task of the spec was left out of the run already.
func (k *storedRun) gone(id task.ID, m *remembered) bool {
	_, there := k.byID[id]
	return m.leavesOut() && !there
}

// leftOut returns the ids of the tasks with these names.
func (k *storedRun) leftOut(names []string) map[task.ID]bool {
	out := map[task.ID]bool{}
	for _, name := range names {
		if id, err := k.find(name); err == nil {
			out[id] = true
		}
	}
	return out
}

// try makes the run.
func (a *app) try(ctx context.Context, t *trial) (*team.Result, error) {
	o := t.job.options(t.file)
	o.Reuse = false // what is the same is taken from the run itself
	past := t.past.history
	o.Replay = &team.Replay{Past: &past, Ask: true}
	o.Replay.Without, o.Replay.WithoutInputs = t.asked.leftOut(t.how)
	var plan *team.Plan
	if t.file.Goal == nil {
		var err error
		if plan, err = t.team.Plan(t.file.Tasks, &o); err != nil {
			return nil, err
		}
	}
	if err := t.told.options(ctx, &o); err != nil {
		return nil, err
	}
	res, err := a.follow(ctx, t.job.progress, plan, func(ctx context.Context, watch []func(event.Event)) (*team.Result, error) {
		o.Subscribers = t.told.watched(append(watch, t.events.watch()...))
		if t.file.Goal != nil {
			return t.team.RunTeam(ctx, *t.file.Goal, &o)
		}
		return t.team.RunTasks(ctx, t.file.Tasks, &o)
	})
	if err == nil {
		err = t.told.unbegun()
	}
	return res, err
}
