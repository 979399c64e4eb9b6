package cli

import (
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// fakeTerminal emulates what the screen needs of a terminal: a window of rows over a scrollback, a
// cursor, and the control sequences that the screen writes. It records other sequences as unknown.
type fakeTerminal struct {
	width, height int
	rows          [][]rune     // scrollback and window; a second cell of a wide rune holds 0
	broken        map[int]bool // rows that continue in the next one, until they are erased as a whole
	row, col      int
	nowrap        bool
	unknown       []string
}

func newFakeTerminal(width, height int) *fakeTerminal {
	return &fakeTerminal{width: width, height: height, rows: make([][]rune, 1), broken: map[int]bool{}}
}

// Write interprets p as a terminal does.
func (t *fakeTerminal) Write(p []byte) (int, error) {
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

func (t *fakeTerminal) control(seq string) {
	final := seq[len(seq)-1]
	n, _ := strconv.Atoi(seq[:len(seq)-1])
	switch {
	case seq == "?7l", seq == "?7h":
		t.nowrap = seq == "?7l"
	case final == 'm':
	case final == 'A':
		top := max(0, len(t.rows)-t.height) // the cursor cannot reach the scrollback
		t.row = max(top, t.row-n)
	case seq == "2K":
		t.cut(t.row, 0)
		delete(t.broken, t.row)
		delete(t.broken, t.row-1)
	case seq == "K":
		t.cut(t.row, t.col)
	case seq == "J":
		t.cut(t.row, t.col)
		t.rows = t.rows[:t.row+1]
	default:
		t.unknown = append(t.unknown, seq)
	}
}

func (t *fakeTerminal) cut(row, col int) {
	if col < len(t.rows[row]) {
		t.rows[row] = t.rows[row][:col]
	}
}

func (t *fakeTerminal) put(r rune) {
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
		t.unknown = append(t.unknown, strconv.QuoteRune(r))
		return
	}
	w := terminal.RuneWidth(r)
	if t.col+w > t.width {
		if t.nowrap {
			return
		}
		t.broken[t.row], t.col = true, 0
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

// widen changes the width, and breaks the lines again that do not fit or were broken. The cursor is in the last
// row.
func (t *fakeTerminal) widen(width int) {
	var rows [][]rune
	broken := map[int]bool{}
	for i := 0; i < len(t.rows); i++ {
		line := append([]rune(nil), t.rows[i]...)
		for ; t.broken[i] && i+1 < len(t.rows); i++ {
			line = append(line, t.rows[i+1]...)
		}
		for ; len(line) > width; line = line[width:] {
			broken[len(rows)] = true
			rows = append(rows, line[:width:width])
		}
		rows = append(rows, line)
	}
	t.width, t.rows, t.broken, t.row = width, rows, broken, len(rows)-1
}

func (t *fakeTerminal) down() {
	t.row++
	for len(t.rows) <= t.row {
		t.rows = append(t.rows, nil)
	}
}

// text returns everything on the screen and above it, without trailing spaces.
func (t *fakeTerminal) text() []string {
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
