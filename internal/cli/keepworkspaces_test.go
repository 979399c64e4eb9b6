package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// writerSpec is a task that writes files.
const writerSpec = `name: notes
model: m
agents: [{name: writer, toolPreset: readwrite}]
tasks: [{title: Write, assignee: writer, description: Write., outputFiles: ["*.txt"]}]
`

// startWriting starts an endpoint whose model writes a file in each of three turns and then
// answers. It blocks in the third turn until it is released.
func startWriting(t *testing.T) (server *endpointServer, blocked chan struct{}, released *atomic.Bool, asked *[4]atomic.Int32) {
	t.Helper()
	blocked, released, asked = make(chan struct{}, 10), &atomic.Bool{}, &[4]atomic.Int32{}
	server = serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		var call struct{ Messages []struct{ Role string } }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			t.Error(err)
			return
		}
		turn := 0
		for _, m := range call.Messages {
			if m.Role == "assistant" {
				turn++
			}
		}
		asked[turn].Add(1)
		if turn == 2 && !released.Load() {
			blocked <- struct{}{}
			<-r.Context().Done()
			return
		}
		if turn == 3 {
			reply(w, "done")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"model":"m","choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"file_write","arguments":"{\"path\":\"%d.txt\",\"content\":\"text\"}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, turn)
	})
	return server, blocked, released, asked
}

// The command is killed in the middle of a conversation, and resume continues it with the files
// that it has written.
func TestResumeOfAKilledConversationWithFiles(t *testing.T) {
	t.Parallel()
	server, blocked, released, asked := startWriting(t)
	dir := clitest.Folder(t, map[string]string{"team.yaml": writerSpec})
	cmd := call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()}.command(t)
	require.NoError(t, cmd.Start())
	<-blocked
	require.NoError(t, cmd.Process.Kill()) // with SIGKILL
	require.Error(t, cmd.Wait())
	left, err := filepath.Glob(filepath.Join(dir, ".runteam", "runs.db.workspaces", "*", "*", "1.txt"))
	require.NoError(t, err)
	require.Len(t, left, 1)

	released.Store(true)
	got := call{dir: dir, args: []string{"resume", "--keep-workspaces", "-o", "json"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.EqualValues(t, 1, asked[0].Load())
	require.EqualValues(t, 1, asked[1].Load())
	require.EqualValues(t, 2, asked[2].Load(), "the turn that was interrupted")
	kept := object(t, got.stdout)["tasks"].([]any)[0].(map[string]any)["workspace"].(string)
	require.Contains(t, got.stderr, `workspace of "Write": `+kept)
	for n := range 3 {
		raw, err := os.ReadFile(filepath.Join(kept, fmt.Sprint(n, ".txt")))
		require.NoError(t, err)
		require.Equal(t, "text", string(raw))
	}
	require.NoFileExists(t, left[0])
	got = call{dir: dir, args: []string{"gc", "--older-than", "0s"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NoDirExists(t, kept, "gc removes what was kept with its run")
}
