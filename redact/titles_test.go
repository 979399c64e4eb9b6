package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// A title says what the value beside it is, also with invisible characters in it.
//
// Requirement: G22.
func TestTitlesAreNormalized(t *testing.T) {
	t.Parallel()
	for _, title := range []string{"phone", "ph\u200bone", "ｐｈｏｎｅ", "ph\u00adone", `ph\u0001one`} {
		for _, key := range []string{"type", "ty\u200bpe"} {
			got, _, err := redact.Default().Value(`{"` + key + `":"` + title + `","value":"555-0136"}`)
			require.NoError(t, err)
			require.Equal(t, `{"`+key+`":"`+title+`","value":"[REDACTED:phone]"}`, got)
		}
	}
}
