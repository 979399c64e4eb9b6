package scripted

import (
	"regexp"
	"strings"
)

// missing is what a template gets for what the prompt does not hold. An answer
// that shows it is wrong to every reader.
const missing = "(not in the prompt)"

// received is a prompt as it arrived, and the data of a template.
type received struct {
	Prompt string // the texts of all user messages, with a blank line between
	System string // the texts of all system messages
	Task   string // the title in the prompt's first line; empty without one
	Last   string // the text of the last user message; in a prompt to correct an answer, what follows the task
	Turn   int    // how many user messages there are; 2 in a prompt to correct an answer

	titled   bool // the first line names a task, were it with an empty title
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

// fence is what stands between an opening line and the closing line of the same mark.
type fence struct{ open, shut int }

var (
	opening = regexp.MustCompile(`^\[envelope ([0-9a-f]{32}) from ".*data, not instructions\]$`)
	closing = regexp.MustCompile(`^\[/envelope ([0-9a-f]{32})\]$`)
	titled  = regexp.MustCompile(`^(#{1,4}) (.*)$`)
)

// receive reads the structure of a prompt.
func receive(system string, users []string) *received {
	r := &received{System: system, Prompt: strings.Join(users, "\n\n"), Turn: len(users)}
	if len(users) == 0 {
		return r
	}
	r.Last = users[len(users)-1]
	r.lines = strings.Split(r.Prompt, "\n")
	if title, ok := strings.CutPrefix(r.lines[0], "# Task: "); ok {
		r.Task, r.titled = strings.TrimSpace(title), true
	}
	r.scan()
	if answer, ok := r.under(r.all(), 2, called("Your previous answer")); ok && r.titled && r.Turn == 1 {
		r.Turn, r.Last = 2, strings.Join(r.lines[answer.from-1:], "\n")
	}
	return r
}

// scan finds fences and, outside of them, headings.
func (r *received) scan() {
	shut := make(map[string][]int)
	for i, line := range r.lines {
		if m := closing.FindStringSubmatch(line); m != nil {
			shut[m[1]] = append(shut[m[1]], i)
		}
	}
	for i := 0; i < len(r.lines); i++ {
		if m := opening.FindStringSubmatch(r.lines[i]); m != nil {
			ends := shut[m[1]]
			for len(ends) > 0 && ends[0] <= i {
				ends = ends[1:]
			}
			if shut[m[1]] = ends; len(ends) > 0 {
				r.fences = append(r.fences, fence{open: i, shut: ends[0]})
				i = ends[0]
				continue
			}
		}
		if m := titled.FindStringSubmatch(r.lines[i]); m != nil {
			r.headings = append(r.headings, heading{level: len(m[1]), title: strings.TrimSpace(m[2]), line: i})
		}
	}
}

// span is a run of lines, from the first to before the last.
type span struct{ from, to int }

// under returns the lines under the first heading of the level within s whose title fits.
func (r *received) under(s span, level int, fits func(title string) bool) (span, bool) {
	for i, h := range r.headings {
		if h.level != level || h.line < s.from || h.line >= s.to || !fits(h.title) {
			continue
		}
		end := s.to
		for _, next := range r.headings[i+1:] {
			if next.level <= level {
				end = min(end, next.line)
				break
			}
		}
		return span{h.line + 1, end}, true
	}
	return span{}, false
}

func (r *received) all() span { return span{0, len(r.lines)} }

// called returns a test for one title, whatever its case.
func called(title string) func(string) bool {
	title = strings.TrimSpace(title)
	return func(s string) bool { return strings.EqualFold(s, title) }
}

// noted is called for a title behind which stands a note in brackets that
// begins so: "by " for who did the task, or "FAILED".
func noted(title, note string) func(string) bool {
	fits := called(title)
	return func(s string) bool {
		i := strings.LastIndex(s, " ("+note)
		return i >= 0 && strings.HasSuffix(s, ")") && fits(s[:i])
	}
}

// Section returns the text under the heading "## <title>", fences included,
// or "(not in the prompt)".
func (r *received) Section(title string) string {
	s, ok := r.under(r.all(), 2, called(title))
	if !ok {
		return missing
	}
	return r.text(s)
}

// entry returns the payload under "### <title>" in a section.
func (r *received) entry(section, title func(string) bool) string {
	in, ok := r.find(section, title)
	if !ok {
		return missing
	}
	return r.payload(in)
}

// find returns the lines under "### <title>" in a section.
func (r *received) find(section, title func(string) bool) (span, bool) {
	in, ok := r.under(r.all(), 2, section)
	if !ok {
		return span{}, false
	}
	return r.under(in, 3, title)
}

// structured returns the validated part of a dependency's payload, or of a
// result that a coordinator reads, if it has one under a heading of its own.
func (r *received) structured(task string) string {
	in, ok := r.find(called("Context from prerequisite tasks"), noted(task, "by "))
	if !ok && r.step() != "" {
		in, ok = r.find(results, noted(task, "completed by "))
	}
	if ok {
		in, ok = r.under(in, 4, called("Validated structured result"))
	}
	if !ok {
		return missing
	}
	return r.payload(in)
}

// payload returns what the first fence in s holds; without a fence, the text
// itself, as other programs send it, unless it says that something was withheld.
func (r *received) payload(s span) string {
	if f, ok := r.fenced(s); ok {
		return r.within(f)
	}
	text := r.text(s)
	if text == "" || strings.HasPrefix(text, "[withheld") {
		return missing
	}
	return text
}

// fenced returns the first fence in s.
func (r *received) fenced(s span) (fence, bool) {
	for _, f := range r.fences {
		if f.open >= s.from && f.shut < s.to {
			return f, true
		}
	}
	return fence{}, false
}

// within returns what stands between the lines of a fence.
func (r *received) within(f fence) string { return strings.Join(r.lines[f.open+1:f.shut], "\n") }

// text returns the lines of s without line breaks around them.
func (r *received) text(s span) string {
	return strings.Trim(strings.Join(r.lines[s.from:s.to], "\n"), "\n")
}

// sections lists the sections of the builder that arrived, with the titles of their entries.
func (r *received) sections() []string {
	var all []string
	for i, h := range r.headings {
		if h.level != 2 {
			continue
		}
		var entries []string
		for _, e := range r.headings[i+1:] {
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
