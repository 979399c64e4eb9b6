package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// comparedRuns are two stored runs, in JSON.
type comparedRuns struct {
	Equal  bool           `json:"equal"`
	Before comparedRun    `json:"before"`
	After  comparedRun    `json:"after"`
	Tasks  []comparedTask `json:"tasks"` // with the steps of the coordinator behind them

	room int // for titles; 0 for any length
}

type comparedRun struct {
	Run    string `json:"runId"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

// compareRuns compares two stored runs task by task.
func (a *app) compareRuns(cmd *cobra.Command, r *replaying) error {
	j, err := r.open(cmd, a)
	if err != nil {
		return err
	}
	defer j.Close()
	before, err := a.stored(cmd.Context(), j, r.run)
	if err != nil {
		return err
	}
	after, err := a.stored(cmd.Context(), j, r.other)
	if err != nil {
		return err
	}
	d := compared(before, after)
	d.room = a.roomForTitles()
	if a.settings.json() {
		err = a.printJSON(d)
	} else {
		var b strings.Builder
		d.write(&b, r.verbose)
		err = a.printText(b.String())
	}
	if err = satisfied(err); err == nil && !d.Equal {
		err = ended(statusFailed)
	}
	return err
}

func compared(before, after *storedRun) *comparedRuns {
	d := &comparedRuns{
		Equal: before.Status == after.Status, Tasks: []comparedTask{},
		Before: comparedRun{before.Run, before.Name, before.Status}, After: comparedRun{after.Run, after.Name, after.Status},
	}
	both := map[task.ID]bool{}
	for i := range before.tasks {
		t := &before.tasks[i]
		c := comparedTask{ID: t.id, Title: t.title, Step: t.step, Prompt: notThere, Before: before.side(t)}
		if at, ok := after.byID[t.id]; ok {
			both[t.id] = true
			other := &after.tasks[at]
			c.After, c.Prompt = after.side(other), promptsOf(t, other)
		}
		d.take(c)
	}
	for i := range after.tasks {
		if t := &after.tasks[i]; !both[t.id] {
			d.take(comparedTask{ID: t.id, Title: t.title, Step: t.step, Prompt: notThere, After: after.side(t)})
		}
	}
	return d
}

func (d *comparedRuns) take(c comparedTask) {
	c.settle()
	d.Tasks, d.Equal = append(d.Tasks, c), d.Equal && c.equal()
}

// promptsOf compares the last prompts of a task by their keys: that is all that
// its agent saw, and who it was.
func promptsOf(a, b *storedTask) string {
	x, y := a.last(), b.last()
	switch {
	case x == nil || y == nil || x.Key == (record.Key{}) || y.Key == (record.Key{}):
		return notThere
	case x.Key == y.Key:
		return sameAs
	}
	return changedTo
}

// last is the exchange of the last attempt; nil if none ended.
func (t *storedTask) last() (last *record.AgentCall) {
	for _, x := range t.exchanges {
		if x.Part == "" {
			last = x
		}
	}
	return last
}

func (d *comparedRuns) write(w io.Writer, verbose bool) {
	for _, r := range []struct {
		what string
		of   comparedRun
	}{{"before", d.Before}, {"after", d.After}} {
		fmt.Fprintf(w, "%-7s %srun %s: %s\n", r.what, prefixed(r.of.Name), cleanLine(r.of.Run), cleanLine(r.of.Status))
	}
	fmt.Fprintln(w)
	table := newRows(w, "").within(d.room)
	table.row("task", "status", "label", "prompt", "result", "tokens")
	for i := range d.Tasks {
		c := &d.Tasks[i]
		table.row(table.title(c.Title), c.statusOfBoth(), c.labels(), c.Prompt, c.Result, c.usages())
	}
	table.flush()
	for i := range d.Tasks {
		d.Tasks[i].write(w, verbose)
	}
	verdict := "equal"
	if !d.Equal {
		verdict = "different"
	}
	fmt.Fprintf(w, "\nthe runs are %s\n", verdict)
}
