package engine_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// What onConflict chose counts for the tasks behind, also if the task that chose has no output files.
func TestChoicesCarryOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		onConflict string
		chooser    []change
		others     []task.Ref // of the last task
		want       map[string]string
	}{
		{name: "title", onConflict: "left", want: map[string]string{"main.go": "left"}},
		{name: "both", onConflict: task.KeepBoth, want: map[string]string{"main.left.go": "left", "main.right.go": "right"}},
		{name: "losing version again", onConflict: "left", others: []task.Ref{filesFrom("right")}, want: map[string]string{"main.go": "left"}},
		{name: "both versions again", onConflict: task.KeepBoth, others: []task.Ref{filesFrom("right"), filesFrom("left")}, want: map[string]string{"main.left.go": "left", "main.right.go": "right"}},
		{name: "chosen version continued", onConflict: "left", others: []task.Ref{filesFrom("later")}, want: map[string]string{"main.go": "later"}},
		{name: "losing version continued", onConflict: "right", others: []task.Ref{filesFrom("later")}},
		{name: "split version continued", onConflict: task.KeepBoth, others: []task.Ref{filesFrom("later")}},
		{name: "one of both changed", onConflict: task.KeepBoth, chooser: []change{{"main.left.go", "new"}}, want: map[string]string{"main.left.go": "new", "main.right.go": "right"}},
		{name: "one of both removed", onConflict: task.KeepBoth, chooser: []change{{"main.left.go", ""}}, want: map[string]string{"main.right.go": "right"}},
		{name: "written again", onConflict: task.KeepBoth, chooser: []change{{"main.go", "new"}}, want: map[string]string{"main.go": "new", "main.left.go": "left", "main.right.go": "right"}},
		{name: "removed", onConflict: "left", chooser: []change{{"main.go", ""}}, want: map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			chooser := &worker{title: "chooser", on: []task.Ref{filesFrom("left"), filesFrom("right")}, changes: tt.chooser}
			chooser.on[1].OnConflict = tt.onConflict
			if len(tt.chooser) == 0 {
				chooser.edit = func(s *task.Spec) { s.OutputFiles = nil }
			}
			between := &worker{title: "between", on: []task.Ref{filesFrom("chooser")}}
			last := &worker{title: "last", on: append([]task.Ref{filesFrom("between")}, tt.others...)}
			res := perform(t, t.Context(), []*worker{
				{title: "first", changes: []change{{"main.go", "first"}}},
				{title: "left", on: []task.Ref{filesFrom("first")}, changes: []change{{"main.go", "left"}}},
				{title: "right", on: []task.Ref{filesFrom("first")}, changes: []change{{"main.go", "right"}}},
				{title: "later", on: []task.Ref{filesFrom("left")}, changes: []change{{"main.go", "later"}}},
				chooser, between, last,
			})
			require.NotNil(t, chooser.seen)
			require.Equal(t, tt.want, last.seen)
			if tt.want == nil {
				require.Equal(t, codes.FilesConflict, of(t, res, "last").Error.Code)
			}
		})
	}
}

// Two tasks that chose differently are a conflict for a task that gets the folders of both.
func TestChoicesThatDisagree(t *testing.T) {
	t.Parallel()
	choose := func(title, of string) *worker {
		w := &worker{title: title, on: []task.Ref{filesFrom("left"), filesFrom("right")}}
		w.on[0].OnConflict = of
		return w
	}
	last := &worker{title: "last", on: []task.Ref{filesFrom("one"), filesFrom("two")}}
	decided := &worker{title: "decided", on: []task.Ref{filesFrom("one"), filesFrom("two")}}
	decided.on[0].OnConflict = "right"
	res := perform(t, t.Context(), []*worker{
		{title: "left", changes: []change{{"a", "left"}}}, {title: "right", changes: []change{{"a", "right"}}},
		choose("one", "left"), choose("two", "right"), last, decided,
	})
	require.Equal(t, codes.FilesConflict, of(t, res, "last").Error.Code)
	require.Equal(t, map[string]string{"a": "right"}, decided.seen)
}

// A file that is gone since both its versions were kept beside it is no version of the task that wrote one of them: to name
// that task loses nothing of a third.
func TestARemovalThatKeptBothHasNoTask(t *testing.T) {
	t.Parallel()
	both := &worker{title: "both", on: []task.Ref{filesFrom("left"), filesFrom("right")}}
	both.on[0].OnConflict = task.KeepBoth
	last := &worker{title: "last", on: []task.Ref{filesFrom("left"), filesFrom("third"), filesFrom("both")}}
	last.on[0].OnConflict = "left"
	res := perform(t, t.Context(), []*worker{
		{title: "left", changes: []change{{"a", "left"}}}, {title: "right", changes: []change{{"a", "right"}}}, {title: "third", changes: []change{{"a", "third"}}},
		both, last,
	})
	require.Equal(t, map[string]string{"a.left": "left", "a.right": "right"}, both.seen)
	require.Equal(t, codes.FilesConflict, of(t, res, "last").Error.Code)
}

// Choices are repeated in the order of their tasks, whatever the order of the dependencies that grant them.
func TestChoicesAreRepeatedInOrder(t *testing.T) {
	t.Parallel()
	changes := func(text string) []change { return []change{{"a", text}, {"d/b", text}} }
	early := &worker{title: "early", on: []task.Ref{filesFrom("left"), filesFrom("right")}}
	early.on[0].OnConflict = "left"
	later := &worker{title: "later", on: []task.Ref{filesFrom("early", "/a"), filesFrom("left", "/d/**"), filesFrom("right", "/d/**")}}
	later.on[0].OnConflict = "right"
	last := &worker{title: "last", on: []task.Ref{filesFrom("later", "/d/**"), filesFrom("between")}}
	res := perform(t, t.Context(), []*worker{
		{title: "left", changes: changes("left")}, {title: "right", changes: changes("right")},
		early, later, {title: "between", on: []task.Ref{filesFrom("later")}}, last,
	})
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"a": "left", "d/b": "right"}, later.seen)
	require.Equal(t, later.seen, last.seen)
}

// A prompt lists each file once, with who made the version in the folder.
func TestPromptsListTheNewestVersions(t *testing.T) {
	t.Parallel()
	fence := regexp.MustCompile(`(?m)^(\[/?envelope .*|These files are in your workspace:)\n|\n\[/envelope .*`)
	for _, tt := range []struct{ onConflict, want string }{
		{"right", "### left (by left)\nb/d (1 bytes)\ngone (removed)\nl (1 bytes)\n### right (by right)\nc (5 bytes)"},
		{task.KeepBoth, "### left (by left)\nb/d (1 bytes)\nc.left (4 bytes)\ngone (removed)\nl (1 bytes)\n### right (by right)\nc.right (5 bytes)"},
	} {
		t.Run(tt.onConflict, func(t *testing.T) {
			t.Parallel()
			last := &worker{title: "last", on: []task.Ref{filesFrom("left"), filesFrom("right")}}
			last.on[0].OnConflict = tt.onConflict
			res := perform(t, t.Context(), []*worker{
				{title: "first", changes: []change{{"b", "one"}, {"gone", "x"}}},
				{title: "left", on: []task.Ref{filesFrom("first")}, changes: []change{{"b", ""}, {"b/d", "l"}, {"c", "left"}, {"gone", ""}, {"l", "l"}}},
				{title: "right", on: []task.Ref{filesFrom("first", "/a")}, changes: []change{{"c", "right"}}},
				last,
			}, engine.Input{Name: "repo", Folder: files(t, "a", "repo", "b", "repo", "c", "repo")})
			require.NoError(t, res.Err())
			_, list, _ := strings.Cut(last.asked, "## Files from prerequisite tasks\n\n")
			require.Equal(t, "### repo\na (4 bytes)\n### first (by first)\n(none: all were replaced)\n"+tt.want, strings.TrimSpace(fence.ReplaceAllString(list, "")))
		})
	}
}

// The list of a layer is as sensitive as the layers that may have replaced files of it, whether they did or not.
func TestListsOfFilesAreAsSensitiveAsWhatReplacesThem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := &worker{title: "last", level: label.Confidential, on: []task.Ref{filesFrom("second")}}
			res := perform(t, t.Context(), []*worker{
				{title: "first", level: label.Internal, changes: []change{{"a", "first"}}},
				{title: "second", level: label.Confidential, on: []task.Ref{filesFrom("first")}, changes: []change{{name, "second"}}},
				last,
			})
			require.NoError(t, res.Err())
			require.Equal(t, name == "b", strings.Contains(last.asked, "a (5 bytes)"))
			var levels []label.Classification
			for _, s := range of(t, res, "last").Receipts[0].Sources {
				if s.Decision != nil && s.Decision.Source.Kind != handoff.Dependency {
					levels = append(levels, s.Classification)
				}
			}
			require.Equal(t, []label.Classification{label.Confidential, label.Confidential}, levels)
		})
	}
}

// A task whose onConflict has changed is performed again when its run is resumed: its files are others.
func TestChoicesThatChangedBeforeAResume(t *testing.T) {
	t.Parallel()
	left, right, last := &worker{title: "left", changes: []change{{"a", "left"}}}, &worker{title: "right", changes: []change{{"a", "right"}}}, &worker{title: "last"}
	tm := newTeam(t, left.member(t), right.member(t), last.member(t))
	specs := func(onConflict string) (list []task.Spec) {
		last.on = []task.Ref{filesFrom("left"), filesFrom("right")}
		last.on[0].OnConflict = onConflict
		for _, w := range []*worker{left, right, last} {
			list = append(list, task.Spec{Title: w.title, Description: "Work.", Assignee: w.title, OutputFiles: []string{"**"}, DependsOn: w.on})
		}
		return list
	}
	j, res := journaled(t, tm, specs("left")...)
	require.NoError(t, res.Err())
	require.NoError(t, resumed(t, tm, interrupted(j, nil), specs("right")...).Err())
	require.Equal(t, map[string]string{"a": "right"}, last.seen)
	require.Equal(t, []int{1, 1, 2}, []int{left.times, right.times, last.times})
}

// A choice is made among the versions that the reader may have: a hidden version that settled the conflict for the task
// that chose neither shows nor hides one.
func TestChoicesAmongVisibleVersions(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hidden", "none"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			hidden := &worker{title: "hidden", level: label.Confidential, on: []task.Ref{filesFrom("left"), filesFrom("right")}, changes: []change{{"b", "b"}}}
			hidden.on[0].OnConflict = "left"
			if text == "hidden" {
				hidden.changes = append(hidden.changes, change{"a", "hidden"})
			}
			chooser := &worker{title: "chooser", level: label.Confidential, on: []task.Ref{filesFrom("left"), filesFrom("right"), filesFrom("hidden")}}
			chooser.on[0].OnConflict = "right"
			last := &worker{title: "last", on: []task.Ref{filesFrom("chooser")}}
			perform(t, t.Context(), []*worker{{title: "left", changes: []change{{"a", "left"}}}, {title: "right", changes: []change{{"a", "right"}}}, hidden, chooser, last})
			require.NotNil(t, chooser.seen)
			require.Equal(t, map[string]string{"a": "left"}, last.seen, "as the first of both chose")
		})
	}
}

// A file replaces those that the agent which wrote it was given, also if another agent of its task was given more, and also
// in a run that is resumed.
func TestFilesReplaceWhatTheirWriterWasGiven(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		block []task.Path
		want  map[string]string
	}{
		{"all", []task.Path{"/c"}, map[string]string{"a": "holder", "b": "b"}},
		{"blocked", []task.Path{"/a"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			first := &worker{title: "first", changes: []change{{"a", "first"}, {"b", "b"}}}
			holder := &worker{title: "holder", changes: []change{{"a", "holder"}}}
			last := &worker{title: "last", on: []task.Ref{filesFrom("second")}}
			front := engine.Member{Name: "front", Agent: agent.New(byTurn(func(int, llm.Request) llm.Response {
				return llm.Response{ToolCalls: []llm.ToolCall{call("transfer_to_holder", "{}")}}
			}), agent.Options{})}
			policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "first", To: "holder", Block: tt.block}}}
			tm, err := engine.New(engine.Config{Policy: policy, Edges: transferring("front>holder"), Agents: []engine.Member{first.member(t), front, holder.member(t), last.member(t)}})
			require.NoError(t, err)
			specs := []task.Spec{
				{Title: "first", Description: "Work.", Assignee: "first", OutputFiles: []string{"**"}},
				{Title: "second", Description: "Work.", Assignee: "front", OutputFiles: []string{"**"}, DependsOn: []task.Ref{filesFrom("first")}},
				{Title: "last", Description: "Work.", Assignee: "last", DependsOn: last.on},
			}
			j, res := journaled(t, tm, specs...)
			check := func(res *engine.Result) {
				require.NotNil(t, holder.seen)
				require.Equal(t, tt.want, last.seen, "%v", res.Err())
				if tt.want == nil {
					require.Equal(t, codes.FilesConflict, of(t, res, "last").Error.Code)
				}
			}
			check(res)
			last.seen = nil
			check(resumed(t, tm, interrupted(j, func(e *record.Entry) bool { return taskOf(e) == of(t, res, "last").ID }), specs...))
		})
	}
}

// taskOf returns the task of a call in a journal; empty for any other entry.
func taskOf(e *record.Entry) task.ID {
	for _, x := range []*record.AgentCall{e.Exchange, e.Turn, e.ToolResult, e.Files} {
		if x != nil {
			return x.Task
		}
	}
	for _, x := range []*record.CallStart{e.Asked, e.ToolCall} {
		if x != nil {
			return x.Task
		}
	}
	return ""
}

// Of the rounds of a loop, onConflict means the last one.
func TestConflictsOfRoundsAreSettled(t *testing.T) {
	t.Parallel()
	write := &worker{title: "write", changes: []change{{"a", "round #"}}}
	collect := &worker{title: "collect", answer: `{"n":1}`}
	last := &worker{title: "last", on: []task.Ref{filesFrom("loop")}}
	of := func(w *worker, on ...task.Ref) task.Spec {
		return task.Spec{Title: w.title, Description: "Work.", Assignee: w.title, OutputFiles: []string{"**"}, DependsOn: on}
	}
	gather := of(collect, filesFrom("collect"), filesFrom("write"))
	gather.DependsOn[0].Round, gather.DependsOn[1].OnConflict = task.Previous, "write"
	gather.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	loop := task.Spec{Title: "loop", Repeat: &task.Repeat{MaxRounds: 3, Until: task.Equals("collect", "/n", 2), Output: "collect", Tasks: []task.Spec{of(write), gather}}}
	res := run(t, newTeam(t, write.member(t), collect.member(t), last.member(t)), nil, loop, of(last, last.on...))
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"a": "round 3"}, collect.seen)
	require.Equal(t, map[string]string{"a": "round 3"}, last.seen)
}

// The name of a version beside another one fits into a folder, and is the only one.
func TestNamesOfVersionsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("日本", 40)
	left, right := &worker{title: "left"}, &worker{title: "right"}
	files := map[string]string{"main.go": "m", strings.Repeat("x", 250) + ".go": "x", "a." + strings.Repeat("y", 250): "y"}
	last := &worker{title: "last", on: []task.Ref{filesFrom(long + "left"), filesFrom(long + "right")}}
	last.on[0].OnConflict = task.KeepBoth
	for _, w := range []*worker{left, right} {
		w.edit = func(s *task.Spec) { s.Title = long + s.Title }
		for name, text := range files {
			w.changes = append(w.changes, change{name, text + w.title})
		}
	}
	require.NoError(t, perform(t, t.Context(), []*worker{left, right, last}).Err())
	require.Len(t, last.seen, 2*len(files))
	for name := range last.seen {
		require.LessOrEqual(t, len(name), 255)
		require.True(t, utf8.ValidString(name))
	}
}

// A folder stands by itself, also if its reader needs less of an input that is in it.
func TestFoldersBesideAnInput(t *testing.T) {
	t.Parallel()
	first, last := &worker{title: "first"}, &worker{title: "last"}
	res := run(t, newTeam(t, first.member(t), last.member(t)), &engine.RunOptions{Inputs: []engine.Input{{Name: "repo", Folder: files(t, "a", "a", "src/b", "b")}}}, []task.Spec{
		{Title: "first", Description: "Work.", Assignee: "first", Uses: []task.Use{{Name: "repo", At: "."}}},
		{Title: "last", Description: "Work.", Assignee: "last", Uses: []task.Use{{Name: "repo", At: ".", Need: []task.Path{"/a"}}}, DependsOn: []task.Ref{filesFrom("first")}},
	}...)
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"a": "a", "src/b": "b"}, last.seen)
}

// A file whose name is redacted for its reader still replaces the one that its writer was given.
func TestRedactedNamesOfFiles(t *testing.T) {
	t.Parallel()
	const name = "mails/case-77.md"
	first := &worker{title: "first", changes: []change{{name, "first"}}}
	second := &worker{title: "second", on: []task.Ref{filesFrom("first")}, changes: []change{{name, "second"}}}
	last := &worker{title: "last", on: []task.Ref{filesFrom("second")}}
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "*", To: "last", Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "case", Regexp: "case-[0-9]+"}}}}}}
	tm, err := engine.New(engine.Config{Policy: policy, Agents: []engine.Member{first.member(t), second.member(t), last.member(t)}})
	require.NoError(t, err)
	var specs []task.Spec
	for _, w := range []*worker{first, second, last} {
		specs = append(specs, task.Spec{Title: w.title, Description: "Work.", Assignee: w.title, OutputFiles: []string{"**"}, DependsOn: w.on})
	}
	require.NoError(t, run(t, tm, nil, specs...).Err())
	require.Equal(t, map[string]string{name: "first"}, second.seen)
	require.Len(t, last.seen, 1)
	require.NotContains(t, last.seen, name)
}
