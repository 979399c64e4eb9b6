package pick_test

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// Requirement: G5.
func TestAllowPaths(t *testing.T) {
	t.Parallel()
	good := []task.Path{"", "/**", "/a", "/a/**", "/items/*/id", "/*", "/*/*/**", "/", "/a~0b~1c", "/~01", "/caf\u00e9", "/-", "/v2", "/2a",
		task.Path(strings.Repeat("/a", 64)), task.Path(strings.Repeat("/a", 64) + "/**")}
	for _, p := range good {
		require.NoError(t, pick.CheckAllow(p), "%q", p)
	}
	tests := []struct {
		give task.Path
		want string
	}{
		{"category", "write /category"},
		{"items/*/id", "write /items/*/id"},
		{"items/**", "write /items/**"},
		{"**", "write /**"},
		{"/items/0/id", "write /items/*/id"},
		{"/a~1b/12/**", "write /a~1b/*/**"},
		{"/a/**/b", `write "*" for one segment`},
		{"/**/ssn", `write "*" for one segment`},
		{"/**/**", `write "*" for one segment`},
		{"/a~", "write ~0"},
		{"/a~2", "write ~0"},
		{"/~~0", "write ~0"},
		{"/a\nb", "control character (U+000A) at byte 2"},
		{"/a\u0085b", "U+0085"},
		{"/a\u2028b", "U+2028"},
		{"/a\x00", "U+0000"},
		{"/a\xff", "not valid UTF-8"},
		{task.Path(strings.Repeat("/a", 65)), "65 segments, more than 64"},
	}
	for _, tt := range tests {
		err := pick.CheckAllow(tt.give)
		require.ErrorIs(t, err, pick.ErrPath, "%q", tt.give)
		require.ErrorContains(t, err, tt.want)
	}
}

// Requirement: G5.
func TestBlockPaths(t *testing.T) {
	t.Parallel()
	good := []task.Path{"/a", "/a/**", "/a/0/b", "/*", "/a/*/b", "ssn", "/**/ssn", "/**/ssn/**", "s\u200bsn", "a b", "0", "~1", "/",
		task.Path(strings.Repeat("/0", 64))}
	for _, p := range good {
		require.NoError(t, pick.CheckBlock(p), "%q", p)
	}
	tests := []struct {
		give task.Path
		want string
	}{
		{"", "it would block everything: write mode minimal"},
		{"/**", "it would block everything: write mode minimal"},
		{"*", "it would block everything: write mode minimal"},
		{"/**/*", "it would block everything: write mode minimal"},
		{"**", "**"},
		{"/**/**", "**"},
		{"/a/**/b", `write "*" for one segment`},
		{"/**/a/b", "write a pointer from the root, or one name"},
		{"a/b", "write /a/b"},
		{"\u200b", "no visible character"},
		{"/**/", "no visible character"},
		{"/ssn*", `not for a part of "ssn*"`},
		{"*ssn", `not for a part of "*ssn"`},
		{"a~", "write ~0"},
		{"/a\tb", "control character"},
		{"\xffssn", "not valid UTF-8"},
		{task.Path(strings.Repeat("/0", 65)), "65 segments"},
	}
	for _, tt := range tests {
		err := pick.CheckBlock(tt.give)
		require.ErrorIs(t, err, pick.ErrPath, "%q", tt.give)
		require.ErrorContains(t, err, tt.want)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for path, want := range map[task.Path][]string{
		"": nil, "/**": nil, "/": {""}, "/a": {"a"}, "/a/**": {"a"}, "/a/*/b~1c/~0~01": {"a", "*", "b/c", "~~1"},
	} {
		require.NoError(t, pick.CheckAllow(path))
		require.Equal(t, want, pick.Tokens(path), "%q", path)
		if want != nil {
			require.True(t, pick.Covers(path, want), "%q", path)
		}
	}
}

func TestBadPathsAreAllNamedAndSelectNothing(t *testing.T) {
	t.Parallel()
	s, err := pick.Everything().Only("/a", "b", "/c/0")
	require.ErrorIs(t, err, pick.ErrPath)
	require.ErrorContains(t, err, "write /b")
	require.ErrorContains(t, err, "write /c/*")
	require.True(t, s.Empty())
	s, err = pick.Everything().Except("/a", "", "b/c")
	require.ErrorContains(t, err, "write mode minimal")
	require.ErrorContains(t, err, "write /b/c")
	require.False(t, s.Apply("x").Any)
}
