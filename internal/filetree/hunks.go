package filetree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// contextLines is how many lines around a change a patch repeats.
const contextLines = 3

// A change replaces some lines of a file.
type change struct {
	start, end int // of the old lines
	added      []string
	at         int // of the first added line in the new file
}

// A hunk is a part of a patch: changes, with the lines around and between them.
type hunk struct {
	old      []string // the lines of the file before
	from, to int      // of the old lines in the hunk
	changes  []change
}

// hunksOf returns the hunks that make a text of a file. It is an error, which begins with the
// number of a line, if the place or the text of a line is not known for certain.
func hunksOf(f *givenFile, text string) ([]hunk, error) {
	changes, err := changesOf(f, text)
	if err != nil {
		return nil, err
	}
	isHidden := func(p string) bool { return p != "" }
	var hunks []hunk
	for _, c := range changes {
		if last := len(hunks) - 1; last >= 0 {
			h := &hunks[last]
			if c.start-h.to <= 2*contextLines && !slices.ContainsFunc(f.hidden[h.to:c.start], isHidden) {
				h.changes, h.to = append(h.changes, c), c.end
				continue
			}
		}
		hunks = append(hunks, hunk{old: f.plain, from: c.start, to: c.end, changes: []change{c}})
	}
	for i := range hunks {
		if err := hunks[i].addContext(f); err != nil {
			return nil, err
		}
	}
	return hunks, nil
}

// changesOf returns how a text differs from a file. Placeholders in added lines are replaced by
// what they stand for in the lines that the change removes.
func changesOf(f *givenFile, text string) (changes []change, err error) {
	line := make(map[int]int, len(f.given)) // of the start of a line, its number
	at := 0
	for i, given := range f.given {
		line[at] = i
		at += len(given)
	}
	line[at] = len(f.given)
	moved := 0
	for _, e := range udiff.Lines(f.text, text) {
		c := change{start: line[e.Start], end: line[e.End], added: linesOf(e.New)}
		c.at = c.start + moved
		moved += len(c.added) - (c.end - c.start)
		for i := c.start; i < c.end; i++ {
			if p := f.hidden[i]; p != "" {
				return nil, fmt.Errorf("%d: the task replaced a line with %s, which stands for an unknown text", i+1, p)
			}
		}
		if err := c.restore(f.values(c.start, c.end)); err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// restore replaces the placeholders in the added lines.
func (c *change) restore(values map[string]string) error {
	for i, line := range c.added {
		unknown := ""
		c.added[i] = placeholder.ReplaceAllStringFunc(line, func(p string) string {
			value, ok := values[p]
			if !ok {
				unknown = p
			}
			return value
		})
		if unknown != "" {
			return fmt.Errorf("%d: the task wrote a line with %s, and it is not certain which text that stands for", c.at+i+1, unknown)
		}
	}
	return nil
}

// addContext adds the lines around the changes, up to a line whose text is not known. git takes
// a hunk without a line after its changes as the end of the file.
func (h *hunk) addContext(f *givenFile) error {
	start, end := h.from, h.to
	for h.from > 0 && start-h.from < contextLines && f.hidden[h.from-1] == "" {
		h.from--
	}
	for h.to < len(f.plain) && h.to-end < contextLines && f.hidden[h.to] == "" {
		h.to++
	}
	if h.to == end && end < len(f.plain) {
		return fmt.Errorf("%d: a change ends just before this line, and its %s stands for an unknown text", end+1, f.hidden[end])
	}
	if h.from == h.to && h.from > 0 {
		return fmt.Errorf("%d: a change begins just after this line, and its %s stands for an unknown text", h.from, f.hidden[h.from-1])
	}
	before := slices.IndexFunc(f.hidden[:h.from], func(p string) bool { return p != "" })
	if before >= 0 && h.to > end && count(f.plain, f.plain[h.from:h.to]) > 1 {
		return fmt.Errorf("%d: the place of the change is not certain, since %s in line %d may stand for several lines", start+1, f.hidden[before], before+1)
	}
	return nil
}

// count returns how often some lines are in others.
func count(lines, part []string) (n int) {
	for i := 0; i+len(part) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(part)], part) {
			n++
		}
	}
	return n
}

// write writes the hunk as a part of a unified diff.
func (h *hunk) write(b *strings.Builder) {
	first, last := &h.changes[0], &h.changes[len(h.changes)-1]
	from := first.at - (first.start - h.from)
	to := last.at + len(last.added) + h.to - last.end
	fmt.Fprintf(b, "@@ -%s +%s @@\n", spanOf(h.from, h.to), spanOf(from, to))
	at := h.from
	for i := range h.changes {
		c := &h.changes[i]
		writeLines(b, " ", h.old[at:c.start])
		writeLines(b, "-", h.old[c.start:c.end])
		writeLines(b, "+", c.added)
		at = c.end
	}
	writeLines(b, " ", h.old[at:h.to])
}

// spanOf writes which lines of a file a hunk has.
func spanOf(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(to)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(b *strings.Builder, sign string, lines []string) {
	for _, line := range lines {
		b.WriteString(sign)
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
