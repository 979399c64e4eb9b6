package main

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
	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/trace"
)

// replayedWithout is a run that was made again without some of its context, in JSON.
type replayedWithout struct {
	Run           string         `json:"runId"`
	Replayed      string         `json:"replayed"` // the id of the run that was made again
	Status        team.Status    `json:"status"`
	Without       []string       `json:"without,omitempty"`
	WithoutInputs []string       `json:"withoutInputs,omitempty"`
	Answer        string         `json:"answer"` // whether it mattered
	Tasks         []comparedTask `json:"tasks"`
	Usage         llm.Usage      `json:"totalTokenUsage"`
}

// replayWithout makes a run again without some of its context.
func (a *app) replayWithout(cmd *cobra.Command, r *replaying) error {
	k, err := a.lookUp(cmd, r)
	if err != nil {
		return err
	}
	m, file, err := r.specOf(a, k, true)
	if err != nil {
		return err
	}
	if err := r.known(k, file); err != nil {
		return err
	}
	j := r.job(m)
	file.Run.RunID, file.Run.Assert = uuid.NewString(), nil
	c, err := a.connector(&j.stage, file, nil)
	if err != nil {
		return err
	}
	defer c.close()
	c.lazy = true
	t, err := build(file, c.connect)
	if err != nil {
		return err
	}
	told, err := a.chronicle(j, file)
	if err != nil {
		return err
	}
	defer told.close()
	if err := r.remember(told, m, k); err != nil {
		return err
	}
	res, err := a.runWithout(cmd.Context(), r, j, t, file, k, m, told)
	if err != nil {
		return file.Locate(err)
	}
	told.end(res)
	return a.reportWithout(r, j, k, res)
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
	j.concurrency, j.budget = m.MaxConcurrency, m.MaxTokenBudget
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
func (r *replaying) known(k *storedRun, file *spec.File) error {
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
			return usageError("--without %q: no task of the run is called that; %s", name, task.Suggest(name, titles))
		}
		if file.Goal != nil { // whose tasks are known by what the plan calls them
			r.without[i] = k.tasks[at].title
		}
	}
	for _, name := range r.withoutInputs {
		if !slices.ContainsFunc(inputs, func(known string) bool { return strings.EqualFold(known, name) }) {
			return usageError("--without-input %q: no input of the run is called that; %s", name, task.Suggest(name, inputs))
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

// runWithout makes the run.
func (a *app) runWithout(ctx context.Context, r *replaying, j *job, t *team.Team, file *spec.File, k *storedRun, m *remembered, told *chronicle) (*team.Result, error) {
	o := j.options(file)
	o.Reuse = false // what is the same is taken from the run itself
	past := k.history
	o.Replay = &team.Replay{Past: &past, Ask: true}
	o.Replay.Without, o.Replay.WithoutInputs = r.leftOut(m)
	var plan *team.Plan
	if file.Goal == nil {
		var err error
		if plan, err = t.Plan(file.Tasks, &o); err != nil {
			return nil, err
		}
	}
	if err := told.options(ctx, &o); err != nil {
		return nil, err
	}
	res, err := a.follow(ctx, j, plan, func(ctx context.Context, watch []func(event.Event)) (*team.Result, error) {
		o.Subscribers = told.watched(watch)
		if file.Goal != nil {
			return t.RunTeam(ctx, *file.Goal, &o)
		}
		return t.RunTasks(ctx, file.Tasks, &o)
	})
	if err == nil {
		err = told.unbegun()
	}
	return res, err
}

// reportWithout prints what changed.
func (a *app) reportWithout(r *replaying, j *job, k *storedRun, res *team.Result) error {
	d := &replayedWithout{Run: res.RunID, Replayed: k.Run, Status: res.Status, Without: r.without, WithoutInputs: r.withoutInputs, Tasks: []comparedTask{}, Usage: res.Usage}
	accepts := label.Confidential
	if r.reveal {
		accepts = label.Secret
	}
	d.compare(k, res, k.leftOut(r.without), accepts)
	d.Answer = d.sentence()
	var err error
	if a.settings.json() {
		err = a.apart(func() error { return a.printJSON(d) })
	} else {
		var b strings.Builder
		d.write(&b, r.verbose)
		err = a.apart(func() error { return a.printText(b.String()) })
	}
	a.summarize(res, a.mode(j.progress))
	if res.Unkept != nil {
		a.say("runteam: the run is not kept whole: %s", clean(res.Unkept.Error()))
	}
	if err != nil {
		return err
	}
	if status := statusOf(res); status != statusOK {
		return ended(status)
	}
	return nil
}

// compare compares the tasks of the new run with those of the stored one.
func (d *replayedWithout) compare(k *storedRun, res *team.Result, left map[task.ID]bool, accepts label.Classification) {
	done := map[task.ID]bool{}
	for i := range k.tasks {
		s := &k.tasks[i]
		if !s.task() {
			continue
		}
		c := comparedTask{ID: s.id, Title: s.title, Prompt: notThere, Before: k.side(s), Left: left[s.id]}
		if t, ok := res.Task(string(s.id)); ok {
			done[t.ID] = true
			c.After, c.Prompt = sideOf(res, t, accepts), promptOfTask(k, s, t)
		}
		c.settle()
		d.Tasks = append(d.Tasks, c)
	}
	for i := range res.Tasks {
		if t := &res.Tasks[i]; !done[t.ID] {
			c := comparedTask{ID: t.ID, Title: t.Title, Prompt: notThere, After: sideOf(res, t, accepts)}
			c.settle()
			d.Tasks = append(d.Tasks, c)
		}
	}
	d.answer(k, res)
}

// answer compares what the coordinator answered.
func (d *replayedWithout) answer(k *storedRun, res *team.Result) {
	end := k.history.End
	if n := len(res.Steps); n == 0 || end == nil || end.Answer == "" || res.Steps[n-1].Kind != team.StepSynthesis {
		return
	}
	step := &res.Steps[len(res.Steps)-1]
	c := comparedTask{Title: string(step.Kind), Step: true, Prompt: changedTo, Before: &comparedSide{Status: task.Completed, text: end.Answer}, After: &comparedSide{Status: task.Completed, text: res.Output, Usage: step.Metrics.Usage, Reused: step.Reused}}
	if step.Reused == k.Run {
		c.Prompt = sameAs
	}
	if step.Error != nil {
		c.After.Status, c.After.Error = task.Failed, step.Error.Message
	}
	for _, s := range []*comparedSide{c.Before, c.After} {
		s.hidden = strings.HasPrefix(s.text, "[withheld: ")
	}
	c.settle()
	d.Tasks = append(d.Tasks, c)
}

// sideOf is a task of the new run.
func sideOf(res *team.Result, t *team.TaskResult, accepts label.Classification) *comparedSide {
	s := &comparedSide{Status: t.Status, Agent: t.Assignee, Usage: t.Metrics.Usage, Reused: t.Reused}
	if t.Status == task.Completed {
		s.Label, s.text, s.hidden = &t.Label, t.Result, t.Label > accepts || strings.HasPrefix(t.Result, "[withheld: ")
	} else if s.Error = t.Result; t.Error != nil {
		s.Error = t.Error.Message
	}
	if t.Error != nil && t.Error.Root != "" {
		if root, ok := res.Task(string(t.Error.Root)); ok {
			s.Error = fmt.Sprintf("because %q failed", root.Title)
		}
	}
	return s
}

// promptOfTask says whether a task was given the prompt that it was given before:
// then it has the answer from there.
func promptOfTask(k *storedRun, s *storedTask, t *team.TaskResult) string {
	x := s.answer()
	switch {
	case t.Metrics.Attempts == 0 || len(s.exchanges) == 0:
		return notThere
	case t.Reused == k.Run, t.Reused != "" && x != nil && t.Reused == x.From:
		return sameAs
	}
	return changedTo
}

// sentence answers whether what was left out mattered.
func (d *replayedWithout) sentence() string {
	var prompts, unclear int
	var results []string
	tasks := 0
	for i := range d.Tasks {
		c := &d.Tasks[i]
		if c.Left || c.unfinished() {
			continue
		}
		tasks++
		switch {
		case c.Prompt == sameAs:
			continue
		case c.Prompt == changedTo:
			prompts++
		}
		switch {
		case c.Result == changedTo || c.Before != nil && c.After != nil && c.Before.Status != c.After.Status:
			results = append(results, c.Title)
		case c.Result == notVisible:
			unclear++
		}
	}
	text := "without " + d.what()
	switch {
	case prompts == 0 && len(results) == 0:
		return text + " no prompt is another one: it did not matter"
	case len(results) == 0 && unclear == 0:
		return fmt.Sprintf("%s %d of %s changed, and no result: it did not matter", text, prompts, plural(tasks, "prompt"))
	case len(results) == 0:
		return fmt.Sprintf("%s %d of %s changed; of %s the result is withheld, so it may have mattered", text, prompts, plural(tasks, "prompt"), plural(unclear, "task"))
	}
	return fmt.Sprintf("%s %d of %s changed, and what came of %d: it mattered for %s", text, prompts, plural(tasks, "prompt"), len(results), listed(results, 5))
}

// unfinished reports whether the run had not come to an end of the task, so that
// nothing can be said of what mattered for it.
func (c *comparedTask) unfinished() bool {
	return c.Before != nil && c.Before.Status != task.Completed && c.Before.Status != task.Failed
}

// leftOutText names what was left out of a run.
func leftOutText(tasks, inputs []string) string {
	var all []string
	for _, name := range tasks {
		all = append(all, "task "+cleanLine(name))
	}
	for _, name := range inputs {
		all = append(all, "input "+cleanLine(name))
	}
	return strings.Join(all, " and ")
}

func (d *replayedWithout) what() string { return leftOutText(d.Without, d.WithoutInputs) }

func (d *replayedWithout) write(w io.Writer, verbose bool) {
	fmt.Fprintf(w, "run %s without %s, as run %s\n\n", cleanLine(d.Replayed), d.what(), cleanLine(d.Run))
	table := newRows(w, "")
	for i := range d.Tasks {
		c := &d.Tasks[i]
		table.row(cleanLine(c.Title), c.outcome())
	}
	table.flush()
	for i := range d.Tasks {
		d.Tasks[i].write(w, verbose)
	}
	fmt.Fprintf(w, "\n%s\n", d.Answer)
}

// outcome says what became of a task without what was left out.
func (c *comparedTask) outcome() string {
	switch {
	case c.Left:
		return "left out"
	case c.Before == nil:
		return "new: " + statusText(c.After.Status)
	case c.After == nil:
		return "not planned"
	case c.After.Status != task.Completed:
		text := statusText(c.After.Status)
		if first, _, _ := strings.Cut(strings.TrimSpace(c.After.Error), "\n"); first != "" {
			text += ": " + clip(cleanLine(first), maxShownLine)
		}
		return text
	case c.Prompt == sameAs:
		return "same prompt, answer taken from the run"
	case c.Before.Status != task.Completed:
		return "completed, and was " + statusText(c.Before.Status)
	}
	return "other prompt, " + cmp.Or(map[string]string{sameAs: "same result", changedTo: "other result", notVisible: "result withheld"}[c.Result], "no result to compare")
}
