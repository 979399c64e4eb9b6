package redact_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/redact"
)

// requireStream checks the law of streams: whatever the pieces are, what is released is the
// beginning of the redacted text, and with the rest all of it; if the text cannot be redacted,
// Close says so.
func requireStream(t require.TestingT, r *redact.Redactor, reveal redact.Reveal, text string, cut func(rest string) int) (released int) {
	want, wantRedacted, wantRevealed, wantErr := r.TextRevealing(ctx, text, reveal)
	s := r.Stream(reveal)
	var out strings.Builder
	for rest := text; rest != ""; {
		n := min(max(cut(rest), 1), len(rest))
		out.WriteString(s.Write(ctx, rest[:n]))
		rest = rest[n:]
	}
	if wantErr == nil {
		require.True(t, strings.HasPrefix(want, out.String()), "of %q is\n%q, released is\n%q", text, want, out.String())
	}
	rest, redacted, revealed, err := s.Close(ctx)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		require.Empty(t, rest)
		return out.Len()
	}
	require.NoError(t, err, "%q", text)
	require.Equal(t, want, out.String()+rest)
	require.Equal(t, wantRedacted, redacted)
	require.Equal(t, wantRevealed, revealed)
	return out.Len()
}

var ctx = context.Background()

// streaming are the redactors of the tests of streams. The last ones have own patterns that hold a
// line, and some that hold a few characters.
func streaming(t testing.TB) []*redact.Redactor {
	t.Helper()
	own, err := redact.New(redact.DefaultKinds(), []redact.Pattern{{"ticket", `[A-Z]+-\d+`}, {"accent", ` ê`}, {"pair", `the [a-z]{1,9} of`}, {"end", `x\b`}})
	require.NoError(t, err)
	return append(redactors(t), own)
}

func pieces(n int) func(string) int { return func(string) int { return n } }

func mail(kind redact.Kind, _ []string) bool { return kind == redact.Email || kind == redact.Phone }

// Requirement: G27.
func TestStreamOfSeeds(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for i, seed := range append(seeds(), streamed()...) {
		for k, r := range streaming(t) {
			if !slowtest.Enabled() && (i+k)%3 > 0 {
				continue // slow tests try each seed with each redactor
			}
			text := seed + " and after it some words.\n\nMore words follow, which end the value."
			requireStream(t, r, nil, text, pieces(1))
			requireStream(t, r, mail, strings.Repeat(plain, 7)+text, pieces(i%9+k+2))
		}
	}
}

// Requirement: G27.
func TestStreamOfCorpora(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for _, file := range []string{"presidio_cases.jsonl", "gitleaks_literals.jsonl", "detect_secrets_cases.jsonl"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			all := []*redact.Redactor{redact.Default(), redact.All()}
			for i, row := range rows(t, file) {
				requireStream(t, all[i%2], nil, row.Text+"\n"+row.Text, pieces(i%5+1))
			}
		})
	}
}

// A viewer of prose, code or a list sees them with a lag of a word or two, of a number or of a
// name.
//
// Requirement: G27.
func TestStreamLag(t *testing.T) {
	t.Parallel()
	texts := []struct {
		name, text   string
		median, most int // bytes that arrived and were not released
	}{
		{"prose without digits", strings.Repeat(plain, 8), 5, 12},
		{"prose", strings.Repeat(english, 8), 8, 40},
		{"French", strings.Repeat(accents, 8), 8, 60},
		{"Russian", strings.Repeat(russian, 8), 16, 40},
		{"Hebrew", strings.Repeat(hebrew, 8), 12, 40},
		{"Japanese", strings.Repeat(nihon, 8), 40, 100},
		{"code", strings.Repeat(code, 8), 12, 80},
		{"list", strings.Repeat("1. First item of it\n2. Second (see 3)\n- [x] third, `done`\n", 20), 8, 40},
		{"table", strings.Repeat("| name | kind of it | what for |\n|---|---|---|\n| a | Kind | of it |\n", 20), 10, 40},
		{"logs", strings.Repeat(logs, 8), 40, 100},
		{"numbers in a table", strings.Repeat(columns, 20), 280, 320},
	}
	for _, tt := range texts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			median, most := lag(redact.Default(), tt.text)
			require.LessOrEqual(t, median, tt.median)
			require.LessOrEqual(t, most, tt.most)
		})
	}
}

// lag returns how many bytes have arrived and not been released after each piece of four bytes, of
// a text in which nothing is found.
func lag(r *redact.Redactor, text string) (median, most int) {
	s := r.Stream(nil)
	var lags []int
	released := 0
	for i := 0; i < len(text); i += 4 {
		end := min(i+4, len(text))
		released += len(s.Write(ctx, text[i:end]))
		lags = append(lags, end-released)
	}
	slices.Sort(lags)
	return lags[len(lags)/2], lags[len(lags)-1]
}

// Requirement: G27.
func TestStreamHolds(t *testing.T) {
	t.Parallel()
	const before = "Here it is, as you asked.\n"
	tests := map[string]string{
		"private key":               "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat(fake(base64, 64)+"\n", 50),
		"data of a manifest":        "data:\n" + strings.Repeat("  a: "+fake(base64, 24)+"\n", 50),
		"base64 over lines":         strings.Repeat(fake(base64, 64)+"\n", 50),
		"address without an end":    strings.Repeat("anna.", 100),
		"secret of a later AWS key": awsLike + " is the secret",
		"number":                    "4111 1111 ",
		"value":                     "password: \"a b c",
	}
	for name, held := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redact.Default().Stream(nil)
			var out strings.Builder
			for i := range len(before + held) {
				out.WriteString(s.Write(ctx, (before + held)[i:i+1]))
			}
			require.True(t, strings.HasPrefix(before, strings.TrimSuffix(out.String(), "password: ")), "%q", out.String())
		})
	}
}

// Requirement: G27.
func TestStreamOfTextThatCannotBeRedacted(t *testing.T) {
	t.Parallel()
	const clean = "Clean words, and anna@claims.example is one of them. More words. "
	tests := []struct {
		name  string
		r     *redact.Redactor
		text  string
		want  error
		shown string // at most
	}{
		{"not UTF-8", redact.Default(), clean + "a\xffb " + clean, redact.ErrEncoding, "Clean words, and [REDACTED:email] is one of them. More words. a"},
		{"cut in a character", redact.Default(), clean + "\xe4\xb8", redact.ErrEncoding, "Clean words, and [REDACTED:email] is one of them. More words. "},
		{"detector fails", redact.Failing(), clean + "!" + clean, redact.ErrDetector, clean},
		{"no end", redact.Restless(), clean + "[" + clean, redact.ErrDiverged, clean},
		{"no redactor", nil, clean, redact.ErrDetector, ""},
		{"zero redactor", new(redact.Redactor), clean, redact.ErrDetector, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for n := range 20 {
				s := tt.r.Stream(nil)
				var out strings.Builder
				for rest := tt.text; rest != ""; {
					k := min(n+1, len(rest))
					out.WriteString(s.Write(ctx, rest[:k]))
					rest = rest[k:]
				}
				rest, redacted, revealed, err := s.Close(ctx)
				require.ErrorIs(t, err, tt.want)
				require.Empty(t, rest)
				require.Nil(t, redacted)
				require.Nil(t, revealed)
				require.True(t, strings.HasPrefix(tt.shown, out.String()), "%q", out.String())
			}
		})
	}
}

// Requirement: G27.
func TestStreamAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := redact.Default().Stream(everything)
	released := s.Write(ctx, "Write to anna@claims.example. ") + s.Write(ctx, "")
	rest, redacted, revealed, err := s.Close(ctx)
	require.NoError(t, err)
	require.Equal(t, "Write to anna@claims.example. ", released+rest)
	require.Nil(t, redacted)
	require.Equal(t, redact.Counts{redact.Email: 1}, revealed)
	require.Empty(t, s.Write(ctx, "More."))
	rest, redacted, revealed, err = s.Close(ctx)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Nil(t, redacted)
	require.Equal(t, redact.Counts{redact.Email: 1}, revealed)
}

// Requirement: G27.
func TestStreamKeepsWhatArrivesAfterItsContext(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(ctx)
	end()
	s := redact.Default().Stream(nil)
	require.Empty(t, s.Write(ended, "A sentence of words. "))
	_, _, _, err := s.Close(ended)
	require.ErrorIs(t, err, context.Canceled)
	released := s.Write(ctx, "More of them. ")
	require.NotEmpty(t, released)
	rest, _, _, err := s.Close(ctx)
	require.NoError(t, err)
	require.Equal(t, "A sentence of words. More of them. ", released+rest)
}

// fragments are what detectors look at, or for: joined in any order, they make texts in which one
// decision depends on another.
func fragments() []string {
	return append([]string{
		" ", " ", " ", "\n", "\n", ".", ", ", ": ", "=", "\"", "'", "`", "(", ")", "[", "]", "-", "--", "@", "/", "//", "://", "\\", "\\n", "%", "&", "#", "|", " | ", ">", "<", ";", "+", "_", "?", "~",
		"a", "the", "word", "is", "and", "x", "é", "e\u0301", "\u0301", "中", "、", "は", "\u200b", "\u00a0", "–", "Ａ", "４", "ﬁ", "\x01", "\x7f", "\u1100\u1161", "\U000e0041", "…", "“", "”", "％",
		"0", "1", "41", "555", "0143", "202", "4111", "1111 ", "4111 1111 1111 1111", "4111111111111111", "123-45-6789", "123456789", "07700900123", "DE89", "DE89370400440532013000", "370400440532013000", "2024-05-17", "10.0.0.1", "fe80::1", "00:1a:2b:3c:4d:5e", "  ", "\t", "    ",
		"password", "password: ", "Password=", "token", "api_key", "secret", "key=", "value=", "name: DB_PASSWORD, ", "--token ", "PASSWORD '", "hunter2", "s3cr3t!9", "Xk9#mP2q", "passwords = ['a1b2c3d4', ", "| password | ", "<password>", "</", "pass", "pw ", " is ", " was ", "パスワード", "密码",
		"phone ", "call ", "ssn ", "SSN: ", "card ", "mobile)", "ext. 12", "x12", "mac ", "version ", "iban",
		"https://", "user:pw", "@host", "@example.com", ".com", "anna", "\"anna berg\"@x.com", "curl ", " -u ", "mysql", " -p", "sshpass -p ", "me:s3cr3t", "@tcp(",
		"kind: Secret", "\nkind: Secret\n", "data:\n", "\ndata:\n", "stringData:\n", "  a: cGFzc3dvcmQxMjM0NTY3\n", "\n---\n", "Cookie: ", "sid=a8f5f167f44f4964e6c998dee827110c", "; ",
		"AK" + "IA" + fake(base32, 16), fake(base64, 40), "gh" + "p_", "gh" + "p_" + fake(alnums, 36), "sk-", "eyJ", "eyJ" + "hbGciOiJIUzI1NiJ9.", fake(url64, 43), fake(alnums, 20), fake(hexes, 32), "Bearer ", "Basic ", "Authorization: ",
		"-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----END PRIVATE KEY-----", "-----", fake(base64, 64) + "\n", fake(base64, 64), "Private-Lines: 2\n", "b3BlbnNzaC1rZXktdjE",
		"YW5uYUBjbGFpbXMuZXhhbXBsZQ==", "YW5uYUBjbGFp", "bXMuZXhhbXBsZQ", "anna%40claims.example", "%40", "%2540", "\\u0040", "\\u00", "&#64;", "&#6", "%4", "70617373776f72643a20733363723374", "[REDACTED:token]", "[REDACTED:", "[RED",
		"C-1234", "C-", "AB-12", "of", " e", "\u0302", "note: ", "\nnote: all", "Key", "key 1234", "9", "ééé",
	}, seeds()...)
}

// Requirement: G27.
func TestStreamReleasesTheBeginning(t *testing.T) {
	t.Parallel()
	all, parts := streaming(t), fragments()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 24).Draw(t, "fragments"), "")
		if rapid.Bool().Draw(t, "long") {
			text = strings.Repeat(english, 4) + text
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 8).Draw(t, "sizes")
		r := rapid.SampledFrom(all).Draw(t, "redactor")
		reveal := rapid.SampledFrom([]redact.Reveal{nil, everything, mail}).Draw(t, "reveal")
		n := 0
		requireStream(t, r, reveal, text, func(string) int { n++; return sizes[n%len(sizes)] })
	})
}

// FuzzStream checks the law of streams over any text, with fragments after it, in pieces of any
// sizes.
//
// Requirement: G27.
func FuzzStream(f *testing.F) {
	all, parts := streaming(f), fragments()
	for i, seed := range append(seeds(), streamed()...) {
		f.Add(seed, []byte{byte(i), byte(7 * i), byte(31 * i)}, []byte{1})
		f.Add(strings.Repeat(english, 4)+seed+" and", []byte{byte(i)}, []byte{4, 1, 17})
	}
	reveals := []redact.Reveal{nil, everything, mail}
	f.Fuzz(func(t *testing.T, text string, more, sizes []byte) {
		if len(text) > 4<<10 || len(more) > 64 {
			t.Skip()
		}
		var b strings.Builder
		b.WriteString(text)
		for k, i := range more {
			b.WriteString(parts[(int(i)+k)%len(parts)])
		}
		sizes = append(sizes, 1)
		n := 0
		requireStream(t, all[len(sizes)%len(all)], reveals[len(more)%len(reveals)], b.String(), func(string) int { n++; return int(sizes[n%len(sizes)]) })
	})
}

// streamed are texts that streams release wrongly if they miss one of their rules.
func streamed() []string {
	return []string{
		"\"anna berg\"@x.com",                          // a quotation mark at the end opens or closes
		"\\\"anna berg\"@x.com 4111 1111 1111 1111",    // an escape that is one only beside another one
		"4111 1111 1111\n            1111 and",         // groups before a line break
		"a e\u0302, a \\u00ea, a %C3%AA, a &#234; and", // characters and escapes in parts
		"pa%73sword)            = \"s3cr3t!9zz\" and",  // an escape long before
		"password)" + strings.Repeat("\x01", 2000) + " = \"s3cr3t!9zz\" and",
		awsLike + ", which came some weeks before it in the same letter to them, then they had found another, " + "AK" + "IA" + fake(base32, 16) + " and",
		"curl" + strings.Repeat(" gh"+"p_"+fake(alnums, 36), 20) + " -u me:s3cr3t! and", // near once tokens are replaced
		"anna@claims.example wrote 4111 1111 1111 1111 123-45-6789 and",
		"curl" + strings.Repeat(" -H", 160) + " -u me:s3cr3t! and",
		"data:\n  a: " + fake(base64, 24) + "\n" + strings.Repeat("# comment\n", 100) + "kind: Secret\n",
	}
}

// awsLike are 40 characters that are a secret next to an AWS key ID.
var awsLike = "wJa1" + fake(alnums, 36)

// Whatever a text repeats, the work of a stream is bounded for each piece and for each byte.
//
// Requirement: G29.
func TestStreamWorkIsLinear(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	size, piece := 4<<10, 64
	if slowtest.Enabled() {
		size *= 4
	}
	for _, p := range hostile() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := redact.All().Stream(nil)
			for rest := p.head + strings.Repeat(p.repeat, size/len(p.repeat)+1); rest != ""; {
				n := min(piece, len(rest))
				s.Write(ctx, rest[:n])
				rest = rest[n:]
			}
			t.Logf("%d bytes of work for each byte", s.Work()/size)
			require.Less(t, s.Work(), size*(redact.FreeWork/piece+2*redact.WorkPerByte))
		})
	}
}
