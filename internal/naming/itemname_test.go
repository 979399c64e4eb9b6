package naming_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/naming"
)

func TestItemNames(t *testing.T) {
	t.Parallel()
	keys := []any{"ann", json.Number("3"), "3", nil, "", "a\u200bb", "b]", "x", "X"}
	require.Equal(t, []string{"ann", "", "", "", "", `"a\u200bb"`, `"b]"`, "", ""}, naming.ItemNames(keys, "id"))
	require.Equal(t, []string{"id=3", "-3"}, naming.ItemNames([]any{json.Number("3"), "-3"}, "id"))
	require.NotNil(t, naming.ItemNames(nil, "id"))
}

func TestWithItems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		title, written string
		items          []string
		want           string
	}{
		{"Mail[3]", "Mail", []string{"ann"}, "Mail[ann]"},
		{"Mail[1][2]", "Mail", []string{"ann", ""}, "Mail[ann][2]"},
		{"Mail[1][2]", "Mail", []string{"", "bo"}, "Mail[1][bo]"},
		{"Mail#2[1]#1.3[2]", "Mail", []string{"ann", "bo"}, "Mail#2[ann]#1.3[bo]"},
		{"Mail[9][1]", "Mail[9]", []string{"ann"}, "Mail[9][ann]"},
		{"Mail[1]", "Mail", []string{""}, ""},
		{"Mail[1]", "Mail", []string{"ann", "bo"}, ""},
		{"Mail[1]", "Letter", []string{"ann"}, ""},
		{"Mail", "Mail", nil, ""},
	} {
		require.Equal(t, tt.want, naming.WithItems(tt.title, tt.written, tt.items), tt.title)
	}
}
