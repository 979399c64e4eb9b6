package matcher_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/matcher"
)

func unlimited(t testing.TB) *matcher.Budget {
	return matcher.NewBudget(t.Context(), matcher.MaxSteps)
}

// requireAsDoublestar requires what the library finds with which globs were matched before, for any of
// the ways to write the braces out. With braces it finds the same, unless a star, a slash or a brace is
// before them: "a*{,.go}" does not match "a" there, and "a*" does.
func requireAsDoublestar(t require.TestingT, pattern, path string) {
	g, err := matcher.ParseGlob(pattern)
	if valid := doublestar.ValidatePattern(pattern); !valid || err != nil {
		require.Equal(t, valid, err == nil, "glob %q: %v", pattern, err)
		return
	}
	got, err := g.Match(matcher.NewBudget(context.Background(), matcher.MaxSteps), path)
	require.NoError(t, err)
	if !strings.Contains(pattern, "/") {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	require.Equal(t, slices.ContainsFunc(written(pattern), func(p string) bool { return doublestar.MatchUnvalidated(p, path) }), got, "glob %q, path %q", pattern, path)
	if !besideBraces.MatchString(pattern) {
		require.Equal(t, doublestar.MatchUnvalidated(pattern, path), got, "glob %q, path %q", pattern, path)
	}
}

var besideBraces = regexp.MustCompile(`[*/{},]\{`)

// written returns a glob with the choices of its first braces written out, and so on.
func written(pattern string) []string {
	depth, open, parts := 0, -1, []string(nil)
	from := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[':
			for i++; pattern[i] != ']'; i++ {
				if pattern[i] == '\\' {
					i++
				}
			}
		case c == '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case c == ',' && depth == 1:
			parts, from = append(parts, pattern[from:i]), i+1
		case c == '}':
			if depth--; depth > 0 {
				continue
			}
			var all []string
			for _, part := range append(parts, pattern[from:i]) {
				all = append(all, written(pattern[:open]+part+pattern[i+1:])...)
			}
			return all
		}
	}
	return []string{pattern}
}

func TestGlobsMatchAsBefore(t *testing.T) {
	t.Parallel()
	aPattern := rapid.StringOfN(rapid.RuneFrom([]rune("aab/**?[]^!-{},\\é")), 0, 12, -1)
	aPiece := rapid.SampledFrom([]string{"a", "b", "/", "*", "**", "**/", "/**", "?", "[a]", "[^a]", "[a-c]", "{a,b}", "{,a}", "{*,b}", "{**/,}", "{a/,b*}", `\*`, `\/`, "é"})
	aGlob := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(aPiece, 0, 7).Draw(t, "pieces"), "")
	})
	aPath := rapid.StringOfN(rapid.RuneFrom([]rune("aaab//cé*")), 0, 10, -1)
	rapid.Check(t, func(t *rapid.T) {
		requireAsDoublestar(t, rapid.OneOf(aPattern, aGlob).Draw(t, "glob"), aPath.Draw(t, "path"))
	})
}

func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"**/*.go", "a*{,.go}", "*{*,x}", "{**/,}a", "[^/]b/**/", `\{a`, "***", "/{**,a}/x"} {
		f.Add(seed, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if strings.Count(pattern, "{") > 5 || len(pattern)+len(path) > 100 { // the library would take long
			t.Skip()
		}
		requireAsDoublestar(t, pattern, path)
	})
}
