package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/stretchr/testify/require"
)

// echoing is a spec whose agent sends a header and a prompt of its own.
const echoing = `
name: echoing
model: test-model
maxConcurrency: 1
agents: [{name: solo, headers: {X-Team: canary-in-the-header-4711}}]
tasks: [{title: Answer, assignee: solo, maxRetries: 0, description: Find the canary-in-the-prompt-0815.}]
`

// TestForeignTextsRepeatNothing runs the command against endpoints that repeat
// the key, a header and the prompt in every place that reaches the caller, and
// looks for them in all that the command writes.
func TestForeignTextsRepeatNothing(t *testing.T) {
	t.Parallel()
	const key = "canary-in-the-key-1234567890"
	secrets := []string{key[:20], "canary-in-the-header", "canary-in-the-prompt"}
	forms := map[string]func(string) string{
		"raw":     func(s string) string { return s },
		"percent": func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "-", "%2D") },
		"base64":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"escaped": func(s string) string { return strings.ReplaceAll(s, "-", `\u002d`) },
		"split":   func(s string) string { return strings.ReplaceAll(s, "-", " - ") },
	}
	places := map[string]func(w http.ResponseWriter, r *http.Request, said string){
		"redirect": func(w http.ResponseWriter, _ *http.Request, said string) {
			w.Header().Set("Location", "https://elsewhere.example/"+said)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"models": func(w http.ResponseWriter, r *http.Request, said string) {
			if r.Method == http.MethodGet {
				quoted, _ := json.Marshal(said)
				fmt.Fprintf(w, `{"data":[{"id":%s}]}`, quoted)
				return
			}
			w.WriteHeader(http.StatusNotFound)
		},
		"finish reason": func(w http.ResponseWriter, _ *http.Request, said string) {
			hurry(w)
			quoted, _ := json.Marshal(said)
			fmt.Fprintf(w, `{"choices":[{"message":{"tool_calls":[{"function":{"name":%s}}]},"finish_reason":%s}]}`, quoted, quoted)
		},
		"headers": func(w http.ResponseWriter, _ *http.Request, said string) {
			for _, name := range []string{"X-Request-Id", "Retry-After", "Www-Authenticate", "Content-Type", "Server"} {
				w.Header().Set(name, said)
			}
			w.WriteHeader(http.StatusUnauthorized)
		},
		"error": func(w http.ResponseWriter, _ *http.Request, said string) { refuseWith(w, 400, said, said) },
	}
	for place, handle := range places {
		for form, encode := range forms {
			if form != "raw" && place != "redirect" {
				continue // the packages below test each form in each place
			}
			t.Run(place+"/"+form, func(t *testing.T) {
				t.Parallel()
				server := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
					body, _ := io.ReadAll(r.Body)
					said := "and " + r.Header.Get("Authorization") + " and " + r.Header.Get("X-Team")
					if _, prompt, ok := strings.Cut(string(body), "Find the "); ok {
						said += " and " + prompt[:25]
					}
					handle(w, r, encode(said+"."))
				})
				env := server.env()
				env["OPENAI_API_KEY"] = key
				dir := t.TempDir()
				got := call{dir: dir, args: []string{"run", "-", "-o", "json", "--trace", "trace.jsonl"}, stdin: echoing, env: env}.run(t)
				require.NotEqual(t, exit.StatusUsage, got.status, got.stderr)
				trace, err := os.ReadFile(filepath.Join(dir, "trace.jsonl"))
				require.NoError(t, err)
				written := map[string]string{"stderr": got.stderr, "stdout": got.stdout, "trace": string(trace), "journal": journalLines(t, dir)}
				for where, text := range written {
					text = strings.ReplaceAll(text, "Find the canary-in-the-prompt-0815.", "") // as the caller wrote it
					for _, secret := range secrets {
						require.Empty(t, repeated(text, secret), "%s: %s", where, text)
					}
				}
			})
		}
	}
}

// repeated returns the form in which a text repeats a secret; it is empty if the text does not.
func repeated(text, secret string) string {
	packed := base64.StdEncoding.EncodeToString([]byte(secret))
	for form, of := range map[string]string{
		"raw": secret, "percent": strings.ReplaceAll(secret, "-", "%2D"), "split": strings.ReplaceAll(secret, "-", " - "),
		"escaped": strings.ReplaceAll(secret, "-", `\u002d`), "escaped twice": strings.ReplaceAll(secret, "-", `\\u002d`),
		"base64": packed[4:20],
	} {
		if strings.Contains(text, of) {
			return form
		}
	}
	return ""
}

// journalLines returns the lines of the run in the journal of a folder.
func journalLines(t *testing.T, dir string) string {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, journals.FolderName, journals.FileName), journal.Options{ReadOnly: true})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // nothing was written
	text, err := journaltest.Text(j.Lines(t.Context(), ""))
	require.NoError(t, err)
	return text
}
