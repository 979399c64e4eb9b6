package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long_", 20)
	for _, tt := range []struct{ give, want []string }{
		{[]string{"find", "Find-2", "_x"}, []string{"s__find", "s__Find-2", "s___x"}},
		{[]string{"db.query"}, []string{"s__db_query"}},
		{[]string{"db.query", "db/query", "db_query"}, []string{"s__db_query_82223c7d", "s__db_query_203ee1e2", "s__db_query"}},
		{[]string{"get (all)", "get all"}, []string{"s__get__all_", "s__get_all"}},
		{[]string{"поиск", "検索", "café_search", "résumé"}, []string{"s__tool_d89cae10", "s__tool_1b6b1a6f", "s__caf_search_56aa18e9", "s__rsum_e9f7b5b6"}},
		{[]string{"...", "", "___"}, []string{"s__tool_ab5df625", "s__tool_e3b0c442", "s_____"}},
		{[]string{long}, []string{"s__" + long[:52] + "_23e18c58"}},
	} {
		got := mcp.NamesOf("s", tt.give)
		require.Equal(t, tt.want, got)
	}
}

// Names are valid and different, and the name of a tool depends on no tool that becomes something
// else.
func TestNamesOfToolsAreDifferent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.StringMatching(`[a-z]{1,32}`).Draw(t, "server")
		given := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.SampledFrom([]rune("ab._/é漢-")), 0, 70, -1), 0, 12, rapid.ID).Draw(t, "names")
		names := mcp.NamesOf(server, given)
		for i, name := range names {
			require.Regexp(t, `^`+server+`__[A-Za-z0-9_-]{1,}$`, name)
			require.LessOrEqual(t, len(name), 64)
			require.NotContains(t, names[:i], name)
		}
		reversed := slices.Clone(given)
		slices.Reverse(reversed)
		again := mcp.NamesOf(server, reversed)
		slices.Reverse(again)
		require.Equal(t, names, again)
	})
}

// named returns a server whose tools have these names.
func named(t testing.TB, names string, allow ...string) *mcp.Server {
	s := raw(t, "names")
	s.Env["NAMES"], s.Allow = names, allow
	return s
}

// An entry of Allow is the tool with exactly this name, if there is one.
func TestAllowMeansTheExactName(t *testing.T) {
	t.Parallel()
	const all = "db.query,db/query,db_query"
	for _, allow := range [][]string{{"db.query"}, {"db/query"}, {"db_query"}, {"db_query", "db.query"}, {"db/query", "db.query", "db_query"}} {
		s := named(t, all, allow...)
		declared, err := s.Declared()
		require.NoError(t, err)
		tools := toolsOf(t, s)
		require.Len(t, tools, len(allow))
		for _, d := range declared {
			require.Contains(t, tools, d.Name)
		}
		var shared tool.Shared
		for _, f := range tools {
			_, err := f.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`), Shared: &shared})
			require.NoError(t, err)
		}
		require.NoError(t, shared.Close())
	}
	require.Len(t, toolsOf(t, named(t, all)), 3)
	for name := range toolsOf(t, named(t, all)) { // a name that was printed can be allowed
		require.Contains(t, toolsOf(t, named(t, all, strings.TrimPrefix(name, "test__"))), name)
	}
	require.Contains(t, toolsOf(t, named(t, "db.query,other", "db_query")), "test__db_query")
}

func TestAllowThatFitsNoToolOrSeveral(t *testing.T) {
	t.Parallel()
	_, err := named(t, "db.query,db/query,x", "db_query", "x").Tools(t.Context())
	var several *mcp.AmbiguousToolError
	require.ErrorAs(t, err, &several)
	require.EqualError(t, err, `mcp server "test": Allow: "db_query" may be any of the tools ["db.query" "db/query"]; write one of these`)
	_, err = named(t, "db.query", "db_query", "db.query").Tools(t.Context())
	require.ErrorContains(t, err, `"db_query" and "db.query" are the same tool; remove one of them`)
	_, err = named(t, "db.query", "query").Tools(t.Context())
	require.ErrorContains(t, err, `no tool "query"`)
}
