package replay

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A VariantDocument is a run that was repeated without some of its context, in JSON.
type VariantDocument struct {
	Run           string         `json:"runId"`
	Replayed      string         `json:"replayed"` // the ID of the repeated run
	Status        engine.Status  `json:"status"`
	Without       []string       `json:"without,omitempty"`
	WithoutInputs []string       `json:"withoutInputs,omitempty"`
	Verdict       string         `json:"verdict"` // whether the omitted context mattered
	Tasks         []ComparedTask `json:"tasks"`
	Usage         llm.Usage      `json:"totalTokenUsage"`
}

// report prints how the new run differs from the prior one, and returns its exit status.
func (t *variant) report(con *console.Console, res *engine.Result) error {
	r, k := t.flags, t.prior
	d := &VariantDocument{Run: res.RunID, Replayed: k.Run, Status: res.Status, Without: r.without, WithoutInputs: r.withoutInputs, Tasks: []ComparedTask{}, Usage: res.Usage}
	accepts := label.Confidential
	if r.reveal {
		accepts = label.Secret
	}
	d.compare(k, res, t.omitted, accepts)
	d.Verdict = d.sentence()
	var err error
	if con.Settings.JSON() {
		err = con.Separated(func() error { return con.PrintJSON(d) })
	} else {
		var b strings.Builder
		d.write(&b, r.verbose)
		err = report.PrintText(con, b.String(), r.events.ToStdout())
	}
	ending := report.Ending{Result: res, Mode: progress.Mode(con, t.job.Progress), Scripted: t.job.Offline}
	ending.Print(con)
	if res.JournalErr != nil {
		con.Say("runteam: the journal does not have the whole run: %s", terminal.Clean(res.JournalErr.Error()))
	}
	if err != nil {
		return err
	}
	if status := report.ExitStatus(res); status != exit.StatusOK {
		return exit.Status(status)
	}
	return nil
}

// compare compares the tasks of the new run with those of the stored one.
func (d *VariantDocument) compare(k *journals.StoredRun, res *engine.Result, omitted map[task.ID]bool, accepts label.Classification) {
	for _, s := range k.Tasks {
		if !s.IsTask() {
			continue
		}
		c := ComparedTask{ID: s.ID, Title: s.Title, Name: s.Name, Prompt: none, Before: storedSide(k, s), Omitted: omitted[s.ID]}
		if t, ok := res.Task(string(s.ID)); ok {
			c.After, c.Prompt = sideOf(res, t, accepts), promptOfTask(s, t)
		}
		c.compare()
		d.Tasks = append(d.Tasks, c)
	}
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if s := k.ByID[t.ID]; s == nil || !s.IsTask() {
			c := ComparedTask{ID: t.ID, Title: t.Title, Name: t.Name, Prompt: none, After: sideOf(res, t, accepts)}
			c.compare()
			d.Tasks = append(d.Tasks, c)
		}
	}
	d.answer(k, res)
}

// answer compares the answers of the coordinator.
func (d *VariantDocument) answer(k *journals.StoredRun, res *engine.Result) {
	end := k.History.End
	if n := len(res.Steps); n == 0 || end == nil || end.Answer == "" || res.Steps[n-1].Kind != engine.StepSynthesis {
		return
	}
	step := &res.Steps[len(res.Steps)-1]
	before := synthesis(k)
	c := ComparedTask{
		Title: string(step.Kind), Step: true, Prompt: Changed, Before: &comparedSide{Status: task.Completed, Text: end.Answer, hidden: journals.IsWithheld(end.Answer)},
		After: &comparedSide{Status: task.Completed, Text: res.Output, hidden: journals.IsWithheld(res.Output), Usage: step.Metrics.Usage, Reused: step.Reused},
	}
	if before != nil {
		c.Before.hidden = k.Result(before).Hidden
	}
	if step.Repeated {
		c.Prompt = Same
	}
	if step.Error != nil {
		c.After.Status, c.After.Error = task.Failed, step.Error.Message
	}
	c.compare()
	d.Tasks = append(d.Tasks, c)
}

// synthesis returns the call with the answer of the coordinator; nil if there is none.
func synthesis(k *journals.StoredRun) (last *record.AgentCall) {
	for _, t := range k.Tasks {
		if t.Step && t.Title == string(engine.StepSynthesis) {
			last = t.Accepted()
		}
	}
	return last
}

// sideOf returns a task of the new run.
func sideOf(res *engine.Result, t *engine.TaskResult, accepts label.Classification) *comparedSide {
	s := &comparedSide{Status: t.Status, Agent: t.Assignee, Usage: t.Metrics.Usage, Reused: t.Reused, above: t.Label > accepts}
	if t.Status == task.Completed {
		s.Label, s.Text, s.hidden = &t.Label, t.Result, t.Label > accepts || journals.IsWithheld(t.Result)
	} else if s.Error = format.WhyNotNeeded(t.Result); t.Error != nil {
		s.Error = t.Error.Message
	}
	if t.Error != nil && t.Error.Root != "" {
		if root, ok := res.Task(string(t.Error.Root)); ok {
			s.Error = fmt.Sprintf("because %q failed", root.Title)
		}
	}
	return s
}

// promptOfTask compares the prompt of a task with the one in the stored run.
func promptOfTask(s *journals.StoredTask, t *engine.TaskResult) string {
	switch {
	case t.Metrics.Attempts == 0 || len(s.Calls) == 0:
		return none
	case t.Repeated:
		return Same
	}
	return Changed
}

// sentence says whether the omitted context mattered.
func (d *VariantDocument) sentence() string {
	var prompts, unclear int
	var results []string
	tasks := 0
	for _, c := range d.Tasks {
		if c.Omitted || c.unfinished() {
			continue
		}
		tasks++
		switch {
		case c.Prompt == Same:
			continue
		case c.Prompt == Changed:
			prompts++
		}
		switch {
		case c.Result == Changed || c.Before != nil && c.After != nil && c.Before.Status != c.After.Status:
			results = append(results, c.shownName())
		case c.Result == withheld:
			unclear++
		}
	}
	text := "Without " + d.what() + ", "
	changed := fmt.Sprintf("%d of %s", prompts, format.Plural(tasks, "prompt"))
	switch {
	case prompts == 0 && len(results) == 0 && unclear == 0:
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

func (d *VariantDocument) what() string { return journals.OmittedText(d.Without, d.WithoutInputs) }

func (d *VariantDocument) write(w io.Writer, verbose bool) {
	fmt.Fprintf(w, "run %s without %s, as run %s\n\n", terminal.CleanLine(d.Replayed), d.what(), terminal.CleanLine(d.Run))
	table := format.NewTable(w, "")
	for _, c := range d.Tasks {
		table.Row(c.shownName(), c.outcome())
	}
	table.Flush()
	for i := range d.Tasks {
		d.Tasks[i].write(w, verbose)
	}
	fmt.Fprintf(w, "\n%s\n", d.Verdict)
}

// outcome returns how a task ended without the omitted context.
func (c *ComparedTask) outcome() string {
	switch {
	case c.Omitted:
		return "omitted"
	case c.Before == nil:
		return "new: " + format.Status(c.After.Status)
	case c.After == nil:
		return "not planned"
	case c.After.Status != task.Completed:
		text := format.Status(c.After.Status)
		if first, _, _ := strings.Cut(strings.TrimSpace(c.After.Error), "\n"); first != "" {
			text += ": " + terminal.Clip(terminal.CleanLine(first), format.MaxLine)
		}
		return text
	case c.Prompt == Same && c.After.Reused == "":
		return "same prompt, called again: the stored answer cannot be used"
	case c.Prompt == Same:
		return "same prompt, answer of the run"
	case c.Before.Status != task.Completed:
		return "completed, before " + format.Status(c.Before.Status)
	}
	return "changed prompt, " + cmp.Or(map[string]string{Same: "same result", Changed: "changed result", withheld: "result withheld"}[c.Result], "no result to compare")
}
