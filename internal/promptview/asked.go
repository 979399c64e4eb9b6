package promptview

import (
	"regexp"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
)

// Asked is the question of a prompt as a person is asked: what to decide, and the texts that this is about. It has all
// words of the prompt except those of the builder, such as fences, which are for models.
type Asked struct {
	Title  string      `json:"title,omitempty"`  // of the task
	Decide string      `json:"decide,omitempty"` // what to decide or to write
	Texts  []AskedText `json:"texts,omitempty"`
}

// An AskedText is what a person is shown to decide about.
type AskedText struct {
	Name     string   `json:"name,omitempty"`  // of the input, or the title of the task whose result it is
	From     string   `json:"from,omitempty"`  // who wrote it
	Label    string   `json:"label,omitempty"` // of the text
	Marks    []string `json:"marks,omitempty"` // how it differs from what was written, such as "in parts" and "redacted 2"
	Text     string   `json:"text"`
	Withheld bool     `json:"withheld,omitempty"` // the text says what is not shown
}

// fenceOpener finds the line before a payload, with who wrote it, its label, and the marks behind that.
var fenceOpener = regexp.MustCompile(regexp.QuoteMeta(brief.FenceOpen) + `[0-9a-f*]+ from "(.*)", (public|internal|confidential|secret)(?:, ([^\n"]*))?: data, not instructions\]`)

// Asks returns the question of a prompt as far as it is shown.
func (s *Shown) Asks() (asked Asked) {
	var next AskedText // what is known of the text that follows
	isOpen, headed := false, int32(-1)
	for i := range s.Text {
		switch p := &s.Text[i]; {
		case p.Withheld || p.Part == brief.PartWithheld:
			asked.Texts = append(asked.Texts, AskedText{Name: next.Name, From: next.From, Text: strings.TrimSpace(s.words(p)), Withheld: true})
			isOpen, headed = false, -1
		case p.Part == brief.PartTitle:
			asked.Title += p.Words
		case p.Part == brief.PartHeading && p.Source == headed: // who did the task
			next.From = p.Words
		case p.Part == brief.PartHeading:
			next, isOpen, headed = AskedText{Name: p.Words}, false, p.Source
			if s.isMessage(p.Source) {
				next = AskedText{Name: "message", From: p.Words}
			}
		case p.Part == brief.PartPayload && !isOpen:
			next.Text, isOpen, headed = p.Words, true, -1
			asked.Texts = append(asked.Texts, next)
		case p.Part == brief.PartPayload:
			asked.Texts[len(asked.Texts)-1].Text += p.Words
		case p.Part == brief.PartDescription || p.Part == brief.PartGoal:
			asked.Decide += p.Words
		case p.Part != brief.PartFrame: // a schema, which is the form of the answer
		case strings.Contains(p.Words, brief.FenceOpen):
			if of := fenceOpener.FindStringSubmatch(p.Words); of != nil {
				next.From, next.Label, next.Marks = of[1], of[2], nil
				if of[3] != "" {
					next.Marks = strings.Split(of[3], ", ")
				}
			}
			if isOpen = false; strings.Contains(p.Words, brief.HeadStructured) {
				next.Name += ", validated"
			}
		case strings.Contains(p.Words, brief.FenceClose):
			isOpen = false
		case isOpen:
			asked.Texts[len(asked.Texts)-1].Text += p.Words
		}
	}
	asked.Decide = strings.TrimSpace(asked.Decide)
	return asked
}

// isMessage reports whether a source is a message, whose heading is the name of its sender.
func (s *Shown) isMessage(source int32) bool {
	if source < 0 || int(source) >= len(s.Receipt.Sources) {
		return false
	}
	d := s.Receipt.Sources[source].Decision
	return d != nil && d.Source.Kind == handoff.Message
}

// AsText returns the text of a prompt as it is shown, with a note in place of each piece that is withheld.
func (s *Shown) AsText() string {
	var b strings.Builder
	for i := range s.Text {
		p := &s.Text[i]
		b.WriteString(s.words(p))
		if p.Withheld {
			b.WriteByte('\n')
		}
	}
	return strings.TrimSpace(b.String())
}

// words returns the words of a piece, or the note in place of them.
func (s *Shown) words(p *Piece) string {
	if !p.Withheld {
		return p.Words
	}
	level := "above your clearance"
	if p.Source >= 0 && int(p.Source) < len(s.Receipt.Sources) {
		level = s.Receipt.Sources[p.Source].Classification.String()
	}
	return "[withheld: " + level + "]"
}
