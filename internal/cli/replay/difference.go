package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// firstDifference says where a prompt first differs from the one that was sent.
func firstDifference(t *trace.Trace, now *promptview.Shown) string {
	was := sent(t, now.Receipt.Task)
	if was == nil {
		return promptDiffers + ", and the one that was sent is not in the journal"
	}
	if text := firstDifferingPart(t, was, now); text != "" {
		return text
	}
	return promptDiffers + ": its visible words are the same, so the difference is in what is withheld, in the agent, its model or its settings"
}

// sent returns the last stored prompt of a task.
func sent(t *trace.Trace, id task.ID) *trace.Prompt {
	for i := range slices.Backward(t.Prompts) {
		if p := &t.Prompts[i]; p.Receipt.Task == id {
			return p
		}
	}
	return nil
}

// firstDifferingPart names the first part in which two prompts differ, and shows where. It returns
// nothing if the visible texts are equal. The words of runteam depend on the other parts, so they
// are compared last.
func firstDifferingPart(t *trace.Trace, was *trace.Prompt, now *promptview.Shown) string {
	x := &explain.Document{Trace: t}
	texts := []struct {
		name          string
		before, after []promptview.Piece
	}{{"system prompt", was.System, now.System}, {"user message", was.Text, now.Text}}
	for _, own := range []bool{false, true} {
		for _, text := range texts {
			before, after := parts(x, was.Receipt, text.before, own), parts(x, now.Receipt, text.after, own)
			if where := firstPart(before, after); where != "" {
				return "its " + text.name + " differs " + where
			}
		}
	}
	return ""
}

// A part is a piece of a prompt and the name of its source.
type part struct {
	promptview.Piece
	name string
}

// parts returns the pieces of a text that are runteam's own words, or all others.
func parts(x *explain.Document, r *prompt.Receipt, pieces []promptview.Piece, own bool) (out []part) {
	for i := range pieces {
		if p := &pieces[i]; own == (p.Source < 0) {
			out = append(out, part{*p, rangeSource(x, r, p)})
		}
	}
	return out
}

// firstPart says which part of two texts differs first, and where. It returns nothing if none does.
func firstPart(before, after []part) string {
	for i := range max(len(before), len(after)) {
		switch {
		case i == len(before):
			return fmt.Sprintf("from byte %d on: %s was not there", after[i].Start, after[i].name)
		case i == len(after):
			return fmt.Sprintf("from byte %d on: %s is missing", before[i].Start, before[i].name)
		}
		b, a := &before[i], &after[i]
		switch {
		case b.name != a.name:
			return fmt.Sprintf("from byte %d on: it was %s, and is %s", b.Start, b.name, a.name)
		case b.Words != a.Words:
			at, old, new := firstByte(b.Words, a.Words)
			return fmt.Sprintf("from byte %d on, in %s: it was %s and is %s", int(b.Start)+at, b.name, old, new)
		}
	}
	return ""
}

// rangeSource returns a short name for the source of a piece of a prompt.
func rangeSource(x *explain.Document, r *prompt.Receipt, p *promptview.Piece) string {
	if p.Source < 0 {
		return "the words of runteam itself"
	}
	s := &r.Sources[p.Source]
	if s.Decision != nil {
		return format.Readers(x.SourceName(s.Decision))
	}
	return explain.PartName(p.Part)
}

// firstByte returns where two texts first differ, and the beginning of both from there.
func firstByte(a, b string) (at int, was, is string) {
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	for at > 0 && at < len(a) && !utf8.RuneStart(a[at]) {
		at--
	}
	return at, quoteStart(a[at:]), quoteStart(b[min(at, len(b)):])
}

// quoteStart quotes the beginning of a text.
func quoteStart(text string) string {
	const most = 40
	if text == "" {
		return "nothing"
	}
	cut := strings.ToValidUTF8(text[:min(len(text), most)], "")
	if len(cut) < len(text) {
		cut += "…"
	}
	return strconv.Quote(cut)
}
