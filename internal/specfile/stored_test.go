package specfile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

// requireEqualFiles holds that two files say the same, from the same places.
func requireEqualFiles(t require.TestingT, want, got *specfile.File) {
	require.Equal(t, want.Path, got.Path)
	require.Equal(t, want.Dir, got.Dir)
	require.Equal(t, want.Name, got.Name)
	agents, others := slices.Clone(want.Agents), slices.Clone(got.Agents)
	require.Len(t, others, len(agents))
	for i := range agents {
		require.Equal(t, withoutPointers(&agents[i].Member), withoutPointers(&others[i].Member))
	}
	require.Equal(t, agents, others)
	require.Equal(t, want.Config, got.Config)
	require.Equal(t, want.Tasks, got.Tasks)
	require.Equal(t, want.Goal, got.Goal)
	require.Equal(t, want.Coordinator, got.Coordinator)
	require.Equal(t, want.Run, got.Run)
	require.Equal(t, want.Config.Prices, got.Config.Prices)
	require.Equal(t, want.Offline, got.Offline)
	require.Equal(t, want.Compat, got.Compat)
	require.Equal(t, want.Warnings, got.Warnings)
	require.Equal(t, want.Reads(), got.Reads())
	require.Equal(t, want.Stored(), got.Stored())
	require.Equal(t, want.Fingerprint(), got.Fingerprint())
}

// copies are what a journal gives back of what it was given.
func copies(t require.TestingT, f *specfile.File) (back []specfile.StoredFile) {
	data, err := json.Marshal(f.Stored())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back))
	return back
}

// specs are the files of this package's tests and of the examples that can be read.
func specs(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"testdata/ok/*.yaml", "testdata/ok/*.json", "testdata/bad/*.yaml", "testdata/bad/*.json", "../../examples/*/team.yaml"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	require.NotEmpty(t, paths)
	return paths
}

// TestEveryFileCanBeReadFromItsCopies loads each spec there is, takes its folder
// away, and loads it again.
func TestEveryFileCanBeReadFromItsCopies(t *testing.T) {
	t.Parallel()
	read, folders := 0, make(map[string]string) // copies of folders
	for _, path := range specs(t) {
		o := specfile.Options{Path: path, Lookup: env(map[string]string{"KEY": "k", "OPENAI_API_KEY": "k", "MODEL": "m"})}
		if _, err := specfile.Load(o); err != nil {
			continue // one of the bad ones
		}
		if folders[filepath.Dir(path)] == "" {
			dir := filepath.Join(t.TempDir(), "gone")
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Dir(path))))
			folders[filepath.Dir(path)] = dir
		}
		dir := folders[filepath.Dir(path)]
		o.Path = filepath.Join(dir, filepath.Base(path))
		want, err := specfile.Load(o)
		require.NoError(t, err)
		if slices.ContainsFunc(want.Agents, func(a specfile.Agent) bool { return a.Process != nil }) {
			continue // a journal keeps no copy of a program, whose contents are part of the version
		}
		read++
		require.Empty(t, want.Restored())
		o.Stored = copies(t, want)
		for _, s := range o.Stored {
			require.Empty(t, s.Without, "%s: %s", path, s.Path)
		}
		again, err := specfile.Load(o)
		require.NoError(t, err)
		require.Empty(t, again.Restored(), "what exists is read anew")
		require.NoError(t, os.Rename(dir, dir+"-away"))
		got, err := specfile.Load(o)
		require.NoError(t, os.Rename(dir+"-away", dir))
		require.NoError(t, err, path)
		requireEqualFiles(t, want, got)
		require.Len(t, got.Restored(), len(o.Stored))
		require.Equal(t, o.Path, got.Restored()[0])
	}
	require.Greater(t, read, 10)
}

// everything has one file of each kind that is read, each of its own label.
func everything(t *testing.T, dir string) specfile.Options {
	t.Helper()
	write(t, dir,
		"spec/team.yaml", "# a comment\ngoal: {file: goal.md, classification: confidential}\ncoordinator: {model: c}\ninputs:\n  a: {file: a.md, classification: public}\n  b: {classification: secret}\n  c:\n"+
			"messages: [{from: user, to: x, text: {file: message.md}, classification: confidential}]\nagents: [{name: unused}]\n",
		"spec/goal.md", "Find out ${params.what}.", "spec/a.md", "A", "spec/message.md", "Hi.",
		"roster/team.json", `{"name": "r", "agents": [{"name": "x", "systemPrompt": {"file": "x.md"}, "outputSchema": {"file": "x.json"}}], "params": {"what": null}}`,
		"roster/x.md", "You are ${params.what}.", "roster/x.json", `{"type": "object"}`,
		"orchestrator.yaml", "defaultModel: m\ndefaultBaseURL: http://localhost:1/v1\n", "coordinator.yaml", "coordinator: {instructions: {file: how.md}}\n", "how.md", "Briefly.",
		"b.md", "B",
	)
	return specfile.Options{
		Path: filepath.Join(dir, "spec"), Team: filepath.Join(dir, "roster"), Orchestrator: filepath.Join(dir, "orchestrator.yaml"), Coordinator: filepath.Join(dir, "coordinator.yaml"),
		Inputs: map[string]string{"b": filepath.Join(dir, "b.md"), "c": "-"}, Params: map[string]string{"what": "all"}, Models: []string{"x=n"},
		Stdin: strings.NewReader("from standard input"),
	}
}

func TestStoredHasEveryFileWithItsLabel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := everything(t, dir)
	want, err := specfile.Load(o)
	require.NoError(t, err)
	labels := map[string]string{}
	for _, s := range want.Stored() {
		path := s.Path
		if rel, err := filepath.Rel(dir, s.Path); err == nil {
			path = rel
		}
		labels[path] = s.Label.String()
		require.Empty(t, s.Without)
	}
	require.Equal(t, map[string]string{
		"spec": "internal", "spec/goal.md": "confidential", "spec/a.md": "internal", "spec/message.md": "confidential",
		"roster": "internal", "roster/x.md": "internal", "roster/x.json": "internal", "orchestrator.yaml": "internal",
		"coordinator.yaml": "internal", "how.md": "internal", "b.md": "secret", "-": "internal",
	}, labels)

	o.Stored, o.Stdin = copies(t, want), nil
	require.NoError(t, os.RemoveAll(dir))
	got, err := specfile.Load(o)
	require.NoError(t, err)
	requireEqualFiles(t, want, got)
	require.Equal(t, filepath.Join(dir, "spec", "team.yaml"), got.Path)
	require.Len(t, got.Restored(), 12)
	require.Contains(t, got.Restored(), "-")
	require.Contains(t, got.Restored(), filepath.Join(dir, "roster", "team.json"), "as it was found")

	// What exists counts, alone and beside copies.
	write(t, dir, "spec/goal.md", "Another goal.")
	got, err = specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, "Another goal.", got.Goal.Text)
	require.Len(t, got.Restored(), 11)
	require.NotEqual(t, want.Fingerprint(), got.Fingerprint())
}

// TestSpecTextHasTheHighestLabel: it is that of the most sensitive text there.
func TestSpecTextHasTheHighestLabel(t *testing.T) {
	t.Parallel()
	const agents = "agents: [{name: a, accepts: secret}]\n"
	tests := []struct {
		name, text string
		want       label.Classification
	}{
		{"nothing", agents + "tasks: [{title: T, description: d}]", label.Internal},
		{"public is kept as internal", agents + "tasks: [{title: T, description: d, classification: public}]", label.Internal},
		{"a task", agents + "tasks: [{title: T, description: d, classification: confidential}]", label.Confidential},
		{"defaults of tasks", agents + "taskDefaults: {classification: confidential}\ntasks: [{title: T, description: d}]", label.Confidential},
		{"a goal", agents + "goal: {text: g, classification: secret}", label.Secret},
		{"the goal's file is one of its own", agents + "goal: {file: f, classification: secret}", label.Internal},
		{"an input", agents + "inputs: {i: {text: x, classification: confidential}}", label.Confidential},
		{"the input's file is one of its own", agents + "inputs: {i: {file: f, classification: confidential}}", label.Internal},
		{"a message", agents + "messages: [{from: user, to: a, text: x, classification: secret}]", label.Secret},
		{"the highest", agents + "inputs: {i: {text: x, classification: confidential}}\ngoal: {text: g, classification: secret}", label.Secret},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := load(t, tt.text, specfile.Options{}, "f", "text")
			require.NoError(t, err)
			require.Equal(t, tt.want, f.Stored()[0].Label)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", f.Stored(), f.Stored(), f.Stored()), "agents", "a copy prints its size only")
		})
	}
	f, err := load(t, agents+"goal: {text: g, classification: secret}", specfile.Options{Goal: "Another."})
	require.NoError(t, err)
	require.Equal(t, label.Secret, f.Stored()[0].Label, "it stands there all the same")
	f, err = load(t, agents+"tasks: [{title: T, description: d, classification: secret}]", specfile.Options{Goal: "Another."})
	require.NoError(t, err)
	require.Equal(t, label.Secret, f.Stored()[0].Label)
}

// canary is a credential that only a key says is one.
const canary = "canary-4711"

func TestCopiesHaveNoCredentials(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("aB3dE5gH7j", 4)[:36]
	tests := []struct {
		name, text string
		without    []string
		anew       bool // it is written anew, so places change
	}{
		{name: "a key", text: "apiKey: " + canary + " # mine\nmodel: m\nagents: [{name: a}]\n", without: []string{"apiKey"}},
		{name: "a key in quotes", text: "apiKey: '" + canary + "'\nagents: [{name: a}]\n", without: []string{"apiKey"}},
		{name: "a key over lines", text: "apiKey: >-\n  " + canary + "\nagents: [{name: a}]\n", without: []string{"apiKey"}},
		{name: "the last value", text: "agents: [{name: a}]\napiKey: " + canary, without: []string{"apiKey"}},
		{name: "between braces", text: "agents: [{name: a, apiKey: " + canary + "}, {name: b, apiKey: " + canary + ", model: m}]\n", without: []string{"agents[0].apiKey", "agents[1].apiKey"}},
		{name: "headers", text: "headers:\n  Authorization: Bearer " + canary + "\n  X-Title: " + canary + "\n  X-Key: ${KEY}\nagents: [{name: a}]\n", without: []string{"headers.Authorization", "headers.X-Title"}},
		{name: "of the original", text: "orchestrator: {defaultApiKey: " + canary + "}\nteam: {agents: [{name: a, headers: {A: " + canary + "}}]}\n", without: []string{"orchestrator.defaultApiKey", "team.agents[0].headers.A"}},
		{name: "defaults and the coordinator", text: "agentDefaults: {apiKey: " + canary + "}\ncoordinator: {apiKey: " + canary + "}\nagents: [{name: a}]\n", without: []string{"agentDefaults.apiKey", "coordinator.apiKey"}},
		{name: "JSON", text: `{"apiKey": "` + canary + `\"\\", "agents": [{"name": "a", "headers": {"A": "` + canary + `"}}]}`, without: []string{"agents[0].headers.A", "apiKey"}},
		{name: "the value of a variable that is not set", text: "apiKey: ${KEY:-" + canary + "}\nagents: [{name: a}]\n", without: []string{"apiKey"}},
		{name: "a comment", text: "# apiKey: " + canary + "\nmodel: m # token: " + canary + "\nagents: [{name: a}]\n"},
		{name: "a token in a prompt", text: "agents:\n  - name: a\n    systemPrompt: |\n      # Keys: of all sorts\n      Use " + token + ".\n", without: []string{"[REDACTED:token]"}},
		{name: "a token as a plain text", text: "agents: [{name: a, systemPrompt: " + token + "}]\n", without: []string{"[REDACTED:token]"}, anew: true},
		{name: "a key in a block at the end", text: "agents:\n  - name: a\n    apiKey: |\n      " + canary + "\n  - name: b\n", without: []string{"agents[0].apiKey"}, anew: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "team.yaml", tt.text)
			o := specfile.Options{Path: filepath.Join(dir, "team.yaml"), Lookup: env(map[string]string{"KEY": "set"}), Trusted: trusted}
			whole, err := specfile.Load(o)
			require.NoError(t, err)
			o.Stored = copies(t, whole)
			require.Len(t, o.Stored, 1)
			s := o.Stored[0]
			require.NotContains(t, s.Text, canary)
			require.NotContains(t, s.Text, token)
			require.ElementsMatch(t, tt.without, s.Without, s.Text)
			if !tt.anew {
				require.Equal(t, strings.Count(tt.text, "\n"), strings.Count(s.Text, "\n"), "lines stay where they are:\n%s", s.Text)
			}
			require.NoError(t, os.Remove(o.Path))
			got, err := specfile.Load(o)
			require.NoError(t, err, s.Text)
			require.Equal(t, whole.Fingerprint(), got.Fingerprint(), "credentials do not count")
			require.Equal(t, o.Stored, got.Stored())
			require.Len(t, got.Agents, len(whole.Agents))
			for i, a := range got.Agents {
				require.NotContains(t, a.APIKey.Reveal()+fmt.Sprint(a.Headers), canary)
				require.NotContains(t, a.Headers, "Authorization", "as if it were not written")
				require.Equal(t, whole.Agents[i].Member.Version, a.Member.Version)
				if strings.Contains(tt.text, "${KEY:-") {
					require.Equal(t, "set", a.APIKey.Reveal(), "a variable stays one")
				}
			}
		})
	}
}

// TestRemovedKeyIsNotReplacedByAnother: an agent whose key is gone does not
// send that of the spec to its own endpoint.
func TestRemovedKeyIsNotReplacedByAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", "apiKey: ${KEY}\nheaders: {X-Auth: \"${KEY}\", X-Other: \"${KEY}\"}\nagents: [{name: a, baseURL: \"http://other.example/v1\", apiKey: own, headers: {x-auth: own}}, {name: b}]\n")
	o := specfile.Options{Path: filepath.Join(dir, "team.yaml"), Lookup: env(map[string]string{"KEY": "the-spec's"}), Trusted: trusted}
	whole, err := specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, "own", whole.Agents[0].APIKey.Reveal())
	o.Stored = whole.Stored()
	require.NoError(t, os.Remove(o.Path))
	got, err := specfile.Load(o)
	require.NoError(t, err)
	require.True(t, got.Agents[0].APIKey.IsZero())
	require.Equal(t, map[string]string{"X-Other": "the-spec's"}, got.Agents[0].Headers)
	require.Equal(t, "the-spec's", got.Agents[1].APIKey.Reveal())
	require.Equal(t, whole.Agents[1].Headers, got.Agents[1].Headers)
}

// TestSecretsInTextsOfFiles: a run would redact them, so a copy needs none.
func TestSecretsInTextsOfFiles(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("aB3dE5gH7j", 4)[:36]
	dir := t.TempDir()
	write(t, dir, "team.yaml", "agents: [{name: a, systemPrompt: {file: a.md}}]\ninputs: {i: {file: i.json}, k: {file: team.yaml}}\napiKey: "+canary+"\n",
		"a.md", "The token is "+token+".", "i.json", `{"id": 7, "password": "`+token+`"}`)
	o := specfile.Options{Path: dir}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	o.Stored = f.Stored()
	require.Len(t, o.Stored, 4)
	for _, s := range o.Stored {
		require.NotContains(t, s.Text, token)
		require.NotContains(t, s.Text, canary, "the spec, named as a text: %s", s.Path)
		require.NotEmpty(t, s.Without)
	}
	require.NoError(t, os.RemoveAll(dir))
	got, err := specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, "The token is [REDACTED:token].", got.Agents[0].Member.SystemPrompt)
	require.True(t, json.Valid([]byte(got.Run.Inputs[0].Text)))
}

// TestStoredOnlyReadsNoFile: what was written since does not count, and what
// there is no copy of is said.
func TestStoredOnlyReadsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := everything(t, dir)
	want, err := specfile.Load(o)
	require.NoError(t, err)
	o.Stored, o.StoredOnly, o.Stdin = copies(t, want), true, strings.NewReader("something else")
	for _, s := range o.Stored {
		if s.Path != "-" {
			require.NoError(t, os.WriteFile(s.Found, []byte("written since"), 0o600))
		}
	}
	got, err := specfile.Load(o)
	require.NoError(t, err)
	requireEqualFiles(t, want, got)
	require.Len(t, got.Restored(), len(o.Stored))

	all := o.Stored
	for i := range all {
		o.Stored = append(append([]specfile.StoredFile{}, all[:i]...), all[i+1:]...)
		_, err := specfile.Load(o)
		require.ErrorContains(t, err, "no copy of it is stored", all[i].Path)
		require.NotContains(t, err.Error(), "written since")
	}
}

// TestStoredOnlyNeedsNoScript: the script is not among the copies, and not needed to look at a run.
func TestStoredOnlyNeedsNoScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", "offline: script.yaml\nagents: [{name: a}]\n", "script.yaml", "x")
	o := specfile.Options{Path: dir}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "script.yaml")))
	o.Stored, o.StoredOnly = f.Stored(), true
	got, err := specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, f.Offline, got.Offline)
}

// TestCopyReplacesOnlyItsFile: not for what may not be read, is a folder or
// lies outside.
func TestCopyReplacesOnlyItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", "agents: [{name: a, systemPrompt: {file: a.md}}]\n", "a.md", "A")
	o := specfile.Options{Path: dir}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	o.Stored = f.Stored()

	write(t, dir, "a.md", "")
	_, err = specfile.Load(o)
	require.ErrorContains(t, err, "it is empty")
	require.NoError(t, os.Remove(filepath.Join(dir, "a.md")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.md"), 0o755))
	_, err = specfile.Load(o)
	require.ErrorContains(t, err, "it is a folder")

	write(t, dir, "team.yaml", "")
	_, err = specfile.Load(o)
	require.ErrorContains(t, err, "it is empty", "the spec too")

	write(t, dir, "team.yaml", "agents: [{name: a, systemPrompt: {file: ../b.md}}]\n")
	o.Stored = append(o.Stored, specfile.StoredFile{Path: filepath.Join(filepath.Dir(dir), "b.md"), Text: "B"})
	_, err = specfile.Load(o)
	require.ErrorContains(t, err, "outside")

	write(t, dir, "team.yaml", "agents: [{name: a, systemPrompt: {file: c.md}}]\n")
	_, err = specfile.Load(o)
	require.ErrorContains(t, err, "it does not exist", "no copy of this one")

	write(t, dir, "team.yaml", "agents: [{name: a}]\ninputs: {i: }\n")
	_, err = specfile.Load(specfile.Options{Path: dir, Inputs: map[string]string{"i": ""}, Stored: []specfile.StoredFile{{Path: "", Found: "team.yaml", Text: "x"}}})
	require.ErrorContains(t, err, "Options.Inputs i", "the copy of the working directory's spec is no input")

	require.NoError(t, os.RemoveAll(dir))
	_, err = specfile.Load(specfile.Options{Path: dir, Stored: []specfile.StoredFile{{Path: dir, Found: filepath.Join(dir, "team.yaml"), Text: "a\x00b"}}})
	require.ErrorContains(t, err, "zero byte", "a copy is held to what a file is held to")
}

// TestStandardInputIsNotWaitedFor: nobody writes it again.
func TestStandardInputIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	o := specfile.Options{Path: "-", Stdin: strings.NewReader("agents: [{name: a}]")}
	want, err := specfile.Load(o)
	require.NoError(t, err)
	again := strings.NewReader("other")
	o.Stdin, o.Stored = again, want.Stored()
	got, err := specfile.Load(o)
	require.NoError(t, err)
	requireEqualFiles(t, want, got)
	require.Equal(t, 5, again.Len())
}

// TestLowerLabelDoesNotLowerACopy: what was kept as secret stays so.
func TestLowerLabelDoesNotLowerACopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "agents: [{name: a}]\ninputs: {i: {file: i.md, classification: %s}}\n"
	write(t, dir, "team.yaml", fmt.Sprintf(text, "secret"), "i.md", "I")
	f, err := specfile.Load(specfile.Options{Path: dir})
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "i.md")))
	write(t, dir, "team.yaml", fmt.Sprintf(text, "public"))
	f, err = specfile.Load(specfile.Options{Path: dir, Stored: f.Stored()})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "i.md")}, f.Restored())
	require.Equal(t, label.Secret, f.Stored()[1].Label)
}

// TestCopiesMayGrow: a placeholder is longer than many a password.
func TestCopiesMayGrow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const secret = "password: k3yW0rd9"
	write(t, dir, "team.yaml", "agents: [{name: a, systemPrompt: {file: a.md}}]\n", "a.md", strings.Repeat("x ", 1<<19-len(secret)/2)+secret)
	o := specfile.Options{Path: dir}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	o.Stored = f.Stored()
	require.Greater(t, len(o.Stored[1].Text), 1<<20)
	require.NoError(t, os.RemoveAll(dir))
	_, err = specfile.Load(o)
	require.NoError(t, err)
}

// TestJSONStaysJSON where a number is what is taken out of it, or what only its
// keys say is secret.
func TestJSONStaysJSON(t *testing.T) {
	t.Parallel()
	f, err := load(t, "agents: [{name: a}]\ninputs: {i: {file: i.json}}\n", specfile.Options{}, "i.json", `{"id": 7, "password": 4815162342, "passphrase": "correct horse battery"}`)
	require.NoError(t, err)
	require.Len(t, f.Stored(), 2)
	require.JSONEq(t, `{"id": 7, "password": "[REDACTED:password]", "passphrase": "[REDACTED:password]"}`, f.Stored()[1].Text)
}

// TestOfflineScriptOfASpecThatIsGone may be gone too; that of a spec that exists may not.
func TestOfflineScriptOfASpecThatIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "team.yaml", "offline: script.yaml\nagents: [{name: a}]\n", "script.yaml", "x")
	o := specfile.Options{Path: dir}
	f, err := specfile.Load(o)
	require.NoError(t, err)
	o.Stored = f.Stored()
	require.NoError(t, os.Remove(filepath.Join(dir, "script.yaml")))
	_, err = specfile.Load(o)
	require.ErrorContains(t, err, "offline")
	require.NoError(t, os.RemoveAll(dir))
	got, err := specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, f.Offline, got.Offline)
}

// TestEverySpecLoadsFromItsCopies draws specs with every key, with credentials
// written out or not, in YAML and JSON.
func TestEverySpecLoadsFromItsCopies(t *testing.T) {
	t.Parallel()
	words := specfile.Vocabulary()
	dir := t.TempDir()
	write(t, dir, "script.yaml", "x", "prompt.md", "A prompt.", "schema.json", `{"type": "array"}`, "testdata/folder/a.txt", "a", "testdata/policy.yaml", "policy: {default: scoped}")
	rapid.Check(t, func(rt *rapid.T) {
		w := rapid.SampledFrom(words).Draw(rt, "key")
		id := w.Place + "." + w.Key
		if samples[id] == "" {
			id = strings.Replace(id, "Defaults.", ".", 1)
		}
		if w.Status != specfile.Works || samples[id] == "" {
			rt.Skip("no sample")
		}
		text := specWith(w.Place, w.Key, samples[id])
		written := rapid.Bool().Draw(rt, "written out")
		if written {
			text = strings.ReplaceAll(text, "\"${KEY}\"", canary)
		}
		path := filepath.Join(dir, "drawn-"+strings.ReplaceAll(id, ".", "-")+".yaml")
		require.NoError(rt, os.WriteFile(path, []byte(text), 0o600))
		o := specfile.Options{Path: path, Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted, Result: earlier}
		want, err := specfile.Load(o)
		require.NoError(rt, err)
		require.NoError(rt, os.Remove(path))
		o.Stored = copies(rt, want)
		for _, s := range o.Stored {
			require.NotContains(rt, s.Text, canary)
		}
		got, err := specfile.Load(o)
		require.NoError(rt, err)
		require.Equal(rt, want.Fingerprint(), got.Fingerprint())
		require.Equal(rt, want.Stored(), got.Stored())
		if len(o.Stored[0].Without) == 0 {
			requireEqualFiles(rt, want, got)
		}
	})
}
