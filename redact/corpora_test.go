package redact_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// A tally counts the rows of one rule: those labelled a secret, those labelled none, and in how many of each something was found.
type tally struct{ secrets, found, others, flagged int }

// TestG23Corpora prints recall and false positives for each rule of the corpora of two scanners (go test -run Corpora
// -v). Their labels mean "this rule", not "a secret", so a flagged row labelled false is often right; the floors only
// catch a fall.
func TestG23Corpora(t *testing.T) {
	t.Parallel()
	corpora := []struct {
		file   string
		recall float64         // floor over the kinds in scope
		beyond map[string]bool // kinds that are no secrets, or templates without their values
	}{
		{"gitleaks_literals.jsonl", 0.90, nil},
		{"detect_secrets_cases.jsonl", 0.50, map[string]bool{"ip_public": true, "high_entropy_strings": true}},
	}
	for _, c := range corpora {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			file, err := os.Open(filepath.Join("..", "..", "shared", "corpora", c.file))
			if err != nil {
				t.Skipf("corpus absent: %v", err)
			}
			t.Cleanup(func() { _ = file.Close() })
			rules, sum := map[string]*tally{}, tally{}
			for lines := bufio.NewScanner(file); lines.Scan(); {
				var row struct {
					Kind, Rule, Text string
					Flag             *bool
				}
				require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
				out, counts, err := redact.Secrets().Text(row.Text)
				require.NoError(t, err)
				again, _, err := redact.Secrets().Text(out)
				require.NoError(t, err)
				require.Equal(t, out, again)
				if row.Flag == nil {
					continue
				}
				rule := row.Rule + row.Kind
				if rules[rule] == nil {
					rules[rule] = &tally{}
				}
				for _, of := range []*tally{rules[rule], &sum} {
					switch {
					case of == &sum && c.beyond[rule]:
					case *row.Flag:
						of.secrets++
						of.found += min(counts.Total(), 1)
					default:
						of.others++
						of.flagged += min(counts.Total(), 1)
					}
				}
			}
			for _, rule := range slices.Sorted(maps.Keys(rules)) {
				r := rules[rule]
				t.Logf("%-45s found %d of %d, flagged %d of %d others", rule, r.found, r.secrets, r.flagged, r.others)
			}
			t.Logf("in scope: found %d of %d secrets, flagged %d of %d others", sum.found, sum.secrets, sum.flagged, sum.others)
			require.Positive(t, sum.secrets)
			require.GreaterOrEqual(t, float64(sum.found), c.recall*float64(sum.secrets))
		})
	}
}
