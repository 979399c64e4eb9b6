package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// pressTeam is a team of which the reporter sends three handoffs: one to the editor, whose task is later, one to
// the archive, which has no task, and one of confidential context, which the editor may read and not pass on.
const pressTeam = `
name: press
model: m
offline: script.yaml
inputs:
  note: {text: A source says it., classification: confidential}
agents:
  - {name: reporter, systemPrompt: Report.}
  - {name: insider, systemPrompt: Report., accepts: confidential}
  - {name: editor, systemPrompt: Edit., accepts: confidential}
  - {name: archive, systemPrompt: Keep.}
edges:
  - {from: reporter, to: editor}
  - {from: reporter, to: archive}
  - {from: insider, to: editor}
tasks:
  - {title: Report, assignee: reporter, description: Report it.}
  - {title: Listen, assignee: insider, uses: [note], description: Listen.}
  - {title: Edit, assignee: editor, dependsOn: [Report, Listen], description: Edit it.}
`

const pressScript = `
replies:
  - task: Report
    toolCalls:
      - name: send_handoff
        arguments:
          to: editor
          message: Storm hits the coast.
          structured: {wind: 90}
          artifacts: [{type: diff, ref: "artifact://diff/123"}]
          status: {ok: true, reason: two sources}
          meta: {desk: coast, card: 4111 1111 1111 1111}
      - {name: send_handoff, arguments: {to: archive, message: "Keep\e[2J this."}}
  - {task: Report, text: filed}
  - {task: Listen, toolCalls: [{name: send_handoff, arguments: {to: editor, message: From the source.}}]}
  - {task: Listen, text: heard}
  - {task: Edit, text: edited}
`

func pressRun(t *testing.T) (dir string) {
	t.Helper()
	dir = clitest.Folder(t, map[string]string{"team.yaml": pressTeam, "script.yaml": pressScript})
	got := offlineRun(t, call{dir: dir, env: map[string]string{"KEY": "k"}})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	return dir
}

// schemaOfHandoffs returns the schema that runteam schema handoff prints.
func schemaOfHandoffs(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	got := call{args: []string{"schema", "handoff"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	return resolved
}

// TestSchemaOfHandoffs checks the schema with the example of the format's description.
func TestSchemaOfHandoffs(t *testing.T) {
	t.Parallel()
	schema := schemaOfHandoffs(t)
	example := func() (v map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(`{
			"kind": "handoff", "id": "payload-uuid", "fromNodeId": "node-a", "toNodeId": "node-b", "createdAt": "2026-01-01T00:00:00Z",
			"payload": {
				"message": "Short summary", "structured": {"key": "value"}, "artifacts": [{"type": "diff", "ref": "artifact://diff/123"}],
				"status": {"ok": true, "reason": "tests-pass"}, "response": {"expectation": "optional", "replyTo": "node-a"}, "meta": {"ticket": 7}
			}
		}`), &v))
		return v
	}
	require.NoError(t, schema.Validate(example()))
	for _, name := range []string{"kind", "id", "fromNodeId", "toNodeId", "createdAt", "payload"} {
		v := example()
		delete(v, name)
		require.Error(t, schema.Validate(v), name)
	}
	for name, change := range map[string]func(v, payload map[string]any){
		"no message":        func(_, payload map[string]any) { delete(payload, "message") },
		"another kind":      func(v, _ map[string]any) { v["kind"] = "message" },
		"an unknown member": func(_, payload map[string]any) { payload["text"] = "x" },
		"no reference":      func(_, payload map[string]any) { payload["artifacts"] = []any{map[string]any{"type": "diff"}} },
		"a status in words": func(_, payload map[string]any) { payload["status"] = "ok" },
	} {
		v := example()
		payload := maps.Clone(v["payload"].(map[string]any))
		v["payload"] = payload
		change(v, payload)
		require.Error(t, schema.Validate(v), name)
	}
	got := call{args: []string{"schema", "handof"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stdout, `not \"handof\"`)
}

func TestShowHandoffs(t *testing.T) {
	t.Parallel()
	dir := pressRun(t)
	got := call{dir: dir, args: []string{"show", "--handoffs"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `(?s)^press: run [0-9a-f-]+: 3 handoffs, 1 unread
.*reporter → editor · sent by Report in turn 1 · internal
  read by Edit \(editor\) in turn 1 at [0-9:]+
  │ Storm hits the coast\.
  structured \{"wind":90\}
  diff artifact://diff/123
  status ok: two sources
  meta \{"card":"4111 1111 1111 1111","desk":"coast"\}
`, got.stdout)
	require.Regexp(t, `reporter → archive · sent by Report in turn 1 · internal
  unread
  │ Keep\\x1b\[2J this\.
`, got.stdout)
	require.Regexp(t, `insider → editor · sent by Listen in turn 1 · confidential
  read by Edit \(editor\) in turn 1 at [0-9:]+
  │ From the source\.
`, got.stdout)
	got = call{dir: dir, args: []string{"show", "--handoffs", "Listen"}}.run(t)
	require.Contains(t, got.stdout, ": 1 handoff\n")
	require.NotContains(t, got.stdout, "Storm")
	require.Contains(t, call{dir: dir, args: []string{"show"}}.run(t).stdout, "\n3 handoffs, 1 unread: runteam show --handoffs ")
	require.Equal(t, exit.StatusUsage, call{dir: dir, args: []string{"show", "--handoffs", "--usage"}}.run(t).status)

	got = call{dir: dir, args: []string{"explain", "Edit"}}.run(t)
	require.Contains(t, got.stdout, `"meta":{"card":"[REDACTED:card]","desk":"coast"}`)
	require.NotContains(t, got.stdout, "4111")

	got = call{dir: dir, args: []string{"show", "--handoffs", "-o", "json"}}.run(t)
	var doc struct{ Handoffs []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &doc))
	require.Len(t, doc.Handoffs, 3)
	schema := schemaOfHandoffs(t)
	for _, h := range doc.Handoffs {
		require.NoError(t, schema.Validate(h), "%v", h)
	}
	var typed sent.Document
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &typed))
	byTo := map[string]sent.Handoff{}
	for _, h := range typed.Handoffs {
		byTo[h.From+">"+h.To] = h
	}
	first := byTo["reporter>editor"]
	require.JSONEq(t, `{"message":"Storm hits the coast.","structured":{"wind":90},"artifacts":[{"type":"diff","ref":"artifact://diff/123"}],"status":{"ok":true,"reason":"two sources"},"meta":{"desk":"coast","card":"4111 1111 1111 1111"}}`, jsonOf(t, first.Payload))
	require.Equal(t, []any{"Report", 1, 1}, []any{first.Meta.Title, first.Meta.Attempt, first.Meta.Turn})
	require.Len(t, first.Meta.Read, 1)
	require.Empty(t, byTo["reporter>archive"].Meta.Read)
}

// TestWhatWasSent checks that the user of a run sees what was sent, with the documents of each task, and the pairs of
// tasks in the graph.
func TestWhatWasSent(t *testing.T) {
	t.Parallel()
	k := documentsIn(t, pressRun(t)).load("")
	var texts []string
	for _, h := range sent.Of(k) {
		texts = append(texts, h.Payload.Message)
		require.Equal(t, h.Payload.Message != "Storm hits the coast.", h.Payload.Structured == nil)
	}
	require.ElementsMatch(t, []string{"Storm hits the coast.", "Keep\x1b[2J this.", "From the source."}, texts)
	d, err := explain.HandoffsOf(k, "Edit")
	require.NoError(t, err)
	require.Len(t, d.Sent, 2)
	require.Len(t, explain.HandoffsBetween(k, "reporter", "archive").Sent, 1)
	require.ElementsMatch(t, []rungraph.Way{{From: taskNamed(k, "Report"), To: taskNamed(k, "Edit")}, {From: taskNamed(k, "Listen"), To: taskNamed(k, "Edit")}}, rungraph.New(k, nil).Sent)
}

// The caller of a run does not learn of handoffs that the policy keeps from it.
func TestHandoffsThatThePolicyWithholds(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": pressTeam + "policy: {rules: [{from: reporter, to: user, mode: minimal}]}\n", "script.yaml": pressScript})
	got := offlineRun(t, call{dir: dir, env: map[string]string{"KEY": "k"}})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	for _, more := range [][]string{nil, {"-o", "json"}} {
		got := call{dir: dir, args: append([]string{"show", "--handoffs"}, more...)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stdout, "From the source.")
		require.NotContains(t, got.stdout, "withheld", "how many there are depends on what their sender reads")
		require.NotContains(t, got.stdout, "Storm")
		require.NotContains(t, got.stdout, "wind")
	}
}

// The guide has a spec and a script, which make the handoff that it shows.
func TestGuideToHandoffs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/how-to/let-agents-talk.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 4)
	planned := clitest.Folder(t, map[string]string{"team.yaml": blocks[2][1], "script.yaml": blocks[3][1]})
	got := call{bare: true, dir: planned, args: []string{"run", "team.yaml", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stderr, "warning")
	require.Contains(t, string(text), "$ runteam run team.yaml --offline\n"+got.stdout)
	got = call{dir: planned, args: []string{"replay"}}.run(t)
	require.Contains(t, got.stderr, "equal to the byte", "%+v", got)
	dir := clitest.Folder(t, map[string]string{"team.yaml": blocks[0][1], "script.yaml": blocks[1][1]})
	got = offlineRun(t, call{dir: dir})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "Storm hits the coast: A storm hit the coast at noon.")
	got = call{dir: dir, args: []string{"show", "--handoffs"}}.run(t)
	own := regexp.MustCompile(`run [0-9a-f-]+:|\d\d:\d\d:\d\d`)
	_, shown, _ := strings.Cut(string(text), "$ runteam show --handoffs\n")
	shown, _, _ = strings.Cut(shown, "```")
	require.Equal(t, own.ReplaceAllString(strings.ReplaceAll(shown, "run 4f1c…:", "run 4f1c:"), "*"), own.ReplaceAllString(got.stdout, "*"))
}

// taskNamed returns the ID of a task with a title.
func taskNamed(k *journals.StoredRun, title string) task.ID {
	for _, t := range k.Tasks {
		if t.Title == title {
			return t.ID
		}
	}
	return ""
}

// jsonOf returns a document as JSON.
func jsonOf(t *testing.T, document any) string {
	t.Helper()
	text, err := json.Marshal(document)
	require.NoError(t, err)
	return string(text)
}

// askingFolder returns a folder with a team of which an agent asks another one, and waits for so long. The other
// works as its reply of the script says.
func askingFolder(t *testing.T, wait time.Duration, work string) string {
	t.Helper()
	return clitest.Folder(t, map[string]string{"team.yaml": `
model: m
offline: script.yaml
agents: [{name: a}, {name: b}]
edges: [{from: a, to: b, bidirectional: true}]
tasks:
  - {title: Ask, assignee: a, description: Ask.}
  - {title: Work, assignee: b, description: Work.}
`, "script.yaml": fmt.Sprintf(`
replies:
  - {task: Ask, turn: 1, toolCalls: [{name: send_handoff, arguments: {to: b, message: May I?, response: {expectation: required, timeoutMs: %d}}}]}
  - {task: Ask, text: asked}
  - %s
`, wait.Milliseconds(), work)})
}

// A handoff whose sender waited in vain says so.
func TestHandoffsWithoutAReply(t *testing.T) {
	t.Parallel()
	dir := askingFolder(t, 20*time.Millisecond, "{task: Work, text: done, delay: 1s}")
	got := call{dir: dir, args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"show", "--handoffs"}}.run(t)
	require.Contains(t, got.stdout, "response required, to a: there was no reply (TIMEOUT)\n")
	got = call{dir: dir, args: []string{"show", "--handoffs", "-o", "json"}}.run(t)
	require.Contains(t, got.stdout, `"noReply":true`)
}

// In a run whose process was killed, nothing waits any more: a handoff says that the run was interrupted.
func TestHandoffsOfAnInterruptedRun(t *testing.T) {
	t.Parallel()
	for want, work := range map[string]string{
		"the run was interrupted before it was read":       "{task: Work, text: done, delay: 1h}",
		"the run was interrupted before there was a reply": "{task: Work, turn: 1, delay: 200ms, toolCalls: [{name: send_handoff, arguments: {to: a, message: Wait.}}]}\n  - {task: Work, text: done, delay: 1h}",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			dir := askingFolder(t, 10*time.Minute, work)
			cmd := call{dir: dir, args: []string{"run", "--offline"}}.command(t)
			require.NoError(t, cmd.Start())
			sent := func() string { return call{dir: dir, args: []string{"show", "--handoffs"}}.run(t).stdout }
			require.Eventually(t, func() bool {
				text := sent()
				return strings.Contains(text, "response required, to a: waiting\n") && strings.Contains(text, "read by Work (b) in turn 2") == strings.Contains(want, "reply")
			}, 20*time.Second, 50*time.Millisecond)
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			require.Contains(t, sent(), "response required, to a: "+want+"\n")
			got := call{dir: dir, args: []string{"show", "--handoffs", "-o", "json"}}.run(t)
			require.Contains(t, got.stdout, `"reply":{"state":"interrupted"}`)
		})
	}
}
