package redact_test

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/slowtest"
)

// hostileNumbers invite the detectors of personal data to read the same bytes again and again.
func hostileNumbers() []pattern {
	return []pattern{
		{"digits", "", "1"},
		{"digits of a card", "", "4111111111111112"},
		{"zeros", "", "0"},
		{"groups of two", "", "12 "},
		{"groups of three", "", "123 "},
		{"groups of four", "", "4111 "},
		{"groups with dashes", "", "123-"},
		{"groups with dots", "", "123."},
		{"groups of a long number", "", "12345678901234567890 "},
		{"cards", "", "4111 1111 1111 1111 "},
		{"plus signs", "", "+"},
		{"countries", "", "+44 "},
		{"parentheses", "", "(415) "},
		{"open parentheses", "", "(4"},
		{"numbers beside words", "", "phone 12345678901234567 "},
		{"small words", "", "is at no 1234567 "},
		{"long words", "", "phonephonephonephonephonephone1234567 "},
		{"words beyond ASCII", "", "電話電話電話1234567"},
		{"social security", "", "ssn 12345678 "},
		{"nine digits", "", "123456789 "},
		{"countries of accounts", "", "DE89"},
		{"accounts without an end", "", "DE89 3704 0044 0532 0130 "},
		{"at signs", "", "@"},
		{"local part", strings.Repeat("a", 1<<10), "a"},
		{"local parts", "", "aaaaaaaa@"},
		{"domains", "", "@a.b.c.d.e.f.g.h"},
		{"dots", "", "."},
		{"addresses", "", "a@b.co"},
		{"quoted", "", "\"@"},
		{"CJK", "", "中@"},
		{"octets", "", "1.2."},
		{"colons", "", ":"},
		{"double colons", "", "a::"},
		{"hexadecimal", "", "ab:"},
		{"long groups", "", "abcd:abcd:abcd:abcd:"},
		{"zones", "", "fe80::1%a"},
		{"bytes with dashes", "", "ab-"},
		{"words of four with dots", "", "abcd."},
		{"words for addresses of interfaces", "", "MAC 00"},
		{"names in capitals", "", "customerPhoneNo 1234567 "},
	}
}

// Requirement: G29.
func TestPersonalWorkIsLinear(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for _, p := range hostileNumbers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sized := func(n int) string { return p.head + strings.Repeat(p.repeat, n/len(p.repeat)+1) }
			requireLinear(t, 32<<10, sized)
		})
	}
}
