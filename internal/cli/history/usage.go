package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A UsageDocument is the tokens and the cost of a run, in JSON.
type UsageDocument struct {
	Run    string          `json:"runId"`
	Name   string          `json:"name"`
	Status string          `json:"status"`
	Rows   []*UsageRow     `json:"rows"` // by task, agent and model
	Agents []*UsageRow     `json:"agents"`
	Models []*UsageRow     `json:"models"`
	Total  *UsageRow       `json:"total"`
	Budget *usageBudget    `json:"budget,omitempty"` // nil if the run has none
	Prices journals.Prices `json:"prices,omitempty"` // US dollars for a million tokens

	ran      journals.Invocation
	unpriced []string // the models that were called and have no price, as the spec names them
}

// A usageBudget is what the calls of a run may use, in JSON.
type usageBudget struct {
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
	unpriced    bool
	cost, saved llm.Money
}

// NewUsageDocument sums up the calls of a run.
func NewUsageDocument(k *journals.StoredRun) *UsageDocument {
	d := &UsageDocument{Run: k.Run, Name: k.Name, Status: k.Status, Total: &UsageRow{}, Prices: k.Prices(), ran: journals.InvocationOf(&k.Info)}
	if n := len(k.History.Begins); n > 0 {
		if b := k.History.Begins[n-1].Budget; b != (record.Budget{}) {
			d.Budget = &usageBudget{b.Tokens, b.Cost.Dollars()}
		}
	}
	for _, t := range k.Tasks {
		for _, x := range t.Answered() {
			d.addCall(t, x)
		}
		for _, call := range k.State.Interrupted(t) {
			d.add(t, call.Agent, call.Model, interruptedRow(call))
		}
	}
	for _, r := range slices.Concat(d.Rows, d.Agents, d.Models, []*UsageRow{d.Total}) {
		if !r.unpriced {
			r.Cost = new(r.cost.Dollars())
		}
		r.SavedCost = r.saved.Dollars()
	}
	return d
}

// interruptedRow returns the row of a call that was interrupted.
func interruptedRow(call *record.CallStart) UsageRow {
	if call.Partial {
		return UsageRow{Partial: true}
	}
	return UsageRow{Interrupted: 1, Usage: runstate.Estimate(call)}
}

// addCall adds one prompt. A cached answer used nothing, and a value or a template is no call.
func (d *UsageDocument) addCall(t *runstate.Task, x *record.AgentCall) {
	if x.Agent == handoff.Computed {
		return
	}
	r := UsageRow{Calls: 1, Usage: x.Usage(), cost: x.Cost}
	switch {
	case x.Partial:
		r = UsageRow{Partial: true}
	case x.From != "":
		r = UsageRow{Reused: 1, Saved: x.Saved()}
	case !x.Completed() && x.Turns == 0 && x.Input+x.Output == 0:
		r = UsageRow{Failed: 1} // perhaps no model was called
	case !x.Completed():
		r.Failed = 1
	case x.Turns > 0 && x.Input+x.Output == 0:
		r.Uncounted = 1
	}
	d.add(t, x.Agent, x.Model, r)
}

// add adds a call to its row and to the sums.
func (d *UsageDocument) add(t *runstate.Task, agent, model string, r UsageRow) {
	cost, known := d.Prices.Cost(model, r.Usage, r.cost)
	r.cost, r.unpriced = cost, !known
	r.saved = d.Prices[model].Cost(r.Saved)
	if name := cmp.Or(model, "no model"); r.unpriced && !slices.Contains(d.unpriced, name) {
		d.unpriced = append(d.unpriced, name)
	}
	model = d.ran.ModelName(model)
	rowOf(&d.Rows, t.ID, t.Title, agent, model).add(&r)
	rowOf(&d.Agents, "", "", agent, "").add(&r)
	rowOf(&d.Models, "", "", "", model).add(&r)
	d.Total.add(&r)
}

// Money returns the cost of a row as a text; false if one of its models has no price.
func (r *UsageRow) Money() (text string, known bool) {
	if r.unpriced {
		return "", false
	}
	return r.cost.String(), true
}

// rowOf returns the row of a task, agent and model, which it appends if it is new.
func rowOf(list *[]*UsageRow, id task.ID, title, agent, model string) *UsageRow {
	for _, r := range slices.Backward(*list) {
		if r.Task == id && r.Agent == agent && r.Model == model {
			return r
		}
	}
	r := &UsageRow{Task: id, Title: title, Agent: agent, Model: model}
	*list = append(*list, r)
	return r
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
	r.cost, r.saved = r.cost.Add(o.cost), r.saved.Add(o.saved)
	r.unpriced = r.unpriced || o.unpriced
}

// write writes the usage as text.
func (d *UsageDocument) write(w io.Writer, titleWidth int) {
	fmt.Fprintf(w, "%s: %s\n\n", journals.Heading(d.Name, d.Run), terminal.CleanLine(d.Status))
	sums := func(table format.Table, rows []*UsageRow, heads []string, names func(*UsageRow) []string) {
		table.Row(append(heads, "calls", "tokens in", "out", "cost", "")...)
		for _, r := range rows {
			table.Row(append(names(r), r.counts()...)...)
		}
		table.Flush()
	}
	table := format.NewTable(w, "").WithTitleWidth(titleWidth)
	sums(table, d.Rows, []string{"task", "agent", "model"}, func(r *UsageRow) []string {
		return []string{table.Title(r.Title), r.Agent, cmp.Or(r.Model, "-")}
	})
	fmt.Fprintln(w)
	sums(format.NewTable(w, ""), d.Agents, []string{"agent"}, func(r *UsageRow) []string { return []string{cmp.Or(r.Agent, "-")} })
	fmt.Fprintln(w)
	sums(format.NewTable(w, ""), d.Models, []string{"model"}, func(r *UsageRow) []string { return []string{cmp.Or(r.Model, "-")} })
	fmt.Fprintf(w, "\n%s\n", d.sum())
}

// sum returns the last line: the total, and what it does not include.
func (d *UsageDocument) sum() string {
	t, unpriced := d.Total, slices.Sorted(slices.Values(d.unpriced))
	text := "sum: " + format.Plural(t.Calls, "call")
	text += cmp.Or(format.Tokens(t.Usage, ", "+format.ApproximationMark(t.Interrupted > 0)), ", no tokens counted")
	switch {
	case len(unpriced) == 0:
		text += ", " + format.Dollars(t.cost)
	case t.cost > 0:
		text += fmt.Sprintf(", %s without %s, for which there is no price", format.Dollars(t.cost), format.List(unpriced, 5))
	default:
		text += fmt.Sprintf("; without a price of %s no cost: write prices: in the spec", format.List(unpriced, 5))
	}
	if t.Interrupted > 0 {
		text += fmt.Sprintf("; the tokens of %s are an estimate", format.Plural(t.Interrupted, "interrupted call"))
	}
	if t.Uncounted > 0 {
		text += fmt.Sprintf("; without the tokens of %s, which the endpoint did not count", format.Plural(t.Uncounted, "call"))
	}
	if t.Partial {
		text += "; partial: without calls whose prompts and replies you may not see"
	}
	if t.Reused > 0 {
		text += fmt.Sprintf("; %s reused%s", format.Plural(t.Reused, "answer"), t.savings())
	}
	return text
}

// counts returns the cells with the counts of a row. Numbers that are not exact are marked.
func (r *UsageRow) counts() []string {
	cost := format.Dollars(r.cost)
	if r.unpriced {
		cost = "-"
	}
	return []string{
		format.Number(r.Calls),
		format.ApproximationMark(r.Interrupted > 0) + format.Number(r.Usage.InputTokens),
		format.Number(r.Usage.OutputTokens),
		cost, r.remarks(),
	}
}

// remarks counts the tokens and calls that differ from the usual.
func (r *UsageRow) remarks() string {
	var all []string
	if r.Partial {
		all = append(all, "partial")
	}
	for _, count := range []struct {
		n    int
		what string
	}{
		{r.Usage.CachedTokens, "in cached"}, {r.Usage.ReasoningTokens, "out reasoning"}, {r.Failed, "failed"},
		{r.Interrupted, "interrupted, estimated"}, {r.Uncounted, "not counted"}, {r.Reused, "reused" + r.savings()},
	} {
		if count.n > 0 {
			all = append(all, format.Number(count.n)+" "+count.what)
		}
	}
	return strings.Join(all, "; ")
}

func (r *UsageRow) savings() string {
	text := format.Tokens(r.Saved, ", saved ")
	if r.saved > 0 {
		text += " (" + format.Dollars(r.saved) + ")"
	}
	return text
}
