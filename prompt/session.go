package prompt

import (
	"strconv"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
)

// The earlier turns of a session: a message of the user for what the person said, and one of the
// assistant for the answer. Such a text has no fence, like a description, unless it needs one: if it
// has a line that only the builder may write, or if there is something to say about it, such as that
// it was cut or that an answer was redacted. Each has a fence that
// depends on this text alone, so that later prompts begin with the same bytes and providers can
// cache them.

// conversationShare is the part of the limit of a prompt that earlier turns may take.
const conversationShare = 2

// What a prompt has for a text besides its bytes, at most.
const (
	aroundText  = 32
	aroundFence = 512
)

// addConversation adds the pieces of the earlier turns that fit, and the sources of the others.
func addConversation(r *renderer) {
	kept := r.brief.Conversation
	if len(kept) == 0 {
		return
	}
	most := brief.Limit(r.brief.MaxBytes) / conversationShare
	turns := turnsOf(kept)
	r.left = leftOut(turns, most)
	for i := range turns[:r.left] {
		for j := range turns[i].texts {
			d := turns[i].texts[j].Decision()
			r.sources = append(r.sources, Source{Producer: d.From, Classification: d.After, Decision: d.MovedOut()})
		}
	}
	first := len(r.pieces)
	for i := range turns[r.left:] {
		for _, s := range turns[r.left+i].fitted(most) {
			p := r.add(&s)
			r.inlined = append(r.inlined, p.said())
		}
	}
	r.turns = r.pieces[first:]
}

// A sessionTurn is what was said in one turn.
type sessionTurn struct {
	texts []gate.Sealed
	size  int // bytes that it takes in a prompt, at most
}

// turnsOf divides the texts of a session into turns, which begin with what the person said.
func turnsOf(texts []gate.Sealed) (list []sessionTurn) {
	for i := range texts {
		if len(list) == 0 || texts[i].Decision().From == handoff.User {
			list = append(list, sessionTurn{texts: texts[i:i]})
		}
		t := &list[len(list)-1]
		t.texts = t.texts[:len(t.texts)+1]
		t.size += sizeOfSaid(&texts[i])
	}
	return list
}

// sizeOfSaid returns how many bytes a text takes in a prompt, at most.
func sizeOfSaid(s *gate.Sealed) int {
	if s.Withheld() {
		return aroundFence
	}
	text, canonical := split(s)
	return len(text) + len(canonical) + aroundText + aroundFence
}

// leftOut returns how many of the oldest turns are left out so that the others take at most so many
// bytes. Turns are left out in bulk, until half of that is free, and what follows does not change
// it: while the next turns only append, prompts begin with the same bytes. The newest is never left
// out.
func leftOut(turns []sessionTurn, most int) (first int) {
	size := 0
	for i := range turns {
		if size += turns[i].size; size <= most {
			continue
		}
		for first < i && size > most/2 {
			size -= turns[first].size
			first++
		}
	}
	return first
}

// fitted returns the texts of a turn, cut to one length if the turn alone takes more than so many bytes.
func (t *sessionTurn) fitted(most int) []gate.Sealed {
	if t.size <= most {
		return t.texts
	}
	cut := make([]gate.Sealed, len(t.texts))
	sizes := make([]int, len(t.texts))
	for i := range t.texts {
		sizes[i] = sizeOfSaid(&t.texts[i])
	}
	limit := max(brief.CommonLength(sizes, most)-aroundText-aroundFence, 1)
	for i := range t.texts {
		cut[i] = t.texts[i].Lower(limit)
	}
	return cut
}

// earlier writes the messages of the earlier turns, and the line above the user message. It returns
// where the texts of the messages start and end.
func (r *renderer) earlier() (bounds [][2]int) {
	if len(r.turns) == 0 {
		return nil
	}
	for i := range r.turns {
		p := &r.turns[i]
		r.heading("## " + p.role() + "\n")
		start := len(r.text)
		if i == 0 && r.left > 0 {
			r.frame("[turns before this one: " + strconv.Itoa(r.left) + ", left out because the conversation is too long]\n\n")
		}
		say(r, p)
		bounds = append(bounds, [2]int{start, len(r.text)})
	}
	r.heading("## " + roleUser + "\n")
	r.start = len(r.text)
	return bounds
}

// say writes what was said in an earlier turn.
func say(r *renderer, p *piece) {
	text := p.said()
	switch {
	case p.Withheld():
		r.put(brief.PartWithheld, p.source, brief.WithheldOpen+": "+string(p.Decision().Reason)+"]")
	case p.plain():
		r.put(brief.PartPayload, p.source, text)
	default:
		one := []block{p.block(text)}
		fences("session\n"+p.Title(), "", nil, one)
		r.writer.openFence(&one[0])
		r.put(brief.PartPayload, p.source, text)
		r.closeFence(&one[0])
	}
}

// role returns the role of the message of a piece.
func (p *piece) role() string {
	if p.sender() == handoff.User {
		return roleUser
	}
	return roleAssistant
}

// said returns the text of a piece that was said.
func (p *piece) said() string {
	if p.text == "" {
		return p.canonical
	}
	return p.text
}

// plain reports whether a text needs no fence.
func (p *piece) plain() bool {
	text, d := p.said(), p.Decision()
	if text == "" || d.CutFrom > 0 || brief.ImitatesTurns(text) {
		return false
	}
	return p.role() == roleUser || marks(d, len(text)) == ""
}

// firstMessages returns the messages of earlier turns and the user message, which are parts of the
// text; nil if there are no earlier turns.
func firstMessages(r *renderer, text string, bounds [][2]int) (list []Message) {
	for i, at := range bounds {
		list = append(list, Message{Role: r.turns[i].role(), Text: text[at[0]:at[1]]})
	}
	if list == nil {
		return nil
	}
	return append(list, Message{Role: roleUser, Text: text[r.start:]})
}
