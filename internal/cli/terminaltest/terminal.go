// Package terminaltest has a terminal for tests of what is drawn on one.
package terminaltest

import (
	"strconv"
	"strings"
)

// Terminal is as much of one as the table needs: a window of rows over a
// scrollback, a cursor, and the sequences that the screen writes. Anything
// else that it gets is kept in unknown.
type Terminal struct {
	Width, Height int
	rows          [][]rune // scrollback and window; a second cell of a wide rune holds 0
	row, col      int
	Nowrap        bool
	Unknown       []string
	runeWidth     func(rune) int
}

// NewTerminal returns a terminal of a size. runeWidth returns how many cells a character takes.
func NewTerminal(width, height int, runeWidth func(rune) int) *Terminal {
	return &Terminal{Width: width, Height: height, rows: make([][]rune, 1), runeWidth: runeWidth}
}

// Write interprets p as a terminal does.
func (t *Terminal) Write(p []byte) (int, error) {
	for s := string(p); s != ""; {
		if seq, rest, ok := csi(s); ok {
			t.control(seq)
			s = rest
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		t.put(r)
	}
	return len(p), nil
}

// csi splits a control sequence off.
func csi(s string) (seq, rest string, ok bool) {
	if !strings.HasPrefix(s, "\x1b[") {
		return "", s, false
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return s[2 : i+1], s[i+1:], true
		}
	}
	return "", s, false
}

func (t *Terminal) control(seq string) {
	final := seq[len(seq)-1]
	n, _ := strconv.Atoi(seq[:len(seq)-1])
	switch {
	case seq == "?7l", seq == "?7h":
		t.Nowrap = seq == "?7l"
	case final == 'm':
	case final == 'A':
		top := max(0, len(t.rows)-t.Height) // the cursor cannot reach the scrollback
		t.row = max(top, t.row-n)
	case seq == "K":
		t.cut(t.row, t.col)
	case seq == "J":
		t.cut(t.row, t.col)
		t.rows = t.rows[:t.row+1]
	default:
		t.Unknown = append(t.Unknown, seq)
	}
}

func (t *Terminal) cut(row, col int) {
	if col < len(t.rows[row]) {
		t.rows[row] = t.rows[row][:col]
	}
}

func (t *Terminal) put(r rune) {
	switch r {
	case '\r':
		t.col = 0
		return
	case '\n': // as a terminal driver passes it on
		t.col = 0
		t.down()
		return
	}
	if r < ' ' {
		t.Unknown = append(t.Unknown, strconv.QuoteRune(r))
		return
	}
	w := t.runeWidth(r)
	if t.col+w > t.Width {
		if t.Nowrap {
			return
		}
		t.col = 0
		t.down()
	}
	for len(t.rows[t.row]) < t.col+w {
		t.rows[t.row] = append(t.rows[t.row], ' ')
	}
	for i := range w {
		t.rows[t.row][t.col+i] = 0
	}
	if w > 0 {
		t.rows[t.row][t.col] = r
	}
	t.col += w
}

func (t *Terminal) down() {
	t.row++
	for len(t.rows) <= t.row {
		t.rows = append(t.rows, nil)
	}
}

// Text is everything on the screen and above it, without trailing spaces.
func (t *Terminal) Text() []string {
	lines := []string{}
	for _, row := range t.rows {
		var b strings.Builder
		for _, r := range row {
			if r != 0 {
				b.WriteRune(r)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
