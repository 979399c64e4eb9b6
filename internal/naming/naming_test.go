package naming_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/runteam/runteam/internal/naming"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Requirement: G31.
func TestTitlesAreOneCleanLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, give string
		wantErr    string // empty: fine
	}{
		{"plain", "Score fraud", ""},
		{"trimmed", "  Score fraud\n", ""},
		{"letters of any script, and emoji", "Übersicht — 概要 👩‍💻 نامه‌ها", ""},
		{"a sign that precedes numbers", "\u0600 12", ""},
		{"200 characters", strings.Repeat("ä", 200), ""},
		{"201 characters", strings.Repeat("ä", 201), "201 characters"},
		{"empty", "", "empty"},
		{"blanks", " \t ", "empty"},
		{"LF", "a\n# Task: b", "line break (U+000A)"},
		{"CR", "a\rb", "line break"},
		{"VT", "a\vb", "line break"},
		{"FF", "a\fb", "line break"},
		{"FS", "a\x1cb", "line break"},
		{"RS", "a\x1eb", "line break"},
		{"NEL", "a\u0085b", "line break"},
		{"LS", "a\u2028b", "line break"},
		{"PS", "a\u2029b", "line break"},
		{"NUL", "a\x00b", "control character"},
		{"escape", "a\x1b[31mb", "control character"},
		{"tab", "a\tb", "control character"},
		{"DEL", "a\x7fb", "control character"},
		{"C1", "a\u009bb", "control character"},
		{"bidi override", "a\u202eb", "invisible character"},
		{"bidi isolate", "a\u2066b", "invisible character"},
		{"bidi mark", "a\u200fb", "invisible character"},
		{"zero-width space", "a\u200bb", "invisible character"},
		{"BOM", "a\ufeffb", "invisible character"},
		{"tag characters", "a\U000e0041b", "invisible character"},
		{"a variation selector of the supplement", "a\U000e0100b", "invisible character"},
		{"a Hangul filler", "a\u3164b", "invisible character"},
		{"a filler of a syllable", "a\u115fb", "invisible character"},
		{"a grapheme joiner", "a\u034fb", "invisible character"},
		{"a Mongolian variation selector", "a\u180bb", "invisible character"},
		{"the styles of emoji and text", "❤\ufe0f ☎\ufe0e", ""},
		{"invalid UTF-8", "a\xffb", "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := naming.CheckTitle(tt.give)
			if tt.wantErr == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, naming.ErrTitle)
			require.ErrorContains(t, err, tt.wantErr)
		})
	}
}

// Requirement: G31.
func TestCheckLine(t *testing.T) {
	t.Parallel()
	require.NoError(t, naming.CheckLine(""))
	require.NoError(t, naming.CheckLine(strings.Repeat("x", 10_000)))
	require.ErrorIs(t, naming.CheckLine("a\nb"), naming.ErrLine)
	require.ErrorIs(t, naming.CheckLine(" \n"), naming.ErrLine) // not trimmed
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "Fraud Desk", "7.b_c-d", "Müller", "概要", "Ⅻ", strings.Repeat("é", 64)} {
		require.NoError(t, naming.CheckName(name), name)
	}
	for _, name := range []string{"user", "User", "COORDINATOR", "*", "uſer"} {
		require.ErrorIs(t, naming.CheckName(name), naming.ErrReserved, name)
	}
	for _, name := range []string{
		"", " a", "a ", ".a", "-a", "a/b", "a:b", "a\nb", "a\u00a0b", "a\u202eb", "e\u0301", "a\xff", strings.Repeat("é", 65),
	} {
		require.ErrorIs(t, naming.CheckName(name), naming.ErrName, "%q", name)
	}
}

// TestEndsLineAgreesWithCheckLine compares the two for every Unicode character.
func TestEndsLineAgreesWithCheckLine(t *testing.T) {
	t.Parallel()
	var ends []rune
	for r := range rune(unicode.MaxRune + 1) {
		if naming.EndsLine(r) {
			ends = append(ends, r)
			require.ErrorContains(t, naming.CheckLine("a"+string(r)+"b"), "line break")
		}
	}
	require.Equal(t, []rune("\n\v\f\r\x1c\x1d\x1e\u0085\u2028\u2029"), ends)
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"Extract facts", "Score fraud", "Score", "Write letter"}
	tests := []struct {
		name, give, want string
	}{
		{"letter missing", "Scoe", "Score"},
		{"letter added", "Scoree", "Score"},
		{"letter changed", "Scare", "Score"},
		{"neighbours swapped", "Socre", "Score"},
		{"letter case alone", "SCORE FRAUD", "Score fraud"},
		{"several mistakes in a long word", "Extrct fcats", "Extract facts"},
		{"too far", "Banana", ""},
		{"too short to guess", "Wr", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := naming.Nearest(tt.give, known)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want != "", ok)
		})
	}
	first, _ := naming.Nearest("cart", []string{"card", "care"})
	require.Equal(t, "card", first)
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	many := strings.Fields("ada bob cyd dan eve fay gus hal ida jan kim lee max")
	require.Equal(t, `did you mean "Score"?`, naming.Suggest("Scoer", []string{"Banana", "Score"}))
	require.Equal(t, "none are defined", naming.Suggest("Scoer", nil))
	require.Equal(t, "write one of ada, bob", naming.Suggest("writer", many[:2]))
	require.Equal(t, "write one of "+strings.Join(many[:12], ", "), naming.Suggest("writer", many[:12]))
	require.Equal(t, "write one of "+strings.Join(many[:12], ", ")+", …", naming.Suggest("writer", many))
}

// distance is the optimal string alignment distance, written as its definition.
func distance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	cost := 1
	if a[len(a)-1] == b[len(b)-1] {
		cost = 0
	}
	d := min(distance(a[:len(a)-1], b)+1, distance(a, b[:len(b)-1])+1, distance(a[:len(a)-1], b[:len(b)-1])+cost)
	if len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-2] && a[len(a)-2] == b[len(b)-1] {
		d = min(d, distance(a[:len(a)-2], b[:len(b)-2])+1)
	}
	return d
}

func TestNearestIsTheFirstOfTheNearest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{0,6}`)
		given, known := word.Draw(t, "given"), rapid.SliceOfN(word, 0, 5).Draw(t, "known")
		best, least := "", -1
		for _, candidate := range known {
			d := distance(given, candidate)
			if d <= max(len(given), len(candidate))/3 && (least < 0 || d < least) {
				best, least = candidate, d
			}
		}
		got, ok := naming.Nearest(given, known)
		require.Equal(t, least >= 0, ok)
		require.Equal(t, best, got)
	})
}
