package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/stretchr/testify/require"
)

// Values of variables that only their endpoint may receive.
const (
	tokenCanary = "canary-token-f83b1"
	keyCanary   = "canary-key-f83b1"
	modelCanary = "canary-model-f83b1"
)

// secretEnv returns an environment with these values.
func secretEnv() map[string]string {
	return map[string]string{"ACME_TOKEN": tokenCanary, "ACME_KEY": keyCanary, "ACME_MODEL": modelCanary, journals.EnvJournalKey: journalTestKey}
}

// A listener is an endpoint that records the requests.
type listener struct {
	url string

	mu   sync.Mutex
	sent []string // of each request: path, headers, body
}

func (l *listener) requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// listen starts an endpoint that answers as handle does.
func listen(t *testing.T, handle http.HandlerFunc) *listener {
	l := &listener{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := json.Marshal(r.Header)
		l.mu.Lock()
		l.sent = append(l.sent, r.URL.Path+" "+string(body))
		l.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(srv.Close)
	l.url = srv.URL
	return l
}

// sending is a spec that sends three variables to an endpoint.
func sending(url string) string {
	return fmt.Sprintf(`
name: sending
model: ${ACME_MODEL}
baseURL: %s/${ACME_TOKEN}/v1
headers: {X-Auth: "Bearer ${ACME_KEY}"}
agents: [{name: a}]
tasks: [{title: T, assignee: a, description: Say one.}]
`, url)
}

// requireUnseen checks that no output and no file of a folder shows a canary.
func requireUnseen(t *testing.T, dir string, outputs ...outcome) {
	t.Helper()
	for _, canary := range []string{tokenCanary, keyCanary, modelCanary} {
		for _, o := range outputs {
			require.NotContains(t, o.stdout+o.stderr, canary)
		}
		require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasSuffix(path, ".env") {
				return err
			}
			text, err := os.ReadFile(path)
			require.NotContains(t, string(text), canary, path)
			return err
		}))
	}
}

// A flag, the environment and trust each allow a run to send a variable. Only the endpoint gets its
// value: no output, journal, trace or recording has it.
func TestVariablesAreAllowedByFlagEnvironmentOrTrust(t *testing.T) {
	t.Parallel()
	ways := map[string]func(url string) (args []string, env map[string]string){
		"flags": func(url string) ([]string, map[string]string) {
			return []string{"--allow-env", "ACME_KEY=" + url, "--allow-env", "ACME_TOKEN=" + url + "/v1", "--allow-env=ACME_MODEL=" + url}, secretEnv()
		},
		"the environment": func(url string) ([]string, map[string]string) {
			env := secretEnv()
			env[source.EnvAllow] = "ACME_KEY=" + url + ", ACME_TOKEN=" + url + "\nACME_MODEL=" + url
			return nil, env
		},
		"trust":                 func(string) ([]string, map[string]string) { return nil, secretEnv() },
		"trust and an env file": func(string) ([]string, map[string]string) { return []string{"--env-file", "my.env"}, nil },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, "fine") })
			dir := clitest.Folder(t, map[string]string{
				"team.yaml": sending(l.url),
				"my.env":    "# of this project\nexport ACME_KEY='" + keyCanary + "'\nACME_TOKEN=" + tokenCanary + " # a comment\nACME_MODEL=\"" + modelCanary + "\"\n",
			})
			args, env := way(l.url)
			if strings.HasPrefix(name, "trust") {
				got := call{dir: dir, args: []string{"trust", "--yes"}}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			}
			run := func(command ...string) outcome {
				got := call{dir: dir, env: env, args: append(command, args...)}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%v: %+v", command, got)
				requireUnseen(t, dir, got)
				return got
			}
			for _, command := range []string{"check", "plan"} {
				got := run(command)
				require.Regexp(t, `(?m)^  ACME_KEY +to `+l.url+`$`, got.stdout)
				require.Regexp(t, `(?m)^  ACME_TOKEN +to `+l.url+`$`, got.stdout)
			}
			require.Contains(t, run("plan").stdout, "leaves to "+l.url+"/${ACME_TOKEN}/v1")
			for _, form := range []string{"json", "dot", "mermaid"} {
				run("plan", "-o", form)
			}
			got := object(t, run("check", "-o", "json").stdout)
			require.Len(t, got["environment"], 3)
			require.Empty(t, l.requests(), "the check makes no call")
			run("run", "--trace", "trace.jsonl", "--record", "script.yaml", "--log-level", "debug")
			require.Len(t, l.requests(), 1)
			require.Contains(t, l.requests()[0], "/"+tokenCanary+"/v1/chat/completions")
			require.Contains(t, l.requests()[0], "Bearer "+keyCanary)
			for _, command := range []string{"show", "explain", "runs", "replay", "show --usage"} {
				got := call{dir: dir, env: map[string]string{journals.EnvJournalKey: journalTestKey}, args: strings.Fields(command)}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%s: %+v", command, got)
				requireUnseen(t, dir, got)
			}
		})
	}
}

// A server may repeat what it was sent in every part of a response that an error quotes.
func TestErrorsDoNotShowEchoesOfAnEndpoint(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 400, 401, 404, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			l := listen(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/models") {
					_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q},{"id":%q}]}`, modelCanary+"-2", r.URL.Path)
					return
				}
				hurry(w)
				w.Header().Set("Location", "http://other.example"+r.URL.Path)
				refuseWith(w, status, "", "no "+r.URL.Path+" for model "+modelCanary+" and "+r.Header.Get("X-Auth"))
			})
			dir := clitest.Folder(t, map[string]string{"team.yaml": sending(l.url)})
			require.Equal(t, exit.StatusOK, call{dir: dir, args: []string{"trust", "--yes"}}.run(t).status)
			env := secretEnv()
			got := call{dir: dir, env: env, args: []string{"run", "--trace", "trace.jsonl", "--log-level", "debug"}}.run(t)
			require.NotEqual(t, exit.StatusOK, got.status)
			require.NotEmpty(t, l.requests())
			require.Contains(t, got.stderr, `model "${ACME_MODEL}" at `+l.url+"/${ACME_TOKEN}/v1")
			requireUnseen(t, dir, got, call{dir: dir, env: env, args: []string{"show", "T"}}.run(t), call{dir: dir, env: env, args: []string{"show", "-o", "json"}}.run(t))
		})
	}
}

// The hint is a command line that works and has nothing in it that a shell would run.
func TestSuggestedFlagsAllowVariables(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"baseURL: http://127.0.0.1:${PORT}/v1\n", "baseURL: ${URL}\n", "baseURL: https://llm.acme.example/${PORT}\n", "agents: [{name: a, systemPrompt: {file: \"${NAME}.md\"}}]\n",
	} {
		if !strings.HasPrefix(text, "agents") {
			text += "agents: [{name: a}]\n"
		}
		dir := clitest.Folder(t, map[string]string{"team.yaml": text, "me.md": "You answer."})
		c := call{dir: dir, env: map[string]string{"PORT": "8000", "URL": "http://localhost:8000/v1", "NAME": "me"}, args: []string{"check"}}
		got := c.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", text, got)
		_, flags, found := strings.Cut(got.stderr, "hint: add ")
		flags, _, _ = strings.Cut(flags, ", or run")
		require.True(t, found, got.stderr)
		shell := c.command(t)
		shell.Path, shell.Args = "/bin/sh", []string{"sh", "-c", `"$0" check ` + flags, binary}
		out, err := shell.CombinedOutput()
		require.NoError(t, err, "%s: %s: %s", text, flags, out)
	}
	dir := clitest.Folder(t, map[string]string{"team.yaml": "baseURL: \"${URL:-http://$(touch pwned)`touch pwned`;'a'.example/v1}\"\napiKey: \"${ACME_KEY}\"\nagents: [{name: a}]\n"})
	got := call{dir: dir, env: secretEnv(), args: []string{"check"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.NotContains(t, got.stderr, "--allow-env", "there is no such host: %s", got.stderr)
}

// Only its user may read the stored consents, and one that other users may have written does not count.
func TestConsentsArePrivate(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "model: m\nbaseURL: https://llm.acme.example/v1\napiKey: ${ACME_KEY}\nagents: [{name: a}]\n"})
	status := func(args ...string) int {
		got := call{dir: dir, env: secretEnv(), args: args}.run(t)
		requireUnseen(t, dir, got)
		return got.status
	}
	require.Equal(t, exit.StatusOK, status("trust", "--yes"))
	store := filepath.Join(dir, ".config", "runteam", "trust")
	at, err := os.Stat(store)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), at.Mode().Perm())
	files, err := os.ReadDir(store)
	require.NoError(t, err)
	require.Len(t, files, 1)
	consent := filepath.Join(store, files[0].Name())
	at, err = os.Stat(consent)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), at.Mode().Perm())
	require.NoError(t, os.Chmod(consent, 0o622))
	require.Equal(t, exit.StatusUsage, status("check"))
	require.NoError(t, os.Chmod(consent, 0o600))
	require.Equal(t, exit.StatusOK, status("check"))
}

func TestLargeEnvFile(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "large.env": "A=" + strings.Repeat("x", source.MaxEnvFile) + "\n"})
	got := call{dir: dir, args: []string{"run", "--env-file", "large.env"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "larger than 64 KiB")
}
