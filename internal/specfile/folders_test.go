package specfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

const withFolder = `agents: [{name: a}]
inputs:
  repo: {dir: repo, exclude: [dist]}
tasks:
  - {title: Fix, description: d, assignee: a, workspace: {input: repo}, outputFiles: ["src/**"]}
  - {title: Review, description: d, assignee: a, dependsOn: [{task: Fix, files: ["src/**", report.md]}]}
`

func TestFolderAsInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", withFolder, "repo/src/main.go", "package main\n", "repo/dist/out.js", "x", "repo/.git/HEAD", "ref", "repo/logo.png", "\x89PNG\x00")
	f, err := specfile.Load(specfile.Options{Path: dir})
	require.NoError(t, err)
	require.JSONEq(t, `{"src": {"main.go": "package main\n"}}`, f.Run.Inputs[0].Text)
	require.Len(t, f.Warnings, 1)
	require.Contains(t, f.Warnings[0].Error(), "left out files that are links or not UTF-8 text: logo.png")
	require.Equal(t, []task.Use{{Name: "repo", At: "."}}, f.Tasks[0].Uses)
	require.Equal(t, []task.Path{"/src/**", "/report.md"}, f.Tasks[1].DependsOn[0].Files)

	saved, left, err := f.WithPlan(engine.Goal{}, f.Tasks, dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Contains(t, string(saved), "dir: repo\n    exclude:")
	write(t, dir, "saved.yaml", string(saved))
	again, err := specfile.Load(specfile.Options{Path: filepath.Join(dir, "saved.yaml")})
	require.NoError(t, err)
	require.Equal(t, f.Run.Inputs[0].Text, again.Run.Inputs[0].Text)
	require.Equal(t, f.Tasks[1].DependsOn, again.Tasks[1].DependsOn)

	stored := f.Stored()
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "repo")))
	again, err = specfile.Load(specfile.Options{Path: dir, Stored: stored})
	require.NoError(t, err)
	require.Equal(t, f.Run.Inputs[0].Text, again.Run.Inputs[0].Text)
	require.NotNil(t, again.Run.Inputs[0].Folder)
	require.Equal(t, f.Fingerprint(), again.Fingerprint())
}

func TestFolderOfAnOption(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	write(t, dir, "team.yaml", withFolder)
	write(t, other, "src/a.go", "a")
	f, err := specfile.Load(specfile.Options{Path: dir, Inputs: map[string]string{"repo": other}})
	require.NoError(t, err)
	require.JSONEq(t, `{"src": {"a.go": "a"}}`, f.Run.Inputs[0].Text)
}

func TestBadFolders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ inputs, tasks, want string }{
		"missing":            {"repo: {dir: none}", "", `dir: "none": cannot read: it does not exist`},
		"outside":            {"repo: {dir: ../x}", "", "outside the folder of the spec"},
		"text too":           {"repo: {dir: repo, text: x}", "", "text: an input with dir is a folder, and this key is for texts"},
		"bad glob":           {"repo: {dir: repo, exclude: ['[']}", "", "not a valid glob"},
		"output above":       {"repo: {dir: repo}", "outputFiles: ['../*.md']", `"../*.md" matches no file`},
		"output from root":   {"repo: {dir: repo}", "outputFiles: [/a.md]", `"/a.md" matches no file`},
		"exclude of a text":  {"repo: {text: x, exclude: [a]}", "", "exclude: the input is not a folder"},
		"at of a text":       {"repo: {text: x}", "uses: [{name: repo, at: x}]", "at is for folders"},
		"at outside":         {"repo: {dir: repo}", "uses: [{name: repo, at: ../x}]", `cannot be put at "../x"`},
		"at of history":      {"repo: {dir: repo}", "uses: [{name: repo, at: history/x}]", "history and outputs are reserved"},
		"no output files":    {"repo: {dir: repo}", "dependsOn: [{task: First, files: ['**']}]", `task "First" has no files`},
		"part of a name":     {"repo: {dir: repo}", "dependsOn: [{task: First, files: ['*.md']}]", "only whole names can be *"},
		"path with no match": {"repo: {dir: repo}", "uses: [{name: repo, need: [/nothing]}]", "input \"repo\" has no /nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "repo/a.txt", "a", "team.yaml", "agents: [{name: a}]\ninputs: {"+c.inputs+"}\ntasks:\n  - {title: First, description: d}\n  - {title: T, description: d, "+c.tasks+"}\n")
			_, err := check(specfile.Options{Path: dir})
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Problems of workspace.input are at that key, and those of uses beside it at theirs.
func TestInputOfAWorkspaceHasItsPlace(t *testing.T) {
	t.Parallel()
	const spec = "agents: [{name: a%s}]\ninputs: {repo: {text: x}, notes: {text: x}}\ntasks:\n  - title: Fix\n    description: d\n    assignee: a\n    workspace: {input: %s, need: [/a]}\n    uses: [%s]\n"
	for name, tt := range map[string]struct{ other, input, use, want string }{
		"unknown input":                   {"", "rpeo", "notes", `team.yaml:7:24: task "Fix": unknown input "rpeo"`},
		"beside a mistake somewhere else": {", acepts: public", "rpeo", "notes", `team.yaml:7:24: task "Fix": unknown input "rpeo"`},
		"text":                            {"", "repo", "notes", `team.yaml:7:24: task "Fix": at is for folders, and input "repo" is a text`},
		"unknown use beside it":           {"", "repo", "ntes", `team.yaml:8:12: task "Fix": unknown input "ntes"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "team.yaml", fmt.Sprintf(spec, tt.other, tt.input, tt.use))
			_, err := check(specfile.Options{Path: dir})
			require.ErrorContains(t, err, tt.want)
			if strings.Contains(tt.want, "unknown") {
				require.ErrorContains(t, err, "did you mean")
			}
		})
	}
}

// The folder that a workspace continues is a dependency with files.
func TestWorkspaceContinuesAFolder(t *testing.T) {
	t.Parallel()
	all, src := []task.Path{task.Whole}, []task.Path{"/src/**"}
	for name, tt := range map[string]struct {
		tasks string
		want  []task.Ref
	}{
		"task":               {"workspace: {task: Fix}", []task.Ref{{Task: "Fix", Files: all}}},
		"some files":         {"workspace: {task: Fix, files: [src/**]}", []task.Ref{{Task: "Fix", Files: src}}},
		"other dependencies": {"dependsOn: [Plan], workspace: {task: Fix}", []task.Ref{{Task: "Plan"}, {Task: "Fix", Files: all}}},
		"the same one":       {"dependsOn: [{task: ' FIX', as: both, onConflict: both}, Plan], workspace: {task: Fix}", []task.Ref{{Task: " FIX", As: task.Both, OnConflict: "both", Files: all}, {Task: "Plan"}}},
		"the same files":     {"dependsOn: [{task: Fix, files: [src/**]}], workspace: {task: Fix, files: [src/**]}", []task.Ref{{Task: "Fix", Files: src}}},
		"form of all":        {"dependencyPayload: both, workspace: {task: Fix}", []task.Ref{{Task: "Fix", As: task.Both, Files: all}}},
		"round":              {"workspace: {round: previous}", []task.Ref{{Task: "T", Round: task.Previous, Optional: true, Files: all}}},
		"round of a task":    {"dependsOn: [Fix], workspace: {task: Fix, round: previous, files: [src/**]}", []task.Ref{{Task: "Fix"}, {Task: "Fix", Round: task.Previous, Optional: true, Files: src}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "team.yaml", "agents: [{name: a}]\ntasks:\n  - {title: Plan, description: d}\n  - {title: Fix, description: d, outputFiles: ['**']}\n  - {title: T, description: d, "+tt.tasks+"}\n")
			f, err := specfile.Load(specfile.Options{Path: dir})
			require.NoError(t, err)
			require.Equal(t, tt.want, f.Tasks[2].DependsOn)
		})
	}
}

func TestBadFolderToContinue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ tasks, want string }{
		"unknown task":           {"workspace: {task: Fixx}", `4:50: task "T": workspace: no task "Fixx" (did you mean "Fix"?)`},
		"itself":                 {"workspace: {task: T}", `4:50: task "T": workspace: it depends on itself`},
		"later":                  {"workspace: {task: Later}", `4:5: task "T": dependency cycle: T -> Later -> T`},
		"no files":               {"workspace: {task: Plan}", `4:50: task "T": task "Plan" has no files (list its output files in outputFiles of that task)`},
		"no files, named before": {"dependsOn: [Plan], workspace: {task: Plan}", `task "T": task "Plan" has no files`},
		"named by its key":       {"dependsOn: [f], workspace: {task: Fix}", `4:66: task "T": workspace: "Fix" is named before (name the task as dependsOn does, which then gets its files too)`},
		"other files":            {"dependsOn: [{task: Fix, files: [src/**]}], workspace: {task: Fix}", `4:86: task "T": workspace: it continues the folder of "Fix" with other files than dependsOn[0] says (write the files in one of the two places)`},
		"no round":               {"workspace: {round: previous}", `4:51: task "T": the task is not in a loop, so it has no previous round (remove round)`},
		"files alone":            {"workspace: {files: [a]}", `4:51: task "T": files: there is no folder to pick files from (add task, the task whose folder it continues, or round: previous)`},
		"empty files":            {"workspace: {task: Fix, files: []}", `4:62: task "T": files: the list is empty`},
		"part of a name":         {"workspace: {task: Fix, files: ['*.md']}", `only whole names can be *`},
		"conflict, no files":     {"dependsOn: [{task: Fix, onConflict: Plan}], workspace: {task: Fix}", `4:68: task "T": task "Plan" has no outputFiles, so no version of a file is its own (write whose version counts: Fix, both)`},
		"no conflict is set":     {"dependsOn: [{task: Fix, onConflict: Nobody}], workspace: {task: Fix}", `4:68: task "T": onConflict: no task "Nobody" has files in the folder`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "team.yaml", "agents: [{name: a}]\ntasks:\n  - {title: Plan, description: d}\n  - {title: T, description: d, "+tt.tasks+"}\n  - {title: Fix, key: f, description: d, outputFiles: ['**']}\n  - {title: Later, description: d, outputFiles: ['**'], dependsOn: [T]}\n")
			_, err := check(specfile.Options{Path: dir})
			requireProblem(t, err, tt.want)
		})
	}
	dir := t.TempDir()
	write(t, dir, "team.yaml", "agents: [{name: a}]\ntaskDefaults: {workspace: {round: previous}}\ntasks: [{title: T, description: d}]\n")
	_, err := check(specfile.Options{Path: dir})
	requireProblem(t, err, `2:27: workspace: which folder a task continues is no default (write task and round in the tasks themselves)`)
}

// requireProblem requires that an error says something, which may end with a hint.
func requireProblem(t *testing.T, err error, want string) {
	t.Helper()
	message, hint, _ := strings.Cut(strings.TrimSuffix(want, ")"), " (")
	require.ErrorContains(t, err, message)
	require.ErrorContains(t, err, hint)
}

// A glob once was tried with each choice of its alternatives in turn, so check took years.
func TestGlobsThatAreTooMuchWorkHaveTheirPlace(t *testing.T) {
	t.Parallel()
	folder, long := "repo/"+strings.Repeat(strings.Repeat("x", 250)+"/", 10), "**/*"+strings.Repeat("x", 125)+"!"
	for name, tt := range map[string]struct{ glob, want string }{
		"alternatives": {strings.Repeat("{x,x}", 30) + "!", `team.yaml:3:37: input "repo": exclude: the pattern "{x,x}{x,x}`},
		"steps":        {"{" + strings.Repeat(long+",", 28) + "y}", `team.yaml:3:37: input "repo": exclude: the pattern "{**/*`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := []string{"team.yaml", "agents: [{name: a}]\ninputs:\n  repo: {dir: repo, exclude: [dist, '" + tt.glob + "']}\ntasks: [{title: T, description: d}]\n"}
			for i := range 20 {
				files = append(files, folder+strings.Repeat("x", 250)+fmt.Sprint(i), "")
			}
			write(t, dir, files...)
			_, err := check(specfile.Options{Path: dir})
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "; write a simpler one")
			require.Equal(t, 1, strings.Count(err.Error(), "a simpler one"), "it is reported once")
		})
	}
}

func TestReadingFoldersEndsWithTheContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", withFolder, "repo/a", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	_, err := specfile.LoadContext(ctx, specfile.Options{Path: dir})
	require.ErrorContains(t, err, "stopped")
}
