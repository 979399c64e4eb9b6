package replay

import (
	"fmt"
	"io"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// ComparedRuns is the comparison of two stored runs, in JSON.
type ComparedRuns struct {
	Equal   bool           `json:"equal"`
	Before  comparedRun    `json:"before"`
	After   comparedRun    `json:"after"`
	Tasks   []ComparedTask `json:"tasks"`             // then the steps of the coordinator
	Verdict string         `json:"verdict,omitempty"` // whether the context that the run after omits mattered
}

type comparedRun struct {
	Run    string    `json:"runId"`
	Name   string    `json:"name"`
	Status string    `json:"status"`
	Usage  llm.Usage `json:"totalTokenUsage"`
	Cost   *float64  `json:"cost"` // US dollars; nil if a model has no price

	Partial bool `json:"partial,omitempty"` // the totals leave out what the caller may not see
}

// newComparedRun returns a stored run with what it used.
func newComparedRun(k *journals.StoredRun, of *view.Run) comparedRun {
	r := comparedRun{Run: of.ID, Name: of.Name, Status: of.Status}
	sum, all := llm.Money(0), true
	for _, t := range of.All() {
		if k.IsAbove(t.ID) {
			r.Partial = true
			continue
		}
		cost, known := t.Cost(of.Terms.Prices)
		r.Partial = r.Partial || t.Partial
		r.Usage, sum, all = r.Usage.Add(t.Usage), sum.Add(cost), all && known
	}
	if all && (len(of.Terms.Prices) > 0 || sum != 0) { // without prices it is unknown, even before the first call has ended
		r.Cost = new(sum.Dollars())
	}
	return r
}

// compareRuns compares two stored runs task by task.
func compareRuns(con *console.Console, cmd *cobra.Command, r *replayFlags) error {
	before, err := loadRun(con, cmd, &r.ReadFlags)
	if err != nil {
		return err
	}
	other := r.ReadFlags
	other.Run = r.other
	after, err := loadRun(con, cmd, &other)
	if err != nil {
		return err
	}
	d := Compare(before, after)
	err = con.PrintResult(d, func(w io.Writer) { d.write(w, con.TitleWidth()) })
	if err == nil && !d.Equal {
		err = exit.Status(exit.StatusFailed)
	}
	return err
}

// Compare compares two stored runs task by task, as far as they show it.
func Compare(before, after *journals.StoredRun) *ComparedRuns {
	old, now := view.Of(before), view.Of(after)
	d := &ComparedRuns{Equal: old.Status == now.Status, Tasks: []ComparedTask{}, Before: newComparedRun(before, old), After: newComparedRun(after, now)}
	others, known := map[task.ID]*view.Task{}, map[task.ID]bool{}
	for _, t := range now.All() {
		others[t.ID] = t
	}
	for _, t := range old.All() {
		other := others[t.ID]
		known[t.ID] = true
		if t.Status == runstate.Removed && other == nil {
			continue
		}
		c := ComparedTask{ID: t.ID, Title: t.Title, Name: t.Name, Step: t.IsStep(), Prompt: none, Before: newSide(before, old, t)}
		if other != nil {
			c.After, c.Prompt = newSide(after, now, other), promptsOf(old.ID, t, other)
		}
		d.add(c)
	}
	for _, t := range now.All() {
		if !known[t.ID] {
			d.add(ComparedTask{ID: t.ID, Title: t.Title, Name: t.Name, Step: t.IsStep(), Prompt: none, After: newSide(after, now, t)})
		}
	}
	return d
}

func (d *ComparedRuns) add(c ComparedTask) {
	c.compare()
	c.compareCosts()
	d.Tasks, d.Equal = append(d.Tasks, c), d.Equal && c.equal()
}

// promptsOf compares the last prompts of a task by their keys, which cover everything that the
// agent saw and for the agent itself. An answer that b takes from the run of a, even for another
// model, is for the same prompt. A task that is computed has a key, and no agent with a prompt.
func promptsOf(run string, a, b *view.Task) string {
	if b.Reused != nil && b.Reused.Run == run {
		return Same
	}
	switch x, y := a.LastPrompt(), b.LastPrompt(); {
	case x == (record.Key{}) || y == (record.Key{}) || a.Agent == handoff.Computed || b.Agent == handoff.Computed:
		return none
	case x == y:
		return Same
	}
	return Changed
}

func (d *ComparedRuns) write(w io.Writer, titleWidth int) {
	for _, r := range []struct {
		what string
		of   comparedRun
	}{{"before", d.Before}, {"after", d.After}} {
		fmt.Fprintf(w, "%-7s %s: %s\n", r.what, journals.Heading(r.of.Name, r.of.Run), terminal.CleanLine(r.of.Status))
	}
	fmt.Fprintln(w)
	table := format.NewTable(w, "").WithTitleWidth(titleWidth)
	priced := slices.ContainsFunc(d.Tasks, func(c ComparedTask) bool { return c.Before.costs() || c.After.costs() })
	row := func(cost string, cells ...string) {
		if priced {
			cells = append(cells, cost)
		}
		table.Row(cells...)
	}
	row("cost", "task", "status", "label", "prompt", "result", "tokens")
	for _, c := range d.Tasks {
		row(change(c.Before.dollars(), c.After.dollars()), table.Title(c.shownName()), c.statuses(), c.labels(), c.Prompt, c.Result, c.usages())
	}
	table.Flush()
	for i := range d.Tasks {
		d.Tasks[i].write(w)
	}
	verdict := d.Verdict
	switch {
	case verdict != "":
	case d.Equal:
		verdict = "the runs are equal"
	default:
		verdict = "the runs are different"
	}
	fmt.Fprintf(w, "\n%s\n", verdict)
}
