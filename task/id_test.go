package task_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// namespace is written out here once more, since changing it would orphan every stored run.
var namespace = uuid.MustParse("dd305df5-2d5d-5ec9-804b-65a9beb2dc3f")

func TestNamespaceIsDerivedAsDocumented(t *testing.T) {
	t.Parallel()
	require.Equal(t, namespace, uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/runteam/runteam/task")))
}

func TestNewIDIsTheUUIDv5OfTheNormalisedTitle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		title := rapid.String().Draw(t, "title")
		want := uuid.NewSHA1(namespace, []byte(naming.Normalize(title)))
		require.Equal(t, want.String(), string(task.NewID(title)))
	})
	long := strings.Repeat("Ü very long ", 100)
	require.Equal(t, uuid.NewSHA1(namespace, []byte(naming.Normalize(long))).String(), string(task.NewID(long)))
}

func TestNewIDIsPinned(t *testing.T) {
	t.Parallel()
	require.Equal(t, uuid.NewSHA1(namespace, []byte("extract facts")).String(), string(task.NewID(" Extract Facts ")))
	require.EqualValues(t, "299edc06-8578-59a7-83eb-cbc4ed831f7e", task.NewID("Extract facts"))
}
