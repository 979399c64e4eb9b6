package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// A run whose workspaces are in a named folder is resumed with that folder. With another one, its conversation starts over.
func TestWorkspacesInANamedFolder(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]struct {
		asked int32 // how often the first turn is
		warns bool
	}{"../ws": {1, false}, "": {2, true}} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			server, blocked, released, asked := startWriting(t)
			dir := clitest.Folder(t, map[string]string{"team/team.yaml": writerSpec})
			at, ws := filepath.Join(dir, "team"), filepath.Join(dir, "ws")
			cmd := call{dir: at, args: []string{"run", "--progress", "none", "--workspaces", "../ws"}, env: server.env()}.command(t)
			require.NoError(t, cmd.Start())
			<-blocked
			require.NoError(t, cmd.Process.Kill()) // with SIGKILL
			require.Error(t, cmd.Wait())
			left, err := filepath.Glob(filepath.Join(ws, ".runteam-*", "*", "*", "1.txt"))
			require.NoError(t, err)
			require.Len(t, left, 1)

			released.Store(true)
			args := []string{"resume"}
			if flag != "" {
				args = append(args, "--workspaces", flag)
			}
			got := call{dir: at, args: args, env: server.env()}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, want.asked, asked[0].Load())
			const warning = `task "Write": a conversation starts over, since its files were left on host `
			require.Equal(t, want.warns, strings.Contains(got.stderr, warning), got.stderr)
			require.Equal(t, want.warns, strings.Contains(call{dir: at, args: []string{"show"}}.run(t).stdout, warning))
			got = call{dir: at, args: []string{"gc", "--older-than", "0s", "--workspaces", "../ws"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			list, err := os.ReadDir(ws)
			require.NoError(t, err)
			require.Empty(t, list)
		})
	}
}

func TestFlagForWorkspaces(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": writerSpec})
	for args, want := range map[string]struct {
		status int
		stderr string
	}{
		"run --offline --workspaces team.yaml":        {exit.StatusUsage, "--workspaces team.yaml: team.yaml is not a folder"},
		"serve --workspaces missing/ws team.yaml":     {exit.StatusUsage, "--workspaces missing/ws: the folder missing does not exist: create it first"},
		"run --offline --workspaces=":                 {exit.StatusUsage, "--workspaces is empty: name a folder"},
		"chat --offline --no-journal --workspaces ws": {exit.StatusUsage, "--workspaces has no effect with --no-journal"},
		"check team.yaml --workspaces ws":             {exit.StatusUsage, "unknown flag: --workspaces"},
	} {
		got := call{bare: true, dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, want.status, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stderr, want.stderr)
	}
	require.NoFileExists(t, filepath.Join(dir, ".runteam", "runs.db"))
}
