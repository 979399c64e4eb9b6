package redact_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/visits"
	"github.com/runteam/runteam/redact"
)

// TestVisitsAreLinear checks that no block of a detector or decoder runs more than twice as often for a hostile text of
// twice the size. Other tests bound what detectors say that they read (see pass.work); this one counts also what they do
// not say.
//
// Requirement: G29.
func TestVisitsAreLinear(t *testing.T) {
	slowtest.Only(t)
	cases := map[string]func(n int){}
	for _, p := range append(hostile(), hostileNumbers()...) {
		sized := func(n int) string { return p.head + strings.Repeat(p.repeat, n/len(p.repeat)+1) }
		cases[p.name] = func(n int) { _, _, _ = redact.All().Text(sized(n)) }
	}
	for name, repeat := range map[string]string{"list": `"4111","password=a1B2c3D4",`, "names": `{"password":"x"},`, "halves": `"ghp_a1B2c3D4e5F6","g7H8i9J0",`} {
		cases["JSON, "+name] = func(n int) {
			_, _, _, _ = redact.All().JSON(context.Background(), "["+strings.TrimSuffix(strings.Repeat(repeat, n/len(repeat)+1), ",")+"]", nil)
		}
	}
	cases["stream"] = func(n int) { // TestStreamWorkIsLinear has hostile ones, which are searched less often once they are long
		s := redact.All().Stream(nil)
		for range n / 64 {
			s.Write(context.Background(), "mail ann@example.com or call +44 20 7946 0958; password=a1B2c3D4. ")
		}
		_, _, _, _ = s.Close(context.Background())
	}
	blocks := visits.RequireLinear(t, 8<<10, ".", cases)
	if blocks == nil {
		return
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, "_test.go") || !regexp.MustCompile(`\*(pass|scan)\b`).Match(text) {
			continue
		}
		visited := slices.ContainsFunc(slices.Collect(maps.Keys(blocks)), func(block string) bool { return strings.Contains(block, "/redact/"+file+":") })
		require.True(t, visited, "%s searches texts, and no case visits it: add one to hostile", file)
	}
}
