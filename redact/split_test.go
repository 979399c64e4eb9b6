package redact_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// Requirement: G26.
func TestFindsValuesSplitOverLeaves(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	long := strings.Repeat("All is well. ", 100)
	const email, token, password, card = "[REDACTED:email]", "[REDACTED:token]", "[REDACTED:password]", "[REDACTED:card]"
	tests := []struct{ name, give, want string }{
		{"two", `["` + gh[:10] + `","` + gh[10:] + `"]`, `["` + token + `","` + token + `"]`},
		{"letters", `["` + strings.Join(strings.Split(gh, ""), `","`) + `"]`, `["` + strings.Repeat(token+`","`, 39) + token + `"]`},
		{"between others", `["a","` + gh[:10] + `","` + gh[10:] + `"," b c"]`, `["a","` + token + `","` + token + `"," b c"]`},
		{"with words", `["the key is ` + gh[:10] + `","` + gh[10:] + ` as said"]`, `["` + token + `","` + token + `"]`},
		{"email", `["anna","@claims",".example"]`, `["` + email + `","` + email + `","` + email + `"]`},
		{"email and blanks", `{"a":[ "anna@" , "claims.example" ]}`, `{"a":[ "` + email + `" , "` + email + `" ]}`},
		{"base64", `["YW5uYUBj","bGFpbXMuZX","hhbXBsZQ=="]`, `["` + email + `","` + email + `","` + email + `"]`},
		{"hidden", "[\"an\u200bna@\",\"claims.ex\u200bample\"]", `["` + email + `","` + email + `"]`},
		{"password in a sentence", `["a1","the password Xk9m","P2q","b2 c"]`, `["a1","` + password + `","` + password + `","b2 c"]`},
		{"account between words", `["x 1","pay GB8","2 WEST 1234 56","98 7654 32","7 y"]`, `["x 1","[REDACTED:iban]","[REDACTED:iban]","[REDACTED:iban]","7 y"]`},
		{"card between numbers", `["E 7","x","4111 ","11","11 1111 1111"]`, `["E 7","x","` + card + `","` + card + `","` + card + `"]`},
		{"name that is cut", `["17","x","9 the p","assword Xk9mP2q","a1"]`, `["17","x","9 the p","` + password + `","` + password + `"]`},
		{"number behind its word", `["9","ssn ","12345678","9","room 7"]`, `["9","ssn ","[REDACTED:ssn]","[REDACTED:ssn]","room 7"]`},
		{"phone between words", `["x1","415-555","-0132","7 y"]`, `["x1","[REDACTED:phone]","[REDACTED:phone]","7 y"]`},
		{"arguments", `["--password","x9kQ2z!v","--port","80"]`, `["--password","` + password + `","--port","80"]`},
		{"password", `["password=Xk9#","mP2qR7"]`, `["` + password + `","` + password + `"]`},
		{"deep", `[[{"a":[["anna@","claims.example"]]}]]`, `[[{"a":[["` + email + `","` + email + `"]]}]]`},
		{"behind a long text", `["` + long + `anna@","claims.example"]`, `["` + email + `","` + email + `"]`},
		{"before a long text", `["anna@","claims.example ` + long + `"]`, `["` + email + `","` + email + `"]`},
		{"at both ends of a long text", `["anna@","claims.example ` + long + `anna@","claims.example"]`, `["` + email + `","` + email + `","` + email + `"]`},
		{"beside one that is found", `["x ben@claims.example anna@","claims.example"]`, `["` + email + `","` + email + `"]`},
		{"before one that is found", `["anna@","claims.example ben@claims.example"]`, `["` + email + `","` + email + `"]`},
		{"numbers beside it", `[1,"anna@","claims.example",7]`, `[1,"` + email + `","` + email + `",7]`},
		{"card", `["4111","1111","1111","1111"]`, `["` + card + `","` + card + `","` + card + `","` + card + `"]`},
		{"card of numbers", `{"card":[4111,1111,1111,1111]}`, `{"card":["` + card + `","` + card + `","` + card + `","` + card + `"]}`},
		{"card with what belongs to it", `["4111","1111","1111","1111","12/27","123"]`, `["` + card + `","` + card + `","` + card + `","` + card + `","12/27","123"]`},
		{"social security number", `["123-45-","6789"]`, `["[REDACTED:ssn]","[REDACTED:ssn]"]`},
		{"social security number in three", `["123","45","6789"]`, `["[REDACTED:ssn]","[REDACTED:ssn]","[REDACTED:ssn]"]`},
		{"account", `["DE89","3704","0044","0532","0130","00"]`, strings.Replace(`["0","0","0","0","0","0"]`, "0", "[REDACTED:iban]", 6)},
		{"first finds, then joins", `["anna@","claims.example",{"a":"ben@claims.example"}]`, `["` + email + `","` + email + `",{"a":"` + email + `"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, counts, err := redact.Default().Value(tt.give)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Positive(t, counts.Total())
			requireSameShape(t, tt.give, got)
			again, counts, err := redact.Default().Value(got)
			require.NoError(t, err)
			require.Nil(t, counts)
			require.Equal(t, got, again)
		})
	}
}

// Requirement: G26.
func TestUnrelatedLeavesStay(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`["anna@",true,"claims.example"]`, `["anna@",null,"claims.example"]`, `["anna@",[],"claims.example"]`, `["anna@",{},"claims.example"]`, `["anna@"]`,
		`[["anna@"],["claims.example"]]`, `{"a":"anna@","b":"claims.example"}`, `["anna@",1.5,"claims.example"]`, `[]`, `[1,2,3]`, `["a","b"]`,
		`["secret: foo","bar1 is not it"]`, `["Forgot your password?","Log in","Sign up 2"]`, `["user","password","host1"]`, `[0.123,-0.456,1e-9,3]`,
		`["2024-05-17","2024-05-18"]`, `["hosts 10.1",".2.3"]`, `["123-45-","6789 pieces"]`, `["ss","12","34","56","78","9:","AA","n "]`, `[2019,2020,2021,2022]`, `["` + strings.Repeat("word ", 200) + `","` + strings.Repeat("more ", 200) + `"]`,
	} {
		got, counts, err := redact.All().Value(value)
		require.NoError(t, err)
		require.Nil(t, counts, value)
		require.Equal(t, value, got)
	}
}

// Requirement: G26.
func TestRevealOfSplitValueNeedsEachLeaf(t *testing.T) {
	t.Parallel()
	const value = `{"to":["x","anna@","claims.example",7]}`
	may := func(index ...string) redact.Reveal {
		return func(kind redact.Kind, path []string) bool {
			return kind == redact.Email && len(path) == 2 && path[0] == "to" && slices.Contains(index, path[1])
		}
	}
	got, redacted, revealed, err := redact.Default().JSON(t.Context(), value, may("0", "1", "2"))
	require.NoError(t, err)
	require.Equal(t, value, got)
	require.Nil(t, redacted)
	require.Equal(t, redact.Counts{redact.Email: 1}, revealed)
	for _, reveal := range []redact.Reveal{may("1"), may("2"), may("0", "3")} {
		got, redacted, _, err := redact.Default().JSON(t.Context(), value, reveal)
		require.NoError(t, err)
		require.NotContains(t, got, "claims")
		require.Positive(t, redacted.Total())
	}
}

// Requirement: G26.
func TestWorkIsLinearInLeaves(t *testing.T) {
	t.Parallel()
	value := `["anna@","claims.example"` + strings.Repeat(`,"anna@","claims.example"`, 20_000) + `]`
	got, counts, err := redact.Default().Value(value)
	require.NoError(t, err)
	require.NotContains(t, got, "anna")
	require.Positive(t, counts[redact.Email])
	require.True(t, json.Valid([]byte(got)))
}
