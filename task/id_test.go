package task_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

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
		want := uuid.NewSHA1(namespace, []byte(task.Normalize(title)))
		require.Equal(t, want.String(), string(task.NewID(title)))
	})
	long := strings.Repeat("Ü very long ", 100)
	require.Equal(t, uuid.NewSHA1(namespace, []byte(task.Normalize(long))).String(), string(task.NewID(long)))
}

func TestNewIDIsPinned(t *testing.T) {
	t.Parallel()
	require.Equal(t, uuid.NewSHA1(namespace, []byte("extract facts")).String(), string(task.NewID(" Extract Facts ")))
	require.EqualValues(t, "299edc06-8578-59a7-83eb-cbc4ed831f7e", task.NewID("Extract facts"))
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"already normal", "score fraud", "score fraud"},
		{"blanks and capitals", " \tScore FRAUD\n", "score fraud"},
		{"not ascii", "ÜBERSICHT", "übersicht"},
		{"decomposed becomes composed", "e\u0301tude", "étude"},
		{"no-break space is a blank", "\u00a0a\u00a0", "a"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, task.Normalize(tt.give))
		})
	}
}

func TestNormalizeIsIdempotentAndIgnoresCase(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		title := rapid.String().Draw(t, "title")
		normal := task.Normalize(title)
		require.Equal(t, normal, task.Normalize(normal))
		require.True(t, utf8.ValidString(normal))
		ascii := rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "ascii")
		require.Equal(t, task.Normalize(ascii), task.Normalize(strings.ToUpper(ascii)))
	})
}

func TestNormalizeAgreesOnCanonicallyEqualTitles(t *testing.T) {
	t.Parallel()
	for r := rune(0x80); r < 0x20000; r++ {
		for _, mark := range []string{"", "\u0301", "\u0307"} {
			title := "a" + string(r) + mark
			normal := task.Normalize(norm.NFC.String(title))
			if normal != task.Normalize(norm.NFD.String(title)) || !norm.NFC.IsNormalString(normal) || task.Normalize(normal) != normal {
				t.Fatalf("%+q: %+q", title, normal)
			}
		}
	}
}

func TestNormalizeDoesNotCopyWhatIsNormal(t *testing.T) {
	title := "extract facts"
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = task.Normalize(title) }))
}
