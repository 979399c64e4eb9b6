package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestToolNamesAreThoseOfTheSpec(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"search/web_search", "bash", "__x", "x__"}, ToolNames([]string{"search__web_search", "bash", "__x", "x__"}))
	for give, want := range map[string]string{
		"tool:search__web_search":                  "tool:search/web_search",
		"from tool:a__b, tool:bash and tool:c__d.": "from tool:a/b, tool:bash and tool:c/d.",
		"results of a__b":                          "results of a__b",
	} {
		require.Equal(t, want, Readers(give))
	}
}
