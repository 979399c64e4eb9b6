package cli

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// initialized matches the line in which the Go runtime reports the initialization of a package of
// this module: the package, and the bytes that it allocated.
var initialized = regexp.MustCompile(`(?m)^init github\.com/runteam/runteam/(\S+) .* ms clock, (\d+) bytes, `)

// TestStartBuildsNoDetectors checks that the command starts without building the
// tables and expressions that only some commands need. While package redact built its
// detectors at the start, it allocated 350 kB in 6 ms, more than all other packages took.
func TestStartBuildsNoDetectors(t *testing.T) {
	t.Parallel()
	got := call{dir: t.TempDir(), args: []string{"version"}, env: map[string]string{"GODEBUG": "inittrace=1"}}.process(t)
	require.Equal(t, exit.StatusOK, got.status)
	var packages []string
	for _, m := range initialized.FindAllStringSubmatch(got.stderr, -1) {
		bytes, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		packages = append(packages, m[1])
		switch m[1] {
		case "redact", "llm/openai":
			require.Less(t, bytes, 250_000, m[1])
		}
	}
	require.Contains(t, packages, "redact")
}

// BenchmarkStart runs the command version. It took 9 ms of processor time in user mode
// while detectors were built at the start, and takes 3 ms now.
func BenchmarkStart(b *testing.B) {
	var user float64
	for b.Loop() {
		cmd := exec.Command(binary, "version")
		cmd.Stdout = new(strings.Builder)
		require.NoError(b, cmd.Run())
		user += float64(cmd.ProcessState.UserTime().Microseconds())
	}
	b.ReportMetric(user/float64(b.N), "user-µs/op")
}
