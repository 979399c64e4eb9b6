package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// mcpClient starts the command as an MCP client does.
func mcpClient(t *testing.T, c call) *sdk.ClientSession {
	t.Helper()
	cmd := c.command(t)
	cmd.Stdin = nil // the client writes to it
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func TestServeMCP(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": clitest.Contents(t, filepath.Join(harvest, "team.yaml")), "script.yaml": clitest.Contents(t, filepath.Join(harvest, "script.yaml"))})
	s := mcpClient(t, call{dir: dir, args: []string{"serve", "--mcp", "--offline", "team.yaml"}, env: map[string]string{"RUNTEAM_OUTPUT": "json"}})
	list, err := s.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Tools, 1)
	require.Equal(t, "harvest", list.Tools[0].Name)
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "harvest", Arguments: map[string]any{"report": "Field 9 gave 52 tonnes. Rain fell on 3 days."}})
	require.NoError(t, err)
	require.False(t, res.IsError)
	require.Equal(t, "Dear owner, A good year: 52 is more than 40 tonnes, with 3 days of rain.", res.Content[0].(*sdk.TextContent).Text)
	require.NoError(t, s.Close()) // which waits for the process
	got := call{dir: dir, args: []string{"show", res.Meta["runteam/runId"].(string)}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, got.stderr)
	require.Contains(t, got.stdout, "52 is more than 40 tonnes")
}

// TestARunOfMCPIsAnsweredAndResumed: what came with the call is in the journal.
func TestARunOfMCPIsAnsweredAndResumed(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"a.yaml": `
name: approve
inputs: {letter: {classification: confidential}}
agents: [{name: editor, backend: {kind: person}, accepts: confidential}]
tasks:
  - {title: Review, key: r, assignee: editor, uses: [letter], description: May it be sent?}
  - {title: Send, uses: [letter], dependsOn: [r], template: "{{.results.r}}: {{.inputs.letter}}"}
`, "--input letter": "a file that a resumed run must not read"})
	s := mcpClient(t, call{dir: dir, args: []string{"serve", "--mcp", "a.yaml"}})
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "approve", Arguments: map[string]any{"letter": "Dear Ann"}})
	require.NoError(t, err)
	require.True(t, res.IsError)
	text := res.Content[0].(*sdk.TextContent).Text
	require.NoError(t, s.Close())
	for line := range strings.SplitSeq(text, "\n") {
		command, isCommand := strings.CutPrefix(line, "  runteam ")
		if !isCommand {
			continue
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", "exec "+binary+" "+strings.ReplaceAll(command, "'…'", "yes"))
		shell.Dir, shell.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
		out, err := shell.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		if strings.HasPrefix(command, "resume") {
			require.Contains(t, string(out), "yes: Dear Ann\n")
			require.NotContains(t, string(out), "no longer exists")
			return
		}
	}
	t.Fatalf("no command resumes the run: %s", text)
}

func TestServeMCPAnswersWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(harvest)))
	got := call{dir: dir, stdin: "hello\n", args: []string{"serve", "--mcp", "--offline"}}
	got.args = append(got.args, "team.yaml")
	ended := got.run(t)
	require.Equal(t, exit.StatusOK, ended.status, ended.stderr)
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the line is not JSON; send one JSON-RPC 2.0 message in each line"}}`+"\n", ended.stdout)
}

func TestServeMCPRefusesFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--listen is for the page":                {"--listen", "127.0.0.1:0", harvest},
		"--read-only is for the page":             {"--read-only", harvest},
		"name at least one SPEC":                  nil,
		"standard input is for the MCP client":    {"-"},
		"--timeout -1s: write a time above zero":  {"--timeout", "-1s", harvest},
		"--accepts secret: what is secret is not": {"--accepts", "secret", harvest},
	} {
		got := call{args: append([]string{"serve", "--mcp", "--offline"}, args...), env: map[string]string{"RUNTEAM_OUTPUT": "json"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", want, got)
		require.Contains(t, got.stderr, want)
		require.Empty(t, got.stdout)
	}
}
