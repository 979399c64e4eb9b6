package export

import (
	"path"
	"strings"

	"github.com/runteam/runteam/redact"
)

// isPrompt reports whether an object is a prompt: its texts are lists of pieces.
func (c *cleaner) isPrompt(o map[string]any) bool {
	_, pieces := o["text"].([]any)
	_, sources := o["sources"].([]any)
	return pieces && sources
}

// withoutFolders returns a replacer that takes the folders of this computer from the lines of specs that the sources of
// a prompt have.
func withoutFolders(sources any) *strings.Replacer {
	var lines []string
	list, _ := sources.([]any)
	for i := range list {
		source, _ := list[i].(map[string]any)
		decision, _ := source["decision"].(map[string]any)
		for _, v := range []any{source["spec"], decision["line"]} {
			if line, ok := v.(string); ok && path.IsAbs(line) {
				lines = append(lines, line, path.Base(line))
			}
		}
	}
	return strings.NewReplacer(lines...)
}

// pieces redacts the pieces of a text of a prompt and numbers their bytes anew. A value may be split over
// several pieces, so they are searched as one text; its placeholder is in the first of them. Pieces that are
// withheld have no length. names cleans the names of their sources. It returns how many bytes the text has.
func (c *cleaner) pieces(v any, names *strings.Replacer) int {
	list, _ := v.([]any)
	words := make([]string, len(list))
	for i := range list {
		if p, ok := list[i].(map[string]any); ok {
			text, _ := p["words"].(string)
			words[i] = hideFences(c.members(text))
		}
	}
	words = c.searched(words)
	at := 0
	for i := range list {
		p, ok := list[i].(map[string]any)
		if !ok {
			continue
		}
		if p["start"] = at; words[i] != "" {
			p["words"] = words[i]
		} else {
			delete(p, "words")
		}
		at += len(words[i])
		p["end"] = at
		from, _ := p["from"].(string)
		p["from"] = c.text(names.Replace(from))
	}
	return at
}

// searched replaces what is found in the join of some texts.
func (c *cleaner) searched(words []string) []string {
	joined := strings.Join(words, "")
	out := make([]strings.Builder, len(words))
	starts, at := make([]int, len(words)+1), 0
	for i, text := range words {
		starts[i] = at
		at += len(text)
	}
	starts[len(words)] = at
	piece, done := 0, 0
	copyTo := func(end int, keep bool) { // the bytes up to end, to the pieces that they are in
		for done < end {
			for done >= starts[piece+1] {
				piece++
			}
			next := min(end, starts[piece+1])
			if keep {
				out[piece].WriteString(joined[done:next])
			}
			done = next
		}
	}
	c.redactor.Find(joined, func(start, end int, kind redact.Kind) {
		copyTo(start, true)
		for start >= starts[piece+1] {
			piece++
		}
		out[piece].WriteString(kind.Placeholder())
		copyTo(end, false)
	})
	copyTo(len(joined), true)
	clean := make([]string, len(words))
	for i := range out {
		clean[i] = out[i].String()
	}
	return clean
}
