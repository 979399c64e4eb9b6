package cli

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

const (
	stolen  = "the words of a private file"
	planted = `
name: planted
model: m
agents: [{name: solo, systemPrompt: {file: role.md}}]
inputs: {claim: }
tasks: [{title: Answer, assignee: solo, description: Say something., uses: [claim]}]
`
)

// A leakServer is an endpoint that refuses the first run and then records the requests.
type leakServer struct {
	*endpointServer
	mu   sync.Mutex
	open bool
	got  strings.Builder
}

func startLeakServer(t *testing.T) *leakServer {
	t.Helper()
	s := &leakServer{}
	s.endpointServer = serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.open {
			refuseWith(w, http.StatusBadRequest, "no", "no")
			return
		}
		s.got.Write(body)
		reply(w, "Thanks.")
	})
	return s
}

// A resumed run reads no file outside the folder of its spec that only the journal names, and sends
// no file that a stored copy of the spec names.
func TestPlantedJournalReadsNoFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spec   string   // - is standard input
		args   []string // of the run; OUT is a folder elsewhere
		plant  func(t *testing.T, dir, out string)
		resume []string
		reads  bool
		refuse string
	}{
		"an input elsewhere":         {args: []string{"--input", "claim=OUT/claim.md"}, plant: func(t *testing.T, _, out string) { replaceFile(t, out, "claim.md") }},
		"an input elsewhere by name": {args: []string{"--input", "claim=OUT/claim.md"}, plant: func(t *testing.T, _, out string) { replaceFile(t, out, "claim.md") }, resume: []string{"--input", "claim=OUT/claim.md"}, reads: true},
		"an input beside the spec":   {args: []string{"--input", "claim=claim.md"}, plant: func(t *testing.T, dir, _ string) { replaceFile(t, dir, "claim.md") }, reads: true},
		"an input behind a link":     {args: []string{"--input", "claim=claim.md"}, plant: linkOut("claim.md")},
		"a file of a spec that is gone": {args: []string{"--input", "claim=claim.md"}, plant: func(t *testing.T, dir, _ string) {
			replaceFile(t, dir, "role.md")
			replaceFile(t, dir, "claim.md")
			require.NoError(t, os.Remove(filepath.Join(dir, "team.yaml")))
		}},
		"an input by name, of a spec that is gone": {args: []string{"--input", "claim=claim.md"}, plant: func(t *testing.T, dir, _ string) {
			replaceFile(t, dir, "claim.md")
			require.NoError(t, os.Remove(filepath.Join(dir, "team.yaml")))
		}, resume: []string{"--input", "claim=claim.md"}, reads: true},
		"a file of a spec from standard input": {spec: "-", args: []string{"--input", "claim=claim.md"}, plant: func(t *testing.T, dir, _ string) {
			replaceFile(t, dir, "role.md")
			replaceFile(t, dir, "claim.md")
		}},
		"settings elsewhere": {args: []string{"--input", "claim=claim.md", "--orchestrator", "OUT/orchestrator.yaml"}, plant: func(t *testing.T, dir, _ string) { replaceFile(t, dir, "claim.md") },
			refuse: "add --orchestrator FILE"},
		"settings elsewhere by name": {args: []string{"--input", "claim=claim.md", "--orchestrator", "OUT/orchestrator.yaml"}, plant: func(t *testing.T, dir, _ string) { replaceFile(t, dir, "claim.md") },
			resume: []string{"--orchestrator", "OUT/orchestrator.yaml"}, reads: true},
		"settings that are gone": {args: []string{"--input", "claim=claim.md", "--orchestrator", "orchestrator.yaml"}, plant: func(t *testing.T, dir, _ string) {
			replaceFile(t, dir, "claim.md")
			require.NoError(t, os.Remove(filepath.Join(dir, "orchestrator.yaml")))
		}, refuse: "add --orchestrator FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startLeakServer(t)
			dir := clitest.Folder(t, map[string]string{"team.yaml": planted, "role.md": "You answer.", "claim.md": "a claim", "orchestrator.yaml": "maxConcurrency: 2"})
			out := clitest.Folder(t, map[string]string{"claim.md": "a claim", "orchestrator.yaml": "maxConcurrency: 2"})
			with := func(args []string) []string {
				return strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "OUT", out), "\n")
			}
			run := call{dir: dir, args: append([]string{"run"}, with(tt.args)...), env: server.env()}
			if tt.spec == "-" {
				run.args, run.stdin = append(run.args, "-"), planted
			}
			first := run.run(t)
			require.Equal(t, exit.StatusFailed, first.status, "%+v", first)
			tt.plant(t, dir, out)
			server.mu.Lock()
			server.open = true
			server.mu.Unlock()
			got := call{dir: dir, args: append([]string{"resume"}, with(tt.resume)...), env: server.env()}
			if len(tt.resume) == 0 {
				got.args = got.args[:1]
			}
			end := got.run(t)
			if tt.refuse != "" {
				require.Equal(t, exit.StatusUsage, end.status, "%+v", end)
				require.Contains(t, end.stderr, tt.refuse)
				require.Empty(t, server.got.String())
				return
			}
			require.Equal(t, exit.StatusOK, end.status, "%+v", end)
			require.Contains(t, server.got.String(), "Say something.")
			require.Equal(t, tt.reads, strings.Contains(server.got.String(), stolen), "%s\n%s", end.stderr, server.got.String())
		})
	}
}

// replaceFile replaces a file that the run has read.
func replaceFile(t *testing.T, dir, name string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(stolen), 0o600))
}

func linkOut(name string) func(t *testing.T, dir, out string) {
	return func(t *testing.T, dir, out string) {
		replaceFile(t, out, name)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		require.NoError(t, os.Symlink(filepath.Join(out, name), filepath.Join(dir, name)))
	}
}

// No command uses a journal folder that is a link or belongs to another user.
func TestJournalFolderOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, dir string) error{
		"link": func(t *testing.T, dir string) error {
			other := filepath.Join(t.TempDir(), "runs")
			require.NoError(t, os.Rename(filepath.Join(dir, ".runteam"), other))
			return os.Symlink(other, filepath.Join(dir, ".runteam"))
		},
		"owner": func(_ *testing.T, dir string) error { return os.Chown(filepath.Join(dir, ".runteam"), 65534, 65534) },
		"owner of runs": func(_ *testing.T, dir string) error {
			return os.Chown(filepath.Join(dir, ".runteam", "runs.db"), 65534, 65534)
		},
		"mode": func(_ *testing.T, dir string) error { return os.Chmod(filepath.Join(dir, ".runteam"), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir := startCounting(t), relayFolder(t)
			require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"run"}, env: server.env()}.run(t).status)
			server.takeCalls()
			if err := plant(t, dir); err != nil {
				t.Skip(err)
			}
			for _, args := range [][]string{{"runs"}, {"show"}, {"resume"}, {"run"}, {"replay"}, {"gc", "--older-than", "1d"}, {"runs", "--journal", ".runteam/runs.db"}} {
				got := call{bare: true, dir: dir, args: args, env: server.env()}.run(t)
				require.Equal(t, exit.StatusNoRun, got.status, "%v: %+v", args, got)
				require.Contains(t, got.stderr, "it may be the work of another user", "%v", args)
			}
			require.Empty(t, server.takeCalls())
		})
	}
}

// A folder that --journal names is checked as .runteam is, before anything is stored in it.
func TestNamedJournalInAFolderOfOthers(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(dir string) error{
		"group may write": func(dir string) error { return os.Chmod(dir, 0o770) },
		"all may write":   func(dir string) error { return os.Chmod(dir, 0o702) },
		"owner":           func(dir string) error { return os.Chown(dir, 65534, 65534) },
		"link": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir))
		},
		"of temporary files": func(dir string) error { return os.Chmod(dir, 0o777|fs.ModeSticky) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir := startCounting(t), relayFolder(t)
			kept := filepath.Join(dir, "kept")
			require.NoError(t, os.Mkdir(kept, 0o700))
			if err := plant(kept); err != nil {
				t.Skip(err)
			}
			for _, args := range [][]string{{"run"}, {"runs"}} {
				got := call{bare: true, dir: dir, args: append(args, "--journal", "kept/runs.db"), env: server.env()}.run(t)
				if name == "of temporary files" {
					require.Zero(t, got.status, got.stderr)
					continue
				}
				require.NotZero(t, got.status)
				require.Contains(t, got.stderr, "kept", "%v", args)
				require.Contains(t, got.stderr, "it may be the work of another user", "%v", args)
				require.Empty(t, server.takeCalls())
				require.Empty(t, clitest.Listing(t, kept))
			}
		})
	}
}
