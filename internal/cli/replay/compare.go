package replay

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// How a prompt or a result of one run compares to that of another.
const (
	Same     = "same"
	Changed  = "changed"
	none     = "none"     // one of the runs has none
	withheld = "withheld" // the viewer may not see it, so it is not compared
)

// A ComparedTask is a task in two runs, in JSON.
type ComparedTask struct {
	ID      task.ID       `json:"id"`
	Title   string        `json:"title"`
	Name    string        `json:"name,omitempty"` // of an instance, by the keys of its items
	Prompt  string        `json:"prompt"`         // same, changed, withheld or none
	Result  string        `json:"result"`         // same, changed, withheld or none
	Before  *comparedSide `json:"before,omitempty"`
	After   *comparedSide `json:"after,omitempty"`
	Omitted bool          `json:"leftOut,omitempty"` // as the flags ask
	Step    bool          `json:"step,omitempty"`    // of the coordinator
	Cost    string        `json:"cost,omitempty"`    // same, changed or none, of stored runs; none without prices
}

// A comparedSide is a task in one of the runs.
type comparedSide struct {
	Status task.Status           `json:"status"`
	Agent  string                `json:"assignee,omitempty"`
	Label  *label.Classification `json:"label,omitempty"` // of a result
	Usage  llm.Usage             `json:"tokenUsage"`
	Cost   *float64              `json:"cost,omitempty"` // US dollars, of a stored run; nil if a model has no price
	Reused string                `json:"reused,omitempty"`
	Text   string                `json:"text,omitempty"`  // the result, if it differs
	Error  string                `json:"error,omitempty"` // why there is none

	hidden  bool // the viewer may not see the result
	above   bool // the caller may not see all of the task, so nothing of it is compared
	unknown bool // the run has no text of the result, as of a loop, which has that of its last round
}

// shownName returns what people know the task by.
func (c *ComparedTask) shownName() string { return cmp.Or(c.Name, c.Title) }

// compare compares the results of both sides, and removes their texts if they are equal. Of a task that the
// caller may not see, only status and label are left.
func (c *ComparedTask) compare() {
	b, a := c.Before, c.After
	switch {
	case b != nil && b.above, a != nil && a.above:
		c.Prompt, c.Result = withheld, withheld
		for _, s := range []*comparedSide{b, a} {
			if s != nil {
				*s = comparedSide{Status: s.Status, Agent: s.Agent, Label: s.Label, above: true}
			}
		}
	case b == nil || a == nil || b.Status != task.Completed || a.Status != task.Completed || b.unknown != a.unknown:
		c.Result = none
	case b.hidden || a.hidden:
		c.Result = withheld
	case b.Text == a.Text:
		c.Result, b.Text, a.Text = Same, "", ""
	default:
		c.Result = Changed
	}
}

// compareCosts compares what both sides cost.
func (c *ComparedTask) compareCosts() {
	b, a := c.Before, c.After
	switch {
	case b == nil || a == nil || b.Cost == nil || a.Cost == nil:
		c.Cost = none
	case *b.Cost == *a.Cost:
		c.Cost = Same
	default:
		c.Cost = Changed
	}
}

// equal reports whether no difference is known. Costs are none: an equal run may cost less.
func (c *ComparedTask) equal() bool {
	return c.Before != nil && c.After != nil && c.Before.Status == c.After.Status && c.Before.level() == c.After.level() &&
		c.Before.Agent == c.After.Agent && c.Prompt != Changed && c.Result != Changed
}

// newSide returns a task of a stored run with its cost.
func newSide(k *journals.StoredRun, r *view.Run, t *view.Task) *comparedSide {
	s := &comparedSide{
		Status: t.Status, Agent: t.Agent, Label: t.Label, Usage: t.Usage, Text: t.Result, Error: t.Reason,
		hidden: t.Hidden, above: k.IsAbove(t.ID), unknown: t.Status == task.Completed && t.Label == nil,
	}
	if t.Reused != nil {
		s.Reused = t.Reused.Run
	}
	if t.Error != nil {
		s.Error = t.Error.Message
	}
	if cost, known := t.Cost(r.Terms.Prices); known && (len(r.Terms.Prices) > 0 || cost != 0) {
		s.Cost = new(cost.Dollars())
	}
	return s
}

// level returns the label of the result; it is empty without a result.
func (s *comparedSide) level() string {
	if s.Label == nil {
		return ""
	}
	return s.Label.String()
}

// write writes how the results of a task differ.
func (c *ComparedTask) write(w io.Writer) {
	if c.Result != Changed {
		return
	}
	fmt.Fprintf(w, "\n%s\n", terminal.CleanLine(c.shownName()))
	lines, more := format.LineDiff(c.Before.Text, c.After.Text)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", terminal.CleanLine(line))
	}
	if more > 0 {
		fmt.Fprintf(w, "  … %s more; -o json has both texts\n", format.Plural(more, "line"))
	}
}

// statuses returns how a task ended in both runs.
func (c *ComparedTask) statuses() string {
	switch {
	case c.Omitted:
		return "omitted"
	case c.Before == nil:
		return "only after: " + format.Status(c.After.Status)
	case c.After == nil:
		return "only before: " + format.Status(c.Before.Status)
	}
	return change(format.Status(c.Before.Status), format.Status(c.After.Status))
}

// labels returns the label of a result in both runs.
func (c *ComparedTask) labels() string {
	var all []string
	for _, s := range []*comparedSide{c.Before, c.After} {
		if s != nil && s.Label != nil && (len(all) == 0 || all[0] != s.level()) {
			all = append(all, s.level())
		}
	}
	return strings.Join(all, " → ")
}

// usages returns the tokens of a task in both runs.
func (c *ComparedTask) usages() string {
	return change(c.Before.tokens(), c.After.tokens())
}

func (s *comparedSide) tokens() string {
	if s == nil || s.above {
		return "-"
	}
	return format.Number(s.Usage.InputTokens) + "+" + format.Number(s.Usage.OutputTokens)
}

// costs reports whether a task cost anything.
func (s *comparedSide) costs() bool { return s != nil && s.Cost != nil && *s.Cost > 0 }

// dollars returns what a task cost.
func (s *comparedSide) dollars() string {
	if s == nil || s.Cost == nil {
		return "-"
	}
	return format.Dollars(llm.Dollars(*s.Cost))
}

// change returns a value, or how it changed.
func change(before, after string) string {
	if before == after {
		return after
	}
	return before + " → " + after
}
