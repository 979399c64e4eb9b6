package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/mcp"
)

// TestSchemasOfServers checks that tools can be used whose schemas have keywords of other drafts, of
// OpenAPI or of their server, and that what arguments can be checked against is kept.
func TestSchemasOfServers(t *testing.T) {
	t.Parallel()
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	large := `{"type":"object","properties":{"a":{"type":"string","pattern":"` + strings.Repeat("(x{1000})?", 20) + `"}}}` // calls with a fail
	schemas := map[string][2]string{
		"usual":      {`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]}]}`, `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]}]}`},
		"empty":      {`{"type":"object"}`, `{"type":"object"}`},
		"draft4":     {`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`, `{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}}}`},
		"openapi":    {`{"type":"object","properties":{"a":{"type":"string","nullable":true,"example":"x"}}}`, `{"type":"object","properties":{"a":{"type":["string","null"]}}}`},
		"javascript": {`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)","maxLength":3}}}`, `{"type":"object","properties":{"a":{"type":"string","maxLength":3}}}`},
		"large":      {large, large},
	}
	for name, schema := range schemas {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(schema[0])}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(web.Close)
	tools := toolsOf(t, &mcp.Server{Name: "test", URL: web.URL})
	require.Len(t, tools, len(schemas))
	for name, schema := range schemas {
		require.JSONEq(t, schema[1], string(tools["test__"+name].Parameters), name)
	}
}
