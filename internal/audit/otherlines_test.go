package audit_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/slowtest"
)

// among writes a closed chain of n decisions with other lines between: two
// before the opening line, one less after each line of the chain, and again
// from two, none of them equal.
func among(t require.TestingT, o audit.Options, n int) (string, audit.Head) {
	var b bytes.Buffer
	count := 0
	others := func(lines int) []byte {
		from := b.Len()
		for range lines {
			count++
			fmt.Fprintf(&b, `{"event":{"seq":%d,"time":"12:00","verdict":"held"}}`+"\n", count)
		}
		return b.Bytes()[from:]
	}
	o.Time, o.Before = start, others(2)
	c, err := audit.New(&b, o)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, c.Beside(others(i%3)))
		require.NoError(t, c.Append(decided(i)))
	}
	require.NoError(t, c.Beside(others(2)))
	require.NoError(t, c.Beside(nil))
	head, err := c.Close(end)
	require.NoError(t, err)
	return b.String(), head
}

// Requirement: G45.
func TestChainCoversTheOtherLines(t *testing.T) {
	t.Parallel()
	for _, k := range [][]byte{nil, key} {
		text, head := among(t, audit.Options{Run: "run-1", Key: k}, 4)
		require.Equal(t, 7, strings.Count(text, `{"event":`))
		want := audit.Report{Status: audit.Verified, Run: "run-1", Runs: 1, Covered: 13, Decisions: 4, Withheld: 1, Head: head, Keyed: k != nil}
		require.Equal(t, want, verify(t, text, audit.VerifyOptions{Key: k, Head: head}))
		want.Status = audit.Consistent
		require.Equal(t, want, verify(t, text, audit.VerifyOptions{Key: k}))
	}
}

// TestEveryAlterationOfOtherLinesIsFound alters a file of lines of both kinds in each place.
//
// Requirement: G45.
func TestEveryAlterationOfOtherLinesIsFound(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for name, k := range map[string][]byte{"SHA-256": nil, "HMAC": key} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, head := among(t, audit.Options{Run: "run-1", Key: k}, 2)
			o := audit.VerifyOptions{Key: k, Head: head}
			lines := slices.Collect(strings.Lines(text))
			t.Run("edit", func(t *testing.T) { everyEdit(t, lines, o) })
			t.Run("truncate", func(t *testing.T) { everyTruncation(t, text, o) })
			t.Run("insert", func(t *testing.T) {
				for at := range len(lines) + 1 {
					for _, line := range append(slices.Clone(lines), "{}\n") {
						altered := slices.Insert(slices.Clone(lines), at, line)
						first, last := around(altered, at, at+1)
						brokenIn(t, strings.Join(altered, ""), o, first, last)
					}
				}
			})
			t.Run("remove", func(t *testing.T) {
				for from := range lines {
					for to := from + 1; to < len(lines); to++ {
						altered := slices.Delete(slices.Clone(lines), from, to)
						first, last := around(altered, from, from)
						brokenIn(t, strings.Join(altered, ""), o, first, last)
					}
				}
			})
			t.Run("reorder", func(t *testing.T) {
				for i := range lines {
					for j := range i {
						altered := slices.Clone(lines)
						altered[i], altered[j] = altered[j], altered[i]
						first, last := around(altered, j, j)
						brokenIn(t, strings.Join(altered, ""), o, first, last)
					}
				}
			})
		})
	}
}

// TestVerifyNamesAlteredOtherLines checks that the range of lines and the kind of
// alteration are named.
//
// Requirement: G45.
func TestVerifyNamesAlteredOtherLines(t *testing.T) {
	t.Parallel()
	text, head := among(t, audit.Options{}, 2) // e1 e2 A, A, e3 A, e4 e5 A
	lines := slices.Collect(strings.Lines(text))
	require.Len(t, lines, 9)
	join := func(parts ...string) string { return strings.Join(parts, "") }
	all := func(at int, with ...string) string {
		return join(append(append(slices.Clone(lines[:at]), with...), lines[at+1:]...)...)
	}
	tests := []struct {
		name, give string
		line       int
		why        string
	}{
		{"an edit in a stretch of two", all(1, strings.Replace(lines[1], "12:00", "12:01", 1)), 1, "one of the lines 1 to 2 is not what line 3 covers: it was altered, or they were moved"},
		{"an edit of a line that stands alone", all(4, strings.Replace(lines[4], "12:00", "12:01", 1)), 5, "it is not the line that line 6 covers: it was altered"},
		{"two that were swapped", join(lines[1], lines[0], join(lines[2:]...)), 1, "one of the lines 1 to 2"},
		{"one that is missing", all(4), 5, "the number of other lines before line 5 is 0 and was 1: lines were inserted, removed or moved"},
		{"one of two that is missing", all(7), 7, "before line 8 is 1 and was 2"},
		{"one too many", all(3, "{}\n", lines[3]), 4, "before line 5 is 1 and was 0"},
		{"another blank", all(4, strings.Replace(lines[4], ":", ": ", 1)), 5, "it was altered"},
		{"a carriage return", all(4, strings.Replace(lines[4], "\n", "\r\n", 1)), 5, "it was altered"},
		{"one behind the end", text + "{}\n", 10, "it follows the closing line and nothing covers it"},
		{"several behind the end", text + "{}\n{}\n{\"ev", 10, "it follows the closing line and nothing covers it"},
		{"no JSON", all(4, "nonsense\n"), 5, "it is not a JSON object"},
	}
	for _, tt := range tests {
		got := verify(t, tt.give, audit.VerifyOptions{Head: head})
		require.Equal(t, audit.Broken, got.Status, tt.name)
		require.Equal(t, tt.line, got.Line, tt.name)
		require.Contains(t, got.Why, tt.why, tt.name)
	}
	got := verify(t, text+`{"event":`, audit.VerifyOptions{Head: head})
	require.Equal(t, audit.Open, got.Status, "half a line behind the end")
	require.Equal(t, 10, got.Line)
}

// TestKeyCoversTheOtherLines alters a line and what the next says of it.
//
// Requirement: G45.
func TestKeyCoversTheOtherLines(t *testing.T) {
	t.Parallel()
	text, _ := among(t, audit.Options{Key: key}, 3)
	other, _ := among(t, audit.Options{Key: []byte("another key of sufficient length")}, 3)
	mine, theirs := slices.Collect(strings.Lines(text)), slices.Collect(strings.Lines(other))
	require.Equal(t, mine[0], theirs[0])
	broken(t, strings.Join(append(slices.Clone(theirs[:3]), mine[3:]...), ""), audit.VerifyOptions{Key: key}, 3)
}

// TestChainCoversLinesBetweenTwoRuns continues a file after its closing line.
//
// Requirement: G45.
func TestChainCoversLinesBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	first, head := among(t, audit.Options{Run: "one"}, 2)
	second, last := among(t, audit.Options{Run: "two", Previous: head}, 2)
	got := verify(t, first+second, audit.VerifyOptions{Head: last})
	require.Equal(t, audit.Verified, got.Status, got.Why)
	require.Equal(t, 18, got.Covered)
	broken(t, first+"{}\n"+second, audit.VerifyOptions{Head: last}, 10)
	broken(t, first+second[strings.Index(second, "\n")+1:], audit.VerifyOptions{Head: last}, 10)
}

// Requirement: G45.
func TestOtherLinesAreCoveredWhole(t *testing.T) {
	t.Parallel()
	_, err := audit.New(nil, audit.Options{Before: []byte("{}")})
	require.ErrorContains(t, err, "end within a line")
	var b bytes.Buffer
	c, err := audit.New(&b, audit.Options{})
	require.NoError(t, err)
	size := b.Len()
	err = c.Beside([]byte("{}\n{"))
	require.ErrorContains(t, err, "end within a line")
	require.Equal(t, err, c.Append(decided(0)))
	require.Equal(t, err, c.Beside([]byte("{}\n")))
	require.Equal(t, size, b.Len())

	c, err = audit.New(nil, audit.Options{})
	require.NoError(t, err)
	_, err = c.Close(end)
	require.NoError(t, err)
	require.ErrorIs(t, c.Beside([]byte("{}\n")), audit.ErrClosed)
}
