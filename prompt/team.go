package prompt

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
)

// Shared memory and messages: the sections that come from the team instead of
// from a declared dependency.

// byAgent cuts memory entries into runs of one agent each.
func byAgent(pieces []piece) [][]piece {
	var runs [][]piece
	for start := 0; start < len(pieces); {
		end := start + 1
		for end < len(pieces) && pieces[end].sender() == pieces[start].sender() {
			end++
		}
		runs = append(runs, pieces[start:end])
		start = end
	}
	return runs
}

// memory adds one block for each agent of the shared memory.
func (f *fencing) memory(pieces []piece) {
	for _, run := range byAgent(pieces) {
		var lines []string
		whole := gate.Decision{Mode: handoff.Full, After: label.Public, Redactions: gate.Redactions{Redacted: redact.Counts{}}}
		for i := range run {
			d := run[i].Decision()
			whole.After = whole.After.Join(d.After)
			whole.Broken += d.Broken
			whole.AnswerTruncated = whole.AnswerTruncated || d.AnswerTruncated
			if d.CutFrom > 0 {
				whole.CutFrom += d.CutFrom - d.BytesAfter
			}
			for kind, n := range d.Redacted {
				whole.Redacted[kind] += n
			}
			if text := line(&run[i]); text != "" {
				lines = append(lines, text)
			}
		}
		if agent := run[0].sender(); len(lines) > 0 {
			payload := strings.Join(lines, "\n")
			if whole.CutFrom > 0 {
				whole.CutFrom += len(payload)
			}
			f.blocks = append(f.blocks, block{heading: agent, producer: agent, level: whole.After, marks: marks(&whole, len(payload)), payload: payload})
		}
	}
}

// line writes an entry as one line, or nothing if there is nothing to show.
func line(p *piece) string {
	if p.silent() {
		return ""
	}
	return "- " + p.Title() + ": " + oneLine.Replace(p.text)
}

var oneLine = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\v", `\v`, "\f", `\f`,
	"\x1c", `\x1c`, "\x1d", `\x1d`, "\x1e", `\x1e`, "\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

func (r *renderer) memory(pieces []piece) {
	opened := false
	for _, run := range byAgent(pieces) {
		if !slices.ContainsFunc(run, func(p piece) bool { return line(&p) != "" }) {
			continue
		}
		if opened {
			r.frame("\n")
		}
		r.open(&opened, brief.HeadMemory+"\n")
		r.frame("\n### ")
		r.put(brief.PartHeading, run[0].source, run[0].sender())
		fence, first := r.openFence(), len(r.text)
		for i := range run {
			text := line(&run[i])
			if text != "" && len(r.text) > first {
				text = "\n" + text
			}
			r.put(brief.PartPayload, run[i].source, text)
		}
		r.closeFence(fence)
	}
}

func (r *renderer) messages(pieces []piece) {
	opened := false
	for i := range pieces {
		p := &pieces[i]
		if p.silent() {
			continue
		}
		r.open(&opened, brief.HeadMessages)
		r.frame("\n- **")
		r.put(brief.PartHeading, p.source, p.sender())
		r.frame("**")
		r.reference(p.source, p.Sealed)
		r.frame(":")
		r.said(p)
	}
}

// reference writes the id of a message that its reader can answer.
func (w *writer) reference(source int32, s *gate.Sealed) {
	if id := s.Title(); id != "" && id != s.Assignee() {
		w.frame(" (handoff ")
		w.put(brief.PartHeading, source, id)
		w.frame(")")
	}
}
