// Package terminal writes to terminals: it escapes characters that would deceive the reader, measures
// text in cells, and redraws a table in place.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/width"
)

// A Screen is standard error: lines that stay and, on a terminal, at most one table below them that is
// redrawn in place. It is safe for concurrent use.
//
// A frame is one write, so it does not flicker: the cursor moves to the first line of the table, each
// line erases the old one, and everything below is cleared. A row must be erased as a whole: a terminal
// that broke a line while it was narrow otherwise joins its rows when it becomes wider, and the
// table has fewer rows than were written. Lines are clipped to the width, and automatic wrapping is off
// meanwhile, so that a line is one row even if the terminal has another width for a character.
type Screen struct {
	W    io.Writer
	Size func() (width, height int)

	mu    sync.Mutex                     // guards what follows
	table func(width, height int) []Line // nil when there is none
	drawn []int                          // widths of the lines of the table on the screen
	lost  []int                          // widths of the lines that scrolled out when the terminal became lower
	last  frame                          // on the screen, to skip frames that change nothing
	held  *bytes.Buffer                  // lines that wait for the end of a dialog; nil if there is none
	out   bytes.Buffer
	open  bool // another stream to the same place has begun a line
}

// frame is a drawn table. The zero frame is none.
type frame struct {
	width, height int
	text          string
}

// A Line is one row of the table: its text, and the color of its first bytes.
type Line struct {
	Text    string
	Color   string // SGR code for the first bytes; empty means plain
	Colored int    // how many bytes
}

// Write prints lines that stay, above the table if there is one.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held != nil:
		return s.held.Write(p)
	case s.table == nil:
		s.closeLine()
		return s.W.Write(p)
	}
	s.out.Reset()
	s.home()
	s.lost = nil // the new line will be between them and the table
	s.out.WriteString("\x1b[J")
	s.out.Write(p)
	if !bytes.HasSuffix(p, []byte("\n")) {
		s.out.WriteByte('\n')
	}
	w, h := s.measure()
	s.paint(w, h, s.table(w, h))
	return len(p), s.flush()
}

// WriteBeside writes a text to another stream that leads to the same terminal, file or pipe. Lines of the
// screen that follow do not continue its last line.
func (s *Screen) WriteBeside(w io.Writer, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := io.WriteString(w, text)
	s.open = text != "" && !strings.HasSuffix(text, "\n")
	return err
}

// EndBeside ends the last line of what [Screen.WriteBeside] wrote, unless a line of the screen did.
func (s *Screen) EndBeside(w io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil
	}
	s.open = false
	_, err := io.WriteString(w, "\n")
	return err
}

// closeLine ends the line that another stream has begun.
func (s *Screen) closeLine() {
	if s.open {
		s.open = false
		_, _ = io.WriteString(s.W, "\n") // as the line that follows
	}
}

// Pause gives the terminal to a dialog until resume is called: it erases the table and holds
// other lines back. w writes to the terminal meanwhile.
func (s *Screen) Pause() (w io.Writer, resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table != nil {
		s.out.Reset()
		s.home()
		s.out.WriteString("\x1b[J")
		_ = s.flush() // a failure to draw progress is no error
		s.drawn, s.lost, s.last = nil, nil, frame{}
	}
	s.closeLine()
	s.held = &bytes.Buffer{}
	return s.W, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		lines := s.held
		s.held = nil
		if lines.Len() > 0 {
			s.closeLine()
		}
		_, _ = s.W.Write(lines.Bytes()) // as above
		if s.table != nil {
			s.redraw()
		}
	})
}

// Show shows a table below the lines.
func (s *Screen) Show(table func(width, height int) []Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table = table; s.held == nil {
		s.redraw()
	}
}

// Refresh draws the table again, if it has changed.
func (s *Screen) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table != nil && s.held == nil {
		s.redraw()
	}
}

// Finish draws the table a last time, in full, and leaves it on the screen.
func (s *Screen) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		return
	}
	w, h := s.measure()
	s.out.Reset()
	s.home()
	s.paint(w, h, s.table(w, 0))
	_ = s.flush()
	s.table, s.drawn, s.lost, s.last = nil, nil, nil, frame{}
}

func (s *Screen) redraw() {
	w, h := s.measure()
	lines := s.table(w, h)
	if newFrame(w, h, lines) == s.last {
		return
	}
	s.out.Reset()
	s.home()
	s.paint(w, h, lines)
	_ = s.flush() // a failure to draw progress is no error
}

func newFrame(width, height int, lines []Line) frame {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	return frame{width, height, b.String()}
}

// measure returns the size of the terminal, or 80 by 24 if it is unknown.
func (s *Screen) measure() (w, h int) {
	w, h = s.Size()
	if w <= 0 {
		w = 80
	}
	if h <= 0 {
		h = 24
	}
	return w, h
}

// home moves the cursor to the first line of the table. A terminal that became narrower has broken
// lines into several rows. One that became lower has scrolled the first rows out, and brings them back
// when it grows.
func (s *Screen) home() {
	w, h := s.measure()
	lines := append(s.lost, s.drawn...)
	rows := 0
	for _, n := range lines {
		rows += rowsOf(n, w)
	}
	s.lost = nil
	out := rows - (h - 1) // the cursor is below them
	for _, n := range lines {
		if out <= 0 {
			break
		}
		s.lost = append(s.lost, min(n, out*w))
		out -= rowsOf(n, w)
	}
	s.out.WriteByte('\r')
	if rows > 0 {
		fmt.Fprintf(&s.out, "\x1b[%dA", rows)
	}
}

// rowsOf returns how many rows a line of n cells takes.
func rowsOf(n, width int) int { return max(1, (n+width-1)/width) }

// paint writes the lines at the cursor.
func (s *Screen) paint(width, height int, lines []Line) {
	s.drawn, s.last = s.drawn[:0], newFrame(width, height, lines)
	s.out.WriteString("\x1b[?7l")
	for _, l := range lines {
		text := l.Text
		if l.Color != "" && l.Colored <= len(text) {
			text = "\x1b[" + l.Color + "m" + text[:l.Colored] + "\x1b[0m" + text[l.Colored:]
		}
		s.out.WriteString("\x1b[2K" + text + "\n")
		s.drawn = append(s.drawn, Width(l.Text))
	}
	s.out.WriteString("\x1b[J\x1b[?7h")
}

func (s *Screen) flush() error {
	_, err := s.W.Write(s.out.Bytes())
	return err
}

// Width returns how many cells of a terminal a text takes, as far as Unicode says.
func Width(text string) (n int) {
	for _, r := range text {
		n += RuneWidth(r)
	}
	return n
}

// RuneWidth returns how many cells of a terminal a character takes.
func RuneWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	if r == 0x200c || r == 0x200d || r != 0xfe0f && unicode.In(r, unicode.Mn, unicode.Me) { // U+FE0F may widen what it follows
		return 0
	}
	return 1
}

// Clip cuts a text to at most n cells and marks what is cut.
func Clip(text string, n int) string {
	if n <= 0 {
		return ""
	}
	if len(text) <= n || Width(text) <= n {
		return text
	}
	used := 0
	for i, r := range text {
		if used+RuneWidth(r) > n-1 {
			return text[:i] + "…"
		}
		used += RuneWidth(r)
	}
	return text
}

// Pad fills a text up to n cells.
func Pad(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-Width(text)))
}
