package cli

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/history"
)

// chained is a team whose tasks change a file one after the other; the spec has the last one first.
var chained = map[string]string{
	"team.yaml": `name: chained
model: m
offline: script.yaml
inputs: {repo: {dir: repo}}
agents: [{name: coder, toolPreset: readwrite}, {name: other, toolPreset: readwrite}]
tasks:
  - {title: Polish, assignee: coder, description: d, outputFiles: ["**"], dependsOn: [{task: Review, files: ["**"]}]}
  - {title: Fix, assignee: coder, description: d, workspace: {input: repo}, outputFiles: ["**"]}
  - {title: Review, assignee: other, description: d, outputFiles: ["**"], dependsOn: [{task: Fix, files: ["**"]}]}
`,
	"script.yaml": `replies:
  - {task: Fix, toolCalls: [{name: file_edit, arguments: {path: a.txt, old_string: one, new_string: two}}]}
  - {task: Fix, text: fixed}
  - {task: Review, toolCalls: [{name: file_write, arguments: {path: notes.md, content: "notes\n"}}]}
  - {task: Review, text: reviewed}
  - {task: Polish, toolCalls: [{name: file_edit, arguments: {path: a.txt, old_string: two, new_string: three}}]}
  - {task: Polish, text: polished}
`,
	"repo/a.txt": "one\n",
}

// artifactsOf returns the document of the output files of the newest run in a folder, by title and name.
func artifactsOf(t *testing.T, dir string) map[string]history.ArtifactDocument {
	t.Helper()
	got := call{dir: dir, args: []string{"artifacts", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	var list []history.ArtifactDocument
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
	byName := map[string]history.ArtifactDocument{}
	for _, d := range list {
		if d.Type == "file" {
			byName[d.Title+" "+d.Name] = d
		}
	}
	return byName
}

func TestArtifactsSayWhichVersionsTheyReplace(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, chained)
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	all := artifactsOf(t, dir)
	fixed, polished, notes := all["Fix a.txt"], all["Polish a.txt"], all["Review notes.md"]
	require.Equal(t, []any{1, 2, "repo"}, []any{fixed.Version, fixed.Versions, fixed.Input})
	require.Empty(t, fixed.Replaces)
	require.Equal(t, []any{2, 2, ""}, []any{polished.Version, polished.Versions, polished.Input})
	require.Equal(t, []string{fixed.URI}, polished.Replaces)
	require.Equal(t, []any{1, 1, ""}, []any{notes.Version, notes.Versions, notes.Input})
	require.Empty(t, notes.Replaces)

	got = call{dir: dir, args: []string{"artifacts", "Polish"}}.run(t)
	require.Regexp(t, `Polish\s+a.txt\s+internal\s+6 bytes\s+version 2, replaces that of Fix\n`, got.stdout)
	for _, args := range [][]string{{"explain"}, {"explain", "Polish"}} {
		got = call{dir: dir, args: args}.run(t)
		require.Regexp(t, `\noutput files\n(?s:.*)Polish\s+a.txt\s+internal\s+6 bytes\s+version 2, replaces that of Fix\n`, got.stdout)
	}
	server, run := serveHere(t, call{dir: dir}), listRuns(t, call{dir: dir})[0].Run
	for text, want := range map[string]int{
		call{dir: dir, args: []string{"explain", "-o", "json"}}.run(t).stdout:           3,
		call{dir: dir, args: []string{"explain", "Polish", "-o", "json"}}.run(t).stdout: 1,
		server.get("/runs/" + run + "/receipts"):                                        3,
		server.get("/runs/" + run + "/receipts?task=Polish"):                            1,
	} {
		var explained struct{ OutputFiles []history.ArtifactDocument }
		require.NoError(t, json.Unmarshal([]byte(text), &explained), text)
		require.Len(t, explained.OutputFiles, want)
		require.Contains(t, explained.OutputFiles, polished, "as artifacts has it")
	}
	got = call{dir: dir, args: []string{"artifacts", "--patch"}}.run(t)
	require.Contains(t, got.stdout, "-one\n+three\n", "the last version, though the spec has its task first")
	require.Contains(t, got.stderr, "note: a.txt was made by Fix, then by Polish; the patch has the last version")
}

// A version that the user of the run may not see is not counted, and nothing says that it was replaced.
func TestHiddenVersionsAreInNoDocument(t *testing.T) {
	t.Parallel()
	without := clitest.Folder(t, chained)
	files := map[string]string{}
	maps.Copy(files, chained)
	files["team.yaml"] = strings.NewReplacer(
		"{name: other, toolPreset: readwrite}", "{name: other, toolPreset: readwrite, accepts: secret}",
		"{title: Review, assignee: other,", "{title: Review, assignee: other, classification: secret,",
		`[{task: Review, files: ["**"]}]`, `[{task: Fix, files: ["**"]}]`).Replace(chained["team.yaml"]) +
		"endpoints: {\"https://api.openai.com/v1\": {accepts: secret}}\npolicy:\n  rules:\n"
	for _, tool := range []string{"file_read", "grep", "glob", "file_write", "file_edit"} { // secrets need a rule for each pair
		files["team.yaml"] += "    - {from: other, to: \"tool:" + tool + "\", mode: full}\n"
	}
	files["script.yaml"] = strings.Replace(chained["script.yaml"], `{name: file_write, arguments: {path: notes.md, content: "notes\n"}}`, "{name: file_edit, arguments: {path: a.txt, old_string: two, new_string: hidden}}", 1)
	with := clitest.Folder(t, files)
	for _, dir := range []string{with, without} {
		got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	}
	all := artifactsOf(t, with)
	require.Len(t, all, 2, "%v", all)
	require.Equal(t, []any{2, 2}, []any{all["Polish a.txt"].Version, all["Polish a.txt"].Versions})
	require.Equal(t, []string{all["Fix a.txt"].URI}, all["Polish a.txt"].Replaces)
	want, got := call{dir: without, args: []string{"artifacts", "--patch"}}.run(t), call{dir: with, args: []string{"artifacts", "--patch"}}.run(t)
	require.Contains(t, want.stdout, "notes.md")
	require.NotContains(t, got.stdout+got.stderr, "hidden")
	require.Contains(t, got.stdout, "-one\n+three\n")
	require.Equal(t, exit.StatusUsage, call{dir: with, args: []string{"artifacts", "Review", "--patch"}}.run(t).status)
}

// A plan says which files each task gets, through which dependencies, and which it does not get, and why.
func TestPlanSaysWhichFilesTasksGet(t *testing.T) {
	t.Parallel()
	files := map[string]string{"script.yaml": "replies: [{text: x}]\n", "repo/a.txt": "one\n", "team.yaml": `name: chained
model: m
offline: script.yaml
inputs: {repo: {dir: repo}}
agents: [{name: coder, toolPreset: readwrite}, {name: other, toolPreset: readwrite, accepts: confidential}, {name: writer}]
tasks:
  - {title: Fix, assignee: coder, description: d, workspace: {input: repo}, outputFiles: ["**"]}
  - {title: Review, assignee: other, description: d, classification: confidential, outputFiles: ["**"], dependsOn: [{task: Fix, files: [docs/a, "src/**"]}]}
  - {title: Polish, assignee: coder, description: d, dependsOn: [{task: Review, files: [src/x], optional: true}, Fix]}
  - {title: Test, assignee: coder, description: d, dependsOn: [{task: Review, files: [lib], optional: true}]}
  - {title: Report, assignee: writer, description: d, dependsOn: [Fix]}
`}
	got := call{dir: clitest.Folder(t, files), args: []string{"plan"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	tasks := map[string]string{}
	for block := range strings.SplitSeq(got.stdout, "\n\n") {
		if _, text, ok := strings.Cut(block, ". "); ok {
			title, lines, _ := strings.Cut(text, "\n")
			tasks[title] = regexp.MustCompile(` +`).ReplaceAllString(lines, " ")
		}
	}
	require.Contains(t, tasks["Review"], "reads folder repo from user internal via Fix; parts by task: /docs/a, /src/**\n")
	require.Contains(t, tasks["Review"], "reads files Fix from coder internal parts by task: /docs/a, /src/**\n")
	require.NotContains(t, tasks["Review"], "lacks")
	require.Contains(t, tasks["Polish"], "reads folder Fix from coder internal optional; via Review; parts by task: /src/x\n")
	require.Contains(t, tasks["Polish"], "reads files Review from other confidential optional; withheld: clearance")
	require.NotContains(t, tasks["Polish"], "lacks", "another dependency grants the files of Fix")
	require.Contains(t, tasks["Test"], "lacks folder repo from user via Review: the dependency grants only /lib\n")
	require.Contains(t, tasks["Test"], "lacks folder Fix from coder via Review: the dependency grants only /lib\n")
	require.NotContains(t, tasks["Report"], "lacks", "it could do nothing with them")
}
