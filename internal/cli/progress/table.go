package progress

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
)

// The widest columns, in cells.
const (
	maxTitle = 40
	maxAgent = 16
)

// lines renders the run as a table for the size of a terminal: its rows, and below them a line of
// counts. With height 0 it shows every row.
func (t *tracker) lines(width, height int, now time.Time, color bool) []terminal.Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := t.folded()
	shown := t.window(rows, height)
	hidden := len(rows) - len(shown)
	lines := make([]terminal.Line, 0, len(shown)+1)
	words, titles, agents := terminal.Width(format.Completed), 0, 0 // the widest
	for i := range rows {
		words = max(words, terminal.Width(states[rows[i].state].word))
		titles, agents = max(titles, terminal.Width(rows[i].title)), max(agents, terminal.Width(rows[i].agent))
	}
	for _, i := range shown {
		lines = append(lines, rows[i].line(words, titles, min(agents, maxAgent), width-1, now, color))
	}
	text := t.counts() + ", " + format.Seconds(now.Sub(t.start))
	if left := t.limited.Sub(now); left > 0 {
		text += ", rate limited for " + format.Seconds(left)
	}
	if hidden > 0 {
		text += fmt.Sprintf(", %s not shown", format.Plural(hidden, "row"))
	}
	return append(lines, terminal.Line{Text: terminal.Clip(format.Partial(text+format.Tokens(t.usage, ", "), t.partial), width-1)})
}

// line renders a row of this width in cells, with columns for states, titles and agents.
func (r *row) line(words, widest, agents, width int, now time.Time, color bool) terminal.Line {
	state := states[r.state]
	head := terminal.Pad(state.word, words)
	tail := r.detail(now)
	room := width - terminal.Width(head) - 1
	titles := room - agents - 2 - 2 - 12 // the room that the agent and a short detail leave
	text := head + " "
	if titles < min(widest, 16) { // too narrow for columns: the title and what fits
		text += terminal.Clip(r.title, room)
		if left := width - terminal.Width(text) - 2; left >= 6 && tail != "" {
			text += "  " + terminal.Clip(tail, left)
		}
	} else {
		titles = min(titles, widest, maxTitle)
		text += terminal.Pad(terminal.Clip(r.title, titles), titles) + "  " + terminal.Pad(terminal.Clip(r.agent, agents), agents)
		text += "  " + terminal.Clip(tail, width-terminal.Width(text)-2)
		text += r.said(width - terminal.Width(text))
	}
	l := terminal.Line{Text: terminal.Clip(strings.TrimRight(text, " "), width)}
	if color {
		l.Color, l.Colored = state.color, min(len(state.word), len(l.Text))
	}
	return l
}

// detail returns the last column of a row.
func (r *row) detail(now time.Time) string {
	if r.counts != "" {
		return r.counts
	}
	switch r.state {
	case running:
		text := format.Seconds(now.Sub(r.since))
		if r.attempt > 1 {
			text += fmt.Sprintf("  attempt %d", r.attempt)
		}
		if call := r.conversation.text(); call != "" {
			text += "  " + call
		}
		if r.note != "" {
			text += "  " + r.note
		}
		return text + r.read()
	case retrying:
		return "in " + format.Seconds(r.since.Sub(now)) + ": " + r.reason
	case done:
		if r.cached != "" {
			return r.cached
		}
		return format.Elapsed(r.took) + r.read()
	}
	return r.reason
}

// said returns the last line that the model of a running row has written, in so many cells, of a long
// one its end. A blank line does not count.
func (r *row) said(cells int) string {
	line := strings.TrimRightFunc(r.writes, unicode.IsSpace)
	line = terminal.CleanLine(strings.TrimSpace(line[strings.LastIndexByte(line, '\n')+1:]))
	const gap, least = "  ", 8
	if line == "" || r.state != running || cells < len(gap)+least {
		return ""
	}
	if room := cells - len(gap); terminal.Width(line) > room {
		for terminal.Width(line) >= room {
			_, n := utf8.DecodeRuneInString(line)
			line = line[n:]
		}
		line = "…" + line
	}
	return gap + line
}

// read returns how many messages were delivered to a task, and how many handoffs it sent.
func (r *row) read() (text string) {
	if r.messages.read > 0 {
		text = "  " + format.Plural(r.messages.read, "message")
	}
	if r.messages.sent > 0 {
		text += "  " + format.Plural(r.messages.sent, "handoff") + " sent"
	}
	return text
}

// window chooses the rows that fit: running ones, then failed, lately ended and waiting ones. One
// line is left for the counts and one for the cursor.
func (t *tracker) window(rows []row, height int) (shown []int) {
	n := len(rows)
	room := n
	if height > 0 {
		room = min(n, max(0, height-2))
	}
	keep := make([]bool, n)
	take := func(want func(*row) bool) {
		for i := range rows {
			if room > 0 && !keep[i] && want(&rows[i]) {
				keep[i] = true
				room--
			}
		}
	}
	if room < n {
		take(func(r *row) bool { return r.state == running || r.state == retrying })
		take(func(r *row) bool { return r.state == failed || r.state == accepted || r.state == skipped })
		take(func(r *row) bool { return r.ended > t.ended-max(1, room/2) })
	}
	take(func(r *row) bool { return r.state == waiting })
	take(func(*row) bool { return true })
	for i, k := range keep {
		if k {
			shown = append(shown, i)
		}
	}
	return shown
}
