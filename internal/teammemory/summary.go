package teammemory

import (
	"context"
	"fmt"
	"strings"
)

// How long a value may be in a summary, in UTF-16 units: up to ExcerptLimit it
// is whole; of a longer one ExcerptKept are left, and an ellipsis.
const (
	ExcerptLimit = 200
	ExcerptKept  = 197
)

// summaryHead opens every summary.
const summaryHead = "## Shared Team Memory"

// A Show takes an entry through the gate and returns what the reader of a
// summary may see of it; ok is false for what the gate withheld. Texts are written as
// they are, other values as compact JSON.
type Show func(e Entry) (text string, ok bool, err error)

// Summary returns a digest of what a filter shows of what can be read at this
// turn: under a heading, for each agent in the order of its first entry shown,
// a line for every entry with its key and an [Excerpt] of what show made of it.
// What show withheld is left out and does not decide the order; where nothing
// is left, the text is empty.
//
//	## Shared Team Memory
//
//	### <agent>
//	- <key>: <value>
//
// Show is called once for each entry, in the order in which they were written.
// Values are not escaped: a prompt, in which no value may make structure, is
// not made from this text. An error of show ends the summary.
func (r Reader) Summary(ctx context.Context, f Filter, show Show) (string, error) {
	list, err := r.read(ctx, f)
	if err != nil {
		return "", err
	}
	var agents []string
	lines := map[string][]string{}
	for _, e := range list {
		text, ok, err := show(e)
		switch {
		case err != nil:
			return "", fmt.Errorf("summarize memory %q: %w", e.subject(), err)
		case !ok:
			continue
		case lines[e.Agent] == nil:
			agents = append(agents, e.Agent)
		}
		lines[e.Agent] = append(lines[e.Agent], "- "+e.Key+": "+Excerpt(text))
	}
	return digest(agents, lines), nil
}

func digest(agents []string, lines map[string][]string) string {
	if len(agents) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(summaryHead)
	for _, agent := range agents {
		b.WriteString("\n\n### " + agent)
		for _, line := range lines[agent] {
			b.WriteString("\n" + line)
		}
	}
	return b.String()
}

// Excerpt returns a text of at most [ExcerptLimit] UTF-16 units as it is, and
// of a longer one the first [ExcerptKept] and an ellipsis; one unit fewer if
// the cut would fall within a character.
func Excerpt(text string) string {
	if len(text) <= ExcerptLimit { // no text has more units than bytes
		return text
	}
	units, end := 0, 0
	for i, r := range text {
		if units <= ExcerptKept {
			end = i
		}
		units++
		if r > 0xffff {
			units++
		}
		if units > ExcerptLimit {
			return text[:end] + "…"
		}
	}
	return text
}
