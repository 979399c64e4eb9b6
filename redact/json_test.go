package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// Requirement: G27.
func TestJSONKeepsItsShape(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	tests := []struct{ name, give, want string }{
		{"string", `"` + gh + `"`, `"[REDACTED:token]"`},
		{"part of a string", `{"a":"use ` + gh + ` now"}`, `{"a":"use [REDACTED:token] now"}`},
		{"deep", `[[{"a":{"b":[1,"` + gh + `"]}}]]`, `[[{"a":{"b":[1,"[REDACTED:token]"]}}]]`},
		{"password", `{"password":"swordfish","user":"anna"}`, `{"password":"[REDACTED:password]","user":"anna"}`},
		{"pass phrase", `{"password":"correct horse battery staple"}`, `{"password":"[REDACTED:password]"}`},
		{"one letter short of nothing", `{"password":"ab"}`, `{"password":"[REDACTED:password]"}`},
		{"number", `{"password":12345678}`, `{"password":"[REDACTED:password]"}`},
		{"negative fraction", `{"secret":-1234.5678e9}`, `{"secret":"[REDACTED:password]"}`},
		{"list", `{"passwords":["swordfish",12345,true,null]}`, `{"passwords":["[REDACTED:password]","[REDACTED:password]",true,null]}`},
		{"object below", `{"credentials":{"host":"h","password":"xy"}}`, `{"credentials":{"host":"h","password":"[REDACTED:password]"}}`},
		{"object below, longer", `{"db":{"password":{"value":"x9kQ2z!","rotated":true}}}`, `{"db":{"password":{"value":"[REDACTED:password]","rotated":true}}}`},
		{"number in an object below", `{"password":{"value":12345678}}`, `{"password":{"value":"[REDACTED:password]"}}`},
		{"api key", `{"apiKey":"abc123def"}`, `{"apiKey":"[REDACTED:password]"}`},
		{"token", `{"token":"` + fake(hexes, 40) + `"}`, `{"token":"[REDACTED:password]"}`},
		{"kind of the value, not of the key", `{"password":"` + gh + `"}`, `{"password":"[REDACTED:token]"}`},
		{"pair", `{"name":"DB_PASSWORD","value":"swordfish"}`, `{"name":"DB_PASSWORD","value":"[REDACTED:password]"}`},
		{"list of pairs", `[{"name":"HOST","value":"swordfish"},{"name":"API_TOKEN","value":"` + fake(hexes, 32) + `"}]`, `[{"name":"HOST","value":"swordfish"},{"name":"API_TOKEN","value":"[REDACTED:password]"}]`},
		{"key", `{"` + gh + `":1}`, `{"[REDACTED:token]":1}`},
		{"equal keys", `{"` + gh + `":1,"[REDACTED:token]":2,"` + gh + `x":3}`, `{"[REDACTED:token] 2":1,"[REDACTED:token]":2,"[REDACTED:token] 3":3}`},
		{"equal keys in two objects", `[{"` + gh + `":{"` + gh + `":1}},{"` + gh + `":2}]`, `[{"[REDACTED:token]":{"[REDACTED:token]":1}},{"[REDACTED:token]":2}]`},
		{"escapes", `{"a":"line\none \"` + gh + `\" \\ é\u0001"}`, `{"a":"line\none \"[REDACTED:token]\" \\ é\u0001"}`},
		{"secret in escapes", `{"a":"\u0067h` + gh[2:] + `"}`, `{"a":"[REDACTED:token]"}`},
		{"line breaks of a key", `{"private_key":"` + pem("PRIVATE KEY", `\n`, 8) + `\n"}`, `{"private_key":"[REDACTED:key]\n"}`},
		{"JSON in JSON", `{"body":"{\"password\":\"x9kQ2z\"}"}`, `{"body":"{\"password\":\"[REDACTED:password]\"}"}`},
		{"header", `{"Authorization":"Basic dXNlcjpwYTU1dzByZA=="}`, `{"Authorization":"Basic [REDACTED:password]"}`},
		{"url", `{"url":"postgres://u:p@h/d"}`, `{"url":"postgres://[REDACTED:password]@h/d"}`},
		{"blanks outside strings stay", "{ \"a\" : [ \"" + gh + "\" , 1 ] }\n", "{ \"a\" : [ \"[REDACTED:token]\" , 1 ] }\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, counts, err := redact.Secrets().Value(tt.give)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, strings.Count(got, "[REDACTED:")-strings.Count(tt.give, "[REDACTED:"), counts.Total())
			requireSameShape(t, tt.give, got)
			again, counts, err := redact.Secrets().Value(got)
			require.NoError(t, err)
			require.Nil(t, counts)
			require.Equal(t, got, again)
		})
	}
}

// Requirement: G27.
func TestJSONWithoutSecretsStaysAsItIs(t *testing.T) {
	t.Parallel()
	values := []string{
		`{}`, `[]`, `""`, `0`, `-0.5e-7`, `true`, `null`, ` [ 1 , 2 ] `, `{"a":{"b":[[],{}]}}`,
		`{"password":null,"token":true,"secret":""}`,
		`{"password":"${DB_PASSWORD}","api_key":"<your-key>","token":"none","secret":"[REDACTED:password]"}`,
		`{"password":{"type":"string","minLength":12,"maxLength":64,"description":"At least 12 characters."}}`,
		`{"properties":{"password":{"format":"password","title":"Password","type":"string"},"token":{"type":"string"}}}`,
		`{"password":"Enter your password","password_hint":"name of the dog 2","forgot_password":"Forgot it?"}`,
		`{"usage":{"tokens":18412,"max_tokens":4096,"prompt_tokens":1520,"totalTokenUsage":{"input_tokens":15100}}}`,
		`{"token":"Hello","logprob":-0.317,"top":[{"token":" the"},{"token":"2024"}]}`,
		`{"nextPageToken":"` + fake(alnums, 32) + `","cacheKey":"user:42","publicKey":"` + fake(hexes, 64) + `"}`,
		`{"password_file":"/run/secrets/pw","token_url":"https://login.example/oauth2/token","secretName":"db-credentials"}`,
		`{"sha":"` + fake(hexes, 40) + `","id":"550e8400-e29b-41d4-a716-446655440000","image":"data:image/png;base64,` + fake(base64, 400) + `"}`,
		`{"auth":{"type":"oauth2","scopes":["read","write"],"user":"anna"},"pass":45,"fail":3}`,
		`{"text":"line\none \"two\" \\ three\t\u0001 😀 \/ \ud83d\ude00","key":"value"}`,
		`{"name":"color","value":"aB3dE6gH9jK2mN5p"}`,
	}
	for name, text := range prose(t) {
		quoted, err := json.Marshal(map[string]string{"file": name, "text": text})
		require.NoError(t, err)
		values = append(values, string(quoted))
	}
	for _, value := range values {
		got, counts, err := redact.Secrets().Value(value)
		require.NoError(t, err, value)
		require.Nil(t, counts, value)
		require.Equal(t, value, got)
	}
}

// Requirement: G29.
func TestInvalidJSONIsAnError(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"", " ", "{", "[", `"`, `"a`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{a:1}`, `{"a":1}}`, `[1]]`, `1 2`, "01", "1.", "-", "1e", "+1", ".5",
		`"\x"`, `"\u12"`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83dx"`, "\"\n\"", "\"\x00\"", "tru", "nul", "NaN", "'a'", "\ufeff{}",
		strings.Repeat("[", 10_001), "// comment\n1", `{"password":"swordfish"} trailing`,
	} {
		got, counts, err := redact.Secrets().Value(value)
		require.ErrorIs(t, err, redact.ErrSyntax, "%.40q", value)
		require.Empty(t, got)
		require.Nil(t, counts)
		require.NotContains(t, err.Error(), "swordfish")
	}
	_, _, err := redact.Secrets().Value("\"\xff\"")
	require.ErrorIs(t, err, redact.ErrEncoding)
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	got, _, err := redact.Secrets().Value(deep)
	require.NoError(t, err)
	require.Equal(t, deep, got)
}

// Requirement: G29.
func TestJSONWorkIsLinearInDepthAndKeys(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	deep := strings.Repeat(`{"`+gh+`":`, 9_000) + "1" + strings.Repeat("}", 9_000)
	got, counts, err := redact.Secrets().Value(deep)
	require.NoError(t, err)
	require.Equal(t, 9_000, counts[redact.Token])
	require.True(t, json.Valid([]byte(got)))
	wide := "{" + strings.Repeat(`"`+gh+`":1,`, 30_000) + `"a":1}`
	got, counts, err = redact.Secrets().Value(wide)
	require.NoError(t, err)
	require.Equal(t, 30_000, counts[redact.Token])
	var keys map[string]int
	require.NoError(t, json.Unmarshal([]byte(got), &keys))
	require.Len(t, keys, 30_001, "keys stay apart")
}
