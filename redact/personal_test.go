package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// finder returns the redactor of the secrets and one personal kind.
func finder(t testing.TB, kind redact.Kind) *redact.Redactor {
	t.Helper()
	r, err := redact.New([]redact.Kind{kind}, nil)
	require.NoError(t, err)
	return r
}

// unmark takes the marks ⟨ and ⟩ out of a text, and returns what is between them as spans of a
// kind.
func unmark(marked string, kind redact.Kind) (text string, spans []redact.Span) {
	for {
		before, rest, ok := strings.Cut(marked, "⟨")
		text += before
		if !ok {
			return text, spans
		}
		value, behind, _ := strings.Cut(rest, "⟩")
		spans = append(spans, redact.Span{Start: len(text), End: len(text) + len(value), Kind: kind})
		text, marked = text+value, behind
	}
}

// personal has texts with the values of each kind between ⟨ and ⟩; a text without marks has none.
func personal() map[redact.Kind][]string {
	return map[redact.Kind][]string{
		redact.Card: {
			"⟨4111111111111111⟩", "card ⟨4111 1111 1111 1111⟩, exp. 12/27", "⟨4111-1111-1111-1111⟩", "⟨4111.1111.1111.1111⟩", `{"pan":⟨4111111111111111⟩}`,
			"⟨4222222222222⟩", "Visa ⟨4006381000093⟩", "EAN 4006381000093", "⟨5555 5555 5555 4444⟩ 123", "⟨2223003122003222⟩", "amex ⟨3782 822463 10005⟩", "⟨371449635398431⟩", "⟨6011111111111117⟩",
			"⟨3056 930902 5904⟩", "⟨3530111333300000⟩", "⟨6200000000000005⟩", "⟨6304000000000000⟩", "⟨2200000000000004⟩", "卡号⟨4111111111111111⟩。",
			"a,⟨4111111111111111⟩,b", `paid\n⟨4111111111111111⟩`, "card_⟨4111111111111111⟩", "maestro ⟨501800000009⟩", "⟨4111 1111 1111 1111⟩", "⟨4111–1111–1111–1111⟩",
			"1. ⟨4111111111111111⟩\n2. ⟨4012 8888 8888 1881⟩",
			// No cards: check digit, issuer, length, and what digits are for otherwise.
			"4111111111111112", "4111 1111 1111 1112", "1748503543012", "20240517091244", "1700000000000000", "9111111111111111", "41111111111111111", "4111-1111-1111-1111-1111",
			"0.4111111111111111", "4111111111111111.5", "a4111111111111111", "550e8400-e29b-41d4-a716-501800000009", "501800000009", "2a00 4111 1111 1111 1111 7b00",
			"sha256:4111111111111111abcdef", "4111 1111\n1111 1112", "4111/1111/1111/1111/1111", "4111,1111,1111,1111,1111", "4111    1111    1111    1111", "2019,2020,2021,2022",
		},
		redact.IBAN: {
			"⟨DE89370400440532013000⟩", "IBAN: ⟨DE89 3704 0044 0532 0130 00⟩.", "⟨GB82 WEST 1234 5698 7654 32⟩ please", "⟨gb82west12345698765432⟩", "⟨NO9386011117947⟩", "⟨MT84 MALT 0110 0001 2345 MTLC AST0 01S⟩",
			"IBAN⟨DE89370400440532013000⟩", "⟨DE89-3704-0044-0532-0130-00⟩", "pay ⟨BE68 5390 0754 7034⟩ ALL OF IT", "⟨FR14 2004 1010 0505 0001 3M02 606⟩", "口座⟨DE89370400440532013000⟩へ",
			`to:\n⟨DE89370400440532013000⟩`, "⟨DE89 3704 0044 0532 0130 00⟩",
			"DE89370400440532013001", "DE8937040044053201300", "DE893704004405320130000", "DE89 3704 0044 0532 0130 0A", "XX89370400440532013000", "De89370400440532013000",
			"Gb82WEST12345698765432", "GB82 1234 1234 5698 7654 32", "XDE89370400440532013000", "DE89/3704 0044/0532/0130/00", "DE00370400440532013000", "DE89370400440532013000X",
		},
		redact.Email: {
			"⟨jane@example.com⟩", "mail ⟨jane.doe+tag@mail.example.co.uk⟩.", "<⟨jane@example.com⟩>", "mailto:⟨jane@example.com⟩?subject=x", "https://a.example/?to=⟨jane@example.com⟩&x=1", "user=⟨o'brien@example.ie⟩",
			`'⟨jane@example.com⟩'`, `f'⟨jane@example.com⟩'`, `⟨"jane doe"@example.com⟩`, "⟨x@xn--80ak6aa92e.com⟩", "⟨user@münchen.example⟩", "⟨иван@пример.рф⟩", "邮箱⟨jane@example.com⟩。", "⟨用户@例子.公司⟩",
			"**⟨jane@example.com⟩**", `hi\n⟨jane@example.com⟩`, "⟨a@b.co⟩,⟨c@d.io⟩;⟨e@f.de⟩", "⟨JANE@EXAMPLE.COM⟩", "⟨jane@example.com⟩: yes", "⟨1234567@163.com⟩", "⟨jane_doe@example.com⟩-mail", "sip:⟨jane@example.com⟩",
			"jane@localhost", "jane@example.", "@jane", "jane@", "@example.com", "jane @example.com", "git@github.example:team/repo.git", "ssh://git@github.example/team", "pkg@1.2.3", "pkg@v1.2.3", "pkg@v0.0.0-20240101000000-abcdef012345",
			"pkg@1.0.0-rc.beta", "icon@2x.png", "getty@tty1.service", "name@sha256:0123", "@Override.class", "x.@y.com", "jane@10.0.0.1", `"a" + "@example.com"`, "a@b", "foo@bar..com", "@app.route('/x')",
		},
		redact.Phone: {
			"⟨+1 415 555 0132⟩", "⟨+14155550132⟩", "⟨+44 20 7123 4567⟩", "⟨+44 (0)20 7123 4567⟩", "⟨+44 (20) 7123 4567⟩", "⟨+49-30-901820⟩", "⟨+33.1.23.45.67.89⟩", "⟨+972-4-8307322⟩", "tel:⟨+1-816-555-1212⟩", "⟨0044 20 7123 4567⟩",
			"call (⟨+353 20 912 0148⟩)", "⟨(415) 555-0132⟩", "⟨(415)555-0132⟩", "⟨415-555-0132⟩", "⟨415.555.0132⟩", "⟨1-800-555-0199⟩", "⟨1 (415) 555-0132⟩", "⟨415 555 0132⟩, thanks", "⟨(415) 555-0132 ext. 12⟩", "⟨415-555-0132 x99⟩",
			"⟨(+98) 914 492 1058⟩", "(⟨415-555-0132⟩)", "⟨020 7123 4567⟩", "⟨07911 123456⟩", "⟨030/1234567⟩", "⟨0171 1234567⟩", "⟨06 12 34 56 78⟩", "⟨01.23.45.67.89⟩", "⟨090-1234-5678⟩", "⟨054-123-4567⟩", "⟨0312 123 45 67⟩", "⟨0 (532) 123 45 67⟩", "⟨532-123-45-67⟩",
			"⟨(020) 7123 4567⟩", "⟨(11) 98456-5666⟩", "⟨11 98456-5666⟩", "phone ⟨5551234⟩", "Phone: ⟨555-1234⟩", "mobile number is ⟨4155550132⟩", "call me at ⟨4155550132⟩", "Tel.: ⟨030123456⟩", "telefon ⟨612 345 678⟩", "fax no. ⟨123-456-7890⟩", "⟨4155550132⟩ (mobile)",
			"電話番号は⟨09012345678⟩です", "טלפון: ⟨0521234567⟩", "Телефон: ⟨84951234567⟩", "⟨09181234567⟩", "phoneNumber=⟨4155550132⟩", "⟨070-123 45 67⟩", "⟨08-123 456 78⟩", "⟨031-12 34 56⟩", "⟨0411-123 45⟩, tack", "⟨098765 43210⟩", "⟨138 0013 8000⟩", "⟨138-0013-8000⟩", "phone ⟨234-100-0132⟩", "(⟨(234) 555-0132⟩)", "⟨415-555-0132⟩ 2024-05-17", "⟨+49 30 123456⟩ 12:30",
			// Dates, times, addresses, versions, prices, ids, sums, counts.
			"2024-05-17", "01.02.2024", "01.02.2024 12:30", "2024-05-17T09:12:44.123Z", "192.168.100.200", "10.20.30.4000", "1.2.3.4", "v10.20.30", "1,250,000.00", "12 345 678", "$4155550132", "order 4155550132", "invoice 2024-0117", "4155550132",
			"550e8400-e29b-41d4-a716-446655440000", "978-0-306-40615-7", "0-306-40615-2", "MA 02110-1301", "(2019) 123-145", "45(12) 1234-1240", "call 1234567 times", "phone model 1234567", "the call at 1748503543", "200 300 4000 5000", "115-555-0132", "295-555-0132", "411-555-0132", "415-911-0132", "415-155-0132",
			"4111 1111 1111 1112", "423-555-013", "214-055-0132", "200-555-0132", "999 555 0132", "023.129.025", "05-427624-18", "128 0013 8000", "098765 4321", "048765 43210", "06 12 34 56 78 9a", "ff 06 12 34 56 78", "a+12345678", "x415-555-0132", "BR -0351-03225", "PN-415-555-0132", "0(12", "(", "(4", "(415) 555", "0.4155550132", "+0123456789", "1700000000000", "078-05-1120", "phone 20240517", "[REDACTED:phone] 1234567",
		},
		redact.SSN: {
			"⟨123-45-6789⟩", "⟨078-05-1120⟩", "⟨219-09-9999⟩", "SSN ⟨123 45 6789⟩.", "⟨123.45.6789⟩", "ssn: ⟨123456789⟩", "Social Security Number ⟨123456789⟩", "social security no. is ⟨123-456789⟩", `"ssn":"⟨123456789⟩"`, "userSSN=⟨123456789⟩", "⟨123456789⟩ (SSN)",
			"⟨078051121⟩", "abc ⟨078 05 1123⟩ abc", "ssn\t⟨12345-6789⟩", "⟨123‑45‑6789⟩", "号码⟨123-45-6789⟩。",
			"000-45-6789", "666-45-6789", "900-45-6789", "987-65-4321", "123-00-6789", "123-45-0000", "123-45.6789", "123456789", "1123-45-6789", "123-45-67890", "123-45-6789-0", "1-123-45-6789", "session 123456789", "classname 123456789", "0780511201", "121000358",
			"NJ 07805-1121", "078051120", "12 123 45 6789 33", "[REDACTED:ssn] 123456789", "x123-45-6789", "123/45/6789/1", "123-45-6789.5", "12:123:45:6789", "123,45,6789,10",
		},
		redact.IP: {
			"⟨192.168.0.1⟩", "from ⟨10.0.0.1⟩:8080", "⟨10.0.0.0/8⟩", "http://⟨127.0.0.1⟩/x", "IP: ⟨192.168.1.1⟩.", "⟨10.0.0.1⟩-⟨10.0.0.9⟩", "⟨192.168.2.1⟩@eth0", "host=⟨8.8.8.8⟩,⟨8.8.4.4⟩", "user@⟨10.1.2.3⟩", "⟨::1⟩", "⟨fe80::1%eth0⟩ up", "[⟨2001:db8::1⟩]:443", "⟨2001:db8::/32⟩",
			"⟨::ffff:10.0.0.1⟩", "⟨1:2:3:4:5:6:7:8⟩", "⟨2001:0db8:0000:0000:0000:ff00:0042:8329⟩", "⟨2001:DB8::8:800:200C:417A⟩", "addr:⟨2001:db8::1⟩", "listen [⟨::⟩]:80", "src=⟨::⟩ dst=⟨::1⟩", "⟨::/0⟩", "ipv6 ⟨::⟩", "use ⟨2001:db8::1⟩.", "unknown[⟨2001:db8::25⟩]", "⟨192.168.0.1⟩/99",
			"256.1.1.1", "1.2.3", "1.2.3.4.5", "v1.2.3.4", "version 1.2.3.4", "Chrome/120.0.0.0", "tool-1.2.3.4.tar", "section 4.1.2.1", "::ffff:256.0.0.1", "12:30:45", "a::b", "std::string", "MyClass::toString", "x[1::2]", "foo :: Int", ":::", "1:2:3:4:5:6:7", "00:11:22:33:44:55:66:77", "1:2:3:4:5:6:7:8:9",
			"0::/user.slice", "text192.168.1.1", "key: value",
		},
		redact.MAC: {
			"⟨00:1A:2B:3C:4D:5E⟩", "⟨00-1a-2b-3c-4d-5e⟩", "⟨0012.3456.789a⟩", "mac:⟨02:00:5e:10:00:01⟩", "⟨02:00:5e:10:00:00:00:01⟩", "mac=\"⟨0d:b3:4a:6a:d9:cf⟩\", up", "lladdr ⟨02:00:5e:10:00:01⟩ STALE", "⟨02-00-5e-10-00-00-00-01⟩.",
			"00:1A:2B:3C:4D", "00:1A:2B:3C:4D:5E:6F", "00:1A:2B-3C-4D-5E", "FF:FF:FF:FF:FF:FF", "00:00:00:00:00:00", "ffff.ffff.ffff", "16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48", "2001:db8:85a3:0:0:8a2e:370:7334", "x00:1A:2B:3C:4D:5E",
			"00:1A:2B:3C:4D:5Eg", "550e8400-e29b-41d4-a716-446655440000", "12:30:45", "2024-05-17", "00:1G:2B:3C:4D:5E", "1234.5678", "0300.0250.0214.0377",
		},
	}
}

// Requirement: G23.
func TestFindsPersonalData(t *testing.T) {
	t.Parallel()
	for kind, texts := range personal() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := finder(t, kind)
			for _, marked := range texts {
				text, want := unmark(marked, kind)
				if got := r.Spans(text, nil); !assert.Equal(t, want, got, "%s", marked) {
					continue
				}
				for around, within := range map[string]string{"": text, "lines": "one\n" + text + "\ntwo", "brackets": "(" + text + ")"} {
					if strings.HasPrefix(text, "0") && len(want) == 1 && len(text) < 12 {
						continue // a number that counts as a whole text only
					}
					assert.Len(t, r.Spans(within, nil), len(want), "%s: %s", around, within)
				}
				out, counts, err := r.Text(text)
				require.NoError(t, err)
				require.Equal(t, len(want), counts[kind])
				again, counts, err := r.Text(out)
				require.NoError(t, err)
				require.Equal(t, out, again)
				require.Nil(t, counts)
			}
		})
	}
}

// Next to one another the kinds do not take each other's values for their own.
//
// Requirement: G23.
func TestKindsDoNotMatchEachOther(t *testing.T) {
	t.Parallel()
	in := "Jane <jane@example.com>, +1 415 555 0132, SSN 123-45-6789, card 4111 1111 1111 1111, IBAN DE89 3704 0044 0532 0130 00, from 10.0.0.1 and fe80::1, 00:1a:2b:3c:4d:5e"
	want := "Jane <[REDACTED:email]>, [REDACTED:phone], SSN [REDACTED:ssn], card [REDACTED:card], IBAN [REDACTED:iban], from [REDACTED:ip] and [REDACTED:ip], [REDACTED:mac]"
	out, counts, err := redact.All().Text(in)
	require.NoError(t, err)
	require.Equal(t, want, out)
	require.Equal(t, 8, counts.Total())
	out, _, err = redact.Default().Text(in)
	require.NoError(t, err)
	require.Contains(t, out, "from 10.0.0.1 and fe80::1, 00:1a:2b:3c:4d:5e", "addresses of machines stay between agents")
	out, counts, err = redact.Secrets().Text(in)
	require.NoError(t, err)
	require.Equal(t, in, out)
	require.Nil(t, counts)
}
