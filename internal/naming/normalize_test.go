package naming_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/slowtest"
)

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
			require.Equal(t, tt.want, naming.Normalize(tt.give))
		})
	}
}

func TestNormalizeIsIdempotentAndIgnoresCase(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		title := rapid.String().Draw(t, "title")
		normal := naming.Normalize(title)
		require.Equal(t, normal, naming.Normalize(normal))
		require.True(t, utf8.ValidString(normal))
		ascii := rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "ascii")
		require.Equal(t, naming.Normalize(ascii), naming.Normalize(strings.ToUpper(ascii)))
	})
}

func TestNormalizeAgreesOnCanonicallyEqualTitles(t *testing.T) {
	t.Parallel()
	step := rune(17)
	if slowtest.Enabled() {
		step = 1
	}
	for r := rune(0x80); r < 0x20000; r += step {
		for _, mark := range []string{"", "\u0301", "\u0307"} {
			title := "a" + string(r) + mark
			normal := naming.Normalize(norm.NFC.String(title))
			if normal != naming.Normalize(norm.NFD.String(title)) || !norm.NFC.IsNormalString(normal) || naming.Normalize(normal) != normal {
				t.Fatalf("%+q: %+q", title, normal)
			}
		}
	}
}

func TestNormalizeDoesNotCopyNormalText(t *testing.T) {
	title := "extract facts"
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = naming.Normalize(title) }))
}
