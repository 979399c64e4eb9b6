package pick_test

import (
	"encoding/json"
	"fmt"
	"testing"

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
