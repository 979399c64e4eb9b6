package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// Requirement: G28.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{
		`{"card":4111111111111111}`:             `{"card":"[REDACTED:card]"}`,
		`4111111111111111`:                      `"[REDACTED:card]"`,
		`[-4111111111111111]`:                   `["[REDACTED:card]"]`,
		`[4111111111111111.0]`:                  `["[REDACTED:card]"]`,
		`[4.111111111111111e15]`:                `["[REDACTED:card]"]`,
		`[4.111111111111111E+15]`:               `["[REDACTED:card]"]`,
		`[0.04111111111111111e17]`:              `["[REDACTED:card]"]`,
		`[41111111111111110e-1]`:                `["[REDACTED:card]"]`,
		`[378282246310005,1748503543012]`:       `["[REDACTED:card]",1748503543012]`,
		`[0.4111111111111111,4111111111111112]`: `[0.4111111111111111,4111111111111112]`,
		`[4.111111111111111e14,4e999,4e-999]`:   `[4.111111111111111e14,4e999,4e-999]`,
		`{"n":[0,-0.0,1e5,100,12.5,1e-7]}`:      `{"n":[0,-0.0,1e5,100,12.5,1e-7]}`,
	} {
		got, _, err := redact.Default().Value(give)
		require.NoError(t, err)
		require.Equal(t, want, got)
		requireSameShape(t, give, got)
	}
	got, redacted, revealed, err := redact.Default().JSON(t.Context(), `{"card":4111111111111111,"other":4111111111111111}`, only(redact.Card, "card"))
	require.NoError(t, err)
	require.Equal(t, `{"card":4111111111111111,"other":"[REDACTED:card]"}`, got)
	require.Equal(t, redact.Counts{redact.Card: 1}, redacted)
	require.Equal(t, redact.Counts{redact.Card: 1}, revealed)
}
