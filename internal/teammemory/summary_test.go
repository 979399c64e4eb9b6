package teammemory_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

// pass shows everything, as a gate that holds nothing would.
func pass(e teammemory.Entry) (string, bool, error) { return text(e), true, nil }

func structured(t require.TestingT, raw string) envelope.Payload {
	p, err := envelope.Structured(raw)
	require.NoError(t, err)
	return p
}

func TestSummaryOfOneValue(t *testing.T) {
	t.Parallel()
	const head = "## Shared Team Memory\n\n### ana\n- k: "
	x := func(n int) string { return strings.Repeat("x", n) }
	const face, family = "\U0001f600", "👩‍👧"
	tests := []struct {
		name string
		give envelope.Payload
		want string
	}{
		{"text", envelope.Text("short"), "short"},
		{"empty text", envelope.Text(""), ""},
		{"lines stay lines", envelope.Text("a\nb"), "a\nb"},
		{"blanks stay", envelope.Text(" a  "), " a  "},
		{"text that is JSON stays as it is", envelope.Text(`{ "a" : 1 }`), `{ "a" : 1 }`},
		{"200 units", envelope.Text(x(200)), x(200)},
		{"201 units", envelope.Text(x(201)), x(197) + "…"},
		{"200 units of three bytes", envelope.Text(strings.Repeat("€", 200)), strings.Repeat("€", 200)},
		{"201 units of three bytes", envelope.Text(strings.Repeat("€", 201)), strings.Repeat("€", 197) + "…"},
		{"100 pairs", envelope.Text(strings.Repeat(face, 100)), strings.Repeat(face, 100)},
		{"101 pairs: the cut falls within one", envelope.Text(strings.Repeat(face, 101)), strings.Repeat(face, 98) + "…"},
		{"pair across the cut", envelope.Text(x(196) + face + x(3)), x(196) + "…"},
		{"pair before the cut", envelope.Text(x(195) + face + x(4)), x(195) + face + "…"},
		{"pair after the cut", envelope.Text(x(197) + face + x(2)), x(197) + "…"},
		{"pair that ends at the limit", envelope.Text(x(198) + face), x(198) + face},
		{"pair across the limit", envelope.Text(x(199) + face), x(197) + "…"},
		{"cut within a sequence, not within a character", envelope.Text(x(195) + family + x(200)), x(195) + "👩…"},
		{"bytes that are no text", envelope.Text(strings.Repeat("\xff", 201)), strings.Repeat("\xff", 197) + "…"},
		{"number", structured(t, " 12.50 "), "12.5"},
		{"true", structured(t, "true"), "true"},
		{"null", structured(t, "null"), "null"},
		{"object", structured(t, "{ \"b\": [1, {\"c\": \"x y\"}],\n \"a\": null }"), `{"a":null,"b":[1,{"c":"x y"}]}`},
		{"long array", structured(t, "["+strings.TrimSuffix(strings.Repeat("1, ", 120), ", ")+"]"), "[" + strings.Repeat("1,", 98) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := teammemory.New(nil)
			require.NoError(t, m.Writer().Write(t.Context(), "ana", "k", said(t, "ana", "", tt.give), 0))
			got, err := m.Reader().Summary(t.Context(), teammemory.Everything(), pass)
			require.NoError(t, err)
			require.Equal(t, head+tt.want, got)
		})
	}
}

// noted is a memory of two agents with notes and results.
func noted(t *testing.T) *teammemory.Memory {
	m := teammemory.New(nil)
	note(t, m, "zoe", "plan", "p", 0)
	result(t, m, "ana", "t1", "1", 0)
	result(t, m, "zoe", "t2", "2", 0)
	note(t, m, handoff.User, "wish", "w", 0)
	result(t, m, "ana", "t3", "3", 1)
	return m
}

func TestSummaryLayout(t *testing.T) {
	t.Parallel()
	except := func(keys string) teammemory.Show {
		return func(e teammemory.Entry) (string, bool, error) {
			return text(e), !strings.Contains(keys, e.FullKey()), nil
		}
	}
	tests := []struct {
		name   string
		filter teammemory.Filter
		show   teammemory.Show
		want   string
	}{
		{"no list", teammemory.Everything(), pass,
			"## Shared Team Memory\n\n### zoe\n- plan: p\n- task:t2:result: 2\n\n### ana\n- task:t1:result: 1\n- task:t3:result: 3\n\n### user\n- wish: w"},
		{"list", teammemory.Only("t2", "t1"), pass,
			"## Shared Team Memory\n\n### ana\n- task:t1:result: 1\n\n### zoe\n- task:t2:result: 2"},
		{"empty list", teammemory.Only([]task.ID{}...), pass, ""},
		{"one held", teammemory.Everything(), except("ana/task:t1:result"),
			"## Shared Team Memory\n\n### zoe\n- plan: p\n- task:t2:result: 2\n\n### user\n- wish: w\n\n### ana\n- task:t3:result: 3"},
		{"all of an agent held", teammemory.Everything(), except("ana/task:t1:result ana/task:t3:result"),
			"## Shared Team Memory\n\n### zoe\n- plan: p\n- task:t2:result: 2\n\n### user\n- wish: w"},
		{"what is held does not decide the order", teammemory.Everything(), except("zoe/plan"),
			"## Shared Team Memory\n\n### ana\n- task:t1:result: 1\n- task:t3:result: 3\n\n### zoe\n- task:t2:result: 2\n\n### user\n- wish: w"},
		{"all held", teammemory.Everything(), func(e teammemory.Entry) (string, bool, error) { return text(e), false, nil }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := noted(t).Reader().Summary(t.Context(), tt.filter, tt.show)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestSummaryOfNothing(t *testing.T) {
	t.Parallel()
	got, err := teammemory.New(nil).Reader().Summary(t.Context(), teammemory.Everything(), pass)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestSummaryShowsOnlyWhatShowReturned(t *testing.T) {
	t.Parallel()
	var asked []string
	got, err := noted(t).Reader().Summary(t.Context(), teammemory.Everything(), func(e teammemory.Entry) (string, bool, error) {
		asked = append(asked, e.FullKey())
		return "gated", true, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"zoe/plan", "ana/task:t1:result", "zoe/task:t2:result", "user/wish", "ana/task:t3:result"}, asked, "each once, as written")
	require.Equal(t, 5, strings.Count(got, ": gated"))
	require.NotContains(t, got, ": p")
}

func TestSummaryEndsWithAnErrorOfShow(t *testing.T) {
	t.Parallel()
	errGate := errors.New("the gate could not decide")
	got, err := noted(t).Reader().Summary(t.Context(), teammemory.Everything(), func(e teammemory.Entry) (string, bool, error) {
		if e.Agent == "ana" {
			return "x", true, errGate
		}
		return "x", true, nil
	})
	require.ErrorIs(t, err, errGate)
	require.EqualError(t, err, `summarize memory "ana/task:t1:result": the gate could not decide`)
	require.Empty(t, got)
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func TestExcerptLaws(t *testing.T) {
	t.Parallel()
	char := rapid.SampledFrom([]rune("aé€\u2028\n👩\U0001f600"))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(char, 0, 420, -1).Draw(t, "text")
		got := teammemory.Excerpt(s)
		require.True(t, utf8.ValidString(got))
		if units(s) <= teammemory.ExcerptLimit {
			require.Equal(t, s, got)
			return
		}
		kept, ok := strings.CutSuffix(got, "…")
		require.True(t, ok)
		require.True(t, strings.HasPrefix(s, kept))
		next, _ := utf8.DecodeRuneInString(s[len(kept):])
		require.LessOrEqual(t, units(kept), teammemory.ExcerptKept)
		require.Greater(t, units(kept)+units(string(next)), teammemory.ExcerptKept, "as much as there is room for")
		require.Equal(t, got, teammemory.Excerpt(got))
	})
}

// FuzzExcerpt checks that no text, valid or not, is lengthened or cut within a character.
func FuzzExcerpt(f *testing.F) {
	f.Add(strings.Repeat("\U0001f600", 101))
	f.Add(strings.Repeat("\xf0\x9f", 150))
	f.Fuzz(func(t *testing.T, s string) {
		got := teammemory.Excerpt(s)
		require.True(t, utf8.ValidString(got) || !utf8.ValidString(s))
		require.LessOrEqual(t, units(got), teammemory.ExcerptLimit)
		kept := strings.TrimSuffix(got, "…")
		require.True(t, strings.HasPrefix(s, kept))
	})
}
