package redact_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

func TestPlaceholder(t *testing.T) {
	t.Parallel()
	for kind, want := range map[redact.Kind]string{
		redact.Key: "[REDACTED:key]", redact.Token: "[REDACTED:token]", redact.JWT: "[REDACTED:jwt]", redact.Password: "[REDACTED:password]",
		"card": "[REDACTED:card]",
	} {
		require.Equal(t, want, kind.Placeholder())
	}
}

func TestCountsHaveAStableOrder(t *testing.T) {
	t.Parallel()
	counts := redact.Counts{redact.Token: 2, redact.JWT: 1, redact.Password: 3, redact.Key: 1}
	require.Equal(t, []redact.Kind{redact.JWT, redact.Key, redact.Password, redact.Token}, slices.Sorted(maps.Keys(counts)))
	require.Equal(t, 7, counts.Total())
	require.Empty(t, slices.Sorted(maps.Keys(redact.Counts(nil))))
	require.Zero(t, redact.Counts(nil).Total())
}

func TestFindAppendsInOrder(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	text := "password: hunter2 and " + gh
	spans := redact.Secrets().Spans(text, []redact.Span{{Start: 1, End: 2, Kind: "mine"}})
	require.Equal(t, []redact.Span{{1, 2, "mine"}, {10, 17, redact.Password}, {22, 22 + len(gh), redact.Token}}, spans)
	require.Empty(t, redact.Secrets().Spans("nothing", nil))
}

func TestOverlapIsNamedByTheMoreSpecificKind(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	for text, want := range map[string]string{
		"password=" + gh:                                "password=[REDACTED:token]",
		"password=" + gh + "!tail":                      "password=[REDACTED:token]",
		"https://u:" + gh + "@h":                        "https://[REDACTED:token]@h",
		"secret: '" + pem("PRIVATE KEY", `\n`, 4) + "'": "secret: '[REDACTED:key]'",
	} {
		got, counts, err := redact.Secrets().Text(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, 1, counts.Total())
	}
}

// Requirement: G27.
func TestPlaceholdersStay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[REDACTED:password]", "password: [REDACTED:password]", "password=[REDACTED:token]&x=1", "https://[REDACTED:password]@h/p",
		"https://u:[REDACTED:password]@h/p", "Bearer [REDACTED:jwt]", "[REDACTED:password]: visible4", "[REDACTED:card] [REDACTED:own-pattern]",
		`{"password":"[REDACTED:password]"}`, "token [REDACTED:token]: x9kQ2zL5mN8p",
	} {
		got, counts, err := redact.Secrets().Text(text)
		require.NoError(t, err)
		require.Nil(t, counts, text)
		require.Equal(t, text, got)
	}
}

// A placeholder must not serve as a mark that hides what follows it.
//
// Requirement: G25.
func TestPlaceholdersDoNotHideValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"password=[REDACTED:password]Xk9#mP2q":         "password=[REDACTED:password][REDACTED:password]",
		"password: [REDACTED:x] Xk9#mP2q":              "password: [REDACTED:x] [REDACTED:password]",
		"https://u:[REDACTED:password]pa55@h":          "https://[REDACTED:password]@h",
		"[REDACTED:token]gh" + "p_" + fake(alnums, 36): "[REDACTED:token][REDACTED:token]",
	} {
		got, _, err := redact.Secrets().Text(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestCleanTextCostsNoAllocation(t *testing.T) { // AllocsPerRun does not allow parallel tests
	if slowtest.RaceDetector {
		t.Skip("the race detector empties pools at random")
	}
	texts := prose(t)
	texts["hidden"] = "👩\u200d👧 ❤\ufe0f soft\u00adhyphen １２３４ … cafe\u0301 שָׁלוֹם %20 \\u0041 " + "Tm90aGluZyBvZiBpbnRlcmVzdCBpbiBoZXJlLg=="
	texts["english"], texts["french"], texts["russian"], texts["japanese"] = english, accents, russian, nihon
	for name, text := range texts {
		quoted := `{"a":[{"b":"` + strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`, "\t", `\t`).Replace(text) + `"},1.5,true,null]}`
		_, counts, err := redact.All().Value(quoted)
		require.NoError(t, err, name)
		r := redact.All()
		if counts != nil { // not clean of personal data
			r = redact.Secrets()
		}
		for what, run := range map[string]func(){
			"Text": func() { _, _, _ = r.Text(text) },
			"Find": func() { _ = r.Spans(text, nil) },
			"JSON": func() { _, _, _ = r.Value(quoted) },
		} {
			// The pool of scratch memory may be emptied by a collection at any time.
			require.Less(t, testing.AllocsPerRun(100, run), 0.5, "%s of %s", what, name)
		}
	}
}

// Requirement: G29.
func TestInvalidUTF8IsAnError(t *testing.T) {
	t.Parallel()
	secret := "password: Xk9#mP2q"
	for _, text := range []string{"\xff", secret + "\xc3", "\xed\xa0\x80", "a\x80b" + secret} {
		got, counts, err := redact.Secrets().Text(text)
		require.ErrorIs(t, err, redact.ErrEncoding)
		require.Empty(t, got)
		require.Nil(t, counts)
		require.NotContains(t, err.Error(), "Xk9")
	}
	require.Equal(t, []redact.Span{{10, 18, redact.Password}}, redact.Secrets().Spans(secret+" \xff", nil), "Find scans bytes")
	got, _, err := redact.Secrets().Text("a\ufffdb")
	require.NoError(t, err, "the replacement character itself is fine")
	require.Equal(t, "a\ufffdb", got)
}

// Requirement: G29.
func TestDetectorPanicIsAnError(t *testing.T) {
	t.Parallel()
	r := redact.Failing()
	got, counts, err := r.Text("quiet")
	require.NoError(t, err)
	require.Nil(t, counts)
	require.Equal(t, "quiet", got)

	got, counts, err = r.Text("oh! Xk9#mP2q")
	require.ErrorIs(t, err, redact.ErrDetector)
	require.Empty(t, got)
	require.Nil(t, counts)
	require.NotContains(t, err.Error(), "Xk9", "the panic quotes the text, the error must not")

	got, _, err = r.Value(`{"a":"oh! Xk9#mP2q"}`)
	require.ErrorIs(t, err, redact.ErrDetector)
	require.Empty(t, got)
	require.NotContains(t, err.Error(), "Xk9")

	require.Equal(t, []redact.Span{{0, 12, redact.Password}}, r.Spans("oh! Xk9#mP2q", nil), "Find holds by taking all")
	_, _, err = r.Text("quiet again")
	require.NoError(t, err)
}

// Requirement: G29.
func TestEndlessRedactionIsAnError(t *testing.T) {
	t.Parallel()
	r := redact.Restless()
	_, _, err := r.Text("a[bcd")
	require.ErrorIs(t, err, redact.ErrDiverged)
	_, _, err = r.Value(`["a[bcd"]`)
	require.ErrorIs(t, err, redact.ErrDiverged)
	require.Equal(t, []redact.Span{{0, 5, redact.Password}}, r.Spans("a[bcd", nil))
}

// Requirement: G3.
func TestNoRedactorIsAnError(t *testing.T) {
	t.Parallel()
	var none *redact.Redactor
	for _, r := range []*redact.Redactor{none, {}} {
		got, _, err := r.Text("plain")
		require.ErrorIs(t, err, redact.ErrDetector)
		require.Empty(t, got)
		got, _, err = r.Value(`"plain"`)
		require.ErrorIs(t, err, redact.ErrDetector)
		require.Empty(t, got)
		require.Len(t, r.Spans("plain", nil), 1)
	}
}

func TestGrowthIsBounded(t *testing.T) {
	t.Parallel()
	for _, f := range append(passwords(), tokens()...) {
		out, _, err := redact.Secrets().Text(strings.Repeat(f.text+"\n", 50))
		require.NoError(t, err)
		require.LessOrEqual(t, len(out), 5*51*len(f.text))
	}
}
