package process

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/confinement.md")

// The documentation has the tables of system calls as the filter has them.
func TestReferenceNamesEveryCall(t *testing.T) {
	t.Parallel()
	const page, start, end = "../../docs/reference/confinement.md", "<!-- calls -->\n", "<!-- end -->"
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), start)
	require.True(t, ok)
	was, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	is := callTables()
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+start+is+end+after), 0o644))
		return
	}
	require.Equal(t, is, was, "go test ./internal/process -run TestReferenceNamesEveryCall -update")
}

func callTables() string {
	var b strings.Builder
	groups := func(title string, list []callGroup) {
		fmt.Fprintf(&b, "| %s | calls |\n| --- | --- |\n", title)
		for _, g := range list {
			names := slices.Sorted(maps.Keys(g.calls))
			fmt.Fprintf(&b, "| %s | `%s` |\n", g.need, strings.Join(names, "` `"))
		}
		b.WriteByte('\n')
	}
	groups("needed by", slices.Concat(permitted, oldPermitted))
	b.WriteString("These depend on their arguments. For all others they fail.\n\n| call | with which arguments |\n| --- | --- |\n")
	for _, c := range checked {
		mark := ""
		if c.starting {
			mark = " (only to start a program)"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s |\n", c.name, mark, c.rule)
	}
	b.WriteString("\nThese report success and do nothing.\n\n")
	groups("what they would change", slices.Concat(pretended, oldPretended))
	return b.String()
}

// Each call is in one table.
func TestCallsAreListedOnce(t *testing.T) {
	t.Parallel()
	seen := map[uint32]string{}
	list := func(name string, number uint32) {
		require.Empty(t, seen[number], name)
		seen[number] = name
	}
	for _, g := range slices.Concat(permitted, oldPermitted, pretended, oldPretended) {
		for name, number := range g.calls {
			list(name, number)
		}
	}
	for _, c := range checked {
		list(c.name, c.number)
	}
}
