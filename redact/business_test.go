package redact_test

import (
	base64std "encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// A draw makes business texts without secrets and without anybody's data, the same ones each time.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 2026))} }

// of returns one of some texts.
func (d draw) of(texts ...string) string { return texts[d.IntN(len(texts))] }

// digits returns n digits.
func (d draw) digits(n int) string { return d.from(digits, n) }

// from returns n bytes of a set.
func (d draw) from(set string, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(set[d.IntN(len(set))])
	}
	return b.String()
}

// id returns a number in a form that companies give orders, contracts, parts and batches. Grouped
// as 3-3-4, or in sixteen digits, it could be a telephone number or a card: see
// TestNumbersThatCouldBeOthers.
func (d draw) id() string {
	switch d.IntN(12) {
	case 0:
		return fmt.Sprintf("%d-%05d", d.year(), d.IntN(100000))
	case 1:
		return fmt.Sprintf("%d/%04d", d.year(), d.IntN(10000))
	case 2:
		return d.of("RE", "PO", "INV", "CN", "LS") + "-" + d.digits(6)
	case 3:
		return "45" + d.digits(8)
	case 4:
		return d.digits(4) + "-" + d.digits(4)
	case 5:
		return d.digits(3) + "." + d.digits(3) + "." + d.digits(3)
	case 6:
		return d.from(uppers, 2) + d.digits(2) + "-" + d.digits(4) + "-" + d.from(uppers, 1)
	case 7:
		return "#" + d.digits(7)
	case 8:
		return d.digits(2) + "-" + d.digits(6) + "-" + d.digits(2)
	case 9:
		return d.digits(12)
	case 10:
		return d.digits(5) + " " + d.digits(3)
	}
	return d.from(hexes, 8) + "-" + d.from(hexes, 4) + "-4" + d.from(hexes, 3) + "-a" + d.from(hexes, 3) + "-" + d.from(hexes, 12)
}

// ean returns an article number of a German company with its check digit.
func (d draw) ean() string {
	body, sum := "40"+d.digits(10), 0
	for k := range len(body) {
		sum += int(body[k]-'0') * (1 + k%2*2)
	}
	return fmt.Sprint(body, (10-sum%10)%10)
}

func (d draw) year() int { return 2019 + d.IntN(8) }

func (d draw) date() string {
	year, month, day := d.year(), 1+d.IntN(12), 1+d.IntN(28)
	switch d.IntN(4) {
	case 0:
		return fmt.Sprintf("%d-%02d-%02d", year, month, day)
	case 1:
		return fmt.Sprintf("%02d.%02d.%d", day, month, year)
	case 2:
		return fmt.Sprintf("%d/%d/%d", month, day, year)
	}
	return fmt.Sprintf("%d %s %d", day, d.of("January", "März", "May", "juin", "Oct", "December"), year)
}

func (d draw) clock() string { return fmt.Sprintf("%02d:%02d", d.IntN(24), d.IntN(60)) }

func (d draw) money() string {
	euros, cents := d.IntN(2_000_000), d.IntN(100)
	switch d.IntN(5) {
	case 0:
		return fmt.Sprintf("%d.%02d EUR", euros, cents)
	case 1:
		return fmt.Sprintf("€ %d.%03d,%02d", euros/1000+1, euros%1000, cents)
	case 2:
		return fmt.Sprintf("$%d,%03d.%02d", euros/1000+1, euros%1000, cents)
	case 3:
		return fmt.Sprintf("%d %03d Kč", euros/1000+1, euros%1000)
	}
	return fmt.Sprintf("CHF %d'%03d.–", euros/1000+1, euros%1000)
}

// lines returns the positions of an invoice or an order.
func (d draw) lines() string {
	var b strings.Builder
	for range 2 + d.IntN(6) {
		fmt.Fprintf(&b, "%s  %-14s %4d x %s  %s\n", d.id(), d.of("valve DN40", "Lizenz Modul B", "gasket", "Beratung", "cable 3x1.5", "pallet 1200x800"), 1+d.IntN(500), d.money(), d.of("19 %", "7 %", "0 %", ""))
	}
	return b.String()
}

// text returns one business text.
func (d draw) text() string {
	switch d.IntN(10) {
	case 0:
		return fmt.Sprintf("Invoice %s\nDate: %s\nYour order %s of %s\n\n%sTotal %s, payable within %d days.\nVAT ID DE%s\n", d.id(), d.date(), d.id(), d.date(), d.lines(), d.money(), 7*(1+d.IntN(6)), d.digits(9))
	case 1:
		return fmt.Sprintf("Rechnung Nr. %s vom %s\nKundennummer %s, Lieferschein %s\n\n%sZwischensumme %s\nRechnungsbetrag %s\n", d.id(), d.date(), d.digits(6), d.id(), d.lines(), d.money(), d.money())
	case 2:
		return fmt.Sprintf("Purchase order %s\nDelivery to dock %d, %s, between %s and %s.\nReference %s, cost centre %s.\n%s", d.id(), d.IntN(40), d.date(), d.clock(), d.clock(), d.id(), d.digits(4), d.lines())
	case 3:
		return fmt.Sprintf("Contract %s\nbetween the supplier and the customer, effective %s.\n§ %d The annual fee is %s. § %d Either party may terminate with %d days' notice.\nAnnex %d replaces contract %s of %s.\n", d.id(), d.date(), 1+d.IntN(12), d.money(), 13+d.IntN(9), 30*(1+d.IntN(6)), d.IntN(9), d.id(), d.date())
	case 4:
		return fmt.Sprintf("Minutes of the meeting of %s, %s to %s, room %d.%02d\n1. Budget: %s approved, %d for and %d against.\n2. Ticket %s is open since %s; version %d.%d.%d fixes it.\n3. Next meeting on %s.\n", d.date(), d.clock(), d.clock(), d.IntN(9), d.IntN(40), d.money(), d.IntN(20), d.IntN(5), d.id(), d.date(), d.IntN(9), d.IntN(30), d.IntN(99), d.date())
	case 5:
		return fmt.Sprintf("Delivery note %s\nBatch %s, best before %s, net %d.%d kg, gross %d kg\nContainer MSCU %s, seal %s\nPallets: %d, %d, %d, %d\n", d.id(), d.id(), d.date(), d.IntN(900), d.IntN(10), d.IntN(1000), d.digits(7), d.digits(6), d.IntN(99), d.IntN(99), d.IntN(99), d.IntN(99))
	case 6:
		return fmt.Sprintf("Year,Units,Revenue,Margin\n%d,%d,%d.%02d,%d.%d\n%d,%d,%d.%02d,%d.%d\n%d,%d,%d.%02d,%d.%d\n", 2023, d.IntN(1e6), d.IntN(1e7), d.IntN(100), d.IntN(40), d.IntN(10), 2024, d.IntN(1e6), d.IntN(1e7), d.IntN(100), d.IntN(40), d.IntN(10), 2025, d.IntN(1e6), d.IntN(1e7), d.IntN(100), d.IntN(40), d.IntN(10))
	case 7:
		return fmt.Sprintf("Claim %s, policy %s: the loss of %s is estimated at %s. The expert (report %s, page %d) found a leak of %d l/min. Paid on %s by transfer %s.\n", d.id(), d.id(), d.date(), d.money(), d.id(), d.IntN(90), d.IntN(50), d.date(), d.id())
	case 8:
		return fmt.Sprintf("| Part | Stock | Price | Drawing |\n|---|---|---|---|\n| %s | %d | %s | %s |\n| %s | %d | %s | %s |\nEAN %s, ISBN 978-3-16-148410-0, HS code %s.%s.%s\n", d.id(), d.IntN(9000), d.money(), d.id(), d.id(), d.IntN(9000), d.money(), d.id(), d.ean(), d.digits(4), d.digits(2), d.digits(2))
	}
	return fmt.Sprintf("Timesheet week %d/%d\n%s %s-%s 7.5 h project %s\n%s %s-%s 8.0 h project %s\nTravel: %d km, %s, flight LH%d, booking %s\n", 1+d.IntN(52), d.year(), d.date(), d.clock(), d.clock(), d.id(), d.date(), d.clock(), d.clock(), d.id(), d.IntN(900), d.money(), 100+d.IntN(900), d.from(uppers+digits, 6))
}

// Requirement: G23.
func TestBusinessTextsStay(t *testing.T) {
	t.Parallel()
	const texts, most = 5000, 25 // 0.5 %
	d, flagged := newDraw(1), 0
	kinds := redact.Counts{}
	for range texts {
		text := d.text()
		spans := redact.Default().Spans(text, nil)
		for _, s := range spans {
			kinds[s.Kind]++
			t.Logf("%s: %q in %q", s.Kind, text[s.Start:s.End], text[max(0, s.Start-30):min(len(text), s.End+20)])
		}
		flagged += min(len(spans), 1)
	}
	t.Logf("spans in %d of %d texts: %v", flagged, texts, kinds)
	require.LessOrEqual(t, flagged, most)
}

// Numbers of contracts in groups like those of telephones, order numbers as long as those of cards,
// and images, whose bytes are anything: how many are taken for what they are not. A number that
// passes every check of another kind stays redacted.
//
// Requirement: G23.
func TestNumbersThatCouldBeOthers(t *testing.T) {
	t.Parallel()
	d := newDraw(2)
	for _, group := range []struct {
		name    string
		n, most int
		text    func() string
	}{
		{"contract numbers of 3-3-4 digits", 400, 170, func() string {
			sep := d.of("-", " ", ".")
			return fmt.Sprintf("Contract %s was signed on %s.", d.digits(3)+sep+d.digits(3)+sep+d.digits(4), d.date())
		}},
		{"order numbers of 16 digits", 400, 15, func() string { return fmt.Sprintf("Order %s of %s has been shipped.", d.digits(16), d.date()) }},
		{"images of 200 KB in base64", 20, 0, func() string {
			image := make([]byte, 150_000)
			for i := range image {
				image[i] = byte(d.Uint32())
			}
			return "![chart](data:image/jpeg;base64," + base64std.StdEncoding.EncodeToString(image) + ")"
		}},
	} {
		flagged, kinds := 0, redact.Counts{}
		for range group.n {
			spans := redact.Default().Spans(group.text(), nil)
			for _, s := range spans {
				kinds[s.Kind]++
			}
			flagged += min(len(spans), 1)
		}
		t.Logf("%s: spans in %d of %d, %v", group.name, flagged, group.n, kinds)
		assert.LessOrEqual(t, flagged, group.most, group.name)
	}
}

// Numbers of each form are found in prose without a word for telephones next to them.
//
// Requirement: G23.
func TestPhonesInProse(t *testing.T) {
	t.Parallel()
	d := newDraw(3)
	groups := func(sep string, sizes ...int) string {
		var all []string
		for _, n := range sizes {
			all = append(all, d.digits(n))
		}
		return strings.Join(all, sep)
	}
	area := func() string { return d.of("212", "415", "505", "613", "702", "801", "907", "989", "242", "800") }
	exchange := func() string { return d.of("2", "5", "9") + d.of("0", "3", "9") + d.digits(1) }
	numbers := map[string]func() string{
		"US 415-555-0132":    func() string { return area() + "-" + exchange() + "-" + d.digits(4) },
		"US (415) 555-0132":  func() string { return "(" + area() + ") " + exchange() + "-" + d.digits(4) },
		"US 415.555.0132":    func() string { return area() + "." + exchange() + "." + d.digits(4) },
		"US 415 555 0132":    func() string { return area() + " " + exchange() + " " + d.digits(4) },
		"US 1-415-555-0132":  func() string { return "1-" + area() + "-" + exchange() + "-" + d.digits(4) },
		"SE 070-123 45 67":   func() string { return "07" + d.of("0", "2", "3", "6", "9") + "-" + groups(" ", 3, 2, 2) },
		"SE 08-123 456 78":   func() string { return "08-" + groups(" ", 3, 3, 2) },
		"SE 031-12 34 56":    func() string { return "031-" + groups(" ", 2, 2, 2) },
		"IN 098765 43210":    func() string { return "0" + d.of("6", "7", "8", "9") + d.digits(4) + " " + d.digits(5) },
		"CN 138 0013 8000":   func() string { return "1" + d.of("3", "5", "8") + d.digits(1) + " " + d.digits(4) + " " + d.digits(4) },
		"DE 030 1234567":     func() string { return "030 " + d.digits(7) },
		"FR 06 12 34 56 78":  func() string { return "06 " + groups(" ", 2, 2, 2, 2) },
		"GB 020 7123 4567":   func() string { return "020 7" + d.digits(3) + " " + d.digits(4) },
		"IL 054-123-4567":    func() string { return "054-" + d.digits(3) + "-" + d.digits(4) },
		"JP 090-1234-5678":   func() string { return "090-" + d.digits(4) + "-" + d.digits(4) },
		"TR 0532 123 45 67":  func() string { return "0532 " + groups(" ", 3, 2, 2) },
		"any +46 70 1234567": func() string { return "+46 70 " + d.digits(7) },
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		const n = 200
		found := 0
		for range n {
			number := numbers[name]()
			text := "Bitte " + number + " notieren, danke."
			spans := redact.Default().Spans(text, nil)
			if len(spans) == 1 && spans[0] == (redact.Span{Start: 6, End: 6 + len(number), Kind: redact.Phone}) {
				found++
			}
		}
		t.Logf("%-20s %d of %d", name, found, n)
		assert.GreaterOrEqual(t, found, n*95/100, name)
	}
}
