package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

func TestKindsOfTheSharedRedactors(t *testing.T) {
	t.Parallel()
	require.Equal(t, []redact.Kind{"card", "iban", "email", "phone", "ssn", "ip", "mac"}, redact.PersonalKinds())
	require.Equal(t, []redact.Kind{"card", "iban", "email", "phone", "ssn"}, redact.DefaultKinds())
	for _, kind := range redact.PersonalKinds() {
		require.False(t, kind.Secret())
		require.Equal(t, "[REDACTED:"+string(kind)+"]", kind.Placeholder())
	}
	for _, kind := range []redact.Kind{redact.Key, redact.Token, redact.JWT, redact.Password} {
		require.True(t, kind.Secret())
	}
	require.False(t, redact.Kind("own").Secret())
	require.Same(t, redact.Default(), redact.Default())
	require.Same(t, redact.All(), redact.All())
}

func TestNewFindsGivenKindsAndPatterns(t *testing.T) {
	t.Parallel()
	const text = "anna@claims.example, claim C-1234-5678, password: Xk9#mP2q"
	named, err := redact.New([]redact.Kind{redact.Email, redact.Email}, []redact.Pattern{{"claim-id", `\bC-\d{4}-\d{4}\b`}})
	require.NoError(t, err)
	plain, err := redact.New(nil, nil)
	require.NoError(t, err)
	for r, want := range map[*redact.Redactor]string{
		named:            "[REDACTED:email], claim [REDACTED:claim-id], password: [REDACTED:password]",
		plain:            "anna@claims.example, claim C-1234-5678, password: [REDACTED:password]",
		redact.Secrets(): "anna@claims.example, claim C-1234-5678, password: [REDACTED:password]",
		redact.Default(): "[REDACTED:email], claim C-1234-5678, password: [REDACTED:password]",
		redact.All():     "[REDACTED:email], claim C-1234-5678, password: [REDACTED:password]",
	} {
		got, _, err := r.Text(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestNewRefusesBadKindsAndPatterns(t *testing.T) {
	t.Parallel()
	type options struct {
		kinds    []redact.Kind
		patterns []redact.Pattern
	}
	one := func(name, expr string) options { return options{patterns: []redact.Pattern{{name, expr}}} }
	tests := []struct {
		name  string
		give  options
		wants []string
	}{
		{"unknown kind", options{kinds: []redact.Kind{"iris"}}, []string{`"iris"`, "unknown", "iban"}},
		{"secret kind", options{kinds: []redact.Kind{redact.Token}}, []string{`"token"`, "always on"}},
		{"no name", one("", "a"), []string{`""`, "name"}},
		{"upper case", one("Claim", "a"), []string{`"Claim"`, "lower-case"}},
		{"digit first", one("1claim", "a"), []string{"begins with a letter"}},
		{"long", one(strings.Repeat("a", 33), "b"), []string{"32"}},
		{"bracket", one("a]", "b"), []string{"name"}},
		{"line end", one("a\n", "b"), []string{"name"}},
		{"built-in", one("card", "b"), []string{"built-in"}},
		{"built-in secret", one("password", "b"), []string{"built-in"}},
		{"twice", options{patterns: []redact.Pattern{{"own", "b1"}, {"own", "b2"}}}, []string{"twice"}},
		{"no regexp", one("own", "("), []string{`"own"`, "missing closing )"}},
		{"look behind", one("own", "(?<=a)b"), []string{"invalid"}},
		{"empty", one("own", ""), []string{"empty"}},
		{"star", one("own", "b*"), []string{"empty"}},
		{"boundary", one("own", `\b`), []string{"empty"}},
		{"one of two", one("own", "b|c?"), []string{"empty"}},
		{"word", one("own", `[A-Z]{8}`), []string{"[REDACTED:", "ask for more"}},
		{"bracket of a placeholder", one("own", `\]`), []string{"ask for more"}},
		{"own name", one("own", "own"), []string{"[REDACTED:own]"}},
		{"name of another", options{patterns: []redact.Pattern{{"own", "zebra"}, {"zebra", "b9"}}}, []string{`"own"`, "[REDACTED:zebra]"}},
		{"several", options{kinds: []redact.Kind{"iris"}, patterns: []redact.Pattern{{"X", "a"}, {"own", "("}}}, []string{`"iris"`, `"X"`, `"own"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := redact.New(tt.give.kinds, tt.give.patterns)
			require.Error(t, err)
			require.Nil(t, r)
			for _, want := range tt.wants {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestPatternsRankBelowTheBuiltInKinds(t *testing.T) {
	t.Parallel()
	r, err := redact.New(redact.DefaultKinds(), []redact.Pattern{
		{"first", `\w+@claims[.]example|number \d+`}, {"second", `\d{4,}|gh\w{8,} and`},
	})
	require.NoError(t, err)
	gh := "gh" + "p_" + fake(alnums, 36)
	for text, want := range map[string]string{
		"to anna@claims.example": "to [REDACTED:email]",
		gh + " and":              "[REDACTED:token]",
		"number 12345":           "[REDACTED:first]",
		"a 12345":                "a [REDACTED:second]",
		"12":                     "12",
	} {
		got, counts, err := r.Text(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.LessOrEqual(t, counts.Total(), 1)
	}
	got, counts, err := r.Value(`{"number 77":123456,"x":[1.5,-98765,"12345"]}`)
	require.NoError(t, err)
	require.Equal(t, `{"[REDACTED:first]":"[REDACTED:second]","x":[1.5,"[REDACTED:second]","[REDACTED:second]"]}`, got)
	require.Equal(t, redact.Counts{"first": 1, "second": 3}, counts)
}

// Patterns find fractions of their own too: prices, versions.
//
// Requirement: G28.
func TestPatternsLookAtFractions(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil, []redact.Pattern{{"price", `\d+[.]\d\d`}})
	require.NoError(t, err)
	got, _, err := r.Value(`[12.75,"12.75",12.5]`)
	require.NoError(t, err)
	require.Equal(t, `["[REDACTED:price]","[REDACTED:price]",12.5]`, got)
}
