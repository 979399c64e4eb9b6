package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"
)

// A thinker is an endpoint that refuses a conversation with tools unless the reasoning and the signatures of its
// earlier replies come back to the byte. It calls a tool in two turns, and then answers.
type thinker struct {
	*endpointServer

	blocked chan struct{} // has a value for each request that gets no answer

	mu            sync.Mutex // guards the fields below
	conversations int
	came          []int // by request, how many earlier replies came back
	refused       int
	blocks        bool // whether requests after two calls get no answer
}

// reasoning and signature are what the thinker attaches to a reply. Their spaces, escapes and numbers must stay.
func reasoning(conversation, turn int) string {
	return fmt.Sprintf(`"canary-thought \u00e9 <%d.%d>"`, conversation, turn)
}

func signature(conversation, turn int) string {
	return fmt.Sprintf(`{ "seal":"canary-seal", "n" : 1.50e+2, "of":"%d.%d"}`, conversation, turn)
}

func startThinker(t *testing.T) *thinker {
	t.Helper()
	s := &thinker{blocked: make(chan struct{}, 10)}
	s.endpointServer = serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		var body struct {
			Messages []struct {
				Role      string
				Reasoning json.RawMessage `json:"reasoning_content"`
				ToolCalls []struct {
					Extra json.RawMessage `json:"extra_content"`
				} `json:"tool_calls"`
			}
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		s.mu.Lock()
		defer s.mu.Unlock()
		turns, complete := 0, err == nil
		for _, m := range body.Messages {
			if m.Role == "assistant" {
				turns++
				complete = complete && len(m.ToolCalls) == 1 && string(m.Reasoning) == reasoning(s.conversations, turns) && string(m.ToolCalls[0].Extra) == signature(s.conversations, turns)
			}
		}
		s.came = append(s.came, turns)
		switch {
		case !complete:
			s.refused++
			http.Error(w, `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API."}}`, http.StatusBadRequest)
			return
		case turns == 2 && s.blocks:
			s.blocked <- struct{}{}
			s.mu.Unlock()
			<-r.Context().Done()
			s.mu.Lock()
			return
		case turns == 2:
			reply(w, "done")
			return
		case turns == 0:
			s.conversations++
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"x","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"reasoning_content":%s,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"search__web_search","arguments":"{\"query\":\"%d\"}"},"extra_content":%s}]}}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`,
			reasoning(s.conversations, turns+1), turns+1, turns+1, signature(s.conversations, turns+1))
	})
	return s
}

// takeCame returns how many replies came back with each request since the last call of it, and lets the thinker
// answer or block.
func (s *thinker) takeCame(blocks bool) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := s.came
	s.came, s.blocks = nil, blocks
	return came
}

// The process of a conversation that a provider wants back is killed after calls of a tool, or during one. With the
// journal key it continues with what the provider attached. Without the key it begins again, or fails if a call may
// have taken effect.
//
// Requirement: G64.
func TestAConversationWithProviderDataIsKilled(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	const key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	for name, tt := range map[string]struct {
		key, effect string
		hangs       bool   // the second call does not return, so the process is killed during it
		came        []int  // by request after the last kill
		calls       string // the queries of all calls
	}{
		"after calls, with the key":                    {key, "none", false, []int{2}, "1 2"},
		"after calls, without a key":                   {"", "none", false, []int{0, 1, 2}, "1 2 1 2"},
		"after external calls, with the key":           {key, "external", false, []int{2}, "1 2"},
		"after external calls, without a key":          {"", "external", false, nil, "1 2"},
		"during a call, with the key":                  {key, "none", true, []int{2}, "1 2 2"},
		"during a call, without a key":                 {"", "none", true, []int{0, 1, 2}, "1 2 1 2"},
		"during an external call, with the key":        {key, "external", true, nil, "1 2"},
		"during an external call, without a key":       {"", "external", true, nil, "1 2"},
		"after calls, with a key from the second time": {"-" + key, "none", false, []int{0, 1, 2}, "1 2 1 2"},
		"after calls, twice, with the key":             {key, "none", false, []int{2}, "1 2"},
		"after external calls, twice, with the key":    {key, "external", false, []int{2}, "1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, log := startThinker(t), filepath.Join(t.TempDir(), "calls")
			s.takeCame(!tt.hangs)
			mode := "counted"
			if tt.hangs {
				mode = "hangs"
			}
			dir := clitest.Folder(t, map[string]string{"team.yaml": fmt.Sprintf(`name: s
model: m
tools:
  search: {mcp: {command: %q, args: [%s, %q]}, allow: [web_search], effect: %s, stateless: true}
agents: [{name: solo, tools: [search], allowUntrusted: [search]}]
tasks: [{title: Answer, assignee: solo, description: Search.}]
`, toolServer(t), mode, log, tt.effect)})
			env := s.env()
			if second, isLater := strings.CutPrefix(tt.key, "-"); !isLater {
				env["RUNTEAM_JOURNAL_KEY"] = tt.key
			} else {
				tt.key = second
			}
			kill := func(command string) {
				cmd := call{dir: dir, args: []string{command, "--progress", "none"}, env: env}.command(t)
				require.NoError(t, cmd.Start())
				if tt.hangs {
					require.Eventually(t, func() bool { return callsIn(log) == "1 2" }, 30*time.Second, 5*time.Millisecond)
				} else {
					require.Eventually(t, func() bool { return len(s.blocked) > 0 }, 30*time.Second, 5*time.Millisecond)
					<-s.blocked
				}
				require.NoError(t, cmd.Process.Kill())
				_ = cmd.Wait()
				requireNoCanary(t, filepath.Join(dir, ".runteam"))
			}
			kill("run")
			if strings.Contains(name, "twice") {
				kill("resume")
			}
			s.takeCame(false)

			env["RUNTEAM_JOURNAL_KEY"] = tt.key
			got := call{dir: dir, args: []string{"resume", "--progress", "none", "-o", "json"}, env: env}.run(t)
			require.Equal(t, tt.came, s.takeCame(false))
			require.Equal(t, tt.calls, callsIn(log))
			require.Zero(t, s.refused)
			if tt.came == nil {
				require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
				require.Contains(t, got.stdout, `"EFFECTS_UNCERTAIN"`)
			} else {
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
				require.Contains(t, got.stdout, "done")
			}
			requireNoCanary(t, filepath.Join(dir, ".runteam"))
		})
	}
}

// callsIn returns the queries in the log of a server of tools.
func callsIn(log string) string {
	raw, _ := os.ReadFile(log)
	return strings.Join(strings.Fields(string(raw)), " ")
}

// requireNoCanary holds that no file of a folder has what the provider attached.
func requireNoCanary(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(raw), "canary", f.Name())
	}
}
