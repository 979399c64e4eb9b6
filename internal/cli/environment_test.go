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

// Without consent check, plan and run refuse a spec that sends a variable. Nothing is sent, and the
// error says what to type.
func TestSpecSendsNoVariableWithoutConsent(t *testing.T) {
	t.Parallel()
	l := listen(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, "fine") })
	dir := clitest.Folder(t, map[string]string{"team.yaml": sending(l.url)})
	for _, args := range []string{"check", "plan", "run", "run --no-journal -o json", "plan -o dot"} {
		got := call{dir: dir, env: secretEnv(), args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", args, got)
		require.Contains(t, got.stdout+got.stderr, "--allow-env ACME_KEY="+l.url)
		require.Contains(t, got.stdout+got.stderr, "runteam trust")
		requireUnseen(t, dir, got)
	}
	got := call{dir: dir, env: secretEnv(), args: []string{"run", "--offline"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "an offline run sends nothing: %+v", got)
	requireUnseen(t, dir, got)
	require.Empty(t, l.requests())
}

// A spec cannot send the key of the journal, whatever is allowed.
func TestOwnVariablesAreNeverSent(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": "headers: {X: \"${RUNTEAM_JOURNAL_KEY}\"}\nagents: [{name: a}]\n"})
	for _, args := range [][]string{{"check"}, {"trust", "--yes"}} {
		got := call{dir: dir, env: secretEnv(), args: args}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, "RUNTEAM_JOURNAL_KEY: variables that begin with RUNTEAM_ belong to runteam")
		require.NotContains(t, got.stderr, journalTestKey)
	}
	got := call{dir: dir, env: secretEnv(), args: []string{"check", "--allow-env", "RUNTEAM_JOURNAL_KEY=https://api.openai.com"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
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

// The file may change as long as the same variables go to the same endpoints; any other change ends
// the trust.
func TestTrustLapsesWhenTheListChanges(t *testing.T) {
	t.Parallel()
	const text = "model: m\nbaseURL: https://llm.acme.example/v1\napiKey: ${ACME_KEY}\nagents: [{name: a}]\n"
	dir := clitest.Folder(t, map[string]string{"team.yaml": text, "copy.yaml": text})
	status := func(spec, text string) int {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, spec), []byte(text), 0o600))
		return call{dir: dir, env: secretEnv(), args: []string{"check", spec}}.run(t).status
	}
	trust := func(args ...string) outcome {
		t.Helper()
		got := call{dir: dir, env: secretEnv(), args: append([]string{"trust"}, args...)}.run(t)
		requireUnseen(t, dir, got)
		return got
	}
	require.Equal(t, exit.StatusUsage, status("team.yaml", text))
	got := trust("team.yaml")
	require.Equal(t, exit.StatusUsage, got.status, "without a terminal --yes is needed")
	require.Contains(t, got.stderr, "ACME_KEY  to https://llm.acme.example")
	require.Contains(t, got.stderr, "add --yes")
	require.Equal(t, exit.StatusUsage, status("team.yaml", text), "no consent was stored")

	require.Equal(t, exit.StatusOK, trust("team.yaml", "--yes").status)
	require.Equal(t, exit.StatusOK, status("team.yaml", text))
	require.Equal(t, exit.StatusOK, status("team.yaml", "# a comment\n"+text+"maxConcurrency: 3\n"))
	require.Equal(t, exit.StatusUsage, status("copy.yaml", text), "another file")
	for _, other := range []string{
		strings.ReplaceAll(text, "acme.example", "evil.example"), strings.ReplaceAll(text, "https", "http"), strings.ReplaceAll(text, "example/", "example:444/"),
		text + "headers: {X: \"${ACME_TOKEN}\"}\n", strings.ReplaceAll(text, "ACME_KEY", "ACME_TOKEN"),
		strings.ReplaceAll(text, "{name: a}", "{name: a}, {name: b, baseURL: \"https://evil.example\", apiKey: \"${ACME_KEY}\"}"),
	} {
		require.Equal(t, exit.StatusUsage, status("team.yaml", other), other)
	}
	require.Equal(t, exit.StatusOK, status("team.yaml", text))

	list := trust("--list")
	require.Contains(t, list.stdout, "team.yaml (since ")
	require.Contains(t, list.stdout, "ACME_KEY  to https://llm.acme.example")
	store := filepath.Join(dir, ".config", "runteam", "trust")
	at, err := os.Stat(store)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), at.Mode().Perm())
	files, err := os.ReadDir(store)
	require.NoError(t, err)
	require.Len(t, files, 1)
	kept := filepath.Join(store, files[0].Name())
	at, err = os.Stat(kept)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), at.Mode().Perm())

	require.NoError(t, os.Chmod(kept, 0o622))
	require.Equal(t, exit.StatusUsage, status("team.yaml", text), "other users may have written it")
	require.NoError(t, os.Chmod(kept, 0o600))
	require.Equal(t, exit.StatusOK, status("team.yaml", text))

	require.Equal(t, exit.StatusOK, trust("--revoke", "team.yaml").status)
	require.Equal(t, exit.StatusUsage, status("team.yaml", text))
	require.Equal(t, exit.StatusUsage, trust("--revoke", "team.yaml").status, "no consent is left")
	require.Equal(t, "no spec is trusted\n", trust("--list").stdout)
	require.Equal(t, exit.StatusUsage, call{dir: dir, stdin: text, args: []string{"trust", "-", "--yes"}}.run(t).status, "standard input has no path")
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

// An .env file is never read without --env-file, and errors do not repeat its contents.
func TestEnvFileIsNeverImplicit(t *testing.T) {
	t.Parallel()
	l := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+keyCanary {
			refuseWith(w, 401, "", "no")
			return
		}
		reply(w, "fine")
	})
	const text = "model: m\nagents: [{name: a}]\ntasks: [{title: T, assignee: a, description: Say one.}]\n"
	dir := clitest.Folder(t, map[string]string{
		"team.yaml": text, ".env": "OPENAI_BASE_URL=" + l.url + "/v1\nOPENAI_API_KEY=" + keyCanary + "\n",
		"own.env": "RUNTEAM_ALLOW_ENV=" + keyCanary + "\n", "bad.env": "OK=1\n!" + keyCanary + "\n", "large.env": "A=" + strings.Repeat("x", source.MaxEnvFile) + "\n",
	})
	got := call{dir: dir, args: []string{"run"}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "no API key")
	got = call{dir: dir, args: []string{"run", "--env-file", ".env"}, env: map[string]string{"OPENAI_API_KEY": "another"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, "fine\n", got.stdout)
	for file, want := range map[string]string{"own.env": "RUNTEAM_ALLOW_ENV configures runteam itself", "bad.env": "not in .env form", "large.env": "larger than 64 KiB", "none.env": "no such file", ".": "it is a folder"} {
		got := call{dir: dir, args: []string{"run", "--env-file", file}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", file, got)
		require.Contains(t, got.stderr, want)
		require.NotContains(t, got.stderr, keyCanary)
	}
}

// No consent is needed for an endpoint that OPENAI_BASE_URL names, with and without a key, and for a
// spec that names both.
func TestEnvironmentOfTheReadmeNeedsNoConsent(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"", "baseURL: ${OPENAI_BASE_URL}\n", "baseURL: ${OPENAI_BASE_URL:-http://localhost:11434/v1}\napiKey: ${OPENAI_API_KEY:-none}\n"} {
		l := listen(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, "fine") })
		dir := clitest.Folder(t, map[string]string{"team.yaml": head + "agents: [{name: a}]\ntasks: [{title: T, assignee: a, description: Say one.}]\n"})
		env := map[string]string{"OPENAI_BASE_URL": l.url + "/v1"}
		for range 2 {
			got := call{dir: dir, env: env, args: []string{"run", "--model", "llama3.2"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%s: %+v", head, got)
			env["OPENAI_API_KEY"] = keyCanary
		}
		got := call{dir: dir, env: env, args: []string{"check"}}.run(t)
		require.Regexp(t, `(?m)^  OPENAI_API_KEY +to `+l.url+`$`, got.stdout, "the key goes to that endpoint although the spec may not name it")
		require.Contains(t, call{dir: dir, env: env, args: []string{"plan"}}.run(t).stdout, "leaves to "+l.url+"/v1")
	}
}

// Progress does not redact an address of the local network that the user wrote in the spec.
func TestProgressShowsTheEndpointAsItIsWritten(t *testing.T) {
	t.Parallel()
	l := listen(t, func(w http.ResponseWriter, _ *http.Request) { refuseWith(w, 404, "", "nothing for 10.9.8.7 here") })
	require.Contains(t, l.url, "http://127.0.0.1:")
	dir := clitest.Folder(t, map[string]string{"team.yaml": "model: m\nbaseURL: " + l.url + "/v1\nagents: [{name: a}]\ntasks: [{title: T, assignee: a, description: Say one.}]\n"})
	got := call{dir: dir, args: []string{"run", "--progress", "plain"}}.run(t)
	require.NotEqual(t, exit.StatusOK, got.status)
	require.Contains(t, got.stderr, "failed    T (a): model \"m\" at "+l.url+"/v1: ")
	require.Contains(t, got.stderr, "nothing for [REDACTED:ip] here", "what an endpoint says is redacted as before")
}
