package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/slowtest"
)

// memoryLimit is what the processes of these tests may use, in MiB.
const memoryLimit = 768

// workingTeam has four agents that call tools at once.
const workingTeam = `
name: work
model: m
baseURL: ENDPOINT/v1
maxConcurrency: 4
agents:
  - {name: one, toolPreset: readwrite}
  - {name: two, toolPreset: readwrite}
  - {name: three, toolPreset: readwrite}
  - {name: four, toolPreset: readwrite}
tasks:
  - {title: A, assignee: one, description: Work., outputSchema: {}}
  - {title: B, assignee: two, description: Work., outputSchema: {}}
  - {title: C, assignee: three, description: Work., outputSchema: {}}
  - {title: D, assignee: four, description: Work., outputSchema: {}}
`

// A hostileCall is a call of a tool by a model that wants the process to run out of memory.
type hostileCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// drawHostileCalls draws the turns of a model that fills a file, and then asks for as much as it can.
func drawHostileCalls() *rapid.Generator[[]hostileCall] {
	huge := rapid.SampledFrom([]int{1, 1000, 1 << 31, 1 << 53})
	unit := rapid.SampledFrom([]string{"a", "\n", "a\n", "[],", `{"":0},`, "é\n", "\x01"})
	return rapid.Custom(func(t *rapid.T) []hostileCall {
		u := unit.Draw(t, "unit")
		text := strings.Repeat(u, rapid.SampledFrom([]int{1, 1 << 10, (100 << 10) / len(u)}).Draw(t, "times"))
		calls := []hostileCall{{"file_write", map[string]any{"path": "f", "content": text}}}
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			calls = append(calls, rapid.SampledFrom([]hostileCall{
				{"file_edit", map[string]any{"path": "f", "old_string": u[:1], "new_string": strings.Repeat("b", rapid.SampledFrom([]int{2, 100, 4096, 100 << 10}).Draw(t, "new")), "replace_all": true}},
				{"grep", map[string]any{"pattern": rapid.SampledFrom([]string{"", "a", ".*", "(a?){500}a{500}"}).Draw(t, "pattern"), "maxResults": huge.Draw(t, "results")}},
				{"glob", map[string]any{"pattern": "**", "maxFiles": huge.Draw(t, "files")}},
				{"file_read", map[string]any{"path": "f", "offset": huge.Draw(t, "offset"), "limit": huge.Draw(t, "limit")}},
				{"file_write", map[string]any{"path": "f", "content": text, "more": []any{strings.Split(strings.Repeat("x,", 1<<10), ",")}}},
			}).Draw(t, "call"))
		}
		return calls
	})
}

// hostileAnswers are answers, in JSON, that are large, or of which little text makes many values.
var hostileAnswers = []string{`"done"`, "[" + strings.Repeat("[],", 1<<20) + "[]]", "[" + strings.Repeat(`{"":0},`, 1<<19) + "0]", `"` + strings.Repeat("x", 4<<20-100) + `"`}

// hostileModel serves a model that makes the calls, one in each turn, and then answers.
func hostileModel(t *testing.T, calls []hostileCall, answer string) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Messages []struct{ Role string } }
		if json.NewDecoder(r.Body).Decode(&request) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		turn := 0
		for _, m := range request.Messages {
			if m.Role == "assistant" {
				turn++
			}
		}
		message := map[string]any{"role": "assistant", "content": answer}
		if turn < len(calls) {
			arguments, _ := json.Marshal(calls[turn].Arguments)
			message = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": fmt.Sprint("c", turn), "type": "function", "function": map[string]any{"name": calls[turn].Name, "arguments": string(arguments)}}}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"model": "m", "choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": message}}, "usage": map[string]any{"prompt_tokens": 1, "completion_tokens": 1}})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// peak runs a command in a process of its own that may use memoryLimit, and returns how much it used at most, in MiB.
func peak(t *testing.T, c call) (got outcome, mostMiB int) {
	t.Helper()
	cmd := c.command(t)
	cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%dMiB", memoryLimit))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	most := regexp.MustCompile(`VmHWM:\s*(\d+) kB`)
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // what wait4 tells counts the parent too
		if found := most.FindSubmatch(status); found != nil {
			n, err := strconv.Atoi(string(found[1]))
			require.NoError(t, err)
			mostMiB = max(mostMiB, n>>10)
		}
		select {
		case err := <-ended:
			return outcome{status: statusAfter(t, err), stdout: stdout.String(), stderr: stderr.String()}, mostMiB
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Whatever a model asks its tools for, four attempts at once do not end the process, nor take more memory than it may use.
//
// Requirement: G66.
func TestHostileCallsStayWithinTheMemory(t *testing.T) {
	t.Parallel()
	runs := 1
	if slowtest.Enabled() {
		runs = 25
	}
	for i := range runs {
		calls, answer := drawHostileCalls().Example(i), hostileAnswers[i%len(hostileAnswers)]
		dir := clitest.Folder(t, map[string]string{"team.yaml": strings.ReplaceAll(workingTeam, "ENDPOINT", hostileModel(t, calls, answer))})
		got, most := peak(t, call{dir: dir, args: []string{"run", "-o", "json", "--progress", "none"}, env: map[string]string{"OPENAI_API_KEY": "none"}})
		require.Contains(t, []int{0, 1}, got.status, "%.300s %.300s", got.stdout, got.stderr)
		var made []string
		for _, c := range calls {
			arguments, err := json.Marshal(c.Arguments)
			require.NoError(t, err)
			made = append(made, fmt.Sprintf("%s %.80s (%d)", c.Name, arguments, len(arguments)))
		}
		require.Less(t, most, memoryLimit, "%q", made)
		t.Log(most, got.status, made)
	}
}
