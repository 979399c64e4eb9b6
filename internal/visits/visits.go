// Package visits lets tests hold that work is linear without a clock: it counts how often each block of code runs for an
// input and for one of twice the size. The counters are those of coverage, in a test binary of their own, so the code
// that is counted needs none.
//
//	func TestVisitsAreLinear(t *testing.T) {
//		visits.RequireLinear(t, 16<<10, "./...", map[string]func(n int){"dots": func(n int) { parse(strings.Repeat(".", n)) }})
//	}
//
// Work inside the standard library is not counted.
package visits

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The variables that tell a test in its own process what to run.
const (
	caseEnv = "RUNTEAM_VISITS_CASE"
	sizeEnv = "RUNTEAM_VISITS_SIZE"
)

// Blocks are how often blocks of code ran, by their positions, such as github.com/…/email.go:12.3,14.5.
type Blocks map[string]int

// RequireLinear runs each case with the sizes n and 2n, and fails if a block of the packages that pattern names runs
// clearly more than twice as often. It must be all that the test does. It returns the blocks of all cases at size n, or
// nil in the process of a case, where the test must return.
func RequireLinear(t *testing.T, n int, pattern string, cases map[string]func(n int)) Blocks {
	t.Helper()
	if name, ok := os.LookupEnv(caseEnv); ok {
		size, err := strconv.Atoi(os.Getenv(sizeEnv))
		require.NoError(t, err)
		cases[name](size)
		return nil
	}
	binary := filepath.Join(t.TempDir(), "visits.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-cover", "-covermode=atomic", "-coverpkg="+pattern, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var mu sync.Mutex // guards all
	all := Blocks{}
	t.Run("cases", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				few, many := count(t, binary, name, n), count(t, binary, name, 2*n)
				require.NotEmpty(t, few)
				for block, times := range many {
					if times > 5*few[block]/2+n/4 {
						t.Errorf("%s runs %d times for a size of %d, and %d times for %d", block, few[block], n, times, 2*n)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for block, times := range few {
					all[block] += times
				}
			})
		}
	})
	return all
}

// count runs the test of a case in the binary, and returns how often each block ran.
func count(t *testing.T, binary, name string, n int) Blocks {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	profile := filepath.Join(t.TempDir(), "profile")
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+test+"$", "-test.coverprofile="+profile)
	cmd.Env = append(os.Environ(), caseEnv+"="+name, sizeEnv+"="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	file, err := os.Open(profile)
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // it was only read
	blocks := Blocks{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var position string
		var statements, times int
		if got, _ := fmt.Sscan(lines.Text(), &position, &statements, &times); got == 3 && times > 0 {
			blocks[position] += times
		}
	}
	return blocks
}
