package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// relaySpec is a spec whose policy is in a file of its own.
const relaySpec = `name: relay
offline: script.yaml
inputs: {facts: {classification: confidential}}
agents: [{name: reader, accepts: confidential}, {name: writer, accepts: confidential}, {name: letters, accepts: internal}, {name: shared, accepts: internal}]
policy: {file: policy.yaml}
assert: [task Second never reaches letters]
tasks:
  - {title: First, assignee: reader, uses: [facts], description: one}
  - {title: Second, assignee: writer, dependsOn: [First], description: two}
  - {title: Letters, assignee: letters, dependsOn: [{task: Second, optional: true}], description: three}
`

func governedFolder(t *testing.T) string {
	t.Helper()
	return clitest.Folder(t, map[string]string{
		"team.yaml": relaySpec, "other.yaml": "name: other\nagents: [{name: a, accepts: confidential}]\ntasks: [{title: T, assignee: a, description: d}]\nmodel: m\n",
		"policy.yaml": "# kept by hand\npolicy:\n  rules:\n    - {from: reader, to: writer, block: [ssn]}\n  assert: [input facts never reaches shared]\n", "notes.txt": "canary-4711",
		"script.yaml": "replies: [{task: First, text: the story}, {text: '{{ .Text }}'}]\n",
	})
}

// TestThePolicyOfASpecIsReplaced checks that later runs of a served spec have the policy that a client has put in place.
func TestThePolicyOfASpecIsReplaced(t *testing.T) {
	t.Parallel()
	dir := governedFolder(t)
	s := serveHere(t, call{dir: dir, args: []string{"team.yaml", "other.yaml", "--offline"}})
	require.Contains(t, s.get("/specs"), `"policy":"policy.yaml"`)
	const path = "/specs/relay/governance/handoff-rules"
	was := object(t, s.get(path))
	require.Equal(t, "policy.yaml", was["file"])
	require.Equal(t, map[string]any{"rules": []any{map[string]any{"from": "reader", "to": "writer", "block": []any{"ssn"}}}, "assert": []any{"input facts never reaches shared"}}, was["policy"])
	digest := was["digest"].(string)
	put := func(policy, match string) (int, string) {
		return s.do("PUT", path, `{"policy":`+policy+`,"reason":"a test"}`, match)
	}
	current := `If-Match: "` + digest + `"`
	for _, tt := range []struct {
		policy, match string
		status        int
		want          string
	}{
		{`{"rules":[]}`, "X-None: x", 428, "If-Match is missing"},
		{`{"rules":[]}`, `If-Match: "other"`, 412, digest},
		{`{"rules":[]}`, current, 409, "start serve with --allow-widening"},
		{`{"rules":[{"from":"reader","to":"wirter","mode":"minimal"},{"from":"reader"}]}`, current, 422, `"pointer":"/policy/rules/0/to"`},
		{`{"rules":[{"from":"reader","to":"wirter","mode":"minimal"},{"from":"reader"}]}`, current, 422, `"pointer":"/policy/rules/1"`},
		{`{"rules":[{"from":"reader","to":"writer","mode":"minimal"}],"assert":["input facts never reaches shared"]}`, current, 422, "the assertion \\\"task Second never reaches letters\\\" does not hold"},
		{`{"rules":[{"from":"reader","to":"writer","block":["ssn"]}]}`, current, 409, "leaves out the assertion \\\"input facts never reaches shared\\\""},
		{`{"rules":[{"from":"reader","to":"writer","block":["ssn"]}],"assert":["input facts never reaches shared","b never reaches reader"]}`, current, 422, "b never reaches reader"},
		{`{"file":"notes.txt"}`, current, 422, "names no other file"},
		{`null`, current, 422, "policy"},
		{`"x"`, current, 422, `"pointer":"/policy"`},
	} {
		got, text := put(tt.policy, tt.match)
		require.Equal(t, tt.status, got, "%s: %s", tt.policy, text)
		require.Contains(t, text, tt.want, tt.policy)
		require.NotContains(t, text, "canary")
	}
	got, text := s.do("PUT", "/specs/other/governance/handoff-rules", `{"policy":{}}`, current)
	require.Equal(t, 404, got, text)
	require.Contains(t, text, "policy: {file: PATH}")
	require.Equal(t, was, object(t, s.get(path)), "nothing was replaced")

	got, text = put(`{"rules":[{"name":"no names","from":"reader","to":"writer","block":["ssn","name"]}],"assert":["input facts never reaches shared"]}`, current)
	require.Equal(t, 200, got, text)
	now := object(t, s.get(path))
	require.Equal(t, object(t, text)["digest"], now["digest"])
	file, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	require.NoError(t, err)
	require.Equal(t, "policy:\n  rules:\n    - name: no names\n      from: reader\n      to: writer\n      block: [ssn, name]\n  assert: [input facts never reaches shared]\n", string(file))
	got, text = put(`{"rules":[]}`, current)
	require.Equal(t, 412, got, text)
	got, text = s.do("PUT", path, `{"policy":{},"reason":"`+strings.Repeat("x", 64<<10+1)+`"}`, `If-Match: "`+now["digest"].(string)+`"`)
	require.Equal(t, 413, got, text)

	got, text = s.do("POST", "/runs", `{"spec":"relay","inputs":{"facts":"x"}}`)
	require.Less(t, got, 300, text)
	run := object(t, text)["runId"].(string)
	await(t, s.follow(t.Context(), "/runs/"+run+"/events"), "run_complete")
	require.Contains(t, s.get("/runs/"+run+"/governance/handoff-rules"), `"name":"no names"`)
	require.Regexp(t, `a test`, s.stop().stderr)
}

// TestWhoMayReplaceThePolicyOfASpec checks viewers with a lower clearance, and --allow-widening.
func TestWhoMayReplaceThePolicyOfASpec(t *testing.T) {
	t.Parallel()
	const path, wide = "/specs/relay/governance/handoff-rules", `{"policy":{}}`
	for accepts, want := range map[string][2]int{"public": {403, 403}, "internal": {200, 403}, "confidential": {200, 200}} {
		dir := governedFolder(t)
		s := serveHere(t, call{dir: dir, args: []string{"team.yaml", "--offline", "--allow-widening", "--accepts", accepts}})
		read, text := s.do("GET", path, "")
		require.Equal(t, want[0], read, text)
		match := `If-Match: "x"`
		if read == 200 {
			match = `If-Match: "` + object(t, text)["digest"].(string) + `"`
		}
		wrote, text := s.do("PUT", path, wide, match)
		require.Equal(t, want[1], wrote, "%s: %s", accepts, text)
	}
}

// TestAPolicyInAFileOfItsOwn checks what such a file may hold, and where problems are.
func TestAPolicyInAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ spec, file, want string }{
		"a wrong name":      {"{file: policy.yaml}", "policy:\n  rules: [{from: reader, to: wirter, mode: minimal}]\n", `policy.yaml:2:30: policy: rule reader→wirter: unknown agent "wirter"`},
		"no policy":         {"{file: policy.yaml}", "rules: []\n", "policy.yaml:1:1: policy: there is no policy"},
		"other keys":        {"{file: policy.yaml}", "policy: {}\nagents: []\n", "policy.yaml:2:1: policy: agents: a file with a policy has no other key"},
		"a file of a file":  {"{file: policy.yaml}", "policy: {file: notes.txt}\n", "names no other file"},
		"beside other keys": {"{file: policy.yaml, default: minimal}", "policy: {}\n", "default: the policy is in a file of its own"},
		"outside":           {"{file: ../policy.yaml}", "policy: {}\n", "outside the folder of the spec"},
		"no file":           {"{file: rules.yaml}", "policy: {}\n", "it does not exist"},
		"no YAML":           {"{file: policy.yaml}", "policy: [\n", "policy.yaml:"},
	} {
		dir := clitest.Folder(t, map[string]string{"team.yaml": "model: m\nagents: [{name: reader}, {name: writer}]\npolicy: " + tt.spec + "\n", "policy.yaml": tt.file, "notes.txt": "canary-4711"})
		got := call{dir: dir, args: []string{"check", "-o", "text"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, name)
		require.Contains(t, got.stderr, tt.want, name)
		require.NotContains(t, got.stderr, "canary", name)
	}
}

// TestSpecsThatShareAPolicy checks that a policy with which one spec can be run is refused if another one has the same file
// and cannot.
func TestSpecsThatShareAPolicy(t *testing.T) {
	t.Parallel()
	const strict = "name: strict\noffline: script.yaml\ninputs: {facts: {text: x}}\nagents: [{name: reader}, {name: writer}, {name: shared}]\npolicy: {file: policy.yaml}\n" +
		"tasks: [{title: Take, assignee: reader, uses: [facts], description: d}]\n"
	dir := governedFolder(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "strict.yaml"), []byte(strict), 0o600))
	s := serveHere(t, call{dir: dir, args: []string{"team.yaml", "strict.yaml", "--offline", "--allow-widening"}})
	const path = "/specs/relay/governance/handoff-rules"
	was := s.get(path)
	got, text := s.do("PUT", path, `{"policy":{"rules":[{"from":"writer","to":"letters","block":["n"]}]}}`, `If-Match: "`+object(t, was)["digest"].(string)+`"`)
	require.Equal(t, 422, got, text)
	require.Contains(t, text, `unknown agent \"letters\"`)
	require.Equal(t, was, s.get(path))
}
