package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// replayedWithout is a run that was made again without some of its context, in JSON.
type replayedWithout struct {
	Run           string         `json:"runId"`
	Replayed      string         `json:"replayed"` // the id of the run that was made again
	Status        team.Status    `json:"status"`
	Without       []string       `json:"without,omitempty"`
	WithoutInputs []string       `json:"withoutInputs,omitempty"`
	Verdict       string         `json:"verdict"` // whether it mattered
	Tasks         []comparedTask `json:"tasks"`
	Usage         llm.Usage      `json:"totalTokenUsage"`
}

// reportWithout prints what changed.
func (a *app) reportWithout(t *trial, res *team.Result) error {
	r, k := t.asked, t.past
	d := &replayedWithout{Run: res.RunID, Replayed: k.Run, Status: res.Status, Without: r.without, WithoutInputs: r.withoutInputs, Tasks: []comparedTask{}, Usage: res.Usage}
	accepts := label.Confidential
	if r.reveal {
		accepts = label.Secret
	}
	d.compare(k, res, k.leftOut(r.without), accepts)
	d.Verdict = d.sentence()
	var err error
	if a.settings.json() {
		err = a.apart(func() error { return a.printJSON(d) })
	} else {
		var b strings.Builder
		d.write(&b, r.verbose)
		if r.events.toStdout() {
			a.say("\n%s\n", strings.TrimRight(clean(b.String()), "\n"))
		} else {
			err = a.apart(func() error { return a.printText(b.String()) })
		}
	}
	a.summarize(res, a.mode(t.job.progress))
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
	before := k.synthesis()
	c := comparedTask{
		Title: string(step.Kind), Step: true, Prompt: changedTo, Before: &comparedSide{Status: task.Completed, text: end.Answer, hidden: withheldText(end.Answer)},
		After: &comparedSide{Status: task.Completed, text: res.Output, hidden: withheldText(res.Output), Usage: step.Metrics.Usage, Reused: step.Reused},
	}
	if before != nil {
		c.Before.hidden = k.read(before).hidden
	}
	if k.repeats(step.Repeated, step.Reused, before) {
		c.Prompt = sameAs
	}
	if step.Error != nil {
		c.After.Status, c.After.Error = task.Failed, step.Error.Message
	}
	c.settle()
	d.Tasks = append(d.Tasks, c)
}

// synthesis is the exchange that made the answer of the coordinator; nil if there is none.
func (k *storedRun) synthesis() (last *record.AgentCall) {
	for i := range k.tasks {
		if t := &k.tasks[i]; t.step && t.title == string(team.StepSynthesis) {
			last = t.answer()
		}
	}
	return last
}

// repeats reports whether somebody was given the prompt that the stored run has:
// the new run says so, or took the answer from it or from where that took it.
func (k *storedRun) repeats(repeated bool, reused string, before *record.AgentCall) bool {
	return repeated || reused == k.Run || reused != "" && before != nil && reused == before.From
}

// sideOf is a task of the new run.
func sideOf(res *team.Result, t *team.TaskResult, accepts label.Classification) *comparedSide {
	s := &comparedSide{Status: t.Status, Agent: t.Assignee, Usage: t.Metrics.Usage, Reused: t.Reused}
	if t.Status == task.Completed {
		s.Label, s.text, s.hidden = &t.Label, t.Result, t.Label > accepts || withheldText(t.Result)
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

// promptOfTask says whether a task was given the prompt that it was given before.
func promptOfTask(k *storedRun, s *storedTask, t *team.TaskResult) string {
	switch {
	case t.Metrics.Attempts == 0 || len(s.exchanges) == 0:
		return notThere
	case k.repeats(t.Repeated, t.Reused, s.answer()):
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
	fmt.Fprintf(w, "\n%s\n", d.Verdict)
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
	case c.Prompt == sameAs && c.After.Reused == "":
		return "same prompt, asked again: the answer could not be taken any more"
	case c.Prompt == sameAs:
		return "same prompt, answer taken from the run"
	case c.Before.Status != task.Completed:
		return "completed, and was " + statusText(c.Before.Status)
	}
	return "other prompt, " + cmp.Or(map[string]string{sameAs: "same result", changedTo: "other result", notVisible: "result withheld"}[c.Result], "no result to compare")
}
