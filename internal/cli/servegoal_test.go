package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// plannedGoal is a goal whose coordinator may grant an input, and decide.
const plannedGoal = `
name: planned
model: test-model
goal: {text: Find the facts and write them down., classification: confidential}
coordinator: {mayGrant: [inputs], mayPlan: [when]}
agents:
  - {name: finder, systemPrompt: You find facts., accepts: confidential}
  - {name: writer, systemPrompt: You write., accepts: confidential}
inputs: {log: {text: the log}}
policy:
  rules: [{name: short, from: finder, to: writer, mode: full, maxClassification: confidential}]
assert: [input log never reaches writer]
`

const plannedTasks = `[{"title": "Find", "description": "Find canary-facts.", "assignee": "finder", "uses": ["log"], "outputSchema": {"type": "object", "properties": {"kind": {"enum": ["canary-odd", "even"]}}, "required": ["kind"]}},
 {"title": "Write", "description": "Write them down.", "assignee": "writer", "dependsOn": ["Find"], "when": {"task": "Find", "path": "/kind", "equals": "canary-odd"}}]`

const plannedScript = `replies:
  - {coordinator: plan, text: '[{"title": "Find", "description": "Find.", "assignee": "nobody"}]'}
  - {coordinator: repair, text: '` + plannedTasks + `'}
  - {task: Find, text: '{"kind": "canary-odd"}'}
  - {task: Write, text: written}
  - {coordinator: synthesis, text: The answer.}
`

// goalRun runs a goal offline, and returns its folder.
func goalRun(t *testing.T, spec, script string, status int) string {
	t.Helper()
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "script.yaml": script})
	got := offlineRun(t, call{dir: dir}, "--script", "script.yaml")
	require.Equal(t, status, got.status, "%+v", got)
	return dir
}

// The flow of a stored goal is that of the plan as `runteam plan` gets it from the same answers, which were
// corrected once.
func TestServeHasTheFlowOfAGoal(t *testing.T) {
	t.Parallel()
	dir := goalRun(t, plannedGoal, plannedScript, exit.StatusOK)
	got := call{dir: dir, args: []string{"plan", "--offline", "--script", "script.yaml", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	planned := object(t, got.stdout)
	s := serveHere(t, call{dir: dir})
	flow := object(t, s.get("/runs/"+newestRun(t, dir)+"/flow"))
	require.Equal(t, planned["flow"].(map[string]any)["sources"], flow["sources"])
	require.Equal(t, planned["flow"].(map[string]any)["readers"], flow["readers"])
	require.Equal(t, []any{map[string]any{"text": "input log never reaches writer", "line": "team.yaml:12", "holds": true}}, flow["assertions"])
	policy := object(t, s.get("/runs/"+newestRun(t, dir)+"/governance/handoff-rules"))
	require.Equal(t, policy["digest"], flow["policyDigest"])
	require.NotContains(t, policy, "earlier")
	why := s.get("/runs/" + newestRun(t, dir) + "/flow?from=" + url.QueryEscape("task Find") + "&to=writer")
	require.Contains(t, why, `"ways":[[{"kind":"dependency","name":"Find"`)
	require.Contains(t, why, `"line":"team.yaml:11"`, "the rule that delivers it")
	var graph struct{ Edges []rungraph.Edge }
	require.NoError(t, json.Unmarshal([]byte(s.get("/runs/"+newestRun(t, dir)+"/graph")), &graph))
	k := documentsIn(t, dir).load("")
	find, write := string(k.Tasks[0].ID), string(k.Tasks[1].ID)
	for _, want := range [][3]string{{"coordinator/repair", find, "result"}, {"coordinator/repair", write, "result"}, {"input:log", find, "input"}, {find, write, "result"}} {
		require.True(t, slices.ContainsFunc(graph.Edges, func(e rungraph.Edge) bool { return e.From == want[0] && e.To == want[1] && e.Kind == want[2] }), "%v in %v", want, graph.Edges)
	}
	require.Empty(t, s.stop().stdout)
}

// newestRun returns the ID of the newest run in a folder.
func newestRun(t *testing.T, dir string) string { return listRuns(t, call{dir: dir})[0].Run }

// The user of a run may see less than its coordinator has read: the journal has what the user may see, and the plan is
// not shown to a later viewer who may see more.
func TestThePlanOfAGoalIsNotAboveTheUser(t *testing.T) {
	t.Parallel()
	dir := goalRun(t, plannedGoal, plannedScript, exit.StatusOK)
	docs := documentsIn(t, dir)
	j, _, err := journals.Open(docs.con, docs.flags, journals.ToRead)
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // nothing was written
	stored, err := j.Load(t.Context(), newestRun(t, dir))
	require.NoError(t, err)
	h := &stored.History
	p, err := restored.Plan(t.Context(), docs.con, docs.flags, &stored.Info, h)
	require.NoError(t, err)
	require.NoError(t, restored.CheckCaller(p, h))
	h.Begins[0].Accepts = new(label.Internal)
	require.ErrorContains(t, restored.CheckCaller(p, h), "the coordinator's plan is confidential, and the user of the run sees up to internal")
}

// As long as there is no plan, and if there will be none, the API says why, and quotes nothing.
func TestServeSaysWhyAGoalHasNoPlan(t *testing.T) {
	t.Parallel()
	bad := `'[{"title": "canary", "description": "d", "assignee": "nobody"}]'`
	for _, tt := range []struct {
		name, spec, script, want string
	}{
		{"rejected", roster + "goal: Find the facts and then write them down.\n", "replies:\n  - {coordinator: plan, text: " + bad + "}\n  - {coordinator: repair, text: " + bad + "}\n", "the run has no plan: the plan of the coordinator was rejected"},
		{"refused", approvedPlan, planScript, "the run has no plan: the plan of the coordinator was rejected"},
		{"failed", roster + "goal: Find the facts and then write them down.\n", "replies:\n  - {coordinator: plan, status: 400, body: canary}\n", "the run has no plan: the coordinator failed to make one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": tt.spec, "script.yaml": tt.script})
			got := offlineRun(t, call{dir: dir}, "--script", "script.yaml")
			require.Contains(t, []int{exit.StatusFailed, exit.StatusNoRun}, got.status, "%+v", got)
			s := serveHere(t, call{dir: dir})
			status, text := s.do("GET", "/runs/"+newestRun(t, dir)+"/flow", "")
			require.Equal(t, http.StatusNotFound, status)
			require.Contains(t, text, tt.want)
			require.NotContains(t, text, "canary")
			s.get("/runs/" + newestRun(t, dir) + "/graph")
		})
	}
}

// A plan that a person edits is the plan of the run, once the person has answered.
func TestServeHasTheFlowOfAnApprovedPlan(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		reply(w, []string{`[{"title": "Find", "description": "Find the offers."}]`, "taken", "The answer."}[n-1])
	})
	dir := clitest.Folder(t, map[string]string{"team.yaml": approvedPlan})
	at := func(args ...string) outcome { return call{dir: dir, args: args, env: server.env()}.run(t) }
	require.Equal(t, exit.StatusWaiting, at("run").status)
	s, run := serveHere(t, call{dir: dir, env: server.env()}), newestRun(t, dir)
	status, text := s.do("GET", "/runs/"+run+"/flow", "")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "the run has no plan: editor has not approved it yet")
	got := at("answer", run, "coordinator", "--question", openQuestions(t, at)[0].ID[:6], "--set", "decision=edit", "--set", `plan=[{"title": "Take", "description": "Take one.", "assignee": "writer"}]`)
	require.Zero(t, got.status, got.stderr)
	_, text = s.do("GET", "/runs/"+run+"/flow", "")
	require.Contains(t, text, "editor has not approved it yet", "the run takes the answer when it is resumed")
	require.Zero(t, at("resume", run).status)
	text = s.get("/runs/" + run + "/flow")
	require.Contains(t, text, `"name":"Take"`)
	require.NotContains(t, text, `"name":"Find"`)
	require.Contains(t, text, "approval of the plan")
}

// A goal is planned while it is watched; then its policy is replaced. The flow is that of the newest policy, and the
// earlier one keeps its own.
func TestServeHasTheFlowOfAGoalWhosePolicyIsReplaced(t *testing.T) {
	t.Parallel()
	plans, writes := make(chan struct{}), make(chan string, 10)
	server := &countingServer{blockedCalls: writes}
	server.endpointServer = serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case n == 1:
			writes <- "plan"
			select {
			case <-plans:
				reply(w, twoTasks)
			case <-r.Context().Done():
			}
		case strings.Contains(string(body), "# Task: Find"):
			reply(w, "fact 4711")
		default:
			writes <- "Write"
			<-r.Context().Done()
		}
	})
	narrow := "policy:\n  rules: [{name: nothing, from: finder, to: writer, mode: minimal}]\n"
	dir := clitest.Folder(t, map[string]string{"team.yaml": roster + "goal: Find the facts and then write them down.\n", "narrow.yaml": narrow})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	defer func() { _, _ = running.Process.Kill(), running.Wait() }()
	s, run := serveHere(t, call{dir: dir, env: server.env()}), newestRun(t, dir)
	status, text := s.do("GET", "/runs/"+run+"/flow", "")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "the run has no plan: the coordinator has not made one yet")

	close(plans)
	require.Equal(t, "Write", <-writes)
	before := s.get("/runs/" + run + "/flow")
	first := object(t, before)["policyDigest"].(string)
	require.Equal(t, "whole", reachOf(t, before, "Find", "writer"))
	got := call{dir: dir, args: []string{"policy", run[:8], "narrow.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "Write", <-writes, "it begins again")
	after := s.get("/runs/" + run + "/flow")
	now := object(t, after)["policyDigest"].(string)
	require.NotEqual(t, first, now)
	require.Equal(t, "never", reachOf(t, after, "Find", "writer"))
	require.Contains(t, s.get("/runs/"+run+"/governance/handoff-rules/finder/writer"), "narrow.yaml:2")

	policy := object(t, s.get("/runs/"+run+"/governance/handoff-rules"))
	require.Equal(t, []any{now, []any{first}}, []any{policy["digest"], policy["earlier"]})
	policy = object(t, s.get("/runs/"+run+"/governance/handoff-rules?policy="+first))
	require.Equal(t, []any{first, []any{first}, []any{}}, []any{policy["digest"], policy["earlier"], policy["rules"]})
	status, text = s.do("GET", "/runs/"+run+"/governance/handoff-rules?policy=none", "")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, `the run has had no policy`)
	exported := collected(t, dir, server.env())
	require.Contains(t, string(exported.Documents["/runs/"+run+"/flow"]), now)
	require.JSONEq(t, s.get("/runs/"+run+"/governance/handoff-rules"), string(exported.Documents["/runs/"+run+"/governance/handoff-rules"]))
}

// reachOf returns how much of a source reaches a reader in a flow.
func reachOf(t *testing.T, flow, source, reader string) string {
	t.Helper()
	var d struct {
		Readers []struct{ Name string }
		Sources []struct {
			Name  string
			Reach []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(flow), &d))
	for _, s := range d.Sources {
		for k, r := range d.Readers {
			if s.Name == source && r.Name == reader {
				return s.Reach[k]
			}
		}
	}
	t.Fatalf("the flow has no %s to %s: %s", source, reader, flow)
	return ""
}

// What tasks have read by the policy of that time stays in the flow; what has not run reads by the newest one.
func TestServeHasTheFlowOfTasksWhosePolicyIsReplaced(t *testing.T) {
	t.Parallel()
	server := startCounting(t, "Third")
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: governed
model: test-model
agents: [{name: reader}, {name: writer}, {name: editor}]
tasks:
  - {title: First, assignee: reader, description: one}
  - {title: Second, assignee: writer, dependsOn: [First], description: two}
  - {title: Third, assignee: editor, dependsOn: [First], description: three}
`, "narrow.yaml": "policy:\n  rules: [{from: reader, to: writer, mode: minimal}, {from: reader, to: editor, mode: minimal}]\n"})
	running := server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none", "--max-concurrency", "1"}, env: server.env()})
	defer func() { _, _ = running.Process.Kill(), running.Wait() }()
	s, run := serveHere(t, call{dir: dir, env: server.env()}), newestRun(t, dir)
	got := call{dir: dir, args: []string{"policy", run[:8], "narrow.yaml"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "Third", <-server.blockedCalls, "it begins again")
	flow := s.get("/runs/" + run + "/flow")
	require.Equal(t, "whole", reachOf(t, flow, "First", "writer"))
	require.NotEqual(t, "whole", reachOf(t, flow, "First", "editor"))
}

// The plan of a run that was interrupted is made from what the journal has: before the answer of the coordinator
// there is none, and with another prompt there is none either.
func TestPlansOfInterruptedGoals(t *testing.T) {
	t.Parallel()
	dir := goalRun(t, plannedGoal, plannedScript, exit.StatusOK)
	docs := documentsIn(t, dir)
	k := docs.load("")
	plan := func(h record.History) error {
		_, err := restored.Plan(t.Context(), docs.con, docs.flags, &k.Info, &h)
		return err
	}
	require.NoError(t, plan(k.History))
	answers := 0
	for i := range k.History.Log {
		cut := k.History
		cut.Log, cut.End = k.History.Log[:i], nil
		if answers < 2 {
			require.ErrorContains(t, plan(cut), "the run has no plan: the coordinator has not made one yet", i)
		} else {
			require.NoError(t, plan(cut), i)
		}
		if k.History.Log[i].Exchange != nil {
			answers++
		}
	}
	for i := range k.Info.Files {
		k.Info.Files[i].Text = strings.Replace(k.Info.Files[i].Text, "Find the facts and", "Find all facts and", 1)
	}
	require.ErrorContains(t, plan(k.History), "the run has no plan that can be made again: the prompt of the coordinator would not be the one that was sent")
}
