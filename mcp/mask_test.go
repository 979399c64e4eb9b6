package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

// Nothing that a server writes shows a value of its environment or its headers.
func TestSecretsOfAServerAreReplaced(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newServer("fails") }, nil))
	defer web.Close()
	local := server(t, "fails")
	local.Env["TOKEN"] = "canary-value"
	for name, s := range map[string]*mcp.Server{
		"TOKEN":         local,
		"Authorization": {Name: "web", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer canary-value"}},
	} {
		tools, err := s.Tools(t.Context())
		require.NoError(t, err)
		var shared tool.Shared
		for _, f := range tools {
			if f.Name != s.Name+"__echo" {
				continue
			}
			r, err := f.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{"text": "canary-value"}`), Shared: &shared})
			require.NoError(t, err)
			require.True(t, r.IsError)
			require.Equal(t, "no ${"+name+"} today", r.Text)
		}
		require.NoError(t, shared.Close())
	}

	_, err := (&mcp.Server{Name: "a", Command: "sh", Args: []string{"-c", "echo no $TOKEN >&2"}, Env: map[string]string{"TOKEN": "canary-value"}}).Tools(t.Context())
	require.ErrorContains(t, err, "stderr: no ${TOKEN}")
}
