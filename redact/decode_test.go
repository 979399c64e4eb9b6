package redact_test

import (
	b64 "encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// An encoding hides a text of ASCII.
type encoding struct {
	name   string
	encode func(string) string
}

func encodings() []encoding {
	each := func(format string) func(string) string {
		return func(text string) string {
			var b strings.Builder
			for _, c := range []byte(text) {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
	}
	return []encoding{
		{"base64", func(text string) string { return b64.StdEncoding.EncodeToString([]byte(text)) }},
		{"base64 without padding", func(text string) string { return b64.RawStdEncoding.EncodeToString([]byte(text)) }},
		{"base64url", func(text string) string { return b64.URLEncoding.EncodeToString([]byte(text)) }},
		{"base64url without padding", func(text string) string { return b64.RawURLEncoding.EncodeToString([]byte(text)) }},
		{"hex", func(text string) string { return hex.EncodeToString([]byte(text)) }},
		{"upper hex", func(text string) string { return strings.ToUpper(hex.EncodeToString([]byte(text))) }},
		{"percent", each("%%%02X")},
		{"percent where needed", func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }},
		{`\u`, each(`\u%04x`)},
		{`\x`, each(`\x%02x`)},
		{`\x{}`, each(`\x{%x}`)},
		{`\u{}`, each(`\u{%x}`)},
		{`\U`, each(`\U%08x`)},
		{"octal", each(`\%03o`)},
		{"references", each("&#%d;")},
		{"hexadecimal references", each("&#x%X;")},
	}
}

// Requirement: G24.
func TestFindsEncodedValues(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	wholeRuns := []string{"base64", "base64 without padding", "base64url", "base64url without padding", "hex", "upper hex"}
	for value, want := range map[string]string{gh: "[REDACTED:token]", "anna.berg@claims.example": "[REDACTED:email]", "a@b.example": "[REDACTED:email]"} {
		for _, outer := range encodings() {
			for _, text := range []string{value, "the value is " + value + ", keep it"} {
				encoded := outer.encode(text)
				for _, around := range [][2]string{{"", ""}, {"see ", " there"}, {"x=", "&y=1"}, {"\"", "\""}, {"(", ")"}} {
					got, counts, err := redact.Default().Text(around[0] + encoded + around[1])
					require.NoError(t, err)
					require.Equal(t, 1, counts.Total(), "%s of %q", outer.name, text)
					require.Contains(t, got, want)
					if slices.Contains(wholeRuns, outer.name) {
						require.Equal(t, around[0]+want+around[1], got, outer.name)
					}
				}
				quoted, err := json.Marshal(map[string]string{"a": encoded})
				require.NoError(t, err)
				got, _, err := redact.Default().Value(string(quoted))
				require.NoError(t, err)
				require.Contains(t, got, want)
			}
		}
	}
}

// Requirement: G24.
func TestThreeLayers(t *testing.T) {
	t.Parallel()
	value := "mail anna.berg@claims.example"
	for _, a := range encodings() {
		for _, b := range encodings()[:10] {
			for _, c := range encodings()[:10] {
				text := a.encode(b.encode(c.encode(value)))
				got, counts, err := redact.Default().Text(text)
				require.NoError(t, err)
				require.Positive(t, counts.Total(), "%s of %s of %s: %s", a.name, b.name, c.name, text)
				require.Contains(t, got, "[REDACTED:email]")
			}
		}
	}
}

// Requirement: G24.
func TestRunsInTheirSurroundings(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	enc := func(text string) string { return b64.StdEncoding.EncodeToString([]byte(text)) }
	long := enc(strings.Repeat("All is well here, and so on. ", 12) + gh + strings.Repeat(" Nothing else follows.", 12))
	var lines []string
	for rest := long; rest != ""; {
		n := min(76, len(rest))
		lines, rest = append(lines, rest[:n]), rest[n:]
	}
	for name, tt := range map[string][2]string{
		"data URL":                {"data:text/plain;base64," + enc(gh), "data:text/plain;base64,[REDACTED:token]"},
		"lines":                   {"head\n" + strings.Join(lines, "\n") + "\nend", "head\n[REDACTED:token]\nend"},
		"lines of CRLF":           {"head\r\n" + strings.Join(lines, "\r\n") + "\r\nend", "head\r\n[REDACTED:token]\r\nend"},
		"indented":                {"a: |\n  " + strings.Join(lines, "\n  ") + "\nb: 1", "a: |\n  [REDACTED:token]\nb: 1"},
		"in binary":               {enc("\x00\xff\x01" + gh + "\xfe\x02"), "[REDACTED:token]"},
		"UTF-8":                   {enc("Der Schlüssel für Größe: " + gh), "[REDACTED:token]"},
		"hidden characters":       {strings.Join(strings.Split(enc(gh), ""), "\u200b"), "[REDACTED:token]"},
		"full width":              {enc("ｇｈｐ＿" + fake(alnums, 36)), "[REDACTED:token]"},
		"JSON in a string":        {`{"a":"\u0061nna\u0040claims.example"}`, `{"a":"[REDACTED:email]"}`},
		"escaped JSON":            {`"{\"a\":\"anna\\u0040claims.example\"}"`, `"{\"a\":\"[REDACTED:email]\"}"`},
		"surrogates":              {`\ud83d\ude00 anna\u0040claims.example`, `\ud83d\ude00 [REDACTED:email]`},
		"hex behind a digit":      {"0" + hex.EncodeToString([]byte(gh)), "[REDACTED:token]"},
		"two kinds":               {enc("anna@claims.example password: Xk9#mP2q"), "[REDACTED:password]"},
		"two kinds, turned round": {enc("password: Xk9#mP2q anna@claims.example"), "[REDACTED:password]"},
		"two runs":                {enc(gh) + " and " + hex.EncodeToString([]byte(gh)), "[REDACTED:token] and [REDACTED:token]"},
	} {
		got, _, err := redact.Default().Text(tt[0])
		require.NoError(t, err)
		require.Equal(t, tt[1], got, name)
	}
	for skip := range 4 { // glued to letters, so that the groups of four begin elsewhere
		got, _, err := redact.Default().Text("path/" + "abc"[:min(skip, 3)] + enc("key "+gh))
		require.NoError(t, err)
		require.Equal(t, "[REDACTED:token]", got)
	}
}

// Requirement: G24.
func TestCleanEncodedTextStays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		b64.StdEncoding.EncodeToString([]byte(strings.Repeat("Nothing of interest. ", 30))), fake(base64, 4000), fake(hexes, 4000), fake(url64, 4000),
		"https://example.com/a%20b?q=%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C&x=100%", `\u0041\u00e9\ud83d\ude00\n\x41`, `C:\users\x1f\ud800`, "%", "%4", `\u12`, `\x`, "100%25 of %41", `C:\101\123 \u{} \u{110000} \U00110000 \x{`, "&#; &#x; &#99999999; &#65 &#xyz; a&#10;b",
	} {
		got, counts, err := redact.All().Text(text)
		require.NoError(t, err)
		require.Nil(t, counts, text)
		require.Equal(t, text, got)
	}
}

// Requirement: G25.
func TestMarksNextToHiddenValues(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"gitleaks:allow", "pragma: allowlist secret", "nosec", "noqa", "[REDACTED:email]", "nolint:gosec", "trufflehog:ignore"} {
		for _, text := range []string{"anna@claims.example", "anna\u200b@claims.example", "YW5uYUBjbGFpbXMuZXhhbXBsZQ=="} {
			for _, line := range []string{text + " # " + mark, "# " + mark + "\n" + text, "<!-- " + mark + " --> " + text} {
				got, counts, err := redact.Default().Text(line)
				require.NoError(t, err)
				require.Equal(t, redact.Counts{redact.Email: 1}, counts, line)
				require.Equal(t, strings.Replace(line, text, "[REDACTED:email]", 1), got)
			}
		}
	}
}

// A character that represents eighteen, again in each layer: looking at all of it would take many
// times the text.
//
// Requirement: G29.
func TestTextThatDecodesToManyTimesItsSizeIsAnError(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\ufdfa", 5000)
	_, counts, err := redact.Default().Text(text + "%41")
	require.NoError(t, err)
	require.Nil(t, counts)
	got, _, err := redact.Default().Text(text + "%25252541")
	require.ErrorIs(t, err, redact.ErrDiverged)
	require.Empty(t, got)
	_, _, err = redact.Default().Value(`["` + text + `%25252541"]`)
	require.ErrorIs(t, err, redact.ErrDiverged)
	require.Len(t, redact.Default().Spans(text+"%25252541", nil), 1)
}

// What is found in a part of a text does not depend on escapes elsewhere.
//
// Requirement: G24.
func TestEscapesElsewhereChangeNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`\"anna berg\"@claims.example`, `C:\new\table`, `a\nb`, `x\/y`} {
		alone, _, err := redact.All().Text(text + " and words")
		require.NoError(t, err)
		beside, _, err := redact.All().Text(text + ` and words \u0041`)
		require.NoError(t, err)
		require.Equal(t, alone+` \u0041`, beside)
	}
	got, _, err := redact.All().Text(`\"anna berg\"@claims.example`)
	require.NoError(t, err)
	require.Contains(t, got, "[REDACTED:email]")
}
