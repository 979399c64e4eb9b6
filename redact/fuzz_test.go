package redact_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// redactors are those that the fuzz targets check.
func redactors(t testing.TB) []*redact.Redactor {
	t.Helper()
	own, err := redact.New(redact.PersonalKinds(), []redact.Pattern{
		{"claim", `C-\d{4}`}, {"line", `(?m)^note: .*$`}, {"wide", `[Kk]ey.{3,9}9`}, {"a1", `é+`},
	})
	require.NoError(t, err)
	return []*redact.Redactor{redact.Secrets(), redact.Default(), redact.All(), own}
}

// FuzzText checks the guarantees of redaction of a text: valid UTF-8, spans in order and within
// bounds that give the same result, nothing left to find, bounded growth, and that revealing
// everything shows no more than it says.
//
// Requirement: G27.
func FuzzText(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	all := redactors(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range all {
			fuzzText(t, r, text)
		}
	})
}

func fuzzText(t *testing.T, r *redact.Redactor, text string) {
	out, counts, err := r.Text(text)
	if !utf8.ValidString(text) {
		require.ErrorIs(t, err, redact.ErrEncoding)
		r.Spans(text, nil) // must return
		return
	}
	if err != nil {
		require.ErrorIs(t, err, redact.ErrDiverged) // a text whose redaction never ends is withheld
		return
	}
	spans := r.Spans(text, nil)
	requireSpans(t, text, spans)
	require.Equal(t, out, replaced(text, spans), "Find and Text agree")
	require.Equal(t, len(spans), counts.Total())
	require.True(t, utf8.ValidString(out))
	require.LessOrEqual(t, len(out), 10*len(text)+19)
	again, more, err := r.Text(out)
	require.NoError(t, err)
	require.Nil(t, more, "found in %q of %q", out, text)
	require.Equal(t, out, again)
	shown, redacted, revealed, err := r.TextRevealing(t.Context(), text, everything)
	if err != nil {
		require.ErrorIs(t, err, redact.ErrDiverged)
		return
	}
	for kind := range redacted {
		require.True(t, kind.Secret(), "%s", kind)
	}
	for kind := range revealed {
		require.False(t, kind.Secret())
	}
	if len(redacted) == 0 {
		require.Equal(t, text, shown)
	}
}

// FuzzJSON checks the guarantees of redaction of a JSON value: strict JSON of the same shape,
// nothing left to find.
//
// Requirement: G27.
func FuzzJSON(f *testing.F) {
	for _, seed := range seeds() {
		quoted, err := json.Marshal(seed)
		require.NoError(f, err)
		f.Add(string(quoted))
		f.Add(`{"password":` + string(quoted) + `,"list":[1,` + string(quoted) + `]}`)
		f.Add(`{` + string(quoted) + `:{"token":` + string(quoted) + `,"n":-12345.5e3}}`)
		half, err := json.Marshal([]string{seed[:len(seed)/2], seed[len(seed)/2:]})
		require.NoError(f, err)
		f.Add(string(half))
	}
	all := redactors(f)
	f.Fuzz(func(t *testing.T, in string) {
		for _, r := range all {
			fuzzJSON(t, r, in)
		}
	})
}

func fuzzJSON(t *testing.T, r *redact.Redactor, in string) {
	out, counts, err := r.Value(in)
	if err != nil {
		if utf8.ValidString(in) && json.Valid([]byte(in)) && !strings.Contains(in, `\u`) { // lone surrogates are refused here
			require.ErrorIs(t, err, redact.ErrDiverged)
		}
		return
	}
	require.True(t, json.Valid([]byte(in)), "took %q", in)
	require.True(t, utf8.ValidString(out))
	requireSameShape(t, in, out)
	if counts == nil {
		require.Equal(t, in, out)
	}
	again, more, err := r.Value(out)
	require.NoError(t, err)
	require.Nil(t, more, "found in %q of %q", out, in)
	require.Equal(t, out, again)
	shown, redacted, revealed, err := r.JSON(t.Context(), in, everything)
	if err != nil {
		require.ErrorIs(t, err, redact.ErrDiverged)
		return
	}
	requireSameShape(t, in, shown)
	for kind := range revealed {
		require.False(t, kind.Secret())
	}
	if redacted == nil {
		require.Equal(t, in, shown)
	}
}

// FuzzFindLinear repeats a pattern and holds the work of all detectors to a multiple of the length.
func FuzzFindLinear(f *testing.F) {
	for _, p := range hostile() {
		f.Add(p.repeat, p.head)
	}
	for _, seed := range seeds() {
		f.Add(seed, "")
	}
	f.Fuzz(func(t *testing.T, repeat, head string) {
		if repeat == "" || len(repeat)+len(head) > 4096 {
			t.Skip()
		}
		const size = 64 << 10
		text := head + strings.Repeat(repeat, size/len(repeat)+1)
		require.Less(t, redact.Work(redact.All(), text), maxWork*len(text))
	})
}

// requireSpans checks order, overlap and bounds.
func requireSpans(t *testing.T, text string, spans []redact.Span) {
	t.Helper()
	last := 0
	for _, s := range spans {
		require.GreaterOrEqual(t, s.Start, last)
		require.Less(t, s.Start, s.End)
		require.LessOrEqual(t, s.End, len(text))
		require.NotEmpty(t, s.Kind)
		last = s.End
	}
}

// replaced is what Text must give, written from the documentation.
func replaced(text string, spans []redact.Span) string {
	for i := len(spans) - 1; i >= 0; i-- {
		text = text[:spans[i].Start] + spans[i].Kind.Placeholder() + text[spans[i].End:]
	}
	return text
}

// requireSameShape checks that both values have the same containers in the same order and equal
// literals, but for strings, and numbers that became placeholders.
func requireSameShape(t *testing.T, in, out string) {
	t.Helper()
	a, b := json.NewDecoder(strings.NewReader(in)), json.NewDecoder(strings.NewReader(out))
	a.UseNumber()
	b.UseNumber()
	for {
		x, errA := a.Token()
		y, errB := b.Token()
		if errA != nil || errB != nil {
			require.Equal(t, errA, errB)
			return
		}
		_, number := x.(json.Number)
		_, text := y.(string)
		if _, both := x.(string); both && text || number && text {
			continue
		}
		require.Equal(t, x, y)
	}
}
