package history

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
)

// writeUsage writes the usage as text.
func writeUsage(w io.Writer, d *view.Usage, titleWidth int) {
	fmt.Fprintf(w, "%s: %s\n\n", journals.Heading(d.Name, d.Run), terminal.CleanLine(d.Status))
	sums := func(table format.Table, rows []*view.UsageRow, heads []string, names func(*view.UsageRow) []string) {
		table.Row(append(heads, "calls", "tokens in", "out", "cost", "")...)
		for _, r := range rows {
			table.Row(append(names(r), countsOf(r)...)...)
		}
		table.Flush()
	}
	table := format.NewTable(w, "").WithTitleWidth(titleWidth)
	sums(table, d.Rows, []string{"task", "agent", "model"}, func(r *view.UsageRow) []string {
		return []string{table.Title(r.Title), r.Agent, cmp.Or(r.Model, "-")}
	})
	fmt.Fprintln(w)
	sums(format.NewTable(w, ""), d.Agents, []string{"agent"}, func(r *view.UsageRow) []string { return []string{cmp.Or(r.Agent, "-")} })
	fmt.Fprintln(w)
	sums(format.NewTable(w, ""), d.Models, []string{"model"}, func(r *view.UsageRow) []string { return []string{cmp.Or(r.Model, "-")} })
	fmt.Fprintf(w, "\n%s\n", sumOf(d))
}

// sumOf returns the last line: the total, and what it does not include.
func sumOf(d *view.Usage) string {
	t, unpriced := d.Total, d.Unpriced
	text := "sum: " + format.Plural(t.Calls, "call")
	text += cmp.Or(format.Tokens(t.Usage, ", "+format.ApproximationMark(t.Interrupted > 0)), ", no tokens counted")
	switch {
	case len(unpriced) == 0:
		text += ", " + format.Dollars(t.Money)
	case t.Money > 0:
		text += fmt.Sprintf(", %s without %s, for which there is no price", format.Dollars(t.Money), format.List(unpriced, 5))
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
		text += fmt.Sprintf("; %s reused%s", format.Plural(t.Reused, "answer"), savingsOf(t))
	}
	return text
}

// countsOf returns the cells with the counts of a row. Numbers that are not exact are marked.
func countsOf(r *view.UsageRow) []string {
	cost := format.Dollars(r.Money)
	if r.Unpriced {
		cost = "-"
	}
	return []string{
		format.Number(r.Calls),
		format.ApproximationMark(r.Interrupted > 0) + format.Number(r.Usage.InputTokens),
		format.Number(r.Usage.OutputTokens),
		cost, usageRemarks(r),
	}
}

// usageRemarks counts the tokens and calls that differ from the usual.
func usageRemarks(r *view.UsageRow) string {
	var all []string
	if r.Partial {
		all = append(all, "partial")
	}
	for _, count := range []struct {
		n    int
		what string
	}{
		{r.Usage.CachedTokens, "in cached"}, {r.Usage.ReasoningTokens, "out reasoning"}, {r.Failed, "failed"},
		{r.Interrupted, "interrupted, estimated"}, {r.Uncounted, "not counted"}, {r.Reused, "reused" + savingsOf(r)},
	} {
		if count.n > 0 {
			all = append(all, format.Number(count.n)+" "+count.what)
		}
	}
	return strings.Join(all, "; ")
}

// savingsOf says what cached answers saved.
func savingsOf(r *view.UsageRow) string {
	text := format.Tokens(r.Saved, ", saved ")
	if r.ReusedAnswer > 0 {
		text += " (" + format.Dollars(r.ReusedAnswer) + ")"
	}
	return text
}
