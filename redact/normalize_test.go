package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// hidden returns ways to write a value of ASCII that a reader takes for the value, and a scanner of
// bytes does not.
func hidden(value string) map[string]string {
	each := func(glue string) string { return strings.Join(strings.Split(value, ""), glue) }
	shift := func(by rune) string {
		return strings.Map(func(c rune) rune {
			if c == ' ' {
				return ' '
			}
			return c + by
		}, value)
	}
	return map[string]string{
		"zero-width spaces":   each("\u200b"),
		"zero-width joiners":  each("\u200d"),
		"word joiners":        each("\u2060"),
		"byte order marks":    each("\ufeff"),
		"soft hyphens":        each("\u00ad"),
		"bidi marks":          each("\u200f"),
		"bidi isolates":       each("\u2068"),
		"variation selectors": each("\ufe0f"),
		"supplementary ones":  each("\U000e0101"),
		"tag characters":      each("\U000e0041"),
		"graphemes joined":    each("\u034f"),
		"hangul fillers":      each("\u3164"),
		"mongolian":           each("\u180e"),
		"many":                each("\u200b\u00ad\U000e0061\ufe0f"),
		"full width":          shift(0xfee0),
		"in tags":             shift(0xe0000),
	}
}

// Requirement: G22.
func TestFindsValuesWithInvisibleCharacters(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	for value, want := range map[string]string{gh: "[REDACTED:token]", "anna.berg@claims.example": "[REDACTED:email]"} {
		for name, text := range hidden(value) {
			for _, around := range []string{"", "before ", "é … 日本 ", "😀\ufe0f "} {
				got, counts, err := redact.Default().Text(around + text + " after")
				require.NoError(t, err)
				require.Equal(t, around+want+" after", got, name)
				require.Equal(t, 1, counts.Total(), name)
			}
			got, _, err := redact.Default().Value(`{"` + text + `":["` + text + `"]}`)
			require.NoError(t, err)
			require.Equal(t, `{"`+want+`":["`+want+`"]}`, got, name)
		}
	}
}

// Requirement: G22.
func TestDigitsAndDashesOfOtherScripts(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil, []redact.Pattern{{"claim", `C-\d{4}-\d{4}`}, {"cafe", `café`}})
	require.NoError(t, err)
	for text, want := range map[string]string{
		"C-1234-5678":                                         "[REDACTED:claim]",
		"C\u20101234\u20115678.":                              "[REDACTED:claim].",
		"(C\u20121234\u20135678)":                             "([REDACTED:claim])",
		"Ｃ－１２３４－５６７８":                                         "[REDACTED:claim]",
		"C-\u0661\u0662\u0663\u0664-\u0665\u0666\u0667\u0668": "[REDACTED:claim]",
		"C-\u0967\u0968\u0969\u096a-\u06f5\u06f6\u06f7\u06f8": "[REDACTED:claim]",
		"\U0001d402-\U0001d7cf\U0001d7d0\U0001d7d1\U0001d7d2-\U0001d7e7\U0001d7e8\U0001d7f7\U0001d7f8": "[REDACTED:claim]",
		"\u24b8-\u2460\u2461\u00b3\u2074-\u2085\u2465\u2466\u2467":                                     "[REDACTED:claim]",
		"le cafe\u0301 noir":    "le [REDACTED:cafe] noir",
		"C\u20141234\u20145678": "C\u20141234\u20145678",
	} {
		got, _, err := r.Text(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// Requirement: G22.
func TestCleanTextKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"👩\u200d👩\u200d👧 ❤\ufe0f 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "שָׁלוֹם עֲלֵיכֶם", "می\u200cخواهم ۱۲۳", "soft\u00adhyphen … ½ ﬁ №",
		"line\r\nline\u2028line\u0085\n\n", "cafe\u0301", "각", "\ufeffbom", "x²＋y²", "日本語：１２３４。", "\u0301", "\U000e0001\U000e0041", "a\u00a0b\u202fc",
	} {
		got, counts, err := redact.All().Text(text)
		require.NoError(t, err)
		require.Nil(t, counts, text)
		require.Equal(t, text, got)
		spans := redact.All().Spans(text, nil)
		require.Empty(t, spans)
	}
}

// Only what belongs to a span is replaced; what surrounds it keeps its bytes though it is
// normalized too.
//
// Requirement: G22.
func TestSurroundingsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	gh := "gh" + "p_" + fake(alnums, 36)
	got, _, err := redact.Default().Text("ﬁrst\u200b １２ é … " + gh[:9] + "\u200b" + gh[9:] + " ½\u00ad \u200b" + gh + "\u200b שָׁ")
	require.NoError(t, err)
	require.Equal(t, "ﬁrst\u200b １２ é … [REDACTED:token] ½\u00ad \u200b[REDACTED:token]\u200b שָׁ", got)
}
