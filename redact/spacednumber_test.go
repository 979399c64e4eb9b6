package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// Numbers whose groups stand apart in ways that numbers are hardly written in are found.
//
// Requirement: G23.
func TestFindsNumbersInLooseGroups(t *testing.T) {
	t.Parallel()
	numbers := map[redact.Kind][]string{
		redact.Card: {"4111 1111 1111 1111", "3782 822463 10005"}, redact.IBAN: {"DE89 3704 0044 0532 0130 00", "GB82 WEST 1234 5698 7654 32"},
		redact.Phone: {"+1 415 555 0132", "+44 20 7123 4567", "phone 415 555 0132"}, redact.SSN: {"123 45 6789"},
	}
	gaps := []string{"  ", "   ", "\t", "\n", "\r\n", " \n", "\n    ", "\n> ", `\n`, `\r\n`, "\u0085", "\u2028", "/", "_", ",", "|", " | ", ":", ";", " - ", "-\n"}
	for kind, values := range numbers {
		r := finder(t, kind)
		for _, value := range values {
			word, number := "", value
			if w, rest, ok := strings.Cut(value, "phone "); ok {
				word, number = w+"phone ", rest
			}
			for _, gap := range gaps {
				spread := strings.ReplaceAll(number, " ", gap)
				got, _, err := r.Text("It is " + word + spread + " or so.")
				require.NoError(t, err)
				assert.Equal(t, "It is "+word+kind.Placeholder()+" or so.", got, "%q", spread)
				got, _, err = r.Text(got)
				require.NoError(t, err)
				assert.Equal(t, "It is "+word+kind.Placeholder()+" or so.", got)
			}
			last := strings.LastIndex(number, " ")
			wrapped := number[:last] + "\n" + number[last+1:]
			require.Len(t, r.Spans(word+wrapped, nil), 1, "%q", wrapped)
		}
	}
	for _, wrapped := range []string{"4111111111\n111111", "4111 1111 11\n11 1111", "41111111\n  11111111", "DE8937040044\n0532013000", "+1415\n5550132"} {
		spans := redact.Default().Spans("pay "+wrapped+" now", nil)
		require.Len(t, spans, 1, "%q", wrapped)
		require.Equal(t, len(wrapped), spans[0].End-spans[0].Start)
	}
}

// Marks on digits and control characters between them hide nothing.
//
// Requirement: G22.
func TestFindsNumbersWithMarksAndControls(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"4111111111111111": "[REDACTED:card]", "+14155550132": "[REDACTED:phone]", "SSN 123456789": "SSN [REDACTED:ssn]"} {
		word, digits, ok := strings.Cut(value, " ")
		if !ok {
			word, digits = "", value
		} else {
			word += " "
		}
		for _, glue := range []string{"\u0301", "\u0332", "\u20e3", "\u0301\u0327", "\x00", "\x01", "\x1f", "\x7f", "\u0080", "\u200b\x02\u0301"} {
			got, _, err := redact.Default().Text("is " + word + strings.Join(strings.Split(digits, ""), glue) + " it?")
			require.NoError(t, err)
			require.Equal(t, "is "+want+" it?", got, "%q", glue)
		}
	}
	gh := "gh" + "p_" + fake(alnums, 36)
	got, _, err := redact.Default().Text("use " + gh[:9] + "\x00" + gh[9:] + " DE\x018937040044\x020532013000")
	require.NoError(t, err)
	require.Equal(t, "use [REDACTED:token] [REDACTED:iban]", got)
	got, counts, err := redact.All().Text("\x1b[1mbold\x1b[0m \x00 1\u0301 caf\u00e9 e\u0301")
	require.NoError(t, err)
	require.Nil(t, counts)
	require.Equal(t, "\x1b[1mbold\x1b[0m \x00 1\u0301 caf\u00e9 e\u0301", got)
}

// Lists, columns and times of day are no numbers of anybody.
//
// Requirement: G23.
func TestListsOfNumbersStay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"2019\n2020\n2021\n2022", "4111\n1111\n1111\n1111\n1111", "4111,1111,1111,1111,5", "| 415 | 555 | 1320 |", "415,555,0132", "415;555;0132", "12:30:45", "123:45:6789:1", "2024/05/17", "1,234,567,890",
		"x_123_45_6789_1", "1\n2\n3\n", "123\t45\t6789\t10", "4111    1111    1111    1111", "00\t102\t102\t1020", "a4111_1111_1111_1111", "4111, 1111, 1111, 1111", "1748503543012", "17485\n03543012",
	} {
		got, counts, err := redact.All().Text(text)
		require.NoError(t, err)
		require.Nil(t, counts, "%q", text)
		require.Equal(t, text, got)
	}
}

// A key is read as a text is: without invisible characters, and in NFKC.
//
// Requirement: G22.
func TestKeysAreNormalized(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"pass\u200bword", "ｐａｓｓｗｏｒｄ", "pass\u00adword", "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝", `pass\u0001word`, "db＿password", "\u202epassword", "\ufeffpassword"} {
		got, _, err := redact.Secrets().Value(`{"` + key + `":"swordfish","n":[{"` + key + `":12345}]}`)
		require.NoError(t, err)
		require.Equal(t, `{"`+key+`":"[REDACTED:password]","n":[{"`+key+`":"[REDACTED:password]"}]}`, got)
	}
	got, _, err := redact.Secrets().Value(`{"na\u200bme":"DB_PASS\u200bWORD","vaｌue":"swordfish"}`)
	require.NoError(t, err)
	require.Equal(t, `{"na\u200bme":"DB_PASS\u200bWORD","vaｌue":"[REDACTED:password]"}`, got)
	got, _, err = redact.Default().Value(`{"ph\u200bone":"555-0136","ｓｓｎ":123456789,"ty\u00adpe":"pho\u200bne"}`)
	require.NoError(t, err)
	require.Equal(t, `{"ph\u200bone":"[REDACTED:phone]","ｓｓｎ":"[REDACTED:ssn]","ty\u00adpe":"pho\u200bne"}`, got)
}

// An empty leaf between two others does not hide that they belong together.
//
// Requirement: G26.
func TestEmptyLeavesDoNotSeparateValues(t *testing.T) {
	t.Parallel()
	for _, empty := range []string{`""`, `"",""`, `" "`, `"\n\t"`, `"\u200b"`, `"\u0000"`} {
		for give, want := range map[string]string{
			`["anna@",_,"claims.example"]`:                                `["[REDACTED:email]",_,"[REDACTED:email]"]`,
			`["4111",_,"1111",_,"1111",_,"1111"]`:                         `["[REDACTED:card]",_,"[REDACTED:card]",_,"[REDACTED:card]",_,"[REDACTED:card]"]`,
			`[_,"x 1","pay GB8",_,"2 WEST 1234 56","98 7654 32","7 y",_]`: `[_,"x 1","[REDACTED:iban]",_,"[REDACTED:iban]","[REDACTED:iban]","7 y",_]`,
			`["--password",_,"x9kQ2z!v"]`:                                 `["--password",_,"[REDACTED:password]"]`,
			`[_]`:                                                         `[_]`,
		} {
			give, want = strings.ReplaceAll(give, "_", empty), strings.ReplaceAll(want, "_", empty)
			got, _, err := redact.Default().Value(give)
			require.NoError(t, err)
			require.Equal(t, want, got)
			requireSameShape(t, give, got)
			again, counts, err := redact.Default().Value(got)
			require.NoError(t, err)
			require.Nil(t, counts)
			require.Equal(t, got, again)
		}
	}
}

// What a later round finds is in the text in another order than it was found in.
//
// Requirement: G27.
func TestLaterRoundsFindInAnyOrder(t *testing.T) {
	t.Parallel()
	_, _, err := redact.All().Text(strings.Repeat(`= \u00pass`, 2_000))
	require.NotErrorIs(t, err, redact.ErrDetector)
}
