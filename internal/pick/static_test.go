package pick_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// allOf joins lists written with " & " between them, and blocks after " ! ".
func allOf(t require.TestingT, said string) pick.Selection {
	said, block, _ := strings.Cut(said, " ! ")
	out := only(t, `""`, block)
	for list := range strings.SplitSeq(said, " & ") {
		out = out.And(only(t, list, ""))
	}
	return out
}

func TestEmptyMeansCertainlyNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		`""`:                        false,
		`/a & /b`:                   true,
		`/a & /a/b`:                 true,
		`/a & /a/**`:                false,
		`/a/** & /a/b/**`:           false,
		`/*/x & /a/*`:               false,
		`/*/x & /a/y`:               true,
		`/a /b & /b /c`:             false,
		`/a /b & /b /c & /a /c`:     true,
		`/a ! a`:                    true,
		`/a/b/c ! /a`:               true,
		`/a/b/c ! /*/b`:             true,
		`/a/b/c ! /**/B`:            true,
		`/a/* ! /a/b`:               false,
		`/a/* ! /a/*`:               true,
		`/a/** ! /a/*`:              false, // a scalar at /a
		`"" ! /*`:                   false, // a scalar at the root
		`/a/** /b & /*/** ! a b`:    true,
		`/a/** /b/c & /*/c ! /a /b`: true,
		`/a & /caf\u00e9`:           true,
	}
	for said, want := range tests {
		require.Equal(t, want, allOf(t, said).Empty(), said)
	}
	require.False(t, pick.Everything().Empty())
}

func TestMayPassBeforeThereIsAValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		said, path string
		want       bool
	}{
		{`/a`, "a", true}, {`/a`, "b", false}, {`/a`, "", true}, {`/a`, "*", true},
		{`/a`, "a/b", true}, // a scalar in its stead
		{`/a/b`, "a", true}, {`/a/b`, "a/c", false}, {`/a/b`, "*/b", true}, {`/a/b`, "*/c", false},
		{`/a/**`, "a/b/c", true}, {`/a/**`, "b", false},
		{`/items/*/id`, "items/*/id", true}, {`/items/*/id`, "items/x/id", true}, {`/items/*/id`, "items/*/no", false},
		{`/a/** & /a/b`, "a/c", false}, {`/a/** & /a/b`, "a/b", true},
		{`"" ! ssn`, "ssn", false}, {`"" ! ssn`, "a/SSN/b", false}, {`"" ! ssn`, "a", true}, {`"" ! ssn`, "*", true},
		{`"" ! /a/b`, "a/b/c", false}, {`"" ! /a/b`, "a", true}, {`"" ! /a/b`, "*/b", true}, {`"" ! /a/*`, "a/b", false},
		{`"" ! /a/1`, "a/1", false}, {`"" ! /a/1`, "a/*", true},
		{`/a/b ! /a/b`, "a", false}, {`/a/b /a/c ! /a/b`, "a", true},
	}
	for _, tt := range tests {
		var path []string
		if tt.path != "" {
			path = strings.Split(tt.path, "/")
		}
		require.Equal(t, tt.want, allOf(t, tt.said).MayPass(path), "%s of %s", tt.path, tt.said)
	}
}

func TestMayPassNameBeforeThereIsAValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		said, name string
		want       bool
	}{
		{`/a/b`, "a", true}, {`/a/b`, "b", true}, {`/a/b`, "c", false}, {`/a/b`, "B", false},
		{`/*/b`, "c", true}, {`/a/**`, "c", true},
		{`"" ! ssn`, "SSN", false}, {`"" ! ssn`, "a", true},
		{`"" ! /ssn`, "ssn", true}, // deeper
		{`"" ! /ssn /*/*`, "ssn", false}, {`/a/** ! /a/*`, "ssn", false}, {`/a/** ! /a/*`, "a", true},
		{`/a/** ! /a/ssn /a/*/ssn`, "ssn", true},
		{`/*/* ! /ssn`, "ssn", true}, {`/*/* ! /ssn /*/ssn`, "ssn", false},
		{`/a/** & /a/b`, "c", false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, allOf(t, tt.said).MayPassName(tt.name), "%s of %s", tt.name, tt.said)
	}
}

// Many lists of many paths would make millions of intersections; what is left
// out of them keeps the answers careful.
func TestStaticAnswersAreConservativeForManyPaths(t *testing.T) {
	t.Parallel()
	s := pick.Everything()
	for i := range 10 {
		var list []task.Path
		for j := range 20 {
			list = append(list, task.Path(strings.Repeat("/*", i)+fmt.Sprintf("/n%d", j)+strings.Repeat("/*", 10-i)))
		}
		var err error
		s, err = s.Only(list...)
		require.NoError(t, err)
	}
	path := strings.Split("n1/n2/n3/n4/n5/n6/n7/n8/n9/n10/x", "/")
	var v any = "leaf"
	for i := len(path) - 1; i >= 0; i-- {
		v = map[string]any{path[i]: v}
	}
	require.True(t, s.Apply(v).Any)
	require.True(t, s.MayPass(path))
	require.True(t, s.MayPassName("x"))
	require.False(t, s.Empty())
	require.False(t, s.MayPass(make([]string, 12)))
}

func TestCovers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		allow task.Path
		path  string
		want  bool
	}{
		{"", "", true}, {"", "a/b", true}, {"/**", "a", true}, {"/a", "a", true}, {"/a", "a/b", false}, {"/a", "", false},
		{"/a/**", "a", true}, {"/a/**", "a/b/c", true}, {"/a/**", "b", false}, {"/items/*/id", "items/0/id", true},
		{"/items/*/id", "items/*/id", true}, {"/items/x/id", "items/*/id", false}, {"/caf\u00e9", "caf\u0065\u0301", true},
		{"/A", "a", false}, {"a", "a", false}, {"/0", "0", false},
	}
	for _, tt := range tests {
		var path []string
		if tt.path != "" {
			path = strings.Split(tt.path, "/")
		}
		require.Equal(t, tt.want, pick.Covers(tt.allow, path), "%q of %q", tt.path, tt.allow)
	}
}

func TestWholeEverythingAndBlocks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		said          string
		whole, blocks bool
		words         string
	}{
		{`""`, true, false, "everything"},
		{`/** & "" /a`, true, false, "everything"},
		{`"" ! ssn`, false, true, "everything except ssn"},
		{`"" & /a`, false, false, "/a"},
		{`/score /facts/* ! internal_notes /**/ssn`, false, true, "/facts/*, /score except /**/ssn, internal_notes"},
		{`/b & /b /a`, false, false, "/a, /b and /b"},
		{`/a /b /c /d /e /f /g /h /i /j`, false, false, "/a, /b, /c, /d, /e, /f, /g, /h (2 more)"},
	}
	for _, tt := range tests {
		s := allOf(t, tt.said)
		require.Equal(t, tt.whole, s.Whole(), tt.said)
		require.Equal(t, tt.blocks, s.Blocks(), tt.said)
		require.Equal(t, tt.words, s.String())
		require.False(t, s.IsEverything(), "a list was said")
	}
	require.True(t, pick.Everything().IsEverything())
	require.True(t, pick.Everything().Whole())
	require.Equal(t, "everything", pick.Everything().String())
	require.False(t, pick.Selection{}.IsEverything())
}

func TestPathsAreAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	lists, blocks := allOf(t, `/b /a /a & /c/** ! SSN /x/0`).Paths()
	require.Equal(t, [][]task.Path{{""}, {"/a", "/b"}, {"/c/**"}}, lists)
	require.Equal(t, []task.Path{"/x/0", "SSN"}, blocks)
	lists, blocks = pick.Everything().Paths()
	require.Empty(t, lists)
	require.Empty(t, blocks)
	lists, _ = pick.Selection{}.Paths()
	require.Equal(t, [][]task.Path{{}}, lists)
}
