package specfile_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

const computedSpec = `agents: [{name: writer}]
inputs: {claim: {text: A dent.}}
taskDefaults: {assignee: writer, maxRetries: 2, timeoutMs: 500, classification: public, memoryScope: all, uses: [claim]}
tasks:
  - {title: Hello, value: Dear customer}
  - {title: Limits, key: limits, description: What we pay., value: {max: 5, words: [a, "${params.x}"]}}
  - {title: Terms, file: terms.md, classification: confidential}
  - title: Letter
    dependsOn: [Hello, {task: Limits, as: structured}]
    template: {file: letter.tmpl}
  - {title: Send, description: Send it., dependsOn: [Letter]}
`

func loadComputed(t *testing.T) *specfile.File {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"team.yaml": computedSpec, "terms.md": "Terms\n", "letter.tmpl": "{{.results.Hello}}: {{.results.limits.max}}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	f, err := specfile.Load(specfile.Options{Path: dir})
	require.NoError(t, err)
	return f
}

func TestTasksWithoutAnAgentAreRead(t *testing.T) {
	t.Parallel()
	f := loadComputed(t)
	require.Equal(t, `"Dear customer"`, string(f.Tasks[0].Value))
	require.Equal(t, `{"max":5,"words":["a","${params.x}"]}`, string(f.Tasks[1].Value))
	require.Equal(t, `"Terms\n"`, string(f.Tasks[2].Value))
	require.Equal(t, label.Confidential, f.Tasks[2].Classification)
	require.Equal(t, "{{.results.Hello}}: {{.results.limits.max}}\n", f.Tasks[3].Template)
	require.Equal(t, []task.Use{{Name: "claim"}}, f.Tasks[3].Uses, "a template may read inputs")
	require.Equal(t, 500*time.Millisecond, f.Tasks[3].Timeout)
	for _, s := range f.Tasks[:4] {
		require.Empty(t, s.Assignee, "an agent of the defaults does not count")
		require.Zero(t, s.MaxRetries)
		require.Empty(t, s.MemoryScope)
	}
	require.Equal(t, "writer", f.Tasks[4].Assignee)
	require.Equal(t, 2, f.Tasks[4].MaxRetries)
	require.Equal(t, label.Public, f.Tasks[3].Classification)
}

func TestValuesAreJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "team.yaml")
	require.NoError(t, os.WriteFile(path, []byte("agents: [{name: writer}]\ntasks: [{title: A, value: [.nan]}]\n"), 0o600))
	_, err := specfile.Load(specfile.Options{Path: path})
	require.ErrorContains(t, err, `task "A": value: .nan is not a JSON number`)
}

func TestPlansOfTasksWithoutAnAgentAreSaved(t *testing.T) {
	t.Parallel()
	f := loadComputed(t)
	path, _ := save(t, f, engine.Goal{Text: "Send a letter."}, f.Tasks, t.TempDir())
	got, err := specfile.Load(specfile.Options{Path: path})
	require.NoError(t, err)
	requirePlanned(t, got, engine.Goal{Text: "Send a letter."}, f.Tasks)
}

func TestAssertionsNameWhatComputes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "team.yaml")
	const tail = "agents: [{name: writer}]\ninputs: {claim: {text: A dent.}}\npolicy: {rules: [{from: computed, to: writer, mode: minimal}]}\ntasks:\n  - {title: Send, assignee: writer, description: Send it., dependsOn: [Letter]}\n  - {title: Letter, uses: [claim], template: '{{.inputs.claim}}'}\n"
	for assertion, holds := range map[string]bool{"input claim never reaches computed": false, "input claim never reaches writer": true, "task Letter never reaches writer": true} {
		require.NoError(t, os.WriteFile(path, []byte("assert: ['"+assertion+"']\n"+tail), 0o600))
		f, err := specfile.Load(specfile.Options{Path: path})
		require.NoError(t, err, assertion)
		tm, err := f.Build(idle)
		require.NoError(t, err)
		p, err := tm.Plan(f.Tasks, &f.Run)
		require.NoError(t, err)
		require.Equal(t, holds, len(p.Broken()) == 0, assertion)
	}
}
