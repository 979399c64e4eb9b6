package cli

import (
	"runtime"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A body that is no policy, or a policy that widens, changes nothing and costs little.
func TestServeRefusesPoliciesThatAreNone(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "Second")
	dir := clitest.Folder(t, map[string]string{"team.yaml": governedRelay})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	defer func() { _, _ = running.Process.Kill(), running.Wait() }()
	s := serveHere(t, call{dir: dir})
	before := s.get("/governance/handoff-rules")
	digest := object(t, before)["digest"].(string)
	nested := strings.Repeat("[", 5000) + strings.Repeat("1,", 20_000) + "1" + strings.Repeat("]", 5000)
	for body, status := range map[string]int{
		`{"policy":null}`: 422, `{"policy":[]}`: 422, `{"policy":"x"}`: 422, `{"policy":{"rules":[null]}}`: 422, `{"policy":{"rules":null}}`: 422,
		`{"policy":{"rules":[],"rules":[]}}`: 422, `{"policy":{"assert":["x"]}}`: 422, `{"policy":{"RULES":[]}}`: 422,
		`{"policy":{}}`: 409, `{"policy":{"rules":[]}}`: 409, `{"policy":` + nested + `}`: 400, `{"policy":{"rules":` + nested + `}}`: 400,
	} {
		got, text := s.do("PUT", "/governance/handoff-rules", body, `If-Match: "`+digest+`"`)
		require.Equal(t, status, got, "%.80s: %.300s", body, text)
		require.Less(t, len(text), 1000, "%.80s", body)
	}
	got, text := s.do("PUT", "/governance/handoff-rules", `{"text":"rules: []\rmodel: m\ragents: [{name: reader, systemPrompt: {file: team.yaml}}]\r"}`, `If-Match: "`+digest+`"`)
	require.Equal(t, 422, got, text)
	require.Contains(t, text, "a policy has no other key")
	require.Equal(t, before, s.get("/governance/handoff-rules"))

	own := `{"rules":[{"from":"writer","to":"reader","block":["ssn"]}]`
	put := func(of *served, body string) (int, string) {
		return of.do("PUT", "/governance/handoff-rules", body, `If-Match: "`+digest+`"`)
	}
	got, text = put(s, `{"policy":`+own+`}}`)
	require.Equal(t, 200, got, text)
	require.Contains(t, text, digest, "it is the current policy")
	got, text = put(s, `{"policy":`+own+`,"assert":["task Second never reaches user"]}}`)
	require.Equal(t, 422, got, text)
	require.Contains(t, text, `"pointer":"/policy/assert/0"`)
	got, text = put(s, `{"policy":{"rules":[{"from":"reader","to":"wirter"},{"from":"writer"}]}}`)
	require.Equal(t, 422, got, text)
	require.Regexp(t, `"pointer":"/policy/rules/0/to".*unknown agent.*"pointer":"/policy/rules/1".*to: it is missing`, text)
}

// A body of 1 MiB must not become one of gigabytes: each line of the file of a policy is indented.
func TestADeepPolicyCostsLittle(t *testing.T) { // not beside others, whose memory would count
	dir := clitest.Folder(t, map[string]string{"team.yaml": governedRelay})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	s := serveHere(t, call{dir: dir})
	_, run, _ := strings.Cut(s.get("/runs"), `"runId":"`)
	body := `{"policy":` + strings.Repeat("[", 2000) + strings.Repeat("1,", 20_000) + "1" + strings.Repeat("]", 2000) + `}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, text := s.do("PUT", "/runs/"+run[:36]+"/governance/handoff-rules", body, `If-Match: "d"`)
	runtime.ReadMemStats(&after)
	require.Equal(t, 400, got, "%.300s", text)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
