package trace_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/trace"
)

// whole writes the story with a result that is as long as n words.
func whole(t *testing.T, key []byte, n int) (lines []string, head audit.Head) {
	var out bytes.Buffer
	o := given
	o.Key = key
	s := &story{t: t, w: trace.NewWriter(&out, o)}
	s.happen()
	head, err := s.w.Close(map[string]any{"runId": "r1", "output": strings.Repeat("long ", n), "tasks": []any{}}, noon)
	require.NoError(t, err)
	return slices.Collect(strings.Lines(out.String())), head
}

// kind returns what a line is.
func kind(line string) string { return strings.SplitN(line, `"`, 3)[1] }

// edit changes a letter in a line, or a blank at its end, so that it stays JSON.
func edit(line string) string {
	if i := strings.LastIndexByte(line, 'o'); i >= 0 {
		return line[:i] + "u" + line[i+1:]
	}
	return strings.TrimSuffix(line, "\n") + " \n"
}

// Whoever alters a line of a trace, of whatever kind, is found: the prompts and
// the result are what the record is for.
//
// Requirement: G45.
func TestNoLineOfATraceCanBeAltered(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for name, tt := range map[string]struct {
		key   []byte
		words int
		kinds map[string]int // which are altered
	}{
		"SHA-256":           {nil, 9, map[string]int{"trace": 1, "audit": 7, "event": 10, "prompt": 3, "result": 1}},
		"HMAC":              {[]byte("sixteen bytes and more"), 9, map[string]int{"trace": 1, "audit": 7, "event": 10, "prompt": 3, "result": 1}},
		"a result in parts": {nil, 1 << 19, map[string]int{"part": 2, "result": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, head := whole(t, tt.key, tt.words)
			of := func(altered []string) audit.Report {
				r, err := audit.Verify(strings.NewReader(strings.Join(altered, "")), audit.VerifyOptions{Key: tt.key, Head: head})
				require.NoError(t, err)
				return r
			}
			report := of(lines)
			require.Equal(t, audit.Verified, report.Status, report.Why)
			require.Equal(t, len(lines), report.Covered)
			kinds := map[string]int{}
			for i, line := range lines {
				if tt.kinds[kind(line)] == 0 {
					continue
				}
				kinds[kind(line)]++
				edited := slices.Clone(lines)
				edited[i] = edit(line)
				require.NotEqual(t, line, edited[i])
				require.Equal(t, audit.Broken, of(edited).Status, "%s, edited", kind(line))
				for _, at := range []int{i, i + 1, len(lines)} {
					require.Equal(t, audit.Broken, of(slices.Insert(slices.Clone(lines), at, line)).Status, "%s, inserted", kind(line))
				}
				require.Equal(t, audit.Broken, of(slices.Delete(slices.Clone(lines), i, i+1)).Status, "%s, removed", kind(line))
				if i > 0 {
					swapped := slices.Clone(lines)
					swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
					require.Equal(t, audit.Broken, of(swapped).Status, "%s, moved", kind(line))
				}
			}
			require.Equal(t, tt.kinds, kinds)
		})
	}
}

// A run that was cut off is told from one that was altered.
//
// Requirement: G45.
func TestTraceThatWasCutIsOpen(t *testing.T) {
	t.Parallel()
	lines, _ := whole(t, nil, 9)
	for i := range lines {
		for _, more := range []string{"", lines[i][:9]} {
			report, err := audit.Verify(strings.NewReader(strings.Join(lines[:i], "")+more), audit.VerifyOptions{})
			require.NoError(t, err)
			require.Equal(t, audit.Open, report.Status, "%d lines: %s", i, report.Why)
			require.LessOrEqual(t, report.Covered, i)
		}
	}
}
