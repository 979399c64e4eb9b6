package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// provenanceSpec has a task whose answer carries a tag, one whose answer is above the caller, and two that read them.
const provenanceSpec = `
name: provenance
inputs:
  note: {text: the claim is late}
  file: {text: a file, classification: secret}
agents:
  - {name: sorter, outputTags: [kind, unused]}
  - {name: vault, accepts: secret, produces: secret, outputTags: [hush]}
  - {name: writer}
endpoints: {"https://api.openai.com/v1": {accepts: secret}}
tasks:
  - title: Sort
    assignee: sorter
    description: Sort it.
    uses: [note]
    requiredTags: [kind]
    outputSchema: {type: object, properties: {kind: {type: string, maxLength: 20}}, required: [kind], additionalProperties: false}
  - title: Judge
    assignee: vault
    description: Judge it.
    uses: [file]
    outputSchema: {type: object, properties: {score: {type: integer}, hush: {type: integer}}, required: [score, hush], additionalProperties: false}
  - {title: Write, assignee: writer, description: Write it., dependsOn: [Sort, Judge]}
  - {title: Check, assignee: writer, description: Check it., dependsOn: [Write, Sort]}
policy:
  rules:
    - {name: file to vault, from: user, to: vault, mode: full}
  declassify:
    - {name: score, from: vault, to: writer, paths: [/score], lowerTo: internal, reason: a number says little}
`

// Documents say of each piece of context when it was made, what from, and with which tags, and which tags the contract
// requires. Of what the caller may not see they say nothing, and of a result for which the caller may not see all that
// was read, not what it was made from.
func TestDocumentsHaveTheProvenanceOfContext(t *testing.T) {
	t.Parallel()
	type provenance struct {
		ID          string
		CreatedAt   string
		DerivedFrom []string
		Tags        []string
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(provenanceSpec), 0o600))
	got := call{dir: dir, args: []string{"run", "team.yaml", "--offline"}}.run(t)
	require.Zero(t, got.status, got.stderr)

	var shown struct {
		Tasks []struct {
			ID, Title string
			Envelope  *provenance
		}
	}
	require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"show", "-o", "json"}}.run(t).stdout), &shown))
	results := map[string]*provenance{}
	ids := map[string]string{}
	for _, tk := range shown.Tasks {
		results[tk.Title], ids[tk.Title] = tk.Envelope, tk.ID+"/1"
	}
	sort, write, check := results["Sort"], results["Write"], results["Check"]
	require.Equal(t, ids["Sort"], sort.ID)
	require.NotEmpty(t, sort.CreatedAt)
	require.Equal(t, []string{"input/note"}, sort.DerivedFrom)
	require.Equal(t, []string{"kind"}, sort.Tags)
	require.Nil(t, results["Judge"], "it is above the caller")
	require.NotEmpty(t, write.CreatedAt)
	require.Empty(t, write.DerivedFrom, "the caller may not see all that it read")
	require.Equal(t, []string{ids["Write"], ids["Sort"]}, check.DerivedFrom)

	var explained struct {
		Prompts []struct {
			Title    string
			Contract struct {
				Caller       string
				RequiredTags []string
			}
			Sources []struct {
				Decision *struct {
					Envelope string
					provenance
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"explain", "-o", "json"}}.run(t).stdout), &explained))
	read := map[string]map[string]provenance{}
	for _, p := range explained.Prompts {
		require.Equal(t, "user", p.Contract.Caller)
		if p.Title == "Sort" {
			require.Equal(t, []string{"kind"}, p.Contract.RequiredTags)
		}
		read[p.Title] = map[string]provenance{}
		for _, s := range p.Sources {
			if d := s.Decision; d != nil {
				read[p.Title][d.Envelope] = d.provenance
			}
		}
	}
	require.Equal(t, map[string]provenance{
		ids["Sort"]:  {CreatedAt: sort.CreatedAt, DerivedFrom: sort.DerivedFrom, Tags: sort.Tags},
		ids["Judge"]: {},
	}, read["Write"])
	require.Equal(t, provenance{CreatedAt: write.CreatedAt}, read["Check"][ids["Write"]])
	require.NotEmpty(t, read["Sort"]["input/note"].CreatedAt)
	require.Equal(t, map[string]provenance{"input/file": {}}, read["Judge"])

	text := call{dir: dir, args: []string{"explain"}}.run(t).stdout
	require.Regexp(t, `result of Sort from sorter: made \S+Z from input note, with tag kind\n`, text)
	require.Regexp(t, `result of Write from writer: made \S+Z\n`, text)
	require.NotContains(t, text, "result of Judge from vault: made")
	require.Contains(t, text, `no tools, requires tag kind, about "Sort", for user`)

	plan := call{dir: dir, args: []string{"plan", "team.yaml"}}.run(t).stdout
	require.Contains(t, plan, "   requires tag kind\n")
	require.Contains(t, call{dir: dir, args: []string{"plan", "team.yaml", "-o", "json"}}.run(t).stdout, `"caller":"user","requiredTags":["kind"]`)
}
