package filetree_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/filetree"
)

func TestPathThatIsAFileAndAFolder(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a", filetree.Tree{"a": nil, "a/b": new("text")}.Conflict())
	require.Equal(t, "a/b", filetree.Tree{"a/b": new("text"), "a/b/c/d": nil}.Conflict())
	require.Empty(t, filetree.Tree{"a": nil, "ab/c": new("text"), "b/a": nil}.Conflict())
}

func TestTextsThatRedactionMayHaveMade(t *testing.T) {
	t.Parallel()
	const of = "a [REDACTED:email] b [REDACTED:password] c\nd\n"
	require.True(t, filetree.IsRedacted(of, "a ann@x.org b hunter c\nd\n"))
	for _, other := range []string{"a ann@x.org b hunter c\ne\n", "a ann@x.org b hunter c d\n", "a ann@x.org hunter c\nd\n", "x a ann@x.org b hunter c\nd\n", "a ann@x.org b hunter c x\nd\n", "a\nd\n"} {
		require.False(t, filetree.IsRedacted(of, other), other)
	}
	require.False(t, filetree.IsRedacted("a", "ab"))
}
