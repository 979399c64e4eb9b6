package flowtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/spec"
)

// repair is a team that works on a folder. The developer is granted a part of it. The reviewer
// gets that part as the developer leaves it, and otherwise a result without a text. The tester reads confidential keys too, so that the
// auditor may not have the files that it writes, but those of the folder. The writer has no tools.
const repair = `name: repair
model: none
inputs:
  repo: {dir: repo}
  keys: {dir: keys, classification: confidential}
agents:
  - {name: developer, accepts: internal, toolPreset: readwrite, systemPrompt: You fix.}
  - {name: reviewer, accepts: internal, tools: [TOOLS], systemPrompt: You review.}
  - {name: tester, accepts: confidential, toolPreset: readwrite, systemPrompt: You test.}
  - {name: auditor, accepts: internal, toolPreset: readonly, systemPrompt: You audit.}
  - {name: writer, accepts: internal, systemPrompt: You write.}
tasks:
  - {title: Fix, assignee: developer, uses: [{name: repo, at: ., need: [/src/**]}], outputFiles: ["src/**/*.{py,go}"], description: Fix it., outputSchema: {type: object, required: [done], properties: {done: {type: boolean}}}}
  - {title: Review, assignee: reviewer, dependsOn: [{task: Fix, as: structured, files: ["**"]}], description: Review it.}
  - {title: Test, assignee: tester, uses: [repo, keys], outputFiles: ["log[s]?.txt"], description: Test it.}
  - {title: Audit, assignee: auditor, dependsOn: [{task: Test, files: ["**"], optional: true}], description: Audit it.}
  - {title: Write, assignee: writer, uses: [repo], description: Write about it.}
policy:
  rules:
    - {from: user, to: tester, block: [secret.py]}
    - {from: developer, to: reviewer, mode: MODE}
`

// inRepair returns the failures of a test of the team, with a mode of the rule for the reviewer and
// the reviewer's tools.
func inRepair(t *testing.T, mode, tools string, test func(f *flowtest.Flow)) string {
	t.Helper()
	return inTeam(t, repair, mode, tools, test)
}

// inTeam does what inRepair does with another team.
func inTeam(t *testing.T, team, mode, tools string, test func(f *flowtest.Flow)) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"team.yaml": strings.NewReplacer("MODE", mode, "TOOLS", tools).Replace(team), "keys/key.txt": "key",
		"repo/README.md": "text", "repo/src/slug.py": "code", "repo/src/secret.py": "code",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return failuresWith(t, spec.Options{Path: dir}, test)
}

// TestCanariesAreFollowedThroughFiles checks that a canary in a folder reaches those who may read
// its file, with whichever tool, and through the output files of a task the next one; and nobody
// whom a need, a rule, a label or a lack of tools denies it.
func TestCanariesAreFollowedThroughFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode, tools string
		reviewed    bool // the files that the developer writes
		given       bool // the files that the developer was given
	}{
		{"full", "grep", true, true},
		{"full", "file_read", true, true},
		{"full", "glob", false, false}, // it shows names
		{"minimal", "grep", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.mode+" "+tt.tools, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, inRepair(t, tt.mode, tt.tools, func(f *flowtest.Flow) {
				readme, slug, secret := f.PlantInput("repo", "/README.md"), f.PlantInput("repo", "/src/slug.py"), f.PlantInput("repo", "/src/secret.py")
				fix, key := f.PlantResult("Fix", ""), f.PlantInput("keys", "/key.txt")
				f.Reaches(readme, "tester", "auditor", "user")
				f.Never(readme, "developer", "reviewer", "writer")
				f.Reaches(slug, "developer", "tester", "auditor", "user")
				f.Never(slug, "writer")
				f.Reaches(secret, "developer", "auditor") // a rule keeps it from the tester alone
				f.Never(secret, "tester", "writer")
				f.Never(fix, "developer") // an agent does not read what it writes
				f.Reaches(key, "tester", "user")
				f.Never(key, "developer", "reviewer", "auditor", "writer")
				for canary, reaches := range map[flowtest.Canary]bool{slug: tt.given, fix: tt.reviewed} {
					if reaches {
						f.Reaches(canary, "reviewer")
					} else {
						f.Never(canary, "reviewer")
					}
				}
			}))
		})
	}
}

// TestLargeFoldersAreSearched plants in one of many files, which together exceed a prompt.
func TestLargeFoldersAreSearched(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "repo"), 0o700))
	for i := range 100 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "repo", fmt.Sprintf("%03d.txt", i)), []byte(strings.Repeat("a line\n", 1000)), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte("name: large\nmodel: none\ninputs: {repo: {dir: repo}}\nagents: [{name: reader, toolPreset: readonly}]\n"+
		"tasks: [{title: Read, assignee: reader, uses: [repo], description: Read it.}]\n"), 0o600))
	f := flowtest.Load(t, dir)
	f.Reaches(f.PlantInput("repo", "/050.txt"), "reader", "user")
	f.Run(t)
}

// TestCommandsReadAndWriteTheirWorkspace has commands, which use no tools, in the place of two
// agents.
func TestCommandsReadAndWriteTheirWorkspace(t *testing.T) {
	t.Parallel()
	command := "backend: {kind: process, command: sh, confine: false}"
	text := strings.NewReplacer("toolPreset: readwrite, systemPrompt: You fix.", command, "tools: [TOOLS], systemPrompt: You review.", command).Replace(repair)
	require.Empty(t, inTeam(t, text, "full", "", func(f *flowtest.Flow) {
		readme, slug := f.PlantInput("repo", "/README.md"), f.PlantInput("repo", "/src/slug.py")
		f.Reaches(slug, "developer", "reviewer", "user")
		f.Never(readme, "developer", "reviewer")
		f.Reaches(f.PlantResult("Fix", ""), "reviewer")
	}))
	got := inTeam(t, text, "full", "", func(f *flowtest.Flow) {
		slug := f.PlantInput("repo", "/src/slug.py")
		f.Agent("developer", &agent.Process{Command: "sh", Args: []string{"-c", `cp src/slug.py src/copy.py; echo '{"done": true}'`}, Confine: new(false)})
		f.Never(slug, "reviewer")
	})
	requireFailure(t, got, `never reaches reviewer, but it is in the prompt of "Review" (reviewer)`, `input "repo" → task "Review"`)
}

func TestLeaksThroughFilesAreFound(t *testing.T) {
	t.Parallel()
	// turns is an agent that makes a call of a tool, and then passes on its prompt.
	turns := func(c llm.ToolCall, last func(p prompt.Prompt)) engine.AgentFunc {
		return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			if len(p.Messages()) == 1 {
				return agent.Reply{ToolCalls: []llm.ToolCall{c}}, nil
			}
			last(p)
			done, err := jsonvalue.Parse(`{"done": true}`)
			return agent.Reply{Text: "done", JSON: done}, err
		}
	}
	got := inRepair(t, "full", "grep", func(f *flowtest.Flow) {
		key, slug := f.PlantInput("keys", "/key.txt"), f.PlantInput("repo", "/src/slug.py")
		f.Never(slug, "reviewer")
		f.Agent("developer", turns(llm.ToolCall{Name: "file_write", Arguments: `{"path": "src/new.py", "content": "` + key.String() + " " + slug.String() + `"}`}, func(prompt.Prompt) {}))
		f.Agent("tester", turns(llm.ToolCall{Name: "grep", Arguments: `{"pattern": "."}`}, func(p prompt.Prompt) { f.Logger().Info("read", "text", p.Text()) }))
	})
	requireFailure(t, got,
		`/key.txt of input "keys" (`,
		`is in the tool calls of "Fix" (developer): its prompt may not have it, so what it writes may not either`,
		`is in the prompt of "Review" (reviewer): no edge of the spec delivers it there`,
		`is in the log: logs, events and printed values must not contain context`,
		`never reaches reviewer, but it is in the prompt of "Review" (reviewer)`,
	)
}
