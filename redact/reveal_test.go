package redact_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// only lets one kind are at one path.
func only(kind redact.Kind, path ...string) redact.Reveal {
	return func(k redact.Kind, p []string) bool { return k == kind && slices.Equal(p, path) }
}

func everything(redact.Kind, []string) bool { return true }

func TestRevealKeepsAKindInText(t *testing.T) {
	t.Parallel()
	const text = "anna@claims.example, password: Xk9#mP2q, ben\u200b@claims.example, YW5uYUBjbGFpbXMuZXhhbXBsZQ=="
	asked := 0
	got, redacted, revealed, err := redact.Default().TextRevealing(t.Context(), text, func(kind redact.Kind, path []string) bool {
		asked++
		require.Equal(t, redact.Email, kind, "never asked about secrets")
		require.Nil(t, path)
		return true
	})
	require.NoError(t, err)
	require.Equal(t, strings.Replace(text, "Xk9#mP2q", "[REDACTED:password]", 1), got)
	require.Equal(t, redact.Counts{redact.Password: 1}, redacted)
	require.Equal(t, redact.Counts{redact.Email: 3}, revealed)
	require.Positive(t, asked)

	got, redacted, revealed, err = redact.Default().TextRevealing(t.Context(), text, only(redact.Card))
	require.NoError(t, err)
	require.NotContains(t, got, "example")
	require.Equal(t, 4, redacted.Total())
	require.Nil(t, revealed)

	got, redacted, revealed, err = redact.Default().TextRevealing(t.Context(), "nothing here", everything)
	require.NoError(t, err)
	require.Equal(t, "nothing here", got)
	require.Nil(t, redacted)
	require.Nil(t, revealed)
}

func TestRevealAtAPath(t *testing.T) {
	t.Parallel()
	const value = `{"a/b":[{"to":"anna@claims.example"},"ben@claims.example"],"anna@claims.example":"anna@claims.example","~":{"":"carl@claims.example"}}`
	const all = `{"a/b":[{"to":"[REDACTED:email]"},"[REDACTED:email]"],"[REDACTED:email]":"[REDACTED:email]","~":{"":"[REDACTED:email]"}}`
	for _, tt := range []struct {
		reveal     redact.Reveal
		isRevealed string
		after      string
	}{
		{only(redact.Email, "a/b", "0", "to"), "anna@claims.example", `"to":"`},
		{only(redact.Email, "a/b", "1"), "ben@claims.example", `"},"`},
		{only(redact.Email, "~", ""), "carl@claims.example", `{"":"`},
		{only(redact.Email, "anna@claims.example"), "", ""}, // below a key that was redacted
		{only(redact.Email, "a/b"), "", ""},
		{only(redact.Email), "", ""},
		{only(redact.Card, "a/b", "1"), "", ""},
	} {
		got, redacted, revealed, err := redact.Default().JSON(t.Context(), value, tt.reveal)
		require.NoError(t, err)
		want, n := all, 0
		if tt.after != "" {
			want, n = strings.Replace(all, tt.after+"[REDACTED:email]", tt.after+tt.isRevealed, 1), 1
		}
		require.Equal(t, want, got)
		require.Equal(t, redact.Counts{redact.Email: 5 - n}, redacted)
		require.Equal(t, n, revealed.Total())
	}
	got, _, _, err := redact.Default().JSON(t.Context(), value, everything)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(value, `"anna@claims.example":`, `"[REDACTED:email]":`, 1), got, "keys are never revealed")
	for _, leaf := range []string{"0", "2"} { // paths are those of the leaf, whatever precedes it
		got, _, _, err = redact.Default().JSON(t.Context(), `[["anna@claims.example"],7,"ben@claims.example"]`, func(_ redact.Kind, path []string) bool { return path[0] == leaf })
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(got, "[REDACTED:email]"))
	}
	got, _, revealed, err := redact.Default().JSON(t.Context(), `"anna@claims.example"`, func(_ redact.Kind, path []string) bool { return path != nil && len(path) == 0 })
	require.NoError(t, err)
	require.Equal(t, `"anna@claims.example"`, got)
	require.Equal(t, redact.Counts{redact.Email: 1}, revealed)
}

func TestRevealNeverKeepsASecret(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(keys(), tokens(), passwords(), jwts()) {
		want, counts, err := redact.Secrets().Text(f.text)
		require.NoError(t, err)
		got, redacted, revealed, err := redact.Secrets().TextRevealing(t.Context(), f.text, everything)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, counts, redacted)
		require.Nil(t, revealed)
	}
	got, _, revealed, err := redact.All().JSON(t.Context(), `{"password":"anna@claims.example"}`, everything)
	require.NoError(t, err)
	require.Equal(t, `{"password":"[REDACTED:password]"}`, got)
	require.Nil(t, revealed)
}

func TestRevealOfOverlappingSpans(t *testing.T) {
	t.Parallel()
	r, err := redact.New([]redact.Kind{redact.Email}, []redact.Pattern{
		{"within", "claims"}, {"across", "[.]example, then"}, {"other", "zebra"}, {"whole", "letter: .* end"},
	})
	require.NoError(t, err)
	for _, tt := range []struct{ kind, text, want string }{
		{"email", "anna@claims.example now", "anna@claims.example now"},  // what lies within goes with it
		{"within", "anna@claims.example now", "[REDACTED:email] now"},    // but does not save it
		{"email", "anna@claims.example, then", "[REDACTED:email]"},       // what reaches beyond does not stand
		{"across", "anna@claims.example, then", "[REDACTED:email]"},      //
		{"whole", "letter: anna@claims.example end", "[REDACTED:email]"}, // the less specific does not let the more specific stand
		{"whole", "letter: to all end", "letter: to all end"},
		{"other", "zebra anna@claims.example", "zebra [REDACTED:email]"},                  //
		{"other", "enVicmEgYW5uYUBjbGFpbXMuZXhhbXBsZQ==", "[REDACTED:email]"},             // a run is if all in it may
		{"other", "enVicmEgenVicmEgenVicmEgemVicmE=", "enVicmEgenVicmEgenVicmEgemVicmE="}, //
		{"none", "enVicmEgenVicmEgenVicmEgemVicmE=", "[REDACTED:other]"},                  //
	} {
		got, _, _, err := r.TextRevealing(t.Context(), tt.text, only(redact.Kind(tt.kind)))
		require.NoError(t, err)
		require.Equal(t, tt.want, got, tt.kind)
	}
}

// Requirement: G29.
func TestRevealPanicIsAnError(t *testing.T) {
	t.Parallel()
	fail := func(redact.Kind, []string) bool { panic("anna") }
	_, _, _, err := redact.Default().TextRevealing(t.Context(), "anna@claims.example", fail)
	require.ErrorIs(t, err, redact.ErrDetector)
	_, _, _, err = redact.Default().JSON(t.Context(), `["anna@claims.example"]`, fail)
	require.ErrorIs(t, err, redact.ErrDetector)
	require.NotContains(t, err.Error(), "anna")
}
