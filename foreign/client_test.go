package foreign

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm/scripted"
)

// OpenAI's own client reads the tool calls of the scripted endpoint and sends the results.
func TestScriptedToolCallsWithOpenAIsClient(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(filepath.Join("node_modules", "openai")); err != nil {
		t.Skip("the client is not installed; run make foreign in the folder above")
	}
	script, err := scripted.Parse("script.yaml", []byte(`
replies:
  - text: Both at once.
    toolCalls: [{name: look_up, arguments: {name: Ann}}, {name: look_up, arguments: {name: "Bob, a man with a long name"}}]
  - toolCalls: [{name: look_up, arguments: {name: Cid}}]
  - text: '{{ toolResult "look_up" 1 }} {{ toolResult "look_up" 2 }} {{ toolResult "look_up" }}'
`))
	require.NoError(t, err)
	server, err := scripted.Start(script)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	client, err := filepath.Abs("testdata/client.mjs")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "node", client, server.URL()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	want := `{"called":["Ann","Bob, a man with a long name","Cid"],"text":"Ann lives in Oslo. Bob, a man with a long name lives in Oslo. Cid lives in Oslo.","finish":["tool_calls","tool_calls","stop"]}` + "\n"
	require.Equal(t, strings.Repeat(want, 2), string(out))
}
