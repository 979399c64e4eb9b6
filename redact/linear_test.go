package redact_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/redact"
)

func init() { slowtest.Checks(30) }

// maxWork is the number of bytes that the detectors may look at for each byte of a text, at worst.
// Clean prose takes less than one.
const maxWork = 200

// A pattern is repeated to make a text that invites a scanner to read the same bytes again and
// again.
type pattern struct{ name, head, repeat string }

func hostile() []pattern {
	return []pattern{
		{"begins without end", "", "-----BEGIN RSA PRIVATE KEY-----\n"},
		{"begins on one line", "", "-----BEGIN PRIVATE KEY----- "},
		{"begins and a word", "", "-----BEGIN PRIVATE KEY-----word"},
		{"ends", "-----BEGIN PRIVATE KEY-----", "-----END "},
		{"dashes", "", "-"},
		{"private members of JSON Web Keys", "", `"d":"Qm9vS2V5c0FyZU5vdFJlYWwxMjM0NTY3ODkwYWJjZGU",`},
		{"members of JSON Web Keys without end", "", `"d":"Qm9vS2V5`},
		{"assignments", "", "password="},
		{"assignments with blanks", "", "password = "},
		{"colons", "", "token:"},
		{"equal signs", "", "="},
		{"quotes", "password=", "\""},
		{"open quotes", "", "password=\"a1"},
		{"escaped quotes", "", `password=\"`},
		{"backslashes", "password=\"", `\`},
		{"one long value", "password=", "a1B2"},
		{"one long word", "password=", "word"},
		{"long name", "", "password_"},
		{"words", "", "pass word "},
		{"lists", "", `passwords=["a1B2c3D4",`},
		{"values of values", "", "key=\"password\" value="},
		{"userinfo", "", "a://b:c"},
		{"at signs", "https://", "a:b@"},
		{"schemes", "", "Bearer "},
		{"long scheme", "Bearer ", "a1B2"},
		{"headers", "", "eyJhbGciOiJ"},
		{"header with end", "", "eyJ."},
		{"long header", "eyJ", "hbGciOiJI"},
		{"prefixes", "", "ghp_"},
		{"dashed prefixes", "", "glpat-"},
		{"slack", "", "xoxb-"},
		{"specimen", "glpat-", "example-"},
		{"key ids", "", "AKIAQ2W3E4R5T6Y7U8I9 "},
		{"parts", "glpat-a1B2c3D4e5F6g7H8i9J0", ".a1B2c3D4e5"},
		{"dots", "", "a.bcdefg."},
		{"azure", "", "abc1Q~"},
		{"telegram", "", "1234567:AA"},
		{"terraform", "", ".atlasv1."},
		{"mailchimp", "", "0123456789abcdef-us1"},
		{"facebook", "", "123456789012345|a"},
		{"manifests", "", "kind: Secret\n"},
		{"manifest data", "kind: Secret\ndata:\n", "  a: YWJjZGVmZ2hpamts\n"},
		{"curl", "curl", " -u a:bcdef"},
		{"flags", "", "--password "},
		{"elements", "", "<password>"},
		{"arguments", "", `"password", `},
		{"sentences", "", "password is "},
		{"keyword", "", "password 'a"},
		{"cells", "", "| password "},
		{"data source names", "", "a:b@tcp("},
		{"placeholders", "", "[REDACTED:token]"},
		{"values behind placeholders", "", "password=[REDACTED:token]"},
		{"placeholders as value", "password=", "[REDACTED:token]"},
		{"brackets", "", "[REDACTED:"},
		{"full width", "", "密码："},
		{"topics", "", "密码是"},
		{"japanese", "パスワード：", "あ"},
		{"no-break spaces", "password=", "\u00a0"},
		{"newlines", "password:", "\n"},
		{"openssh", "", "b3BlbnNzaC1rZXktdjE"},
		{"putty", "", "Private-Lines: 1\n"},
		{"percents", "", "%25"},
		{"percents of percents", "", "%252525"},
		{"percent and hidden", "", "%41\u200b"},
		{"escapes", "", `\u0041`},
		{"escapes of escapes", "", `\u005cu005cu0041`},
		{"escapes of full width", "", `\uff21\u200b`},
		{"base64 of text", "", "QUFBQUFBQUFB"},
		{"base64 of base64", "", "VVVGQ1FVRkM"},
		{"base64 in every phase", "", "ICAgICAg"},
		{"base64 in lines", "", strings.Repeat("QUFB", 19) + "\n"},
		{"hex of text", "", "41"},
		{"hex of base64 of hex", "", "4e44453d"},
		{"hidden", "", "a\u200b"},
		{"full width letters", "", "Ａ"},
		{"compatibility", "", "ﬃ…"},
		{"marks", "", "e\u0301"},
		{"marks without end", "e", "\u0301"},
		{"long compatibility", "", "\ufdfa"},
		{"tags", "", "\U000e0041\U000e0041\U000e0041\U000e0041\U000e0041\U000e0041\U000e0041"},
		{"tags of percents", "", "\U000e0025\U000e0032\U000e0035"},
		{"tags apart", "", "\U000e0041a"},
		{"numbers over lines", "", "4111\n"},
		{"numbers with two spaces", "", "4111  "},
		{"numbers with bars", "", "1111 | 2222\n"},
		{"cards over lines", "", "4111 1111\n1111 1111, "},
		{"times", "", "12:30:45 "},
		{"gaps of two sorts", "", "12:34,"},
		{"long gaps", "", "1\n                                             "},
		{"control characters", "", "1\x01"},
		{"marks on digits", "", "1\u0301"},
		{"octal", "", `\061`},
		{"braces", "", `\u{31}`},
		{"references", "", "&#49;"},
		{"accounts over lines", "", "DE89\n3704\n"},
		{"short names", "", "x:"},
		{"names of three letters", "", "otp:"},
		{"headers without end", "", "eyJ"},
		{"headers with an end", "", strings.Repeat("eyJ9", 256) + "."},
		{"verbs", "", "is "},
		{"commands", "", "mysql -p"},
		{"urls with keys", "", "?sig=a1B2c3D4e5F6"},
	}
}

// requireLinear checks that sixteen times the text needs sixteen times the work, up to a text of 16 times size in slow
// tests and of 64 KiB otherwise. Detectors look some KiB ahead at most, so the work for each byte is less in the smaller
// text of 4 KiB than in the larger one.
func requireLinear(t *testing.T, size int, sized func(n int) string) {
	t.Helper()
	times := 17
	if !slowtest.Enabled() {
		size, times = 4<<10, 26
	}
	small, large := redact.Work(redact.All(), sized(size)), redact.Work(redact.All(), sized(16*size))
	require.LessOrEqual(t, large, times*small+size, "sixteen times the text, %d times the work", large/max(small, 1))
	require.Less(t, large, maxWork*16*size)
	t.Logf("%d bytes of work for each byte", large/(16*size))
}

// Requirement: G29.
func TestWorkIsLinear(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for _, p := range hostile() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sized := func(n int) string { return p.head + strings.Repeat(p.repeat, n/len(p.repeat)+1) }
			requireLinear(t, 64<<10, sized)
		})
	}
}

// After names that repeat, values overlap. What they share is read once.
func TestRepeatedNamesAreReadOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		repeat string
		most   int // bytes looked at for each byte
	}{{"x:", 2}, {"key=", 4}, {"otp:", 12}, {"token:", 12}, {"4111 ", 8}}
	for _, tt := range tests {
		t.Run(tt.repeat, func(t *testing.T) {
			t.Parallel()
			text := strings.Repeat(tt.repeat, 64<<10/len(tt.repeat))
			work := redact.Work(redact.All(), text)
			require.LessOrEqual(t, work, tt.most*len(text), "%d bytes of work for each byte", work/len(text))
		})
	}
}

// A text of hidden characters has a view with a piece for nearly every character.
func TestHiddenCharactersNeedLittleMemory(t *testing.T) { // counts the allocations of the process: no parallel tests
	for _, repeat := range []string{"1\x01", "a\u0301", "%41", "a\u00ad"} {
		text := strings.Repeat(repeat, 256<<10/len(repeat))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := redact.All().Text(text)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24*len(text)), "bytes allocated for %q", repeat)
	}
}

// A hostile text repeats something short. Whatever it repeats, four times the text is four times
// the work.
//
// Requirement: G29.
func TestWorkIsLinearInAnyRepetition(t *testing.T) {
	t.Parallel()
	pieces := []string{"x", "key", "pass", "otp", "token", "is", "a1B2", "eyJ", "4111", "0", "+", "@", ".", ":", "=", "-", "_", "/", " ", "\n", "\"", "'", "<", ">", "(", "|", ",", "%4", "\\u00", "é", "中", "\u200b", "[", "]"}
	rapid.Check(t, func(t *rapid.T) {
		repeat := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, "token"), "")
		small := redact.Work(redact.All(), strings.Repeat(repeat, 4<<10/len(repeat)+1))
		large := redact.Work(redact.All(), strings.Repeat(repeat, 16<<10/len(repeat)+1))
		require.LessOrEqual(t, large, 5*small+1<<12, "four times the text")
		require.Less(t, large, maxWork<<14)
	})
}
