package replay

import (
	"fmt"
	"io"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/record"
	"github.com/spf13/cobra"
)

// ComparedRuns is the comparison of two stored runs, in JSON.
type ComparedRuns struct {
	Equal  bool           `json:"equal"`
	Before comparedRun    `json:"before"`
	After  comparedRun    `json:"after"`
	Tasks  []ComparedTask `json:"tasks"` // then the steps of the coordinator
}

type comparedRun struct {
	Run    string `json:"runId"`
	Name   string `json:"name"`
	Status string `json:"status"`
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
	d := compared(before, after)
	err = con.PrintResult(d, func(w io.Writer) { d.write(w, con.TitleWidth(), r.verbose) })
	if err == nil && !d.Equal {
		err = exit.Status(exit.StatusFailed)
	}
	return err
}

func compared(before, after *journals.StoredRun) *ComparedRuns {
	d := &ComparedRuns{
		Equal: before.Status == after.Status, Tasks: []ComparedTask{},
		Before: comparedRun{before.Run, before.Name, before.Status}, After: comparedRun{after.Run, after.Name, after.Status},
	}
	for _, t := range before.Tasks {
		c := ComparedTask{ID: t.ID, Title: t.Title, Step: t.Step, Prompt: none, Before: storedSide(before, t)}
		if other := after.ByID[t.ID]; other != nil {
			c.After, c.Prompt = storedSide(after, other), promptsOf(t, other)
		}
		d.add(c)
	}
	for _, t := range after.Tasks {
		if before.ByID[t.ID] == nil {
			d.add(ComparedTask{ID: t.ID, Title: t.Title, Step: t.Step, Prompt: none, After: storedSide(after, t)})
		}
	}
	return d
}

func (d *ComparedRuns) add(c ComparedTask) {
	c.compare()
	d.Tasks, d.Equal = append(d.Tasks, c), d.Equal && c.equal()
}

// promptsOf compares the last prompts of a task by their keys, which cover everything that the
// agent saw and for the agent itself.
func promptsOf(a, b *journals.StoredTask) string {
	x, y := a.LastPrompt(), b.LastPrompt()
	switch {
	case x == nil || y == nil || x.Key == (record.Key{}) || y.Key == (record.Key{}):
		return none
	case x.Key == y.Key:
		return Same
	}
	return Changed
}

func (d *ComparedRuns) write(w io.Writer, titleWidth int, verbose bool) {
	for _, r := range []struct {
		what string
		of   comparedRun
	}{{"before", d.Before}, {"after", d.After}} {
		fmt.Fprintf(w, "%-7s %s: %s\n", r.what, journals.Heading(r.of.Name, r.of.Run), terminal.CleanLine(r.of.Status))
	}
	fmt.Fprintln(w)
	table := format.NewTable(w, "").WithTitleWidth(titleWidth)
	table.Row("task", "status", "label", "prompt", "result", "tokens")
	for _, c := range d.Tasks {
		table.Row(table.Title(c.Title), c.statuses(), c.labels(), c.Prompt, c.Result, c.usages())
	}
	table.Flush()
	for i := range d.Tasks {
		d.Tasks[i].write(w, verbose)
	}
	verdict := "equal"
	if !d.Equal {
		verdict = "different"
	}
	fmt.Fprintf(w, "\nthe runs are %s\n", verdict)
}
