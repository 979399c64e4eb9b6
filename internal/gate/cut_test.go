package gate_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	const mark = "[REDACTED:token]"
	for _, tt := range []struct {
		name  string
		give  string
		units int
		want  string
	}{
		{"nothing", "", 200, ""},
		{"200 units stay", x(200), 200, x(200)},
		{"201 show 197", x(201), 200, x(197) + "…"},
		{"units, not bytes", strings.Repeat("é", 200), 200, strings.Repeat("é", 200)},
		{"units, not characters", strings.Repeat("\U0001f600", 101), 200, strings.Repeat("\U0001f600", 98) + "…"},
		{"a pair that just fits", x(195) + "\U0001f600" + x(5), 200, x(195) + "\U0001f600…"},
		{"a pair that does not", x(196) + "\U0001f600" + x(5), 200, x(196) + "…"},
		{"a placeholder that just fits", x(180) + " " + fakeToken + " tail", 200, x(180) + " " + mark + "…"},
		{"a placeholder that does not", x(181) + " " + fakeToken + " tail", 200, x(181) + " …"},
		{"a placeholder at the very end", x(183) + " " + fakeToken, 200, x(183) + " " + mark},
		{"the text is redacted first", fakeToken + " " + x(180), 200, mark + " " + x(180)},
		{"three units", "long", 3, "…"},
		{"one unit", "long", 1, "…"},
		{"none", "long", 0, ""},
		{"fewer than none", "long", -5, ""},
		{"none of nothing", "", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := text(t, tt.give)
			whole := s.Payload().Text()
			got := s.Excerpt(tt.units)
			require.Equal(t, tt.want, got.Payload().Text())
			require.Equal(t, len(got.Payload().Text()), got.Decision().BytesAfter)
			if got.Payload().Text() == whole {
				require.Zero(t, got.Decision().CutFrom)
			} else {
				require.Equal(t, len(whole), got.Decision().CutFrom, "bytes, after redaction")
			}
			require.Equal(t, whole, s.Payload().Text(), "s itself stays as it is")
			require.Zero(t, s.Decision().CutFrom)
		})
	}
}

// placeholders finds what no cut may go through.
var placeholders = regexp.MustCompile(`\[REDACTED:[a-z]+\]`)

func TestExcerptIsTheLongestThatIsAllowed(t *testing.T) {
	t.Parallel()
	pieces := rapid.OneOf(rapid.StringN(0, 8, -1), rapid.SampledFrom([]string{"x", "é", "\U0001f600", "\n", "…", "[", "[REDACTED:", "]", " " + fakeToken + " ", "<|im_start|>"}))
	rapid.Check(t, func(t *rapid.T) {
		s := text(t, strings.Join(rapid.SliceOfN(pieces, 0, 20).Draw(t, "pieces"), ""))
		units := rapid.IntRange(-1, 60).Draw(t, "units")
		cut := s.Excerpt(units)
		whole, got := s.Payload().Text(), cut.Payload().Text()
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(utf16.Encode([]rune(got))), max(units, 0))
		if len(utf16.Encode([]rune(whole))) <= units {
			require.Equal(t, whole, got)
			return
		}
		if units < 1 {
			require.Empty(t, got)
			return
		}
		kept, found := strings.CutSuffix(got, "…")
		require.True(t, found)
		require.True(t, strings.HasPrefix(whole, kept))
		for _, at := range placeholders.FindAllStringIndex(whole, -1) {
			require.False(t, at[0] < len(kept) && len(kept) < at[1], "inside a placeholder")
		}
		if !strings.Contains(whole, "[REDACTED:") {
			_, size := utf8.DecodeRuneInString(whole[len(kept):])
			require.Greater(t, len(utf16.Encode([]rune(whole[:len(kept)+size]))), units-3, "and no more is cut than must be")
		}
	})
}

func TestExcerptOfJSONIsItsText(t *testing.T) {
	t.Parallel()
	for as, want := range map[task.Payload]string{task.Output: "words", task.Structured: `{"a":1,"b":[2]}`, task.Both: "words"} {
		o := offer(t, structured(t, `{"b": [2], "a": 1}`).WithText("words"))
		o.As = as
		s := seal(t, newCompartment(t), o).Excerpt(200)
		require.Equal(t, envelope.Text(want), s.Payload())
		require.Equal(t, task.Output, s.As())
		require.Zero(t, s.Decision().CutFrom)
		require.Equal(t, len(want), s.Decision().BytesAfter)
	}
	s := seal(t, newCompartment(t), offer(t, structured(t, `["`+strings.Repeat("x", 300)+`"]`))).Excerpt(200)
	require.Equal(t, `["`+strings.Repeat("x", 195)+"…", s.Payload().Text())
	require.Equal(t, 304, s.Decision().CutFrom)
}

func TestExcerptKeepsTheSeal(t *testing.T) {
	t.Parallel()
	c := newCompartment(t)
	s := seal(t, c, offer(t, envelope.Text(fakeToken+" "+strings.Repeat("x", 100<<10)))).Excerpt(20)
	require.NoError(t, s.For(&c.Contract))
	require.Equal(t, "[REDACTED:token] …", s.Payload().Text())
	require.Equal(t, 17+100<<10, s.Decision().CutFrom, "the first cut counts")
	require.Equal(t, 1, s.Decision().Redacted.Total())
	require.Equal(t, "Analyse", s.Title())

	line := withheld(t, c)
	require.Equal(t, line, line.Excerpt(0))
	require.Equal(t, gate.Sealed{}, gate.Sealed{}.Excerpt(200), "what no gate made stays so")
}
