package redact_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/redact"
)

// A value is one of a kind, as a generator writes it, and the same with one character changed so
// that it is none; near is empty where no single character decides.
type value struct{ text, near string }

func digitsN(t *rapid.T, n int, name string) string {
	return rapid.StringOfN(rapid.RuneFrom([]rune(digits)), n, n, -1).Draw(t, name)
}

// checkDigit returns the last digit of a number by Luhn's formula, from the right end as ISO/IEC
// 7812-1 has it.
func checkDigit(body string) int {
	sum := 0
	for k := range len(body) {
		d := int(body[len(body)-1-k] - '0')
		if k%2 == 0 {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	return (10 - sum%10) % 10
}

func grouped(text, sep string, sizes ...int) string {
	var parts []string
	for _, n := range sizes {
		parts = append(parts, text[:n])
		text = text[n:]
	}
	if text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, sep)
}

func cards(t *rapid.T) value {
	of := rapid.SampledFrom([]struct {
		prefix string
		length int
		sizes  []int
	}{
		{"4", 16, []int{4, 4, 4}}, {"51", 16, []int{4, 4, 4}}, {"55", 16, []int{4, 4, 4}}, {"2221", 16, []int{4, 4, 4}}, {"2720", 16, []int{4, 4, 4}},
		{"34", 15, []int{4, 6}}, {"37", 15, []int{4, 6}}, {"6011", 16, []int{4, 4, 4}}, {"65", 16, []int{4, 4, 4}}, {"36", 14, []int{4, 6}}, {"300", 14, []int{4, 6}},
		{"3528", 16, []int{4, 4, 4}}, {"3589", 16, []int{4, 4, 4}}, {"62", 16, []int{4, 4, 4}}, {"62", 19, []int{6}}, {"5018", 16, []int{4, 4, 4}}, {"6304", 16, []int{4, 4, 4}},
		{"2200", 16, []int{4, 4, 4}}, {"4", 19, []int{4, 4, 4, 4}},
	}).Draw(t, "issuer")
	body := of.prefix + digitsN(t, of.length-1-len(of.prefix), "body")
	right := checkDigit(body)
	wrong := (right + rapid.IntRange(1, 9).Draw(t, "off")) % 10
	sep := rapid.SampledFrom([]string{"", " ", "-"}).Draw(t, "separator")
	if of.length == 19 && of.prefix == "4" && sep == "" {
		sep = " " // bare, such a number needs a word beside it
	}
	write := func(check int) string {
		text := fmt.Sprint(body, check)
		if sep == "" {
			return text
		}
		return grouped(text, sep, of.sizes...)
	}
	if of.length == 19 {
		return value{text: write(right)} // its first sixteen digits may be a card with three more after it
	}
	return value{write(right), write(wrong)}
}

// accounts makes account numbers with the check digits of ISO 13616, computed with big integers.
func accounts(t *rapid.T) value {
	of := rapid.SampledFrom([][2]string{
		{"DE", "nnnnnnnnnnnnnnnnnn"}, {"GB", "aaaannnnnnnnnnnnnn"}, {"FR", "nnnnnnnnnncccccccccccnn"}, {"NO", "nnnnnnnnnnn"}, {"CH", "nnnnncccccccccccc"},
		{"NL", "aaaannnnnnnnnn"}, {"MT", "aaaannnnncccccccccccccccccc"}, {"BR", "nnnnnnnnnnnnnnnnnnnnnnnac"}, {"IT", "annnnnnnnnncccccccccccc"}, {"SE", "nnnnnnnnnnnnnnnnnnnn"},
	}).Draw(t, "country")
	var bban strings.Builder
	for i, c := range of[1] {
		set := map[rune]string{'n': digits, 'a': uppers, 'c': digits + uppers}[c]
		bban.WriteRune(rapid.RuneFrom([]rune(set)).Draw(t, fmt.Sprint("character ", i)))
	}
	var spelt strings.Builder
	for _, c := range bban.String() + of[0] + "00" {
		if c >= 'A' {
			fmt.Fprint(&spelt, c-'A'+10)
		} else {
			spelt.WriteRune(c)
		}
	}
	n, _ := new(big.Int).SetString(spelt.String(), 10)
	check := 98 - int(new(big.Int).Mod(n, big.NewInt(97)).Int64())
	wrong := (check-2+rapid.IntRange(1, 96).Draw(t, "off"))%97 + 2
	sep := rapid.SampledFrom([]string{"", " ", "-"}).Draw(t, "separator")
	write := func(check int) string {
		text := fmt.Sprintf("%s%02d%s", of[0], check, bban.String())
		var sizes []int
		for k := 4; k < len(text); k += 4 {
			sizes = append(sizes, 4)
		}
		return grouped(text, sep, sizes...)
	}
	return value{write(check), write(wrong)}
}

func mails(t *rapid.T) value {
	local := rapid.StringMatching(`[a-z0-9]{1,10}([._+-][a-z0-9]{1,8}){0,2}`).Filter(func(s string) bool { return s != "git" && s != "hg" && s != "svn" }).Draw(t, "local")
	domain := rapid.StringMatching(`[a-z][a-z0-9]{0,10}(\.[a-z][a-z0-9-]{0,8}[a-z])?`).Draw(t, "domain")
	top := rapid.SampledFrom([]string{"com", "org", "de", "io", "example", "museum", "xn--p1ai"}).Draw(t, "top")
	return value{local + "@" + domain + "." + top, local + " " + domain + "." + top}
}

func socials(t *rapid.T) value {
	area := rapid.IntRange(1, 899).Filter(func(n int) bool { return n != 666 }).Draw(t, "area")
	group, serial := rapid.IntRange(1, 99).Draw(t, "group"), rapid.IntRange(1, 9999).Draw(t, "serial")
	sep := rapid.SampledFrom([]string{"-", " ", "."}).Draw(t, "separator")
	bad := rapid.SampledFrom([][3]int{{0, group, serial}, {666, group, serial}, {900 + area%100, group, serial}, {area, 0, serial}, {area, group, 0}}).Draw(t, "never issued")
	write := func(a, g, s int) string { return fmt.Sprintf("%03d%s%02d%s%04d", a, sep, g, sep, s) }
	return value{write(area, group, serial), write(bad[0], bad[1], bad[2])}
}

func addresses(t *rapid.T) value {
	if rapid.Bool().Draw(t, "four") {
		var octets [4]byte
		for i := range octets {
			octets[i] = rapid.Byte().Draw(t, "octet")
		}
		text := netip.AddrFrom4(octets).String()
		return value{text, text + ".7"}
	}
	var bytes [16]byte
	for i := range bytes {
		bytes[i] = rapid.OneOf(rapid.Just(byte(0)), rapid.Byte()).Draw(t, "byte")
	}
	bytes[0] = 0x20 // neither :: alone nor a name of code
	address := netip.AddrFrom16(bytes)
	return value{rapid.SampledFrom([]string{address.String(), address.StringExpanded(), strings.ToUpper(address.String())}).Draw(t, "form"), address.StringExpanded() + ":1"}
}

func interfaces(t *rapid.T) value {
	n := rapid.SampledFrom([]int{6, 8}).Draw(t, "bytes")
	hex := "02" + rapid.StringOfN(rapid.RuneFrom([]rune(hexes)), 2*n-3, 2*n-3, -1).Draw(t, "digits") + "a"
	if rapid.Bool().Draw(t, "upper") {
		hex = strings.ToUpper(hex)
	}
	size, sep := 2, rapid.SampledFrom([]string{":", "-", "."}).Draw(t, "separator")
	if sep == "." {
		size = 4
	}
	var sizes []int
	for k := size; k < len(hex); k += size {
		sizes = append(sizes, size)
	}
	text := grouped(hex, sep, sizes...)
	return value{text, text[:len(text)-1]}
}

func phones(t *rapid.T) value {
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		area := rapid.SampledFrom([]string{"201", "242", "312", "415", "506", "613", "702", "867", "989"}).Draw(t, "area")
		exchange := rapid.StringMatching(`[2-9][02-9][0-9]`).Draw(t, "exchange")
		form := rapid.SampledFrom([]string{"(%s) %s-%s", "(%s)%s-%s", "%s-%s-%s", "%s.%s.%s", "+1 %s %s %s", "+1-%s-%s-%s"}).Draw(t, "grouping")
		line := digitsN(t, 4, "line")
		return value{fmt.Sprintf(form, area, exchange, line), fmt.Sprintf("%s-%s-%s", "1"+area[1:], exchange, line)}
	case 1:
		return value{"+44 20 " + digitsN(t, 4, "a") + " " + digitsN(t, 4, "b"), "44 20"}
	case 2:
		return value{"+49" + rapid.StringMatching(`[1-9][0-9]{8,9}`).Draw(t, "national"), "49"}
	}
	return value{rapid.StringMatching(`0[1-9][0-9]-[0-9]{4}-[0-9]{4}`).Draw(t, "national"), rapid.StringMatching(`00[0-9]-[0-9]{2}-[0-9]{4}`).Draw(t, "serial")}
}

// contexts are what may surround a value: none of it is part of one.
var contexts = [][2]string{
	{"", ""}, {"Please note: ", "."}, {"on file (", ")"}, {"\"", "\""}, {"x=", "&y=z"}, {"one\n", "\ntwo"}, {"| ", " |"}, {"<b>", "</b>"}, {"שלום ", " תודה"}, {"資料：", "。"},
	{"a, ", ", b"}, {"{\"v\": \"", "\"}"}, {"\t", "\r\n"}, {"«", "»"},
}

// Requirement: G23.
func TestGeneratedValuesAreFound(t *testing.T) {
	t.Parallel()
	kinds := map[redact.Kind]func(*rapid.T) value{
		redact.Card: cards, redact.IBAN: accounts, redact.Email: mails, redact.SSN: socials, redact.IP: addresses, redact.MAC: interfaces, redact.Phone: phones,
	}
	for kind, generate := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := finder(t, kind)
			rapid.Check(t, func(rt *rapid.T) {
				v := generate(rt)
				around := rapid.SampledFrom(contexts).Draw(rt, "context")
				start := len(around[0])
				require.Equal(rt, []redact.Span{{Start: start, End: start + len(v.text), Kind: kind}}, r.Spans(around[0]+v.text+around[1], nil), "in %q", around[0]+v.text+around[1])
				require.Empty(rt, r.Spans(around[0]+v.near+around[1], nil), "in %q", around[0]+v.near+around[1])
			})
		})
	}
}

// Digits, separators and words in any order make no detector fail, and what is taken for a number
// has digits enough.
//
// Requirement: G29.
func TestPersonalDetectorsAcceptAnyText(t *testing.T) {
	t.Parallel()
	pieces := []string{"0", "1", "41", "00", "555", "4111", "+", "(", ")", " ", "-", ".", "/", ":", "::", "@", "a", "ff", "DE89", "phone ", "call", "ssn", "x", "[", "]", "%", "\n", "  ", "_", "|", ",", ";", "\x01", "\u0301", "é", "中", "–", "\u00a0", "\\n", "\"", "'", ".com"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")
		out, _, err := redact.All().Text(text)
		require.NoError(t, err)
		again, _, err := redact.All().Text(out)
		require.NoError(t, err)
		require.Equal(t, out, again)
		for _, s := range redact.All().Spans(text, nil) {
			least, ok := map[redact.Kind]int{redact.Card: 12, redact.Phone: 7, redact.SSN: 9}[s.Kind]
			if ok {
				require.GreaterOrEqual(t, len(strings.Map(onlyDigits, text[s.Start:s.End])), least, "%s %q in %q", s.Kind, text[s.Start:s.End], text)
			}
		}
	})
}

func onlyDigits(r rune) rune {
	if r < '0' || r > '9' {
		return -1
	}
	return r
}
