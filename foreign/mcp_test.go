package foreign

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

// example builds an example server of the Go SDK and returns its path.
func example(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/examples/server/"+name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// overHTTP starts an example server that speaks streamable HTTP and returns its URL.
func overHTTP(t *testing.T, path string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	cmd := exec.Command(path, "-http", address)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + address)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond, "the server does not answer")
	return "http://" + address
}

// use runs a task whose model calls the tools of a server as a script says. It returns the
// result and what the model got for its calls, without fences.
func use(t *testing.T, s *mcp.Server, script string) (result string, got []string) {
	t.Helper()
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	replies, err := scripted.Parse("script.yaml", []byte("replies:\n"+script))
	require.NoError(t, err)
	endpoint, err := scripted.Start(replies)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, endpoint.Close()) })
	model, err := endpoint.Model("any")
	require.NoError(t, err)
	var names []string
	for _, f := range tools {
		names = append(names, f.Name)
	}
	result = work(t, model, "Use the server.", tools, names...)
	all := endpoint.Requests()
	for _, m := range all[len(all)-1].Messages {
		if m.Role == llm.ToolResult {
			lines := strings.Split(m.Text, "\n")
			got = append(got, strings.Join(lines[1:len(lines)-1], "\n"))
		}
	}
	return result, got
}

// The memory of the example server lasts as long as a session, which is an attempt; over
// HTTP all sessions share it.
func TestMemoryServerOfTheGoSDK(t *testing.T) {
	t.Parallel()
	path := example(t, "memory")
	for name, server := range map[string]*mcp.Server{
		"stdio": {Name: "memory", Command: path}, "HTTP": {Name: "memory", URL: overHTTP(t, path)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const script = `
  - toolCalls:
      - name: memory__create_entities
        arguments: {entities: [{name: Ann, entityType: person, observations: [lives in Oslo]}]}
  - toolCalls:
      - {name: memory__add_observations, arguments: {observations: [{entityName: Ann, contents: [likes tea]}]}}
      - {name: memory__add_observations, arguments: {observations: [{entityName: Bob, contents: [likes tea]}]}}
      - {name: memory__open_nodes, arguments: {names: Ann}}
  - toolCalls: [{name: memory__open_nodes, arguments: {names: [Ann]}}]
  - text: '{{ toolResult "memory__open_nodes" | match "{.*}" | field "entities.0.observations" }}'
`
			result, got := use(t, server, script)
			require.JSONEq(t, `["lives in Oslo", "likes tea"]`, result)
			require.Len(t, got, 5)
			require.Contains(t, got[2], "entity with name Bob not found")
			require.Contains(t, got[3], "Invalid arguments", "the schema of the server is checked before the call")
		})
	}
}

// The server asks its client for samples, input and roots, and gets none of them.
func TestEverythingServerOfTheGoSDK(t *testing.T) {
	t.Parallel()
	path := example(t, "everything")
	for name, server := range map[string]*mcp.Server{
		"stdio": {Name: "all", Command: path}, "HTTP": {Name: "all", URL: overHTTP(t, path)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got := use(t, server, `
  - toolCalls:
      - {name: all__greet, arguments: {name: Ann}}
      - {name: all__greet__structured_, arguments: {name: Ann}}
      - {name: all__greet__content_with_ResourceLink_, arguments: {name: Ann}}
      - {name: all__ping}
      - {name: all__log}
      - {name: all__sample}
      - {name: all__elicit__form_}
      - {name: all__roots}
  - text: done
`)
			require.Equal(t, []string{"Hi Ann", `{"message":"Hi Ann"}`, "[link data:text/plain,Hi%20Ann]", "", ""}, got[:5])
			require.Contains(t, got[5], "sampling failed")
			require.Contains(t, got[6], "eliciting failed")
			if got[7] != "" { // an empty list
				require.Contains(t, got[7], "listing roots failed")
			}
		})
	}
}

// The server of the reference implementation in TypeScript reads and writes in its folder,
// and refuses every other path.
func TestFilesystemServerOfNpm(t *testing.T) {
	t.Parallel()
	program, err := filepath.Abs("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	require.NoError(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Skip("the server is not installed; run make foreign in the folder above")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	inside, outside := filepath.Join(root, "inside"), filepath.Join(root, "outside.txt")
	require.NoError(t, os.Mkdir(inside, 0o700))
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	server := &mcp.Server{
		Name: "fs", Command: "node", Args: []string{program, inside}, Stateless: true, Options: tool.Options{Repeatable: true},
		Allow: []string{"write_file", "read_text_file", "edit_file", "list_directory", "list_allowed_directories"},
	}
	result, got := use(t, server, strings.NewReplacer("INSIDE", inside, "OUTSIDE", outside).Replace(`
  - toolCalls:
      - {name: fs__list_allowed_directories}
      - {name: fs__write_file, arguments: {path: INSIDE/note.txt, content: "one {{ .Task }}\ntwo\n"}}
      - {name: fs__read_text_file, arguments: {path: OUTSIDE}}
      - {name: fs__write_file, arguments: {path: INSIDE/../new.txt, content: x}}
      - {name: fs__read_text_file, arguments: {path: 7}}
  - toolCalls:
      - {name: fs__edit_file, arguments: {path: INSIDE/note.txt, edits: [{oldText: two, newText: three}]}}
      - {name: fs__read_text_file, arguments: {path: INSIDE/note.txt, head: 1}}
      - {name: fs__read_text_file, arguments: {path: INSIDE/none.txt}}
      - {name: fs__list_directory, arguments: {path: INSIDE}}
  - text: '{{ toolResult "fs__read_text_file" 3 }}'
`))
	require.Equal(t, "one Work", content(result))
	require.Contains(t, got[0], inside)
	require.Contains(t, got[2], "Access denied")
	require.Contains(t, got[3], "Access denied")
	require.Contains(t, got[4], "Invalid arguments")
	require.Contains(t, got[5], "+three")
	require.Contains(t, got[7], "ENOENT")
	require.Contains(t, got[8], "[FILE] note.txt")
	text, err := os.ReadFile(filepath.Join(inside, "note.txt"))
	require.NoError(t, err)
	require.Equal(t, "one Work\nthree\n", string(text))
	require.NoFileExists(t, filepath.Join(root, "new.txt"))
}

// content returns the content in the structured result of the filesystem server.
func content(result string) string {
	if m := regexp.MustCompile(`"content":"([^"]*)"`).FindStringSubmatch(result); m != nil {
		return m[1]
	}
	return result
}
