package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A bill is what a run took, in JSON.
type bill struct {
	Run     string     `json:"runId"`
	Name    string     `json:"name"`
	Status  string     `json:"status"`
	Rows    []*billRow `json:"rows"` // by task, agent and model
	Agents  []*billRow `json:"agents"`
	Models  []*billRow `json:"models"`
	Total   *billRow   `json:"total"`
	Prices  priceList  `json:"prices,omitempty"` // US dollars for a million tokens
	room    int        // for titles; 0 for any length
	without []string   // models that were called and have no price
}

type priceList map[string]llm.Price

// billRow is what a task took with an agent and its model, or a sum of such.
type billRow struct {
	Task        task.ID   `json:"task,omitempty"`
	Title       string    `json:"title,omitempty"`
	Agent       string    `json:"agent,omitempty"`
	Model       string    `json:"model,omitempty"`
	Calls       int       `json:"calls"` // prompts that were answered or failed
	Failed      int       `json:"failed,omitempty"`
	Interrupted int       `json:"interrupted,omitempty"` // of which the tokens are estimated
	Rounded     int       `json:"rounded,omitempty"`     // of which the tokens are rounded, since the viewer may not see prompt or reply
	Uncounted   int       `json:"uncounted,omitempty"`   // of which the endpoint did not count the tokens
	Reused      int       `json:"reused,omitempty"`      // that were not sent
	Usage       llm.Usage `json:"tokenUsage"`
	Saved       llm.Usage `json:"saved,omitzero"`
	Cost        *float64  `json:"cost"` // nil if a model of it has no price
	SavedCost   float64   `json:"savedCost,omitempty"`
	unpriced    bool
	cost, saved llm.Money
}

// bill sums up what was paid for the run.
func (k *storedRun) bill() *bill {
	b := &bill{Run: k.Run, Name: k.Name, Status: k.Status, Total: &billRow{}}
	_ = json.Unmarshal(k.info.Prices, &b.Prices) // without prices nothing has a cost
	for i := range k.tasks {
		t := &k.tasks[i]
		for _, x := range t.exchanges {
			b.exchange(t, x)
		}
		for _, asked := range t.interrupted {
			b.add(t, asked.Agent, asked.Model, billRow{Interrupted: 1, Usage: llm.Usage{InputTokens: estimated(asked)}})
		}
	}
	for _, list := range [][]*billRow{b.Rows, b.Agents, b.Models, {b.Total}} {
		for _, r := range list {
			if !r.unpriced {
				r.Cost = new(r.cost.Dollars())
			}
			r.SavedCost = r.saved.Dollars()
		}
	}
	slices.Sort(b.without)
	b.without = slices.Compact(b.without)
	return b
}

// exchange adds one prompt. One whose answer was taken from elsewhere took nothing.
func (b *bill) exchange(t *storedTask, x *record.AgentCall) {
	r := billRow{Calls: 1, Usage: x.Usage(), cost: x.Cost}
	switch {
	case x.From != "":
		r = billRow{Reused: 1, Saved: x.Saved()}
	case !x.Completed() && x.Turns == 0 && x.Input+x.Output == 0:
		r = billRow{Failed: 1} // perhaps nobody was asked
	case !x.Completed():
		r.Failed = 1
	case x.Turns > 0 && x.Input+x.Output == 0:
		r.Uncounted = 1
	}
	if x.Rounded && x.From == "" {
		r.Rounded = 1
	}
	b.add(t, x.Agent, x.Model, r)
}

// add adds what was taken to its row and to the sums.
func (b *bill) add(t *storedTask, agent, model string, r billRow) {
	price, known := b.Prices[model]
	if !known && r.cost == 0 && r.Usage != (llm.Usage{}) {
		r.unpriced = true
		b.without = append(b.without, cmp.Or(model, "no model"))
	}
	r.cost, r.saved = cmp.Or(r.cost, price.Cost(r.Usage)), price.Cost(r.Saved)
	rowOf(&b.Rows, t.id, t.title, agent, model).take(&r)
	rowOf(&b.Agents, "", "", agent, "").take(&r)
	rowOf(&b.Models, "", "", "", model).take(&r)
	b.Total.take(&r)
}

// rowOf returns a row, which it makes if it is new.
func rowOf(list *[]*billRow, id task.ID, title, agent, model string) *billRow {
	for _, r := range slices.Backward(*list) {
		if r.Task == id && r.Agent == agent && r.Model == model {
			return r
		}
	}
	r := &billRow{Task: id, Title: title, Agent: agent, Model: model}
	*list = append(*list, r)
	return r
}

// take adds another row to this one.
func (r *billRow) take(o *billRow) {
	r.Calls, r.Failed, r.Interrupted, r.Reused = r.Calls+o.Calls, r.Failed+o.Failed, r.Interrupted+o.Interrupted, r.Reused+o.Reused
	r.Rounded, r.Uncounted = r.Rounded+o.Rounded, r.Uncounted+o.Uncounted
	r.Usage, r.Saved = r.Usage.Add(o.Usage), r.Saved.Add(o.Saved)
	r.cost, r.saved, r.unpriced = r.cost.Add(o.cost), r.saved.Add(o.saved), r.unpriced || o.unpriced
}

// write writes a bill for people.
func (b *bill) write(w io.Writer) {
	fmt.Fprintf(w, "%srun %s: %s\n\n", prefixed(b.Name), cleanLine(b.Run), cleanLine(b.Status))
	table := newRows(w, "").within(b.room)
	table.row("task", "agent", "model", "calls", "tokens in", "out", "cost", "")
	for _, r := range b.Rows {
		table.row(table.title(r.Title), cleanLine(r.Agent), cmp.Or(cleanLine(r.Model), "-"), number(r.Calls), r.input(), r.output(), r.price(), r.remarks())
	}
	table.flush()
	sums := func(what string, list []*billRow, name func(*billRow) string) {
		fmt.Fprintln(w)
		table := newRows(w, "")
		table.row(what, "calls", "tokens in", "out", "cost", "")
		for _, r := range list {
			table.row(cmp.Or(cleanLine(name(r)), "-"), number(r.Calls), r.input(), r.output(), r.price(), r.remarks())
		}
		table.flush()
	}
	sums("agent", b.Agents, func(r *billRow) string { return r.Agent })
	sums("model", b.Models, func(r *billRow) string { return r.Model })
	fmt.Fprintf(w, "\n%s\n", b.sum())
}

// sum is the last line: all of it, and what it is without.
func (b *bill) sum() string {
	t := b.Total
	text := "sum: " + plural(t.Calls, "call")
	before := ", "
	if t.Interrupted+t.Rounded > 0 {
		before = ", ~"
	}
	text += cmp.Or(tokens(t.Usage, before), ", no tokens counted")
	switch {
	case len(b.without) == 0:
		text += ", " + dollars(t.cost)
	case t.cost > 0:
		text += fmt.Sprintf(", %s without %s, for which there is no price", dollars(t.cost), listed(b.without, 5))
	default:
		text += fmt.Sprintf("; without a price of %s no cost: write prices: in the spec", listed(b.without, 5))
	}
	if t.Interrupted > 0 {
		text += fmt.Sprintf("; the tokens of %s are an estimate", plural(t.Interrupted, "interrupted call"))
	}
	if t.Uncounted > 0 {
		text += fmt.Sprintf("; without the tokens of %s, which the endpoint did not count", plural(t.Uncounted, "call"))
	}
	if t.Rounded > 0 {
		text += fmt.Sprintf("; the tokens of %s are rounded, since you may not see all of their prompts or replies", plural(t.Rounded, "call"))
	}
	if t.Reused > 0 {
		text += fmt.Sprintf("; %s reused%s", plural(t.Reused, "answer"), t.savings())
	}
	return text
}

// input is the number of tokens of the prompts, marked if it is not exact.
func (r *billRow) input() string {
	if r.Interrupted+r.Rounded > 0 {
		return "~" + number(r.Usage.InputTokens)
	}
	return number(r.Usage.InputTokens)
}

// output is the number of tokens of the replies, marked if it is not exact.
func (r *billRow) output() string {
	if r.Rounded > 0 {
		return "~" + number(r.Usage.OutputTokens)
	}
	return number(r.Usage.OutputTokens)
}

func (r *billRow) price() string {
	if r.unpriced {
		return "-"
	}
	return dollars(r.cost)
}

// remarks lists how many tokens were cached or reasoning, how many calls failed and what
// was reused.
func (r *billRow) remarks() string {
	var all []string
	if n := r.Usage.CachedTokens; n > 0 {
		all = append(all, number(n)+" in cached")
	}
	if n := r.Usage.ReasoningTokens; n > 0 {
		all = append(all, number(n)+" out reasoning")
	}
	if r.Failed > 0 {
		all = append(all, number(r.Failed)+" failed")
	}
	if r.Interrupted > 0 {
		all = append(all, number(r.Interrupted)+" interrupted, estimated")
	}
	if r.Uncounted > 0 {
		all = append(all, number(r.Uncounted)+" not counted")
	}
	if r.Reused > 0 {
		all = append(all, number(r.Reused)+" reused"+r.savings())
	}
	return strings.Join(all, "; ")
}

func (r *billRow) savings() string {
	text := tokens(r.Saved, ", saved ")
	if r.saved > 0 {
		text += " (" + dollars(r.saved) + ")"
	}
	return text
}

// dollars writes an amount of money, of which models take little at a time.
func dollars(m llm.Money) string {
	switch amount := m.Dollars(); {
	case amount == 0:
		return "$0"
	case amount < 0.0001:
		return "<$0.0001"
	case amount < 1:
		return fmt.Sprintf("$%.4f", amount)
	default:
		return fmt.Sprintf("$%.2f", amount)
	}
}
