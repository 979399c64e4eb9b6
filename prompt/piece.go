package prompt

import (
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// A piece is one sealed value on its way into the text.
type piece struct {
	*gate.Sealed
	source    int32
	text      string // to be rendered as it is
	canonical string // to be rendered under a heading of its own
}

// split returns what of a value is rendered as a text and what as JSON.
func split(s *gate.Sealed) (text, canonical string) {
	p := s.Payload()
	canonical, _ = p.JSON()
	switch {
	case s.As() == task.Structured:
		return "", canonical
	case s.As() == task.Both:
		return p.Text(), canonical
	case p.Text() == "":
		return canonical, ""
	}
	return p.Text(), ""
}

// silent reports whether there is nothing to show: the source completed without a word.
func (p *piece) silent() bool {
	return !p.Withheld() && p.text == "" && p.canonical == "" && p.Decision().CutFrom == 0
}

// headed reports whether a piece has its heading even if it is silent: that a
// task completed, failed or was skipped is something to know.
func (r *renderer) headed(p *piece) bool {
	return r.brief.Layout == brief.Synthesis && p.Source().Kind != handoff.Memory
}

// worded reports whether a piece that passed has a block for its text, were it
// only to say that all of the text was cut.
func (p *piece) worded() bool { return p.text != "" || p.canonical == "" }

// sender returns the producer of the piece, as prompts name it.
func (p *piece) sender() string { return p.Producer() }

// unfenced returns what is written of a piece that the brief has one of: the
// text of an instruction, or a roster.
func (p *piece) unfenced() string {
	if p.Source().Kind != handoff.Roster {
		return p.Payload().Text()
	}
	canonical, _ := p.Payload().JSON()
	return inLine.Replace(canonical)
}

// inLine escapes the line breaks that canonical JSON may hold as they are.
// Only strings can hold them, so the value stays the same.
var inLine = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)
