package redact_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// A row is a line of a corpus: a text, what it is about, and what is in it.
type row struct {
	Kind, Rule, Text string
	Flag             *bool    // whether something should be found
	N                *int     // how many should be found
	Spans            [][2]int // where, in characters
}

// rows reads a corpus, or skips the test, saying so, where there is none.
func rows(t *testing.T, file string) (all []row) {
	t.Helper()
	in, err := os.Open(filepath.Join("..", "..", "shared", "corpora", file))
	if err != nil {
		t.Skipf("corpus absent: %v", err)
	}
	defer func() { _ = in.Close() }()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r row
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		all = append(all, r)
	}
	require.NotEmpty(t, all)
	return all
}

// wanted returns the number of values that a row has.
func (r row) wanted() int {
	switch {
	case r.N != nil:
		return *r.N
	case r.Flag != nil && *r.Flag:
		return 1
	}
	return len(r.Spans)
}

// met returns how many of the spans of a row are among found: overlapping counts, as everything
// under a span is replaced. A row without spans counts what was found.
func (r row) met(found []redact.Span) (n int) {
	if len(r.Spans) != r.wanted() {
		return min(r.wanted(), len(found))
	}
	for _, want := range r.Spans {
		from, to := offset(r.Text, want[0]), offset(r.Text, want[1])
		if slices.ContainsFunc(found, func(s redact.Span) bool { return s.Start < to && from < s.End }) {
			n++
		}
	}
	return n
}

// offset returns the byte at which a character begins.
func offset(text string, character int) (at int) {
	for range character {
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return at
}

// A tally counts rows, the values in them and those met, the rows without a value and those in
// which something was found.
type tally struct{ rows, values, met, empty, flagged int }

func (c *tally) add(r row, found []redact.Span) {
	c.rows++
	c.values += r.wanted()
	c.met += r.met(found)
	if r.wanted() == 0 {
		c.empty++
		c.flagged += min(len(found), 1)
	}
}

func (c tally) recall() float64 { return float64(c.met) / float64(max(c.values, 1)) }

func (c tally) String() string {
	return fmt.Sprintf("%4d rows, found %3d of %3d (%5.1f %%), flagged %2d of %2d without", c.rows, c.met, c.values, 100*c.recall(), c.flagged, c.empty)
}

// settles holds a text to redaction without error that changes nothing when done again.
func settles(t *testing.T, r *redact.Redactor, text string) {
	t.Helper()
	out, _, err := r.Text(text)
	require.NoError(t, err)
	again, _, err := r.Text(out)
	require.NoError(t, err)
	require.Equal(t, out, again)
}

// TestPersonalCorpora prints a line for each personal kind over the cases of a recognizer's tests,
// and holds the kinds to what the gate guarantees. Numbers of telephones have no floor there; ours
// is what is found today.
//
// Requirement: G23.
func TestPersonalCorpora(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		kind   redact.Kind
		recall float64
		wrong  float64 // rows without a value in which something may be found
	}{
		"credit_card": {redact.Card, 0.95, 0}, "iban": {redact.IBAN, 0.95, 0.02}, "email": {redact.Email, 0.95, 0}, "us_ssn": {redact.SSN, 0.95, 0},
		"ip": {redact.IP, 0.95, 0}, "mac": {redact.MAC, 0.95, 0}, "phone": {redact.Phone, 0.95, 0}, "ph_mobile_number": {redact.Phone, 0.95, 0}, "tr_phone_number": {redact.Phone, 0.5, 0},
	}
	found := map[string]*tally{}
	others := map[redact.Kind]int{}
	total := 0
	for _, r := range rows(t, "presidio_cases.jsonl") {
		settles(t, redact.All(), r.Text)
		want, ok := kinds[r.Kind]
		if !ok {
			total++
			for _, s := range redact.All().Spans(r.Text, nil) {
				others[s.Kind]++
			}
			continue
		}
		if found[r.Kind] == nil {
			found[r.Kind] = &tally{}
		}
		found[r.Kind].add(r, finder(t, want.kind).Spans(r.Text, nil))
	}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		of := found[kind]
		t.Logf("%-18s %v", kind, of)
		require.GreaterOrEqual(t, of.recall(), kinds[kind].recall, kind)
		require.LessOrEqual(t, float64(of.flagged), kinds[kind].wrong*float64(of.empty), kind)
	}
	require.Len(t, found, len(kinds))
	t.Logf("%d rows of other kinds: spans %v", total, others)
}

// TestSecretCorpora prints the same for each rule of the corpora of two scanners. Their labels mean
// "this rule", not "a secret", so a flagged row labelled false is often right; the floors only
// catch a fall.
//
// Requirement: G23.
func TestSecretCorpora(t *testing.T) {
	t.Parallel()
	corpora := []struct {
		file   string
		recall float64
		beyond []string // kinds that are no secrets, or templates without their values
	}{
		{"gitleaks_literals.jsonl", 0.90, nil},
		{"detect_secrets_cases.jsonl", 0.50, []string{"ip_public", "high_entropy_strings"}},
	}
	for _, c := range corpora {
		t.Run(strings.TrimSuffix(c.file, ".jsonl"), func(t *testing.T) {
			t.Parallel()
			rules, sum := map[string]*tally{}, tally{}
			for _, r := range rows(t, c.file) {
				settles(t, redact.Secrets(), r.Text)
				if r.Flag == nil {
					continue
				}
				rule := r.Rule + r.Kind
				if rules[rule] == nil {
					rules[rule] = &tally{}
				}
				found := redact.Secrets().Spans(r.Text, nil)
				rules[rule].add(r, found)
				if !slices.Contains(c.beyond, rule) {
					sum.add(r, found)
				}
			}
			for _, rule := range slices.Sorted(maps.Keys(rules)) {
				t.Logf("%-45s %v", rule, rules[rule])
			}
			t.Logf("%-45s %v", "in scope", sum)
			require.Positive(t, sum.values)
			require.GreaterOrEqual(t, sum.recall(), c.recall)
		})
	}
}
