package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// promptsOf returns what a trace says of the prompts of a task.
func promptsOf(tr *trace.Trace, id task.ID, most int) (out []string) {
	for i := range tr.Prompts {
		if p := &tr.Prompts[i]; p.Receipt.Task == id {
			results, more, inputs := tr.Absent(p, most)
			var titles []string
			for _, tk := range results {
				titles = append(titles, tk.Title)
			}
			out = append(out, fmt.Sprintf("%+v %v %d %v", p.Shown.Text, titles, more, inputs))
		}
	}
	return append(out, fmt.Sprintf("%+v", tr.Withheld(id)))
}

func TestOneTaskIsReadLikeAllTasks(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	all := read(t, file)
	require.False(t, all.Partial)
	for _, tk := range all.Tasks() {
		for _, name := range []string{tk.Title, tk.Key, string(tk.ID)} {
			if name == "" {
				continue
			}
			one, err := trace.ReadWith(bytes.NewReader(file), trace.ReadOptions{Task: name})
			require.NoError(t, err)
			found, err := one.Find(name)
			require.NoError(t, err)
			require.Equal(t, tk.ID, found.ID)
			require.Equal(t, promptsOf(all, tk.ID, 0), promptsOf(one, tk.ID, 0), name)
			require.Equal(t, all.Ended(), one.Ended())
			require.LessOrEqual(t, len(one.Prompts), len(all.Prompts))
		}
	}
	one, err := trace.ReadWith(bytes.NewReader(file), trace.ReadOptions{Task: score.Title})
	require.NoError(t, err)
	require.True(t, one.Partial)
	require.Less(t, len(one.Handoffs), len(all.Handoffs))
}

func TestFinderAgreesWithContains(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	for _, text := range []string{"4417", "Nobody was at home", "The risk is 0.2", "facts of 2026.", "  the \n risk", "nothing of it", "e"} {
		f := trace.NewFinder(text)
		tr, err := trace.ReadWith(bytes.NewReader(file), trace.ReadOptions{Finder: f})
		require.NoError(t, err)
		want, got := read(t, file).Contains(text), f.Search(tr)
		require.Equal(t, want.Origins, got.Origins, text)
		require.Equal(t, want.Unsearched, got.Unsearched, text)
		require.Equal(t, places(want), places(got), text)
		for i := range want.Occurrences {
			a, b := want.Occurrences[i], got.Occurrences[i]
			require.Equal(t, [2]int{a.Start, a.End}, [2]int{b.Start, b.End})
			a.Prompt, b.Prompt = nil, nil
			require.Equal(t, a, b)
		}
		for i := range tr.Prompts {
			require.Empty(t, tr.Prompts[i].Text, "the words are not kept")
		}
	}
}

// What is not sent with a prompt is counted without listing all of it.
func TestAbsentResultsAreCountedAboveTheLimit(t *testing.T) {
	t.Parallel()
	const tasks = 40
	o := trace.Options{Run: "r1", Time: noon}
	for i := range tasks {
		title := fmt.Sprint("task ", i)
		o.Tasks = append(o.Tasks, trace.Task{ID: task.NewID(title), Title: title, Assignee: "a"})
	}
	o.Tasks = append(o.Tasks, trace.Task{ID: score.ID, Title: score.Title, Assignee: score.Assignee})
	var out bytes.Buffer
	w := trace.NewWriter(&out, o)
	for i := range tasks {
		w.Event(event.Event{Seq: i + 1, Run: "r1", Type: event.TaskComplete, Task: o.Tasks[tasks-1-i].ID, Title: o.Tasks[tasks-1-i].Title})
		if i == tasks/2-1 {
			require.NoError(t, w.Record(t.Context(), recordOf(t, &score, "")))
		}
	}
	_, err := w.Close(nil, noon)
	require.NoError(t, err)
	tr := read(t, out.Bytes())
	all, more, _ := tr.Absent(&tr.Prompts[0], 0)
	require.Len(t, all, tasks/2)
	require.Zero(t, more)
	for most := 1; most < tasks; most++ {
		some, more, _ := tr.Absent(&tr.Prompts[0], most)
		require.Equal(t, all[:min(most, len(all))], some)
		require.Equal(t, len(all)-len(some), more)
	}
	require.True(t, strings.HasPrefix(all[0].Title, "task "))
}
