package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// A result of one run can be an input of the next one, with its label and its sources. Without them
// it would become an internal text.
func TestResultOfAnEarlierRunIsAnInput(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"first.yaml": `
offline: script.yaml
agents: [{name: drafter, accepts: confidential}]
tasks: [{title: Write the draft, key: draft, assignee: drafter, classification: confidential, description: Write it.}]
`,
		"second.yaml": `
offline: script.yaml
inputs: {draft: }
agents: [{name: editor, accepts: confidential}]
tasks: [{title: Edit, assignee: editor, description: Edit it., uses: [draft]}]
`,
		"script.yaml": "replies:\n  - {task: Write the draft, text: A confidential draft.}\n  - {task: Edit, text: 'Edited: {{ input \"draft\" }}'}\n",
	})
	got := call{bare: true, dir: dir, args: []string{"run", "first.yaml", "--offline", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	id := object(t, got.stdout)["runId"].(string)

	for _, task := range []string{"Write the draft", "draft"} {
		got = call{bare: true, dir: dir, args: []string{"run", "second.yaml", "--offline", "-o", "json", "--input", "draft=run:" + id[:8] + "/" + task}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		result := object(t, got.stdout)
		require.Equal(t, "Edited: A confidential draft.", result["output"])
		require.Equal(t, "confidential", result["tasks"].([]any)[0].(map[string]any)["label"])
	}
	got = call{bare: true, dir: dir, args: []string{"show", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	input := object(t, got.stdout)["inputs"].([]any)[0].(map[string]any)
	require.Equal(t, id, input["fromRun"])
	require.Equal(t, "confidential", input["classification"])
	got = call{bare: true, dir: dir, args: []string{"show"}}.run(t)
	require.Contains(t, got.stdout, "input draft: the result of task Write the draft in run "+id)

	resumed := call{bare: true, dir: dir, args: []string{"resume", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, resumed.status, "%+v", resumed)
	require.Contains(t, resumed.stderr, "every task was completed before, and no agent was called")
	require.NotContains(t, resumed.stderr, "has changed")
	below := filepath.Join(dir, "below")
	require.NoError(t, os.Mkdir(below, 0o700))
	resumed = call{bare: true, dir: below, args: []string{"resume", "--journal", filepath.Join(dir, ".runteam", "runs.db"), "--input", "draft=run:" + id[:8] + "/draft"}}.run(t)
	require.Equal(t, exit.StatusOK, resumed.status, "%+v", resumed)
	second := filepath.Join(dir, "second.yaml")
	require.NoError(t, os.Rename(second, second+".gone"))
	for _, args := range [][]string{{"resume"}, {"resume", "--input", "draft=run:" + id[:8] + "/draft"}} {
		resumed = call{bare: true, dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusOK, resumed.status, "%+v", resumed)
		require.Equal(t, "Edited: A confidential draft.\n", resumed.stdout)
	}
	require.NoError(t, os.Rename(second+".gone", second))
	replayed := call{bare: true, dir: dir, args: []string{"replay"}}.run(t)
	require.Equal(t, exit.StatusOK, replayed.status, "%+v", replayed)

	third := func(run string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "third.yaml"), []byte(`
offline: script.yaml
inputs: {draft: {from: {run: "`+run+`", task: Write the draft}}}
agents: [{name: editor}]
tasks: [{title: Edit, assignee: editor, description: Edit it., uses: [draft]}]
`), 0o600))
	}
	third(id[:8])
	got = call{bare: true, dir: dir, args: []string{"check", "third.yaml"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, `third.yaml:3:24: input "draft": from: run: "`+id[:8]+`" is only the beginning of the ID of a run`)
	require.Contains(t, got.stderr, "write the whole ID: "+id)
	require.NotContains(t, got.stderr, "confidential", "the error does not describe the result")
	third(id)
	got = call{bare: true, dir: dir, args: []string{"check", "third.yaml"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "confidential")

	for given, want := range map[string]string{
		"run:" + id[:8] + "/Nothing": `unknown task "Nothing"; write one of Write the draft, draft`,
		"run:ffffffff/draft":         "in run ffffffff, which is not in the journal",
		"run:" + id[:8]:              "write run:RUN/TASK",
	} {
		got = call{bare: true, dir: dir, args: []string{"check", "second.yaml", "--input", "draft=" + given}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, want)
	}
}

// Context that a policy withholds from the caller cannot be read as an input of a run without that
// policy.
func TestResultOfAnEarlierRunHidesWithheldContext(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rule, want, refuse string }{
		"a blocked part":   {rule: "mode: full, block: [/inside]", want: `{"public":"hello"}`},
		"all but one part": {rule: "mode: scoped, allow: [/public]", want: `{"public":"hello"}`},
		"all of it":        {rule: "mode: minimal", refuse: "the policy of that run delivers nothing of it to the caller"},
		"nothing":          {rule: "mode: full", want: `{"inside":"canary-4711","public":"hello"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{
				"first.yaml": `
offline: script.yaml
agents: [{name: drafter}, {name: other}]
tasks:
  - title: Draft
    assignee: drafter
    description: Draft it.
    outputSchema: {type: object, required: [public, inside], properties: {public: {type: string}, inside: {type: string}}}
  - {title: Other, assignee: other, description: Say something.}
policy: {rules: [{from: drafter, to: user, ` + tt.rule + `}]}
`,
				"second.yaml": `
offline: script.yaml
inputs: {draft: }
agents: [{name: echo}]
tasks: [{title: Echo, assignee: echo, description: Repeat it., uses: [draft]}]
`,
				"script.yaml": `
replies:
  - {task: Draft, text: '{"public": "hello", "inside": "canary-4711"}'}
  - {task: Echo, text: '{{ input "draft" }}'}
  - text: Something.
`,
			})
			got := call{bare: true, dir: dir, args: []string{"run", "first.yaml", "--offline", "-o", "json"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			id := object(t, got.stdout)["runId"].(string)
			got = call{bare: true, dir: dir, args: []string{"run", "second.yaml", "--offline", "-o", "json", "--input", "draft=run:" + id + "/Draft"}}.run(t)
			if tt.refuse != "" {
				require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
				require.Contains(t, got.stderr+got.stdout, tt.refuse)
				return
			}
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, tt.want, object(t, got.stdout)["output"])
		})
	}
}

// The same is true of a result above the caller's clearance, to which no rule applied.
func TestResultAboveTheCallerHidesWithheldContext(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule    string
		refused bool
	}{
		"a blocked part":   {"mode: full, block: [/inside]", true},
		"all but one part": {"mode: scoped, allow: [/public]", true},
		"a ceiling":        {"mode: full, maxClassification: confidential", true},
		"nothing":          {"mode: full", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const agents = `
offline: script.yaml
model: m
baseURL: http://127.0.0.1:1/v1
agents: [{name: drafter, accepts: secret}, {name: other}]
`
			dir := clitest.Folder(t, map[string]string{
				"first.yaml": agents + `
tasks:
  - {title: Draft, assignee: drafter, description: Draft it., classification: secret}
  - {title: Other, assignee: other, description: Say something.}
policy: {rules: [{from: drafter, to: user, ` + tt.rule + `}]}
`,
				"second.yaml": agents + `
inputs: {draft: }
tasks:
  - {title: Repeat, assignee: drafter, description: Repeat it., uses: [draft]}
  - {title: Other, assignee: other, description: Say something.}
policy: {rules: [{from: user, to: drafter, mode: full}]}
`,
				"script.yaml": `
replies:
  - {task: Draft, text: '{"public": "hello", "inside": "canary-4711"}'}
  - {task: Repeat, text: '{{ input "draft" }}'}
  - text: Something.
`,
			})
			key := filepath.Join(dir, "key")
			require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("0f", 32)), 0o600))
			got := call{bare: true, dir: dir, args: []string{"run", "first.yaml", "--offline", "--journal-key", key, "-o", "json"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			id := object(t, got.stdout)["runId"].(string)
			got = call{bare: true, dir: dir, args: []string{"run", "second.yaml", "--offline", "--journal-key", key, "-o", "json", "--input", "draft=run:" + id + "/Draft"}}.run(t)
			if !tt.refused {
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
				return
			}
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			require.Contains(t, got.stderr+got.stdout, "the policy of that run would not deliver all of it")
		})
	}
}

// A parameter is as sensitive as the texts that quote it: without a key, a journal does not store the
// value of a parameter that a secret task quotes.
func TestParametersTakeTheLabelOfTheTextsThatQuoteThem(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml": `
params: {pin: , year: }
baseURL: http://127.0.0.1:1/v1
agents: [{name: a, accepts: secret}]
tasks:
  - {title: Closed, assignee: a, classification: secret, description: 'Use ${params.pin} of ${params.year}.'}
  - {title: Open, assignee: a, description: 'It is ${params.year}.'}
  - {title: Plain, assignee: a, description: Say something.}
`,
		"script.yaml": "replies: [{text: done}]",
	})
	db := filepath.Join(dir, "runs.db")
	got := call{bare: true, dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "--journal", db, "--param", "pin=canary-4711", "--param", "year=2026"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	j, err := journal.Open(db, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	defer j.Close()
	s, err := j.Load(t.Context(), "")
	require.NoError(t, err)
	found := 0
	for _, f := range s.Info.Files {
		require.NotContains(t, f.Text, "canary-4711", f.Path)
		switch {
		case strings.HasSuffix(f.Path, " pin"):
			require.Equal(t, label.Secret, f.Label)
			require.NotEmpty(t, f.Missing)
			found++
		case strings.HasSuffix(f.Path, " year"):
			require.Equal(t, label.Secret, f.Label, "a secret text quotes it too")
			found++
		}
	}
	require.Equal(t, 2, found)
	got = call{bare: true, dir: dir, args: []string{"resume", "--journal", db}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "the value of --param pin, year cannot be read")
	got = call{bare: true, dir: dir, args: []string{"resume", "--journal", db, "--param", "pin=canary-4711", "--param", "year=2026"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
}

// If gc has removed the run whose result is an input, resume and replay name the input and the run,
// and suggest a command that works.
func TestInputFromARemovedRunHasAHint(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"first.yaml": `
offline: script.yaml
agents: [{name: drafter}]
tasks: [{title: Draft, assignee: drafter, description: Write it.}]
`,
		"script.yaml": "replies:\n  - {task: Draft, text: A draft.}\n  - {task: Edit, text: 'Edited: {{ input \"draft\" }}'}\n",
		"draft.txt":   "Another draft.",
	})
	got := call{bare: true, dir: dir, args: []string{"run", "first.yaml", "--offline", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	first := object(t, got.stdout)["runId"].(string)
	var later []string
	for name, input := range map[string]string{"flag": "", "file": "{from: {run: " + first + ", task: Draft}}"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(`
offline: script.yaml
inputs: {draft: `+input+`}
agents: [{name: editor}]
tasks: [{title: Edit, assignee: editor, description: Edit it., uses: [draft]}]
`), 0o600))
		args := []string{"run", name + ".yaml", "--offline", "-o", "json"}
		if input == "" {
			args = append(args, "--input", "draft=run:"+first[:8]+"/Draft")
		}
		got = call{bare: true, dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		later = append(later, object(t, got.stdout)["runId"].(string))
	}
	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{})
	require.NoError(t, err)
	s, err := j.Find(t.Context(), first)
	require.NoError(t, err)
	gone, _, err := j.Remove(t.Context(), s.Started.Add(1))
	require.NoError(t, err)
	require.Equal(t, []string{first}, gone)
	require.NoError(t, j.Close())

	for _, id := range later {
		got = call{bare: true, dir: dir, args: []string{"replay", id}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, "which is not in the journal: it may have been removed by gc")
		require.Contains(t, got.stderr, "resume the run, and give the input with --input draft=FILE")
		got = call{bare: true, dir: dir, args: []string{"resume", id}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Regexp(t, `draft.*it is the result of task "Draft" in run `+first[:8], got.stderr)
		require.Contains(t, got.stderr, "give the input with --input draft=FILE")
		got = call{bare: true, dir: dir, args: []string{"resume", id, "--input", "draft=draft.txt"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, "Edited: Another draft.\n", got.stdout)
	}
}
