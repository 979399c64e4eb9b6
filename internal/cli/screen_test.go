package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// counted counts writes.
type counted struct {
	io.Writer
	writes int
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes++
	return c.Writer.Write(p)
}

func TestScreenIsLinesAndTheTableBelow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(4, 60).Draw(t, "width"), rapid.IntRange(3, 12).Draw(t, "height")
		term := newTerminal(width, height, cells)
		out := &counted{Writer: term}
		s := &screen{w: out, size: func() (int, int) { return width, height }}
		words := rapid.StringOfN(rapid.SampledFrom([]rune("ab 世é👩")), 0, 2*width, -1)
		var table []line
		draw := func() {
			n := rapid.IntRange(0, height-1).Draw(t, "rows")
			table = nil
			for i := range n {
				table = append(table, line{text: clip(fmt.Sprintf("%d%s", i, words.Draw(t, "row")), width-1), color: "31", colored: 1})
			}
		}
		draw()
		s.show(func(int, int) []line { return table })
		var above []string
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := out.writes
			if rapid.Bool().Draw(t, "log") {
				text := clip("log "+words.Draw(t, "line"), width)
				above = append(above, strings.TrimRight(text, " "))
				_, err := io.WriteString(s, text+"\n")
				require.NoError(t, err)
			} else {
				draw()
				s.refresh()
			}
			require.LessOrEqual(t, out.writes-before, 1, "a frame is one write, so it cannot flicker")
			require.Equal(t, joined(above, table), term.text())
		}
		s.leave()
		require.Equal(t, joined(above, table), term.text(), "the table stays where it is")
		_, _ = io.WriteString(s, "end\n")
		require.Equal(t, append(joined(above, table), "end"), term.text())
		require.Empty(t, term.unknown)
		require.False(t, term.nowrap, "wrapping is on again")
	})
}

func joined(above []string, table []line) []string {
	all := append([]string{}, above...)
	for _, l := range table {
		all = append(all, strings.TrimRight(l.text, " "))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

func TestScreenLeavesOutFramesThatChangeNothing(t *testing.T) {
	t.Parallel()
	out := &counted{Writer: io.Discard}
	s := &screen{w: out, size: func() (int, int) { return 0, 0 }}
	s.show(func(width, height int) []line {
		require.Equal(t, []int{80, 24}, []int{width, height}, "a terminal that does not say its size")
		return []line{{text: "same"}}
	})
	for range 10 {
		s.refresh()
	}
	require.Equal(t, 1, out.writes)
}

func TestScreenCountsTheRowsOfATerminalThatBecameNarrow(t *testing.T) {
	t.Parallel()
	width := 20
	var out strings.Builder
	s := &screen{w: &out, size: func() (int, int) { return width, 10 }}
	s.show(func(w, _ int) []line { return []line{{text: clip(strings.Repeat("x", 19), w-1)}, {text: "y"}} })
	width = 8 // the first line now stands in three rows
	out.Reset()
	s.refresh()
	require.Contains(t, out.String(), "\x1b[4A")
}

// A terminal that becomes lower scrolls rows out, and brings them back when it
// grows: they are written over then.
func TestScreenTakesBackWhatATerminalScrolledOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const width, most = 20, 24
		n := rapid.IntRange(1, most-2).Draw(t, "lines")
		term := newTerminal(width, most, cells)
		s := &screen{w: term, size: func() (int, int) { return term.width, term.height }}
		before := []string{"log 1", "log 2"}
		_, _ = io.WriteString(s, strings.Join(before, "\n")+"\n")
		frame := 0
		table := func(_, height int) (lines []line) {
			for i := range min(n, height-1) {
				lines = append(lines, line{text: fmt.Sprintf("row %d of frame %d", i, frame)})
			}
			return lines
		}
		s.show(table)
		for frame = range rapid.IntRange(1, 6).Draw(t, "sizes") {
			term.height = rapid.IntRange(2, most).Draw(t, "height")
			s.refresh()
			s.refresh()
		}
		term.height = most
		s.refresh()
		require.Equal(t, joined(before, table(width, most)), term.text())
		_, _ = io.WriteString(s, "log 3\n")
		require.Equal(t, joined(append(before, "log 3"), table(width, most)), term.text())
	})
}

func TestClip(t *testing.T) {
	t.Parallel()
	require.Equal(t, "abc", clip("abc", 3))
	require.Equal(t, "ab…", clip("abcd", 3))
	require.Equal(t, "世…", clip("世界界", 4))
	require.Empty(t, clip("abc", 0))
	require.Equal(t, 4, columns("世界"))
	require.Equal(t, 1, columns("e\u0301"))
}
