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

// longLists returns the tasks for items of long lists, by the title as written.
func longLists(tasks []*view.Task) map[string][]*view.Task {
	lists := map[string][]*view.Task{}
	for _, t := range tasks {
		if written := listOf(t); written != "" {
			lists[written] = append(lists[written], t)
		}
	}
	maps.DeleteFunc(lists, func(_ string, items []*view.Task) bool { return len(items) <= maxItems })
	return lists
}

// listOf returns the title as written of a task for an item of a list, such as Search for Search[3];
// "" for another task.
func listOf(t *view.Task) string {
	written := naming.WithoutInstance(t.Title)
	if !strings.HasPrefix(t.Title[len(written):], "[") {
		return ""
	}
	return written
}

// rows writes a row for each task, and one for each long list, where its first item would be.
func rows(tasks []*view.Task, table format.Table) {
	lists := longLists(tasks)
	for _, t := range tasks {
		items := lists[listOf(t)]
		switch {
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
		if outcome == format.Failed && len(failures) < maxItems {
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
	table.Row(state, table.Title(fmt.Sprintf("%s ×%d", written, len(items))), items[0].Agent, "", "", format.Partial(format.Tokens(usage, format.ApproximationMark(estimated)), partial), strings.Join(texts, ", "))
	for _, t := range failures {
		writeRow(t, table)
	}
}

// writeFolded says where the results of long lists are.
func (r *runText) writeFolded(w io.Writer, lists map[string][]*view.Task) {
	for _, written := range slices.Sorted(maps.Keys(lists)) {
		first := lists[written][0]
		fmt.Fprintf(w, "\n# %s ×%d\n\nOne result: %s\nAll of them: %s\n", terminal.CleanLine(written), len(lists[written]),
			r.journal.Command("show", r.shortID, journals.TaskName(first.ShownName(), first.ID)), r.journal.Command("show -o json", r.shortID))
	}
}
