package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A change is what a task does to a file of its workspace.
type change struct {
	name string
	text string // "" removes the file, "=" writes it again as it is
}

// A worker is a task that sees the files of its workspace and changes some.
type worker struct {
	title   string
	level   label.Classification // of its agent, and of what it makes
	on      []task.Ref
	changes []change
	links   map[string]string // the targets of links, by the names of files or folders that they replace
	outputs []string          // globs; nil means all files
	edit    func(*task.Spec)  // nil for none
	answer  string            // "done" unless set

	mu    sync.Mutex
	asked string            // the last message of its first prompt
	times int               // how often it worked
	seen  map[string]string // when it worked last; nil if it did not work
}

// member returns the agent of a worker.
func (w *worker) member(t require.TestingT) engine.Member {
	o := tool.Options{Effect: tool.Workspace, Accepts: label.Secret, Produces: new(label.Public)}
	work := &tool.Tool{Name: "work_" + w.title, Parameters: json.RawMessage(`{"type":"object"}`), Options: o, ReadsWorkspace: true, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		root, err := c.Workspace()
		require.NoError(t, err)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = filesOf(t, root)
		w.times++
		for _, c := range w.changes {
			c.text = strings.ReplaceAll(c.text, "#", fmt.Sprint(w.times))
			w.apply(t, root, c)
		}
		for name, target := range w.links {
			require.NoError(t, errors.Join(root.RemoveAll(name), root.Symlink(target, name)))
		}
		return tool.Result{Text: "done"}, nil
	}}
	m := engine.Member{Name: w.title, Accepts: w.level, Produces: &w.level, Tools: []*tool.Tool{work}, AllowUntrusted: []string{work.Name}}
	m.Agent = agent.New(byTurn(func(turn int, r llm.Request) llm.Response {
		if turn == 1 {
			w.mu.Lock()
			w.asked = r.Messages[len(r.Messages)-1].Text
			w.mu.Unlock()
			return llm.Response{ToolCalls: []llm.ToolCall{call(work.Name, `{}`)}}
		}
		return llm.Response{Text: cmp.Or(w.answer, "done")}
	}), agent.Options{})
	return m
}

func (w *worker) apply(t require.TestingT, root *os.Root, c change) {
	switch text, exists := w.seen[c.name]; {
	case c.text == "" && exists:
		require.NoError(t, root.Remove(c.name))
	case c.text == "" || c.text == "=" && !exists:
	default:
		if c.text != "=" {
			text = c.text
		}
		if info, err := root.Stat(c.name); err == nil && info.IsDir() {
			require.NoError(t, root.RemoveAll(c.name))
		}
		require.NoError(t, root.MkdirAll(path.Dir(c.name), 0o755))
		require.NoError(t, root.WriteFile(c.name, []byte(text), 0o644))
	}
}

// filesOf returns the files of a workspace, but for those of the runtime.
func filesOf(t require.TestingT, root *os.Root) map[string]string {
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "history/") {
			return err
		}
		text, err := root.ReadFile(name)
		files[name] = string(text)
		return err
	}))
	return files
}

// perform runs workers as a team.
func perform(t require.TestingT, ctx context.Context, workers []*worker, inputs ...engine.Input) *engine.Result {
	config, specs := engine.Config{}, []task.Spec{}
	for _, w := range workers {
		config.Agents = append(config.Agents, w.member(t))
		s := task.Spec{Title: w.title, Description: "Work.", Assignee: w.title, Classification: w.level, OutputFiles: w.outputs, DependsOn: w.on}
		if w.outputs == nil {
			s.OutputFiles = []string{"**"}
		}
		if len(inputs) > 0 && len(w.on) == 0 {
			s.Uses = []task.Use{{Name: inputs[0].Name, At: "."}}
		}
		if w.edit != nil {
			w.edit(&s)
		}
		specs = append(specs, s)
	}
	tm, err := engine.New(config)
	require.NoError(t, err)
	res, err := tm.RunTasks(ctx, specs, &engine.RunOptions{Inputs: inputs, UserAccepts: new(label.Secret)})
	require.NoError(t, err)
	return res
}

// filesFrom returns a dependency that grants the files of some paths.
func filesFrom(title string, paths ...task.Path) task.Ref {
	if len(paths) == 0 {
		paths = []task.Path{task.Whole}
	}
	return task.Ref{Task: title, Files: paths, Optional: true}
}

// What two tasks changed, neither of which had the version of the other, is a conflict, unless the dependent says which
// version it wants.
func TestConflictsOfFilesAreSettled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		on   string
		want map[string]string // nil if the task fails
	}{
		{"", nil},
		{task.FailOnConflict, nil},
		{task.KeepBoth, map[string]string{"main.left.go": "left", "main.right.go": "right", "new.go": "new"}},
		{"left", map[string]string{"main.go": "left", "new.go": "new"}},
		{"Right", map[string]string{"main.go": "right", "new.go": "new"}},
	} {
		t.Run(tt.on, func(t *testing.T) {
			t.Parallel()
			last := &worker{title: "last", on: []task.Ref{filesFrom("left"), filesFrom("right")}}
			last.on[1].OnConflict = tt.on
			res := perform(t, t.Context(), []*worker{
				{title: "first", changes: []change{{"main.go", "first"}}},
				{title: "left", on: []task.Ref{filesFrom("first")}, changes: []change{{"main.go", "left"}}},
				{title: "right", on: []task.Ref{filesFrom("first")}, changes: []change{{"main.go", "right"}, {"new.go", "new"}}},
				last,
			})
			require.Equal(t, tt.want, last.seen)
			if tt.want == nil {
				require.Equal(t, codes.FilesConflict, of(t, res, "last").Error.Code)
				require.ErrorIs(t, res.Err(), engine.ErrFilesConflict)
				require.Contains(t, of(t, res, "last").Error.Message, `"left" and "right" have changed main.go, and neither was given the version of the other: set onConflict of a dependency`)
			}
		})
	}
}

// A task whose files are all above the reader leaves nothing for it, so a required dependency fails it.
func TestFoldersOfWhichNothingIsLeft(t *testing.T) {
	t.Parallel()
	secret := &worker{title: "secret", level: label.Confidential, changes: []change{{"a", "secret"}}}
	open := &worker{title: "open", on: []task.Ref{filesFrom("secret")}, changes: []change{{"b", "open"}}}
	reader := &worker{title: "reader", on: []task.Ref{filesFrom("open")}}
	cleared := &worker{title: "cleared", level: label.Confidential, on: []task.Ref{filesFrom("open")}}
	require.NoError(t, perform(t, t.Context(), []*worker{secret, open, reader, cleared}).Err())
	require.Equal(t, map[string]string{"b": "open"}, reader.seen)
	require.Equal(t, map[string]string{"a": "secret", "b": "open"}, cleared.seen, "a file stays in the folder for those who may have it")
}

// A file that became a folder does not come back when the folder is gone, and the other way round.
func TestReplacedFilesDoNotComeBack(t *testing.T) {
	t.Parallel()
	file, inFolder := change{"d", "file"}, change{"d/x", "inner"}
	for _, tt := range [][]change{{file, inFolder}, {inFolder, file}} {
		t.Run(tt[0].name, func(t *testing.T) {
			t.Parallel()
			last := &worker{title: "last", on: []task.Ref{filesFrom("third")}}
			res := perform(t, t.Context(), []*worker{
				{title: "first", changes: []change{tt[0], {"kept", "kept"}}},
				{title: "second", on: []task.Ref{filesFrom("first")}, changes: []change{{tt[0].name, ""}, tt[1]}},
				{title: "third", on: []task.Ref{filesFrom("second")}, changes: []change{{tt[1].name, ""}}},
				last,
			})
			require.NoError(t, res.Err())
			require.Equal(t, map[string]string{"kept": "kept"}, last.seen)
		})
	}
}

// A task may be given as many files as a folder can have, and change some; what it does not pass on is not read.
func TestLargeFoldersArePassedOn(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	given := make([]string, 0, 2*filetree.MaxFiles)
	for i := range filetree.MaxFiles {
		given = append(given, fmt.Sprintf("part%d/file%d", i%100, i), "x")
	}
	large := strings.Repeat("line of 16 bytes", 33<<20/16)
	first := &worker{title: "first", outputs: []string{"part*/**", "new"}, changes: []change{{"new", "new"}, {"part1/file1", "changed"}, {"scratch", large}}}
	last := &worker{title: "last", on: []task.Ref{filesFrom("first", "/new", "/part1/file1")}}
	require.NoError(t, perform(t, t.Context(), []*worker{first, last}, engine.Input{Name: "repo", Folder: files(t, given...)}).Err())
	require.Equal(t, map[string]string{"new": "new", "part1/file1": "changed"}, last.seen)

	res := perform(t, t.Context(), []*worker{{title: "only", changes: []change{{"scratch", large}}}})
	require.ErrorIs(t, of(t, res, "only").Error, engine.ErrOutputFiles)
	require.ErrorContains(t, of(t, res, "only").Error, "more than 4 MiB, of those that match its outputFiles and that it changed; narrow outputFiles")
}

// Names that differ only in case are two files where the file system has two.
func TestNamesThatDifferInCaseArePassedOn(t *testing.T) {
	t.Parallel()
	first := &worker{title: "first", changes: []change{{"Readme", "upper"}, {"readme", "lower"}}}
	last := &worker{title: "last", on: []task.Ref{filesFrom("first")}}
	require.NoError(t, perform(t, t.Context(), []*worker{first, last}).Err())
	require.Equal(t, map[string]string{"Readme": "upper", "readme": "lower"}, last.seen)
}

// What is behind a link is in no result, also if the link took the place of a folder.
func TestLinksArePassedOnToNobody(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "x"), []byte("outside"), 0o600))
	for _, tt := range []struct {
		name    string
		outputs []string
		err     string
		want    map[string]string
	}{
		{"link matches", []string{"**"}, "d is not a UTF-8 text, but a link or something else", nil},
		{"link does not match", []string{"d/x"}, "", map[string]string{"kept": "kept"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			link := &worker{title: "link", outputs: tt.outputs, links: map[string]string{"d": outside}}
			last := &worker{title: "last", on: []task.Ref{filesFrom("link")}}
			res := perform(t, t.Context(), []*worker{link, last}, engine.Input{Name: "repo", Folder: files(t, "d/x", "inside", "kept", "kept")})
			if tt.err != "" {
				require.ErrorContains(t, of(t, res, "link").Error, tt.err)
				return
			}
			require.NoError(t, res.Err())
			require.Equal(t, tt.want, last.seen)
		})
	}
}

// A file that a rule blocked from the writer of another version of it is not replaced by that one.
func TestBlockedFilesAreNotReplaced(t *testing.T) {
	t.Parallel()
	workers := []*worker{
		{title: "first", changes: []change{{"a", "first"}, {"b", "b"}}},
		{title: "second", on: []task.Ref{filesFrom("first")}, changes: []change{{"a", "second"}}},
		{title: "last", on: []task.Ref{filesFrom("second")}},
	}
	config, specs := engine.Config{Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "first", To: "second", Block: []task.Path{"/a"}}}}}, []task.Spec{}
	for _, w := range workers {
		config.Agents = append(config.Agents, w.member(t))
		specs = append(specs, task.Spec{Title: w.title, Description: "Work.", Assignee: w.title, OutputFiles: []string{"**"}, DependsOn: w.on})
	}
	tm, err := engine.New(config)
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), specs, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"b": "b"}, workers[1].seen)
	require.Equal(t, codes.FilesConflict, of(t, res, "last").Error.Code)
}

// The paths of a dependency are those of the workspace, also for an input in one of its folders.
func TestInputsInFoldersArePassedOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		at   string
		path task.Path
		want map[string]string
	}{
		{"repo", "", map[string]string{"repo/a": "a", "repo/src/b": "b"}},
		{"2024", "", map[string]string{"2024/a": "a", "2024/src/b": "b"}},
		{"a/07/b", "/a/*/b/src/**", map[string]string{"a/07/b/src/b": "b"}},
		{"a~1b", "/a~01b/a", map[string]string{"a~1b/a": "a"}},
		{"src", "/*/src/*", map[string]string{"src/src/b": "b"}},
		{"src", "/*", map[string]string{}},
		{"src", "/src", map[string]string{}},
		{".", "/src", map[string]string{}},
	} {
		t.Run(tt.at+string(tt.path), func(t *testing.T) {
			t.Parallel()
			first, last := &worker{title: "first"}, &worker{title: "last", on: []task.Ref{filesFrom("first", tt.path)}}
			tm, err := engine.New(engine.Config{Agents: []engine.Member{first.member(t), last.member(t)}})
			require.NoError(t, err)
			res, err := tm.RunTasks(t.Context(), []task.Spec{
				{Title: "first", Description: "Work.", Assignee: "first", Uses: []task.Use{{Name: "repo", At: tt.at}}},
				{Title: "last", Description: "Work.", Assignee: "last", DependsOn: last.on},
			}, &engine.RunOptions{Inputs: []engine.Input{{Name: "repo", Folder: files(t, "a", "a", "src/b", "b")}}})
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Equal(t, tt.want, last.seen)
		})
	}
}

// An input that comes through two tasks, at two places, is granted at each of them by itself.
func TestPlacesOfAnInputHaveTheirOwnGrants(t *testing.T) {
	t.Parallel()
	uses := func(title string) *worker {
		return &worker{title: title, edit: func(s *task.Spec) { s.Uses = []task.Use{{Name: "repo", At: title}} }}
	}
	last := &worker{title: "last", on: []task.Ref{filesFrom("one", "/one/a"), filesFrom("two", "/two/b")}}
	res := perform(t, t.Context(), []*worker{uses("one"), uses("two"), last}, engine.Input{Name: "repo", Folder: files(t, "a", "a", "b", "b")})
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"one/a": "a", "two/b": "b"}, last.seen)
}

// A layer of a folder in which nothing is granted does not count for the label of what its reader makes.
func TestEmptyLayersDoNotCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path task.Path
		want label.Classification
	}{{"/d/**", label.Internal}, {"/a", label.Confidential}} {
		t.Run(string(tt.path), func(t *testing.T) {
			t.Parallel()
			first := &worker{title: "first", level: label.Confidential, changes: []change{{"a", "confidential"}}}
			second := &worker{title: "second", level: label.Internal, on: []task.Ref{filesFrom("first")}, changes: []change{{"d/b", "open"}}}
			last := &worker{title: "last", level: label.Confidential, on: []task.Ref{filesFrom("second", tt.path)}}
			last.edit = func(s *task.Spec) { s.Classification = label.Public }
			res := perform(t, t.Context(), []*worker{first, second, last})
			require.NoError(t, res.Err())
			require.Equal(t, tt.want, of(t, res, "last").Label)
		})
	}
}
