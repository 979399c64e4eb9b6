package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// streamed is a team whose answer one task writes.
const streamed = `name: streamed
model: m
agents: [{name: solo}]
tasks:
  - {title: Facts, assignee: solo, description: d}
  - {title: Story, assignee: solo, description: d, dependsOn: [Facts]}
`

// slowStory is an endpoint that streams the same story for each call, and waits before its end until
// it may go on.
func slowStory(t *testing.T, story, end string, on <-chan struct{}) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Stream bool }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &asked); err != nil || !asked.Stream {
			http.Error(w, "this endpoint streams", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range []string{story, end} {
			content, _ := json.Marshal(text)
			fmt.Fprintf(w, `data: {"model":"m","choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", content)
			w.(http.Flusher).Flush()
			if text == story && strings.Contains(string(body), "It ends there.") { // the second task quotes the first
				<-on
			}
		}
		fmt.Fprint(w, `data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestAnswerIsPrintedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	story := strings.Repeat("The river rises in the hills and runs to the sea. ", 40) + "\n\n"
	on := make(chan struct{})
	srv := slowStory(t, story, "It ends there.\n", on)
	cmd := call{dir: clitest.Folder(t, map[string]string{"team.yaml": streamed}), args: []string{"run", "--stream"}, env: map[string]string{"OPENAI_BASE_URL": srv.URL}}.command(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	first := make([]byte, 64)
	_, err = io.ReadFull(out, first)
	require.NoError(t, err)
	close(on) // only now the endpoint ends the answer
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), stderr.String())
	require.Equal(t, story+"It ends there.\n", string(first)+string(rest))
}

// Where stdout and stderr are one pipe, a line of the progress begins a line of its own.
func TestStreamBesideItsProgress(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": streamed, "script.yaml": "replies: [{text: The river.}]\n"})
	out, err := call{dir: dir, args: strings.Fields("run --offline --script script.yaml --stream")}.command(t).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^The river\.$`, string(out))
	require.Regexp(t, `(?m)^ +\S+  completed Story`, string(out))
}

// The answer of a task whose conversation is transferred is that of the last holder: it follows what the first one
// wrote, which does not count.
func TestStreamOfATransferredConversation(t *testing.T) {
	t.Parallel()
	first, last := strings.Repeat("Let me see who knows that of all of us. ", 50)+"\n\n", strings.Repeat("Your money is on its way to you. ", 50)+"\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		text, end := first, `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"transfer_to_billing","arguments":"{\"reason\":\"CANARY-REASON\"}"}}]}}`
		if strings.Contains(string(body), "You settle bills.") {
			text, end = last, `{"index":0,"delta":{}}`
		}
		content, _ := json.Marshal(text)
		fmt.Fprintf(w, `data: {"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"CANARY-THOUGHT"}}]}`+"\n\n")
		fmt.Fprintf(w, `data: {"model":"m","choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", content)
		reason := "stop"
		if text == first {
			reason = "tool_calls"
		}
		fmt.Fprintf(w, "data: {\"model\":\"m\",\"choices\":[%s]}\n\ndata: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", end, reason)
	}))
	t.Cleanup(srv.Close)
	dir := clitest.Folder(t, map[string]string{"team.yaml": `model: m
agents: [{name: triage}, {name: billing, systemPrompt: You settle bills.}]
edges: [{from: triage, to: billing, transfer: true}]
tasks: [{title: Help, assignee: triage, description: d}]
`})
	got := call{dir: dir, args: []string{"run", "--stream"}, env: map[string]string{"OPENAI_BASE_URL": srv.URL}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.NotContains(t, got.stdout, "CANARY")
	require.True(t, strings.HasSuffix(got.stdout, last), got.stdout)
	if before := strings.TrimSuffix(got.stdout, last); before != "" { // unless the caller was slower than both
		require.True(t, strings.HasPrefix(first, strings.TrimSuffix(before, "\n")), before)
		require.Contains(t, got.stderr, "the answer begins again")
	}
}
