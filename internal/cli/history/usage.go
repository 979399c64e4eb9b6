package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A UsageDocument is what a run took, in JSON.
type UsageDocument struct {
	Run     string      `json:"runId"`
	Name    string      `json:"name"`
	Status  string      `json:"status"`
	Rows    []*UsageRow `json:"rows"` // by task, agent and model
	Agents  []*UsageRow `json:"agents"`
	Models  []*UsageRow `json:"models"`
	Total   *UsageRow   `json:"total"`
	Prices  priceList   `json:"prices,omitempty"` // US dollars for a million tokens
	room    int         // for titles; 0 for any length
	without []string    // models that were called and have no price
}

type priceList map[string]llm.Price

// UsageRow is what a task took with an agent and its model, or a sum of such.
type UsageRow struct {
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

// newUsageDocument sums up what was paid for the run.
func newUsageDocument(k *journals.StoredRun) *UsageDocument {
	b := &UsageDocument{Run: k.Run, Name: k.Name, Status: k.Status, Total: &UsageRow{}}
	_ = json.Unmarshal(k.Info.Prices, &b.Prices) // without prices nothing has a cost
	for i := range k.Tasks {
		t := &k.Tasks[i]
		for _, x := range t.Exchanges {
			b.exchange(t, x)
		}
		for _, asked := range t.Interrupted {
			b.add(t, asked.Agent, asked.Model, UsageRow{Interrupted: 1, Usage: llm.Usage{InputTokens: journals.EstimatedTokens(asked)}})
		}
	}
	for _, list := range [][]*UsageRow{b.Rows, b.Agents, b.Models, {b.Total}} {
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
func (b *UsageDocument) exchange(t *journals.StoredTask, x *record.AgentCall) {
	r := UsageRow{Calls: 1, Usage: x.Usage(), cost: x.Cost}
	switch {
	case x.From != "":
		r = UsageRow{Reused: 1, Saved: x.Saved()}
	case !x.Completed() && x.Turns == 0 && x.Input+x.Output == 0:
		r = UsageRow{Failed: 1} // perhaps nobody was asked
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
func (b *UsageDocument) add(t *journals.StoredTask, agent, model string, r UsageRow) {
	price, known := b.Prices[model]
	if !known && r.cost == 0 && r.Usage != (llm.Usage{}) {
		r.unpriced = true
		b.without = append(b.without, cmp.Or(model, "no model"))
	}
	r.cost, r.saved = cmp.Or(r.cost, price.Cost(r.Usage)), price.Cost(r.Saved)
	rowOf(&b.Rows, t.ID, t.Title, agent, model).take(&r)
	rowOf(&b.Agents, "", "", agent, "").take(&r)
	rowOf(&b.Models, "", "", "", model).take(&r)
	b.Total.take(&r)
}

// rowOf returns a row, which it makes if it is new.
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

// take adds another row to this one.
func (r *UsageRow) take(o *UsageRow) {
	r.Calls, r.Failed, r.Interrupted, r.Reused = r.Calls+o.Calls, r.Failed+o.Failed, r.Interrupted+o.Interrupted, r.Reused+o.Reused
	r.Rounded, r.Uncounted = r.Rounded+o.Rounded, r.Uncounted+o.Uncounted
	r.Usage, r.Saved = r.Usage.Add(o.Usage), r.Saved.Add(o.Saved)
	r.cost, r.saved, r.unpriced = r.cost.Add(o.cost), r.saved.Add(o.saved), r.unpriced || o.unpriced
}

// write writes a bill for people.
func (b *UsageDocument) write(w io.Writer) {
	fmt.Fprintf(w, "%srun %s: %s\n\n", format.NamePrefix(b.Name), terminal.CleanLine(b.Run), terminal.CleanLine(b.Status))
	table := format.NewTable(w, "").WithTitleWidth(b.room)
	table.Row("task", "agent", "model", "calls", "tokens in", "out", "cost", "")
	for _, r := range b.Rows {
		table.Row(table.Title(r.Title), terminal.CleanLine(r.Agent), cmp.Or(terminal.CleanLine(r.Model), "-"), format.Number(r.Calls), r.input(), r.output(), r.price(), r.remarks())
	}
	table.Flush()
	sums := func(what string, list []*UsageRow, name func(*UsageRow) string) {
		fmt.Fprintln(w)
		table := format.NewTable(w, "")
		table.Row(what, "calls", "tokens in", "out", "cost", "")
		for _, r := range list {
			table.Row(cmp.Or(terminal.CleanLine(name(r)), "-"), format.Number(r.Calls), r.input(), r.output(), r.price(), r.remarks())
		}
		table.Flush()
	}
	sums("agent", b.Agents, func(r *UsageRow) string { return r.Agent })
	sums("model", b.Models, func(r *UsageRow) string { return r.Model })
	fmt.Fprintf(w, "\n%s\n", b.sum())
}

// sum is the last line: all of it, and what it is without.
func (b *UsageDocument) sum() string {
	t := b.Total
	text := "sum: " + format.Plural(t.Calls, "call")
	before := ", "
	if t.Interrupted+t.Rounded > 0 {
		before = ", ~"
	}
	text += cmp.Or(format.Tokens(t.Usage, before), ", no tokens counted")
	switch {
	case len(b.without) == 0:
		text += ", " + dollars(t.cost)
	case t.cost > 0:
		text += fmt.Sprintf(", %s without %s, for which there is no price", dollars(t.cost), format.List(b.without, 5))
	default:
		text += fmt.Sprintf("; without a price of %s no cost: write prices: in the spec", format.List(b.without, 5))
	}
	if t.Interrupted > 0 {
		text += fmt.Sprintf("; the tokens of %s are an estimate", format.Plural(t.Interrupted, "interrupted call"))
	}
	if t.Uncounted > 0 {
		text += fmt.Sprintf("; without the tokens of %s, which the endpoint did not count", format.Plural(t.Uncounted, "call"))
	}
	if t.Rounded > 0 {
		text += fmt.Sprintf("; the tokens of %s are rounded, since you may not see all of their prompts or replies", format.Plural(t.Rounded, "call"))
	}
	if t.Reused > 0 {
		text += fmt.Sprintf("; %s reused%s", format.Plural(t.Reused, "answer"), t.savings())
	}
	return text
}

// input is the number of tokens of the prompts, marked if it is not exact.
func (r *UsageRow) input() string {
	if r.Interrupted+r.Rounded > 0 {
		return "~" + format.Number(r.Usage.InputTokens)
	}
	return format.Number(r.Usage.InputTokens)
}

// output is the number of tokens of the replies, marked if it is not exact.
func (r *UsageRow) output() string {
	if r.Rounded > 0 {
		return "~" + format.Number(r.Usage.OutputTokens)
	}
	return format.Number(r.Usage.OutputTokens)
}

func (r *UsageRow) price() string {
	if r.unpriced {
		return "-"
	}
	return dollars(r.cost)
}

// remarks lists how many tokens were cached or reasoning, how many calls failed and what
// was reused.
func (r *UsageRow) remarks() string {
	var all []string
	if n := r.Usage.CachedTokens; n > 0 {
		all = append(all, format.Number(n)+" in cached")
	}
	if n := r.Usage.ReasoningTokens; n > 0 {
		all = append(all, format.Number(n)+" out reasoning")
	}
	if r.Failed > 0 {
		all = append(all, format.Number(r.Failed)+" failed")
	}
	if r.Interrupted > 0 {
		all = append(all, format.Number(r.Interrupted)+" interrupted, estimated")
	}
	if r.Uncounted > 0 {
		all = append(all, format.Number(r.Uncounted)+" not counted")
	}
	if r.Reused > 0 {
		all = append(all, format.Number(r.Reused)+" reused"+r.savings())
	}
	return strings.Join(all, "; ")
}

func (r *UsageRow) savings() string {
	text := format.Tokens(r.Saved, ", saved ")
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
