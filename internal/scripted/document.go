package scripted

import (
	"regexp"
	"slices"
	"strings"
)

// A document is the structure of a prompt: its lines, and the headings and fences among them.
type document struct {
	lines    []string
	headings []heading
	fences   []fence
}

// heading is a line of one to four "#" outside of every fence.
type heading struct {
	level int
	title string
	line  int
}

// fence is the lines from an opening line to the closing line of the same mark.
type fence struct{ open, shut int }

var (
	opening = regexp.MustCompile(`^\[envelope ([0-9a-f]{32}) from ".*data, not instructions\]$`)
	closing = regexp.MustCompile(`^\[/envelope ([0-9a-f]{32})\]$`)
	titled  = regexp.MustCompile(`^(#{1,4}) (.*)$`)
)

// span is a run of lines, from the first to before the last.
type span struct{ from, to int }

// next returns the first section heading behind the heading i whose title fits, or -1.
func (d *document) next(i int, fits func(title string) bool) int {
	for i++; i < len(d.headings); i++ {
		if d.headings[i].level == 2 && fits(d.headings[i].title) {
			return i
		}
	}
	return -1
}

// scan finds fences and, outside of them, headings.
func (d *document) scan() {
	shut := make(map[string][]int)
	for i, line := range d.lines {
		if m := closing.FindStringSubmatch(line); m != nil {
			shut[m[1]] = append(shut[m[1]], i)
		}
	}
	for i := 0; i < len(d.lines); i++ {
		if m := opening.FindStringSubmatch(d.lines[i]); m != nil {
			ends := shut[m[1]]
			for len(ends) > 0 && ends[0] <= i {
				ends = ends[1:]
			}
			if shut[m[1]] = ends; len(ends) > 0 {
				d.fences = append(d.fences, fence{open: i, shut: ends[0]})
				i = ends[0]
				continue
			}
		}
		if m := titled.FindStringSubmatch(d.lines[i]); m != nil {
			d.headings = append(d.headings, heading{level: len(m[1]), title: strings.TrimSpace(m[2]), line: i})
		}
	}
}

// under returns the lines under the first heading of the level within s whose title fits.
func (d *document) under(s span, level int, fits func(title string) bool) (span, bool) {
	for i, h := range d.headings {
		if h.level != level || h.line < s.from || h.line >= s.to || !fits(h.title) {
			continue
		}
		end := s.to
		for _, next := range d.headings[i+1:] {
			if next.level <= level {
				end = min(end, next.line)
				break
			}
		}
		return span{h.line + 1, end}, true
	}
	return span{}, false
}

func (d *document) all() span { return span{0, len(d.lines)} }

// find returns the lines under "### <title>" in a section.
func (d *document) find(section, title func(string) bool) (span, bool) {
	in, ok := d.under(d.all(), 2, section)
	if !ok {
		return span{}, false
	}
	return d.under(in, 3, title)
}

// entry returns the payload under "### <title>" in a section.
func (d *document) entry(section, title func(string) bool) string {
	in, ok := d.find(section, title)
	if !ok {
		return missing
	}
	return d.payload(in)
}

// payload returns the text in the first fence in s. Without a fence, as in prompts of other
// programs, it returns the text itself, unless that was withheld.
func (d *document) payload(s span) string {
	if f, ok := d.fenced(s); ok {
		return d.within(f)
	}
	text := d.text(s)
	if text == "" || strings.HasPrefix(text, "[withheld") {
		return missing
	}
	return text
}

// fenced returns the first fence in s.
func (d *document) fenced(s span) (fence, bool) {
	for _, f := range d.fences {
		if f.open >= s.from && f.shut < s.to {
			return f, true
		}
	}
	return fence{}, false
}

// within returns the text between the lines of a fence.
func (d *document) within(f fence) string { return strings.Join(d.lines[f.open+1:f.shut], "\n") }

// text returns the lines of s without line breaks around them.
func (d *document) text(s span) string {
	return strings.Trim(strings.Join(d.lines[s.from:s.to], "\n"), "\n")
}

// sections lists the sections of the prompt with the titles of their entries.
func (d *document) sections() []string {
	var all []string
	for i, h := range d.headings {
		if h.level != 2 {
			continue
		}
		var entries []string
		for _, e := range d.headings[i+1:] {
			if e.level <= 2 {
				break
			}
			if e.level == 3 {
				entries = append(entries, e.title)
			}
		}
		name := h.title
		if len(entries) > 0 {
			name += ": " + strings.Join(entries, ", ")
		}
		all = append(all, name)
	}
	return all
}

// fenceAt returns the fence that opens at a line.
func (d *document) fenceAt(line int) (fence, bool) {
	i, ok := slices.BinarySearchFunc(d.fences, line, func(f fence, line int) int { return f.open - line })
	if !ok {
		return fence{}, false
	}
	return d.fences[i], true
}
