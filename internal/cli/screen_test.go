package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/terminal"
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
		term := newFakeTerminal(width, height)
		out := &counted{Writer: term}
		s := &terminal.Screen{W: out, Size: func() (int, int) { return width, height }}
		words := rapid.StringOfN(rapid.SampledFrom([]rune("ab 世é👩")), 0, 2*width, -1)
		var table []terminal.Line
		draw := func() {
			n := rapid.IntRange(0, height-1).Draw(t, "rows")
			table = nil
			for i := range n {
				table = append(table, terminal.Line{Text: terminal.Clip(fmt.Sprintf("%d%s", i, words.Draw(t, "row")), width-1), Color: "31", Colored: 1})
			}
		}
		draw()
		s.Show(func(int, int) []terminal.Line { return table })
		var above []string
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := out.writes
			if rapid.Bool().Draw(t, "log") {
				text := terminal.Clip("log "+words.Draw(t, "line"), width)
				above = append(above, strings.TrimRight(text, " "))
				_, err := io.WriteString(s, text+"\n")
				require.NoError(t, err)
			} else {
				draw()
				s.Refresh()
			}
			require.LessOrEqual(t, out.writes-before, 1, "a frame is one write, so it cannot flicker")
			require.Equal(t, joined(above, table), term.text())
		}
		s.Finish()
		require.Equal(t, joined(above, table), term.text(), "the table stays where it is")
		_, _ = io.WriteString(s, "end\n")
		require.Equal(t, append(joined(above, table), "end"), term.text())
		require.Empty(t, term.unknown)
		require.False(t, term.nowrap, "wrapping is on again")
	})
}

func joined(above []string, table []terminal.Line) []string {
	all := append([]string{}, above...)
	for _, l := range table {
		all = append(all, strings.TrimRight(l.Text, " "))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

func TestScreenSkipsUnchangedFrames(t *testing.T) {
	t.Parallel()
	out := &counted{Writer: io.Discard}
	s := &terminal.Screen{W: out, Size: func() (int, int) { return 0, 0 }}
	s.Show(func(width, height int) []terminal.Line {
		require.Equal(t, []int{80, 24}, []int{width, height}, "a terminal of unknown size")
		return []terminal.Line{{Text: "same"}}
	})
	for range 10 {
		s.Refresh()
	}
	require.Equal(t, 1, out.writes)
}

func TestScreenCountsTheRowsOfATerminalThatBecameNarrow(t *testing.T) {
	t.Parallel()
	width := 20
	var out strings.Builder
	s := &terminal.Screen{W: &out, Size: func() (int, int) { return width, 10 }}
	s.Show(func(w, _ int) []terminal.Line {
		return []terminal.Line{{Text: terminal.Clip(strings.Repeat("x", 19), w-1)}, {Text: "y"}}
	})
	width = 8 // the first line now takes three rows
	out.Reset()
	s.Refresh()
	require.Contains(t, out.String(), "\x1b[4A")
}

// A terminal that becomes lower scrolls rows out, and shows them again when it
// grows: they are then overwritten.
func TestScreenOfATerminalThatGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const width, most = 20, 24
		n := rapid.IntRange(1, most-2).Draw(t, "lines")
		term := newFakeTerminal(width, most)
		s := &terminal.Screen{W: term, Size: func() (int, int) { return term.width, term.height }}
		before := []string{"log 1", "log 2"}
		_, _ = io.WriteString(s, strings.Join(before, "\n")+"\n")
		frame := 0
		table := func(_, height int) (lines []terminal.Line) {
			for i := range min(n, height-1) {
				lines = append(lines, terminal.Line{Text: fmt.Sprintf("row %d of frame %d", i, frame)})
			}
			return lines
		}
		s.Show(table)
		for frame = range rapid.IntRange(1, 6).Draw(t, "sizes") {
			term.height = rapid.IntRange(2, most).Draw(t, "height")
			s.Refresh()
			s.Refresh()
		}
		term.height = most
		s.Refresh()
		require.Equal(t, joined(before, table(width, most)), term.text())
		_, _ = io.WriteString(s, "log 3\n")
		require.Equal(t, joined(append(before, "log 3"), table(width, most)), term.text())
	})
}

// A terminal that becomes narrower breaks lines, and joins them when it becomes wider. What is above the table stays,
// and nothing of an earlier frame does.
func TestScreenOfATerminalThatChangesItsWidth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const most, height = 60, 200 // everything fits when lines are broken, too
		term := newFakeTerminal(most, height)
		s := &terminal.Screen{W: term, Size: func() (int, int) { return term.width, term.height }}
		before := []string{"log 1", "log 2"}
		_, _ = io.WriteString(s, strings.Join(before, "\n")+"\n")
		frame, n := 0, rapid.IntRange(1, 8).Draw(t, "lines")
		table := func(width, _ int) (lines []terminal.Line) {
			for i := range n {
				lines = append(lines, terminal.Line{Text: terminal.Clip(fmt.Sprintf("row %d of frame %d, %s", i, frame, strings.Repeat("x", 5*i)), width-1)})
			}
			return lines
		}
		s.Show(table)
		for frame = range rapid.IntRange(1, 6).Draw(t, "sizes") {
			term.widen(rapid.IntRange(8, most).Draw(t, "width"))
			s.Refresh()
			require.Equal(t, joined(before, table(term.width, height)), term.text())
		}
		term.widen(most)
		s.Finish()
		require.Equal(t, joined(before, table(most, height)), term.text())
	})
}

// A line of the screen does not continue the line that another stream has begun in the same place.
func TestScreenBesideAnotherStream(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &terminal.Screen{W: &out, Size: func() (int, int) { return 80, 24 }}
	require.NoError(t, s.WriteBeside(&out, "Once upon"))
	_, _ = io.WriteString(s, "log 1\n")
	_, _ = io.WriteString(s, "log 2\n")
	require.NoError(t, s.EndBeside(&out))
	require.NoError(t, s.WriteBeside(&out, " a time."))
	require.NoError(t, s.EndBeside(&out))
	require.NoError(t, s.EndBeside(&out))
	_, _ = io.WriteString(s, "log 3\n")
	require.Equal(t, "Once upon\nlog 1\nlog 2\n a time.\nlog 3\n", out.String())
}

func TestClip(t *testing.T) {
	t.Parallel()
	require.Equal(t, "abc", terminal.Clip("abc", 3))
	require.Equal(t, "ab…", terminal.Clip("abcd", 3))
	require.Equal(t, "世…", terminal.Clip("世界界", 4))
	require.Empty(t, terminal.Clip("abc", 0))
	require.Equal(t, 4, terminal.Width("世界"))
	require.Equal(t, 1, terminal.Width("e\u0301"))
}
