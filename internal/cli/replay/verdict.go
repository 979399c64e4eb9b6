package replay

import (
	"context"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A Verdict says whether a replay equals the run, and where it differs.
type Verdict struct {
	Prompts     int          `json:"prompts"`         // that the result of the run consists of
	Replayed    int          `json:"replayed"`        // how many of these the replay built again, byte for byte
	Later       int          `json:"later,omitempty"` // prompts after calls of tools, which a replay does not make
	Differences []Difference `json:"differences"`
}

// A Difference is a task in which a replay differs from the run, and why.
type Difference struct {
	Title string `json:"title"`
	Why   string `json:"why"`
}

// equal reports whether the replay equals the run.
func (v *Verdict) equal() bool { return v.Prompts == v.Replayed && len(v.Differences) == 0 }

// verdict returns what a replay has shown.
func (r *repetition) verdict(differing []difference) *Verdict {
	c := r.counts()
	v := &Verdict{Prompts: c.want, Replayed: c.want - len(c.missing), Later: c.later, Differences: make([]Difference, len(differing))}
	for i, o := range differing {
		if o.prompt != nil && i == 0 {
			o.why = firstDifference(r.run.Trace, o.prompt)
		}
		v.Differences[i] = Difference{o.title, o.why}
	}
	if len(differing) == 0 {
		for _, x := range c.missing {
			v.Differences = append(v.Differences, Difference{x.Title, notBuilt(x)})
		}
	}
	return v
}

// notBuilt says which prompt of a task the replay did not build.
func notBuilt(x *record.AgentCall) string {
	if x.Part == "" {
		return fmt.Sprintf("its prompt of attempt %d was not built again", x.Attempt)
	}
	return fmt.Sprintf("its prompt of attempt %d%s was not built again", x.Attempt, strings.ReplaceAll(x.Part, "/", " "))
}

// A promptCount counts the prompts that the result of a run consists of.
type promptCount struct {
	want    int
	missing []*record.AgentCall // whose prompts the replay did not build again
	later   int                 // prompts after calls of tools, which are not in want
}

// counts returns how many prompts the result of the run consists of, and which of them the replay did not
// build again.
func (r *repetition) counts() (c promptCount) {
	known := map[record.Key]bool{}
	final, later := finalCalls(r.run)
	c.later = later
	for _, x := range final {
		if known[x.Key] || r.run.IsAbove(x.Task) {
			continue
		}
		known[x.Key] = true
		if c.want++; !r.seen[x.Key] {
			c.missing = append(c.missing, x)
		}
	}
	return c
}

// Repeat repeats a stored run without calling a model, and compares it with the run. It prints nothing, stores nothing
// and uses no network.
func Repeat(ctx context.Context, con *console.Console, g *journals.Flags, k *journals.StoredRun) (*ComparedRuns, error) {
	own := *con // loading the spec changes its environment
	r := &repetition{run: k, seen: map[record.Key]bool{}}
	res, _, err := r.repeat(ctx, &own, &replayFlags{ReadFlags: journals.ReadFlags{Flags: *g}})
	if err != nil {
		return nil, err
	}
	differing := r.differences(res)
	r.complete(res, len(differing) == 0)
	d := &ComparedRuns{Before: newComparedRun(k), After: comparedRun{Run: k.Run, Name: k.Name, Status: string(res.Status), Usage: res.Usage}, Tasks: []ComparedTask{}}
	d.Replay = r.verdict(differing)
	d.Equal = d.Replay.equal()
	steps := map[string]int{}
	for _, s := range k.Tasks {
		c := ComparedTask{ID: s.ID, Title: s.Title, Name: s.Name, Step: s.Step, Prompt: r.promptOf(s.ID), Before: storedSide(k, s)}
		if s.Step {
			c.After = stepSide(res, s.Title, steps[s.Title], c.Before)
			steps[s.Title]++
		} else if t, ok := res.Task(string(s.ID)); ok {
			c.After = sideOf(res, t, k.History.Clearance())
		}
		c.compare()
		d.Tasks = append(d.Tasks, c)
	}
	if d.After.Partial = d.Before.Partial; d.After.Partial {
		d.After.Usage = llm.Usage{}
		for i := range d.Tasks {
			if s := d.Tasks[i].After; s != nil {
				d.After.Usage = d.After.Usage.Add(s.Usage)
			}
		}
	}
	return d, nil
}

// promptOf says whether the replay built the last prompt of a task again.
func (r *repetition) promptOf(id task.ID) string {
	s := r.run.ByID[id]
	if s == nil {
		return none
	}
	switch x := s.LastPrompt(); {
	case x == nil || x.Key == (record.Key{}):
		return none
	case r.seen[x.Key]:
		return Same
	}
	return Changed
}

// stepSide returns a step of the coordinator in a replay, the nth of its kind; nil if there is none. Its
// answer is that of the run, since no model is called.
func stepSide(res *engine.Result, kind string, n int, before *comparedSide) *comparedSide {
	for i := range res.Steps {
		step := &res.Steps[i]
		if string(step.Kind) != kind {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		s := &comparedSide{Status: task.Completed, Agent: before.Agent, Label: before.Label, Usage: step.Metrics.Usage, Reused: step.Reused, Text: before.Text, hidden: before.hidden}
		if step.Error != nil {
			s.Status, s.Text, s.Error = task.Failed, "", step.Error.Message
		}
		return s
	}
	return nil
}
