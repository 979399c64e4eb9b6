package history

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/llm"
)

// maxItems is how many items of a list have a row and an excerpt each. Those of a longer one have one
// row together, and the first that failed have their own.
const maxItems = 10

// listsOf returns the tasks for items of lists, by the title of the list.
func listsOf(tasks []*view.Task) map[string][]*view.Task {
	lists := map[string][]*view.Task{}
	for _, t := range tasks {
		if list := listOf(t); list != "" {
			lists[list] = append(lists[list], t)
		}
	}
	return lists
}

// longLists returns those lists of which many items have a task, and one of these has begun.
func longLists(lists map[string][]*view.Task) map[string][]*view.Task {
	long := maps.Clone(lists)
	maps.DeleteFunc(long, func(_ string, items []*view.Task) bool { return len(items) <= maxItems || !anyBegan(items) })
	return long
}

// listOf returns the title of the list of a task for an item, such as Search for Search[3], and Search#2 for
// Search#2[3]; "" for another task.
func listOf(t *view.Task) string {
	written := naming.WithoutInstance(t.Title)
	round, _, isItem := strings.Cut(t.Title[len(written):], "[")
	if !isItem {
		return ""
	}
	return written + round
}

// neverBegan reports whether a task ended without having begun.
func neverBegan(t *view.Task) bool {
	outcome := outcomeOf(t)
	return t.Attempts == 0 && (outcome == format.Skipped || outcome == format.NotNeeded)
}

// anyBegan reports whether one of the items has begun.
func anyBegan(items []*view.Task) bool {
	return slices.ContainsFunc(items, func(t *view.Task) bool { return !neverBegan(t) })
}

// A sameEnd is what the tasks have in common that are rounds or items of one task and ended for one reason
// without having begun.
type sameEnd struct{ written, outcome, remarks string }

// endOf returns what a task has in common with others of which none has begun; the zero value if that is
// nothing. Those for items of a list of which one has begun stand for themselves.
func endOf(t *view.Task, hasBegun map[string]bool) sameEnd {
	written := naming.WithoutInstance(t.Title)
	if written == t.Title || !neverBegan(t) || hasBegun[listOf(t)] {
		return sameEnd{}
	}
	return sameEnd{written, outcomeOf(t), format.CommonReason(remarksOn(t))}
}

// rows writes a row for each task. A long list has one, and so have the rounds and items of a task that ended
// for one reason without having begun, where the first of them would be.
func rows(tasks []*view.Task, table format.Table) {
	lists, hasBegun := listsOf(tasks), map[string]bool{}
	for list, items := range lists {
		hasBegun[list] = anyBegan(items)
	}
	long := longLists(lists)
	ends, counts := make([]sameEnd, len(tasks)), map[sameEnd]int{}
	for i, t := range tasks {
		ends[i] = endOf(t, hasBegun)
		counts[ends[i]]++
	}
	for i, t := range tasks {
		end, items := ends[i], long[listOf(t)]
		switch n := counts[end]; {
		case end != sameEnd{} && n != 1:
			if n > 1 {
				table.Row(end.outcome, table.Title(format.Instances(end.written, n)), t.Agent, "", "", "", end.remarks)
				counts[end] = 0 // the others have this row too
			}
		case items == nil:
			writeRow(t, table)
		case items[0] == t:
			foldedRow(listOf(t), items, table)
		}
	}
}

// foldedRow writes the row of a long list, and those of its first items that failed.
func foldedRow(written string, items []*view.Task, table format.Table) {
	var usage llm.Usage
	var outcomes []string
	var failures []*view.Task
	counts, partial, estimated := map[string]int{}, false, false
	for _, t := range items {
		outcome := outcomeOf(t)
		if counts[outcome]++; counts[outcome] == 1 {
			outcomes = append(outcomes, outcome)
		}
		if strings.HasPrefix(outcome, format.Failed) && len(failures) < maxItems {
			failures = append(failures, t)
		}
		usage, partial, estimated = usage.Add(t.Usage), partial || t.Partial, estimated || t.Estimate
	}
	slices.SortStableFunc(outcomes, func(a, b string) int { return counts[b] - counts[a] })
	state, texts := outcomes[0], make([]string, len(outcomes))
	for i, outcome := range outcomes {
		texts[i] = fmt.Sprintf("%d %s", counts[outcome], outcome)
	}
	if counts[format.Failed] > 0 {
		state = format.Failed
	}
	table.Row(state, table.Title(format.Instances(written, len(items))), items[0].Agent, "", "", format.Partial(format.Tokens(usage, format.ApproximationMark(estimated)), partial), strings.Join(texts, ", "))
	for _, t := range failures {
		writeRow(t, table)
	}
}

// writeFolded says where the results of long lists are.
func (r *runText) writeFolded(w io.Writer, lists map[string][]*view.Task) {
	for _, written := range slices.Sorted(maps.Keys(lists)) {
		first := lists[written][0]
		fmt.Fprintf(w, "\n# %s\n\nOne result: %s\nAll of them: %s\n", format.Instances(terminal.CleanLine(written), len(lists[written])),
			r.journal.Command("show", r.shortID, journals.TaskName(first.ShownName(), first.ID)), r.journal.Command("show -o json", r.shortID))
	}
}
