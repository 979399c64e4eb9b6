package export

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// However a text is cut into pieces, they are redacted as the text is, and nothing of a value is left in any.
func TestPiecesAreRedactedAsOneText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c, err := newCleaner(t.Context(), nil, label.Confidential)
		require.NoError(rt, err)
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"Mail to ", "ann@example.org", " and pay ", "DE89 3704 0044 0532 0130 00", ", or call ", "+44 20 7946 0958", ".\n", "é", ""})).Draw(rt, "parts")
		whole := strings.Join(parts, "")
		var words []string
		for rest := whole; rest != ""; {
			n := rapid.IntRange(0, len(rest)).Draw(rt, "cut")
			words = append(words, rest[:n])
			if rest = rest[n:]; n == 0 && len(words) > 60 {
				words = append(words, rest)
				break
			}
		}
		want, _, err := c.redactor.Text(whole)
		require.NoError(rt, err)
		got := c.searched(words)
		require.Len(rt, got, len(words))
		require.Equal(rt, want, strings.Join(got, ""))
	})
}

func TestWhatIsCleaned(t *testing.T) {
	t.Parallel()
	c, err := newCleaner(t.Context(), nil, label.Confidential)
	require.NoError(t, err)
	for give, want := range map[string]string{
		"Mail ann@example.org.":                               "Mail [REDACTED:email].",
		`{"note": "x", "password": "correct horse"}`:          `{"note":"x","password":"[REDACTED:password]"}`,
		`{"note": "as it is"}`:                                `{"note": "as it is"}`,
		"[envelope 0f3a77 from \"a\"] and [/envelope 0f3a77]": "[envelope ****** from \"a\"] and [/envelope ******]",
		"f4df1e63-54db-5a4c-a0a1-4477bdda7c66":                "f4df1e63-54db-5a4c-a0a1-4477bdda7c66",
		"2026-03-01T12:00:00.123456789Z":                      "2026-03-01T12:00:00.123456789Z",
	} {
		require.Equal(t, want, c.text(give))
	}
	o := c.value(map[string]any{
		"spec": "/home/ann/claims/team.yaml", "line": "/home/ann/claims/team.yaml:3", "sha256": "ab", "bytes": 12, "rounded": true, "tokenUsage": map[string]any{"input_tokens": 64},
		"structured": map[string]any{"password": "abc", "n": 1}, "nested": []any{map[string]any{"fingerprint": "x", "estimated": true, "cost": 1, "title": "Ask ann@example.org"}},
	})
	text, err := json.Marshal(o)
	require.NoError(t, err)
	require.JSONEq(t, `{"spec": "team.yaml", "line": "team.yaml:3", "rounded": true, "structured": {"password": "[REDACTED:password]", "n": 1}, "nested": [{"estimated": true, "title": "Ask [REDACTED:email]"}]}`, string(text))
	require.NoError(t, c.err)
}
