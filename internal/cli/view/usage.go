package view

import (
	"cmp"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A Usage is the tokens and the cost of a run, in JSON.
type Usage struct {
	Run    string          `json:"runId"`
	Name   string          `json:"name"`
	Status string          `json:"status"`
	Rows   []*UsageRow     `json:"rows"` // by task, agent and model
	Agents []*UsageRow     `json:"agents"`
	Models []*UsageRow     `json:"models"`
	Total  *UsageRow       `json:"total"`
	Budget *UsageBudget    `json:"budget,omitempty"` // nil if the run has none
	Prices journals.Prices `json:"prices,omitempty"` // US dollars for a million tokens

	Unpriced []string `json:"-"` // the models that were called and have no price, as the spec names them
}

// A UsageBudget is what the calls of a run may use, in JSON.
type UsageBudget struct {
	Tokens int     `json:"tokens,omitempty"`
	Cost   float64 `json:"cost,omitempty"` // in US dollars
}

// A UsageRow is what a task used with an agent and its model, or a sum of such rows.
type UsageRow struct {
	Task        task.ID   `json:"task,omitempty"`
	Title       string    `json:"title,omitempty"`
	Agent       string    `json:"agent,omitempty"`
	Model       string    `json:"model,omitempty"`
	Calls       int       `json:"calls"` // prompts that were answered or failed
	Failed      int       `json:"failed,omitempty"`
	Interrupted int       `json:"interrupted,omitempty"` // calls whose tokens are estimated
	Partial     bool      `json:"partial,omitempty"`     // without calls that the caller may not see
	Uncounted   int       `json:"uncounted,omitempty"`   // calls whose tokens the endpoint did not count
	Reused      int       `json:"reused,omitempty"`      // prompts with a cached answer
	Usage       llm.Usage `json:"tokenUsage"`
	Saved       llm.Usage `json:"saved,omitzero"`
	Cost        *float64  `json:"cost"` // nil if one of its models has no price
	SavedCost   float64   `json:"savedCost,omitempty"`

	Unpriced     bool      `json:"-"` // one of its models has no price
	Money        llm.Money `json:"-"` // without those
	ReusedAnswer llm.Money `json:"-"` // what cached answers saved
}

// Usages sums up the calls of the run.
func (r *Run) Usages() *Usage {
	u := &Usage{Run: r.ID, Name: r.Name, Status: r.Status, Total: &UsageRow{}, Budget: r.Terms.Budget, Prices: r.Terms.Prices}
	for _, t := range r.All() {
		for i := range t.Calls {
			u.add(t, &t.Calls[i])
		}
	}
	for _, row := range slices.Concat(u.Rows, u.Agents, u.Models, []*UsageRow{u.Total}) {
		if !row.Unpriced {
			row.Cost = new(row.Money.Dollars())
		}
		row.SavedCost = row.ReusedAnswer.Dollars()
	}
	slices.Sort(u.Unpriced)
	return u
}

// add adds a call to its row and to the sums. A value or a template is no call.
func (u *Usage) add(t *Task, c *Call) {
	if c.Agent == handoff.Computed {
		return
	}
	one := c.counted()
	cost, known := u.Prices.Cost(c.priced, one.Usage, one.Money)
	one.Money, one.Unpriced, one.ReusedAnswer = cost, !known, u.Prices[c.priced].Cost(one.Saved)
	if name := cmp.Or(c.priced, "no model"); !known && !slices.Contains(u.Unpriced, name) {
		u.Unpriced = append(u.Unpriced, name)
	}
	rowOf(&u.Rows, UsageRow{Task: t.ID, Title: t.Title, Agent: c.Agent, Model: c.Model}).add(&one)
	rowOf(&u.Agents, UsageRow{Agent: c.Agent}).add(&one)
	rowOf(&u.Models, UsageRow{Model: c.Model}).add(&one)
	u.Total.add(&one)
}

// counted returns the row of one call. A cached answer used nothing.
func (c *Call) counted() UsageRow {
	r := UsageRow{Calls: 1, Usage: c.Usage, Money: c.charged}
	uncounted := c.Usage.InputTokens+c.Usage.OutputTokens == 0
	switch {
	case c.Partial:
		return UsageRow{Partial: true}
	case c.State == Interrupted:
		r.Calls, r.Interrupted = 0, 1
	case c.Reused != "":
		return UsageRow{Reused: 1, Saved: c.saved}
	case c.Error != nil && c.Turns == 0 && uncounted:
		return UsageRow{Failed: 1} // perhaps no model was called
	case c.Error != nil:
		r.Failed = 1
	case c.Turns > 0 && uncounted:
		r.Uncounted = 1
	}
	return r
}

// rowOf returns the row of a task, agent and model, which it appends if it is new. Calls of one task follow each other.
func rowOf(list *[]*UsageRow, of UsageRow) *UsageRow {
	for _, r := range slices.Backward(*list) {
		if r.Task != of.Task {
			break
		}
		if r.Agent == of.Agent && r.Model == of.Model {
			return r
		}
	}
	*list = append(*list, &of)
	return &of
}

// add adds the counts of another row.
func (r *UsageRow) add(o *UsageRow) {
	r.Calls += o.Calls
	r.Failed += o.Failed
	r.Interrupted += o.Interrupted
	r.Partial = r.Partial || o.Partial
	r.Uncounted += o.Uncounted
	r.Reused += o.Reused
	r.Usage, r.Saved = r.Usage.Add(o.Usage), r.Saved.Add(o.Saved)
	r.Money, r.ReusedAnswer = r.Money.Add(o.Money), r.ReusedAnswer.Add(o.ReusedAnswer)
	r.Unpriced = r.Unpriced || o.Unpriced
}
