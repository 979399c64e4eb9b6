package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
)

// Requirement: G45.
func TestRecordOfAnotherRunIsRefused(t *testing.T) {
	t.Parallel()
	for name, k := range map[string][]byte{"SHA-256": nil, "HMAC": key} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, head := recordOf(t, audit.Options{Run: "one", Key: k}, 3)
			again, last := recordOf(t, audit.Options{Run: "one", Key: k, Previous: head}, 2)
			other, otherHead := recordOf(t, audit.Options{Run: "two", Key: k, Previous: head}, 2)
			o := audit.VerifyOptions{Run: "one", Key: k}
			require.Equal(t, audit.Consistent, verify(t, one, o).Status)
			require.Equal(t, audit.Consistent, verify(t, one+again, o).Status, "a run may have several chains")
			o.Head = last
			require.Equal(t, audit.Verified, verify(t, one+again, o).Status)
			for _, tt := range []struct {
				text string
				head audit.Head
				line int
			}{
				{other, audit.Head{}, 1},
				{other, otherHead, 1},
				{one + other, otherHead, 6},
				{strings.Join(strings.SplitAfter(other, "\n")[:2], ""), audit.Head{}, 1},
			} {
				got := verify(t, tt.text, audit.VerifyOptions{Run: "one", Key: k, Head: tt.head})
				require.Equal(t, audit.Broken, got.Status, "%+v", got)
				require.Equal(t, tt.line, got.Line)
				require.Contains(t, got.Why, `it opens the record of run "two", not of run "one"`)
			}
		})
	}
}

// A forged line can have a right digest: without a key anyone can compute it, and
// with one a signed line of another version of the run can be copied. Only the line
// after it, which names the digest of the real one, reveals it.
//
// Requirement: G45.
func TestReplacedLineIsFound(t *testing.T) {
	t.Parallel()
	for name, k := range map[string][]byte{"SHA-256": nil, "HMAC": key} {
		for at := 1; at <= 3; at++ { // the decisions; before them stands the opening line
			t.Run(fmt.Sprint(name, " line ", at+1), func(t *testing.T) {
				t.Parallel()
				text, head := recordOf(t, audit.Options{Run: "one", Key: k}, 3)
				lines := slices.Collect(strings.Lines(text))

				var b strings.Builder
				c, err := audit.New(&b, audit.Options{Run: "one", Key: k, Time: start})
				require.NoError(t, err)
				require.NoError(t, c.Append(list(0, at-1)...))
				forged := decided(at - 1)
				forged.From = "forger" // the same verdict and rule, so that the counts stay right
				require.NoError(t, c.Append(forged))
				other := slices.Collect(strings.Lines(b.String()))
				require.Equal(t, lines[:at], other[:at])
				require.NotEqual(t, lines[at], other[at])

				lines[at] = other[at]
				got := verify(t, strings.Join(lines[:at+1], ""), audit.VerifyOptions{Run: "one", Key: k})
				require.Equal(t, audit.Open, got.Status, "by itself the line is right: %+v", got)
				for _, h := range []audit.Head{{}, head} {
					got = verify(t, strings.Join(lines, ""), audit.VerifyOptions{Run: "one", Key: k, Head: h})
					require.Equal(t, audit.Broken, got.Status, "%+v", got)
					require.Equal(t, at+2, got.Line)
					require.Contains(t, got.Why, fmt.Sprintf("does not follow line %d before it", at+1))
				}
			})
		}
	}
}
