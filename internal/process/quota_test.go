package process_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/mask"
	"github.com/runteam/runteam/internal/process"
)

// small are limits that a test reaches soon.
var small = process.Limits{Processes: 20, Memory: 64 << 20, FileSize: 4 << 20, Disk: 8 << 20, CPU: time.Minute}

// limited runs a script with small limits, and the time of a processor if it is not zero.
func limited(t *testing.T, script string, cpu time.Duration) process.Result {
	t.Helper()
	limits := small
	limits.CPU = cmp.Or(cpu, limits.CPU)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the limit did not end it"))
	defer cancel()
	r, err := process.Run(ctx, &process.Command{
		Path: "bash", Args: []string{"-c", script}, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, Confine: true, Limits: &limits,
	}, nil, 1<<20)
	require.NoError(t, err)
	return r
}

// Not parallel, since its programs take all that they can get from other tests.
func TestConfinedProgramStaysWithinItsLimits(t *testing.T) {
	skipUnlessConfines(t, true)
	for name, tt := range map[string]struct {
		script, want string
		cpu          time.Duration
	}{
		"many processes":  {`for i in $(seq 100); do sleep 60 & done; wait`, "processes and threads", 0},
		"a fork bomb":     {`f() { f | f & }; f; while :; do sleep 1; done`, "processes and threads", 0},
		"endless loop":    {`while :; do :; done`, "processor time", time.Second},
		"loop in a child": {`(while :; do :; done) & (while :; do :; done) & wait; exit 1`, "processor time", 200 * time.Millisecond},
		"large file":      {`head -c 1000000000 /dev/zero > large`, "a file reached 4 MiB", 0},
		"many files":      {`for i in $(seq 100); do head -c 1000000 /dev/zero > file$i; done; sleep 60`, "its files take more than 8 MiB", 0},
		"empty files":     {`for i in $(seq 3000); do : > file$i; done; sleep 60`, "its files take more than 8 MiB", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := limited(t, tt.script, tt.cpu)
			require.Contains(t, r.Exceeded, tt.want)
			require.NotZero(t, r.ExitStatus)
		})
	}
}

func TestConfinedProgramGetsNoMoreMemory(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	r := limited(t, `x=$(head -c 100000000 /dev/zero | tr '\0' x); echo got ${#x}`, 0)
	require.NotContains(t, string(r.Stdout), "got 100000000")
	r = limited(t, `for i in 1 2 3 4 5 6 7 8; do perl -e '$x = "x" x 12e6; sleep 60' & done; wait`, 0)
	require.Contains(t, r.Exceeded, "64 MiB of memory")
}

func TestProgramWithinItsLimitsReportsNone(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	r := limited(t, `head -c 1000000 /dev/zero > file; exit 3`, 0)
	require.Equal(t, 3, r.ExitStatus)
	require.Empty(t, r.Exceeded)
}

// ptraceCall returns the number of the system call ptrace.
func ptraceCall() string {
	if runtime.GOARCH == "arm64" {
		return "117"
	}
	return "101"
}

// What a confined program may do with tracing, which its limits need, does not let it read
// another process.
func TestConfinedProgramCannotTrace(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	const attach, seize, peek, traceme = "16", "16902", "3", "0"
	for _, request := range []string{attach, seize, peek} {
		r, err := shell(t, t.TempDir(), true, `sleep 60 & perl -e 'my $r = syscall(`+ptraceCall()+`, `+request+`, $ARGV[0], 0, 0); print "$!\n" if $r < 0' $!; kill $!`)
		require.NoError(t, err)
		require.Contains(t, string(r.Stdout), "Permission denied", request)
	}
	r, err := shell(t, t.TempDir(), true, `perl -e 'print syscall(`+ptraceCall()+`, `+traceme+`, 0, 0, 0)'`)
	require.NoError(t, err)
	require.Equal(t, "0", string(r.Stdout))
}

func TestConfinedProgramReadsFilesThatItIsGiven(t *testing.T) {
	t.Parallel()
	skipUnlessConfines(t, true)
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat "+filepath.Join(folder, "key")+"; echo ran\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "key"), []byte("canary"), 0o600))
	command := &process.Command{Path: program, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, Confine: true}
	_, err := process.Run(t.Context(), command, nil, 1000)
	require.ErrorContains(t, err, "permission denied")
	command.Readable = []string{program}
	r, err := process.Run(t.Context(), command, nil, 1000)
	require.NoError(t, err)
	require.Equal(t, "ran\n", string(r.Stdout), "%s", r.Stderr)
}

func TestRunReplacesValues(t *testing.T) {
	t.Parallel()
	command := &process.Command{
		Path: "/bin/sh", Args: []string{"-c", `printf 'can'; sleep 0.05; printf 'ary-'; sleep 0.05; printf 'value and can'; echo canary-value >&2`},
		Mask: mask.New(map[string]string{"KEY": "canary-value"}),
	}
	r, err := process.Run(t.Context(), command, nil, 1000)
	require.NoError(t, err)
	require.Equal(t, "${KEY} and can", string(r.Stdout))
	require.Equal(t, "${KEY}\n", string(r.Stderr))

	// A value that the bound would cut is replaced first.
	r, err = process.Run(t.Context(), command, nil, 8)
	require.NoError(t, err)
	require.Equal(t, "${KEY} a", string(r.Stdout))

	p, err := process.Start(&process.Command{Path: "/bin/sh", Args: []string{"-c", "echo canary-value >&2"}, Mask: command.Mask})
	require.NoError(t, err)
	p.Stop()
	require.Equal(t, "${KEY}\n", p.Stderr())
}

func TestRunAsksAProgramToEndFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		grace time.Duration
		want  string
	}{{10 * time.Second, "ended\n"}, {0, ""}} {
		t.Run(tt.grace.String(), func(t *testing.T) {
			t.Parallel()
			ready := filepath.Join(t.TempDir(), "ready")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(ready); err == nil {
						cancel(errors.New("enough"))
					}
				}
			}()
			r, err := process.Run(ctx, &process.Command{
				Path: "/bin/sh", Args: []string{"-c", `trap 'echo ended; exit 0' TERM; : > "$0"; while :; do sleep 0.02; done`, ready}, Grace: tt.grace,
			}, nil, 1000)
			require.EqualError(t, err, "enough")
			require.Equal(t, tt.want, string(r.Stdout))
		})
	}
}

// The end of a flood on the standard error is kept.
func TestRunKeepsTheEndOfTheStandardError(t *testing.T) {
	t.Parallel()
	r, err := process.Run(t.Context(), &process.Command{Path: "/bin/sh", Args: []string{"-c", "head -c 100000000 /dev/zero >&2; echo last >&2"}}, nil, 1000)
	require.NoError(t, err)
	require.Len(t, r.Stderr, 1000)
	require.True(t, bytes.HasSuffix(r.Stderr, []byte("last\n")))
	require.True(t, r.StderrCut)
}

// A program that writes without an end is ended once its output is full.
func TestRunEndsAFlood(t *testing.T) {
	t.Parallel()
	r, err := process.Run(t.Context(), &process.Command{Path: "/bin/sh", Args: []string{"-c", "while :; do echo flood; done"}, EndWhenFull: true}, nil, 1000)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("flood\n", 1000/6)+"floo", string(r.Stdout))
	require.True(t, r.Cut)
}
