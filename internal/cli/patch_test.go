package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// git runs git in a folder, with a patch as standard input.
func git(t *testing.T, dir, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", output, stdin)
}

// patchFiles are a spec whose task edits files at two places of its workspace, and its inputs.
func patchFiles(uses string, calls ...string) map[string]string {
	var script strings.Builder
	script.WriteString("replies:\n")
	for _, call := range calls {
		script.WriteString("  - {task: Work, toolCalls: [" + call + "]}\n")
	}
	return map[string]string{
		"team.yaml": `
offline: script.yaml
inputs: {repo: {dir: src}, docs: {dir: doc}}
agents: [{name: a, toolPreset: readwrite}]
tasks: [{title: Work, assignee: a, outputFiles: ["**"], description: Work., ` + uses + `}]
`,
		"script.yaml":   script.String() + "  - {task: Work, text: done}\n",
		"src/README.md": "Hello\nwrite to ann@claims.example\n",
		"src/conf.py":   "host = 'a'\npassword = 'Xk29dkQw81mZpq'\nport = 1\nmode = 'x'\n",
		"src/key.txt":   "name\n-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 4) + "-----END PRIVATE KEY-----\none\ntwo\nthree\nfour\n",
		"doc/page.md":   "page\n",
	}
}

func fileEdit(path, from, to string) string {
	return "{name: file_edit, arguments: {path: " + path + ", old_string: \"" + from + "\", new_string: \"" + to + "\"}}"
}

// A patch is applied by git in the folder that was the input, in a part of a repository too.
func TestPatchAppliesToTheInput(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for name, tt := range map[string]struct{ uses, at string }{
		"the workspace itself":  {"workspace: {input: repo}", ""},
		"a folder":              {"uses: [repo]", "repo/"},
		"a deep folder":         {"uses: [{name: repo, at: a/b}]", "a/b/"},
		"below another input":   {"workspace: {input: docs}, uses: [{name: repo, at: a}]", "a/"},
		"beside another folder": {"uses: [repo, docs]", "repo/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, patchFiles(tt.uses,
				fileEdit(tt.at+"README.md", "Hello", "Hullo"), fileEdit(tt.at+"conf.py", "mode = 'x'", "mode = 'y'"), fileEdit(tt.at+"key.txt", "three", "3"),
				"{name: file_write, arguments: {path: "+tt.at+"new/file.txt, content: \"new\\n\"}}"))
			git(t, dir, "", "init", "-q")
			first := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
			require.Equal(t, exit.StatusOK, first.status, "%+v", first)
			patch := call{dir: filepath.Join(dir, "src"), args: []string{"artifacts", "Work", "--patch"}}.run(t)
			require.Equal(t, exit.StatusOK, patch.status, "%+v", patch)
			require.Empty(t, patch.stderr)
			git(t, filepath.Join(dir, "src"), patch.stdout, "apply")
			was := patchFiles("")
			for path, want := range map[string]string{
				"src/README.md":    strings.Replace(was["src/README.md"], "Hello", "Hullo", 1),
				"src/conf.py":      strings.Replace(was["src/conf.py"], "'x'", "'y'", 1),
				"src/key.txt":      strings.Replace(was["src/key.txt"], "three", "3", 1),
				"src/new/file.txt": "new\n",
			} {
				got, err := os.ReadFile(filepath.Join(dir, path))
				require.NoError(t, err)
				require.Equal(t, want, string(got), "%s\n%s", path, patch.stdout)
			}
			require.NotContains(t, patch.stdout, "[REDACTED:")
			require.NotContains(t, patch.stdout, "Xk29dkQw81mZpq")
		})
	}
}

func TestPatchOfSeveralInputsHasThePathsOfTheWorkspace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		uses, path, note string
	}{
		"two inputs":      {"uses: [repo, {name: docs, at: d}]", "d/page.md", "(input docs is in d/, input repo is in repo/)"},
		"none":            {"uses: [repo]", "page.md", "(input repo is in repo/)"},
		"one in a folder": {"workspace: {input: docs}, uses: [repo]", "page.md", "(input docs is the workspace itself, input repo is in repo/)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, patchFiles(tt.uses, fileEdit("repo/README.md", "Hello", "Hullo"), "{name: file_write, arguments: {path: "+tt.path+", content: \"new\\n\"}}"))
			first := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
			require.Equal(t, exit.StatusOK, first.status, "%+v", first)
			patch := call{dir: dir, args: []string{"artifacts", "Work", "--patch"}}.run(t)
			require.Equal(t, exit.StatusOK, patch.status, "%+v", patch)
			require.Contains(t, patch.stdout, "+++ b/repo/README.md\n")
			require.Contains(t, patch.stdout, "+++ b/"+tt.path+"\n")
			require.Equal(t, 1, strings.Count(patch.stderr, "\n"))
			require.Contains(t, patch.stderr, tt.note)
			require.Contains(t, patch.stderr, "git apply --directory")
		})
	}
}

// Files that a task got from another one are where the input is in the workspace of that one.
func TestPatchOfFilesOfADependency(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	edit := func(task, call string) string { return "  - {task: " + task + ", toolCalls: [" + call + "]}\n" }
	files := patchFiles(`dependsOn: [{task: First, files: ["**"]}, {task: Other, files: ["**"]}]},
  {title: First, assignee: a, outputFiles: ["**"], description: d, uses: [docs]},
  {title: Other, assignee: a, outputFiles: ["**"], description: d, uses: [repo]`)
	script := "replies:\n" + edit("First", fileEdit("docs/page.md", "page", "Page")) + edit("Work", fileEdit("docs/page.md", "Page", "Pages")) + "%s  - {text: done}\n"

	files["script.yaml"] = fmt.Sprintf(script, "")
	dir := clitest.Folder(t, files)
	first := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	for _, args := range []string{"artifacts First --patch", "artifacts Work --patch"} {
		patch := call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusOK, patch.status, "%+v", patch)
		require.Empty(t, patch.stderr)
		git(t, filepath.Join(dir, "doc"), patch.stdout, "apply")
	}
	got, err := os.ReadFile(filepath.Join(dir, "doc/page.md"))
	require.NoError(t, err)
	require.Equal(t, "Pages\n", string(got))

	files["script.yaml"] = fmt.Sprintf(script, edit("Other", fileEdit("repo/README.md", "Hello", "Hullo")))
	dir = clitest.Folder(t, files)
	first = call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	patch := call{dir: dir, args: []string{"artifacts", "Work", "--patch"}}.run(t)
	require.Equal(t, exit.StatusOK, patch.status, "%+v", patch)
	require.Contains(t, patch.stdout, "+++ b/docs/page.md\n")
	require.Contains(t, patch.stderr, "note: the run does not say which input the files are from")
}

// No patch writes a placeholder over the text that it stands for.
func TestPatchIsRefusedWhereATextIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ call, refused string }{
		"a password in a line": {fileEdit("conf.py", "password =", "secret ="), "conf.py:2: the task replaced a line with [REDACTED:password]"},
		"before a password":    {fileEdit("conf.py", "host = 'a'", "host = 'b'"), "conf.py:2: a change ends just before this line"},
		"before a key":         {fileEdit("key.txt", "name", "title"), "key.txt:2: a change ends just before this line"},
		"a new file":           {"{name: file_write, arguments: {path: new.txt, content: \"to [REDACTED:email]\\n\"}}", "new.txt:1: the task wrote a line with [REDACTED:email]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, patchFiles("workspace: {input: repo}", tt.call))
			first := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
			require.Equal(t, exit.StatusOK, first.status, "%+v", first)
			patch := call{dir: dir, args: []string{"artifacts", "Work", "--patch"}}.run(t)
			require.Equal(t, exit.StatusFailed, patch.status, "%+v", patch)
			require.Empty(t, patch.stdout)
			require.Contains(t, patch.stderr, tt.refused)
			require.Contains(t, patch.stderr, "--save")
		})
	}
}

func TestPatchWithEmptyFiles(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, patchFiles("workspace: {input: repo}", "{name: file_write, arguments: {path: empty.txt, content: \"\"}}"))
	first := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, first.status, "%+v", first)
	patch := call{dir: dir, args: []string{"artifacts", "Work", "--patch"}}.run(t)
	require.Equal(t, exit.StatusOK, patch.status, "%+v", patch)
	require.Equal(t, "diff --git a/empty.txt b/empty.txt\nnew file mode 100644\n", patch.stdout)
	require.Contains(t, patch.stderr, "note: the patch adds or removes empty files")
}
