package gate_test

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Requirement: G9.
func TestUnfencedWords(t *testing.T) {
	t.Parallel()
	for _, fine := range []string{"", "Write the report", "Élodie's 2nd task (draft): a < b", "### heading", "שלום", "[1]", "<html>", "👩\u200d🚀", "[REDACTED:token]"} {
		require.NoError(t, gate.CheckUnfenced(fine), "%q", fine)
	}
	for line, says := range map[string]string{
		"two\nlines":                          "line break (U+000A) at byte 3",
		"x\u2028y":                            "line break (U+2028)",
		"\x1b[2J":                             "control character (U+001B)",
		"x\u202ey":                            "invisible character (U+202E)",
		"bad \xff byte":                       "not valid UTF-8",
		"my key is " + fakeToken:              "a secret or personal data is in it (token)",
		"https://x:" + "pw12345@example.com/": "a secret or personal data is in it (password)",
	} {
		err := gate.CheckUnfenced(line)
		require.ErrorIs(t, err, gate.ErrUnfenced, "%q", line)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), line)
	}
	require.ErrorIs(t, gate.CheckUnfenced("\r"), naming.ErrLine)
	for _, token := range controlTokens {
		err := gate.CheckUnfenced("Write " + token + " now")
		require.ErrorContains(t, err, "a control token of a chat template is in it")
		require.NotContains(t, err.Error(), token)
	}
}

// Requirement: G42.
func TestUnfencedErrorQuotesNoSecret(t *testing.T) {
	t.Parallel()
	for _, line := range []string{fakeToken, "<|" + fakeToken + "|>", fakeToken + "\n", "\x00" + fakeToken, "\xff" + fakeToken} {
		err := gate.CheckUnfenced(line)
		require.Error(t, err)
		require.NotContains(t, err.Error(), fakeToken)
	}
}

// The gate passes safe words unchanged.
func TestUnfencedWordsPassUnchanged(t *testing.T) {
	t.Parallel()
	pieces := rapid.OneOf(rapid.StringN(0, 6, -1), rapid.SampledFrom(append([]string{"a", "<", "|", ">", "[INST", "]", "password: ", fakeToken, "\n", " "}, controlTokens...)))
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(pieces, 0, 6).Draw(t, "pieces"), "")
		changed := text(t, line).Payload().Text() != line
		err := gate.CheckUnfenced(line)
		require.Equal(t, changed || naming.CheckLine(line) != nil, err != nil, "%v", err)
	})
}
