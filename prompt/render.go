package prompt

import (
	"slices"
	"sync"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// A renderer writes the two texts and their ranges at once.
type renderer struct {
	brief  brief.Brief    // a copy: the caller's need not leave its stack
	pieces []piece        // all context, in the order of the texts
	one    [ones]*piece   // of them; nil where there is none
	list   [lists][]piece // of them
	turns  []piece        // of them: what was said in earlier turns
	left   int            // how many turns before them are left out
	fencing
	writer
}

// scratch is what one prompt is written into before its parts are kept.
type scratch struct {
	text   []byte
	ranges []Range
	pieces []piece
	blocks []block
}

var scratches = sync.Pool{New: func() any { return &scratch{text: make([]byte, 0, 8192), ranges: make([]Range, 0, 64)} }}

func render(b *brief.Brief) *built {
	s := scratches.Get().(*scratch)
	r := renderer{brief: *b, pieces: s.pieces[:0], fencing: fencing{layout: b.Layout, blocks: s.blocks[:0]}, writer: writer{text: s.text[:0], ranges: s.ranges[:0]}}
	r.collect()
	fences(b.Task.Title, b.Task.Description, r.inlined, r.blocks)

	out := &built{layout: b.Layout.String(), schema: b.Schema, format: b.FormatSchema, tools: toolsOf(b.Tools), sections: r.sections()}
	r.system()
	out.system = string(r.text)
	system := len(r.ranges)
	r.text, r.closed = r.text[:0], system
	starts := r.earlier()
	switch b.Layout {
	case brief.Planning:
		r.planning()
	case brief.Synthesis:
		r.synthesis()
	default:
		r.work()
	}
	out.text = string(r.text)
	if first := firstMessages(&r, out.text, starts); first != nil {
		out.around = &around{first: first}
	}

	ranges := slices.Clone(r.ranges)
	out.receipt = newReceipt(&b.Contract, ranges[:system:system], ranges[system:], r.sources)
	s.text, s.ranges, s.pieces, s.blocks = r.text, r.ranges, r.pieces, r.blocks
	s.release()
	return out
}

// release returns the scratch to the pool, without what it refers to. What one
// giant prompt needed is not kept.
func (s *scratch) release() {
	clear(s.pieces)
	clear(s.blocks)
	if cap(s.text) <= 1<<20 {
		scratches.Put(s)
	}
}

// collect lists the sources, the pieces and the blocks.
func (r *renderer) collect() {
	b := &r.brief
	n := len(b.Conversation)
	for _, list := range listsOf(b) {
		n += len(*list)
	}
	for _, s := range onesOf(b) {
		if s != nil {
			n++
		}
	}
	r.sources = make([]Source, 1, 1+n+min(len(b.System)+len(b.Guidance), 1))
	r.sources[0] = r.origin()
	if b.System != "" || b.Guidance != "" {
		r.sources = append(r.sources, Source{Spec: b.SystemOrigin, Producer: handoff.User})
	}
	if n == 0 {
		return
	}
	r.pieces = slices.Grow(r.pieces, n) // so that pointers to pieces stay valid
	r.blocks = slices.Grow(r.blocks, n)
	addConversation(r)
	for i, s := range onesOf(b) {
		if s != nil {
			r.one[i] = r.add(s)
			r.inlined = append(r.inlined, r.one[i].unfenced())
		}
	}
	for i, list := range listsOf(b) {
		first := len(r.pieces)
		for j := range *list {
			if s := &(*list)[j]; isHidden(s.Decision()) {
				r.sources = append(r.sources, sourceOf(s))
			} else {
				r.add(s)
			}
		}
		r.list[i] = r.pieces[first:]
	}
	r.fence()
}

// add appends a piece and its source.
func (r *renderer) add(s *gate.Sealed) *piece {
	p := piece{Sealed: s, source: int32(len(r.sources))}
	if p.text, p.canonical = split(s); s.Source().Kind == handoff.Message && p.canonical != "" {
		p.text, p.canonical = p.text+"\n"+p.canonical, ""
	}
	r.sources = append(r.sources, sourceOf(s))
	r.pieces = append(r.pieces, p)
	return &r.pieces[len(r.pieces)-1]
}

// fence adds the blocks, in the order of the text.
func (r *renderer) fence() {
	for _, recast := range [...]string{gate.RecastSystem, ""} {
		for _, i := range [...]int{listInputs, listResults, listFiles} {
			for j := range r.list[i] {
				if p := &r.list[i][j]; r.recastOf(p) == recast {
					r.whole(p)
				}
			}
		}
	}
	r.lines(r.list[listFailed])
	r.lines(r.list[listSkipped])
	r.fencing.memory(r.list[listMemory])
	r.lines(r.list[listMessages])
	for j := range r.list[listDrafts] {
		r.whole(&r.list[listDrafts][j])
	}
	for j := range r.list[listTransferred] {
		r.whole(&r.list[listTransferred][j])
	}
}

// recastOf says in which of the two texts a piece is written. Only work has context
// in the system prompt.
func (r *renderer) recastOf(p *piece) string {
	if r.brief.Layout != brief.Work {
		return ""
	}
	return p.Recast()
}

// origin returns the source of the task's text. Where the coordinator planned
// the task its title is the coordinator's too; the coordinator's own steps are
// worded by the runtime.
func (r *renderer) origin() Source {
	b := &r.brief
	s := Source{Spec: where(b.Task), Producer: handoff.User, Classification: b.Task.Classification}
	if b.Layout != brief.Work {
		s.Producer = gate.Runtime
	}
	if b.Instruction != nil {
		d := b.Instruction.Decision()
		s.Producer, s.Classification = d.From, s.Classification.Join(d.After)
	}
	return s
}

// where names the place of the task's text: a line of a file, or the task itself.
func where(t *task.Task) string {
	if at := t.Source.Origin.String(); at != "" {
		return at
	}
	return t.Title
}

// sections lists the context for agents written in Go.
func (r *renderer) sections() []section {
	if len(r.pieces) == 0 {
		return nil
	}
	var list []section
	for i := range r.pieces {
		p := &r.pieces[i]
		if p.silent() && !r.headed(p) || p == r.one[oneInstruction] {
			continue
		}
		if list == nil {
			list = make([]section, 0, len(r.pieces)-i)
		}
		canonical, _ := p.Payload().JSON()
		list = append(list, section{source: p.source, title: p.Title(), text: p.Payload().Text(), raw: canonical})
	}
	return list
}

// isHidden reports whether the reader does not learn that a piece exists: it is withheld, and no task declares
// that it needs context of its kind. How many such pieces there are is up to who makes them.
func isHidden(d *gate.Decision) bool {
	switch d.Source.Kind {
	case handoff.Memory, handoff.Message, handoff.Transferred, handoff.Folder:
		return !d.IsDelivered()
	}
	return false
}
