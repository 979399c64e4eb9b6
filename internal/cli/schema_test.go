package cli

import (
	"encoding/json"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

func TestSchemaMatchesOnlySpecs(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"schema"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Empty(t, got.stderr)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	require.NoError(t, resolved.Validate(map[string]any{"agents": []any{map[string]any{"name": "a"}}}))
	require.Error(t, resolved.Validate(map[string]any{"agnets": []any{}}))
	text, err := starter.ReadFile("starter/team.yaml")
	require.NoError(t, err)
	var team any
	require.NoError(t, yaml.Unmarshal(text, &team))
	require.NoError(t, resolved.Validate(team))
}
