package pick_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/pick"
	"github.com/stretchr/testify/require"
)

// claim is an object of about 4 KiB: some scalars, some nesting, rows.
func claim() map[string]any {
	rows := []any{}
	for i := range 20 {
		rows = append(rows, map[string]any{"id": json.Number(fmt.Sprint(i)), "amount": "120.50 EUR", "note": "seen by the adjuster on site, photographs are attached to the file, nothing else is known"})
	}
	facts := map[string]any{}
	for i := range 20 {
		facts[fmt.Sprintf("fact_%02d", i)] = "what is known about this part of the claim"
	}
	return map[string]any{"category": "motor", "score": json.Number("7"), "items": rows, "facts": facts,
		"applicant": map[string]any{"name": "Ada Example", "address": map[string]any{"street": "1 Main Street", "city": "Bern"}, "ssn": "078-05-1120"}}
}

func BenchmarkApply(b *testing.B) {
	v := claim()
	for _, tt := range []struct{ name, allow, block string }{
		{"Paths", "/category /score /items/*/id /facts/* /applicant/**", ""},
		{"PathsAndBlocks", "/category /score /items/*/id /facts/* /applicant/**", "ssn /applicant/address/street"},
		{"WholeButBlocked", `""`, "ssn"},
		{"Whole", `""`, ""},
	} {
		s := only(b, tt.allow, tt.block)
		raw, err := json.Marshal(v)
		require.NoError(b, err)
		b.Run(tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(v)
			}
		})
	}
}

// BenchmarkAnd composes what a policy of 1,000 rules for everybody says, and
// asks of it what is asked before a run.
func BenchmarkAnd(b *testing.B) {
	rules := make([]pick.Selection, 1000)
	for i := range rules {
		rules[i] = only(b, strings.Join(wildcards(i), " "), fmt.Sprintf("secret%d", i))
	}
	compose := func() pick.Selection {
		all := pick.Everything()
		for _, one := range rules {
			all = all.And(one)
		}
		return all
	}
	b.Run("Compose", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			compose()
		}
	})
	b.Run("ComposeAndAsk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			compose().Empty()
		}
	})
}

// wildcards are 17 paths, of which some overlap with those of every other number.
func wildcards(i int) []string {
	out := []string{"/name/**"}
	for k := range 8 {
		out = append(out, fmt.Sprintf("/%s*/*/x%d", strings.Repeat("*/", (i+k)%5), k), fmt.Sprintf("/a%d/v%d/**", (i+k)%16, (i*7+k)%23))
	}
	return out
}
