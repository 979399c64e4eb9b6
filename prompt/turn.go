package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
)

// A Message is one message of the conversation of a task. The first is the user message of
// the prompt; in a session, what was said in its earlier turns precedes it. Each later turn of the
// agent appends what the agent said, and the results of
// the tools that it called.
type Message struct {
	Role   string `json:"role"` // user, assistant or tool
	Text   string `json:"content"`
	Calls  []Call `json:"toolCalls,omitempty"`  // of the assistant
	CallID string `json:"toolCallId,omitempty"` // of a message of a tool: the call that it answers
}

// A Call is a call of a tool that the agent asked for.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // canonical JSON, in the form that passed the gate
}

// Roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// A Tool is the definition of a tool that the agent may call.
type Tool struct {
	Name        string
	Description string
	Parameters  string // JSON Schema

	// TextCalls says that a call which the agent writes as text may be made: the agent takes such calls, and the tool
	// has no effect, or a person approves its calls.
	TextCalls bool `json:",omitempty"`
}

// toolsOf returns the tools of a brief.
func toolsOf(of []brief.Tool) (list []Tool) {
	for _, t := range of {
		list = append(list, Tool(t))
	}
	return list
}

// Tools returns the tools that the agent may call.
func (p Prompt) Tools() []Tool { return slices.Clone(p.get().tools) }

// Messages returns the conversation, oldest message first.
func (p Prompt) Messages() []Message {
	b := p.get()
	said := b.said()
	if said.first != nil {
		return slices.Concat(said.first, said.later)
	}
	return append([]Message{{Role: roleUser, Text: b.text}}, said.later...)
}

// conversation returns all messages as one text.
func (b *built) conversation() string {
	later := b.said().later
	if len(later) == 0 {
		return b.text
	}
	var w strings.Builder
	w.WriteString(b.text)
	for _, m := range later {
		w.WriteString("\n\n## " + m.Role)
		if m.CallID != "" {
			w.WriteString(" " + m.CallID)
		}
		w.WriteString("\n" + m.Text)
		for _, c := range m.Calls {
			w.WriteString(brief.CallHeading(c.ID) + c.Name + "\n" + c.Arguments)
		}
	}
	return w.String()
}

// Continue returns the prompt of the next turn: p with the messages of the turn appended. The
// engine calls it, as it calls [Build]. The messages of p stay as they are, so that providers
// can cache them. Only if the conversation exceeds its limit, the oldest results of tools are
// replaced by one line each, until it has at most half of the limit. The receipt accounts for
// [Prompt.Added] only. Continue returns an error if a piece was not sealed under the contract of
// the turn ([gate.ErrUnsealed]) or is in the wrong field of it, or if the conversation is too
// large even so ([brief.ErrTooLarge]).
func Continue(p Prompt, t *brief.Turn) (Prompt, *Receipt, error) {
	calls, err := checkTurn(t)
	if err != nil {
		return Prompt{}, nil, fmt.Errorf("%w: %w", brief.ErrInvalid, err)
	}
	k, old := &t.Contract, p.get()
	r := turnRenderer{turn: t, calls: calls}
	added := r.render()
	next := &struct { // one allocation for both
		built
		said around
	}{*old, old.said()}
	said := &next.said
	next.around = said
	n := len(said.later)
	said.append(r.messages, r.results)
	size, limit := sizeOf(next.text, said.later), brief.Limit(t.MaxBytes)
	if size > limit {
		size = r.moveOut(said, n, size, limit/2)
	}
	if len(r.text) > len(added) { // results were moved out
		added = string(r.text)
	}
	said.added = added
	next.sections = nil
	next.receipt = newReceipt(k, nil, r.ranges, r.sources)
	if size > limit {
		return Prompt{}, nil, fmt.Errorf("%w: the conversation has %d bytes, at most %d", brief.ErrTooLarge, size, limit)
	}
	return Prompt{&next.built}, next.receipt, nil
}

// append appends messages, and their results, to a copy of a conversation. The prompts of a conversation
// share one array, unless two continue the same prompt: the second copies it.
func (a *around) append(messages []Message, results []result) {
	n := int64(len(a.later))
	if a.filled == nil || !a.filled.CompareAndSwap(n, n+int64(len(messages))) {
		a.filled = new(atomic.Int64)
		a.filled.Store(n + int64(len(messages)))
		a.later, a.results = slices.Clip(a.later), slices.Clip(a.results)
	}
	a.later, a.results = append(a.later, messages...), append(a.results, results...)
}

// checkTurn lets through what was sealed for this turn and belongs into its place. It
// returns the calls of the agent.
func checkTurn(t *brief.Turn) ([]Call, error) {
	if err := naming.CheckLine(t.Title); err != nil {
		return nil, fmt.Errorf("the task's title: %w", err)
	}
	if err := checkPlace(t, &t.Said, handoff.Draft); err != nil {
		return nil, err
	}
	for i := range t.Results {
		kind := handoff.ToolResult
		if t.Results[i].Source().Kind == handoff.Message { // the reply that the call waited for
			kind = handoff.Message
		}
		if err := checkPlace(t, &t.Results[i], kind); err != nil {
			return nil, err
		}
	}
	for i := range t.Messages {
		if err := checkPlace(t, &t.Messages[i], handoff.Message); err != nil {
			return nil, err
		}
	}
	canonical, _ := t.Said.Payload().JSON()
	said, err := brief.CallsOf(canonical)
	switch {
	case err != nil:
		return nil, err
	case t.Said.Withheld():
		return nil, errors.New("what the agent said is withheld")
	case len(said) != len(t.Results):
		return nil, fmt.Errorf("%d calls, but %d results", len(said), len(t.Results))
	case t.Problem == nil && len(t.Results) == 0:
		return nil, errors.New("a turn needs results or a problem")
	}
	calls := make([]Call, len(said))
	for i, c := range said {
		calls[i] = Call{c.ID, c.Name, string(c.Arguments)}
	}
	if t.Problem == nil {
		return calls, nil
	}
	return calls, checkPlace(t, t.Problem, handoff.Fault)
}

// checkPlace lets a piece of one kind through that was sealed for the turn.
func checkPlace(t *brief.Turn, s *gate.Sealed, kind handoff.SourceKind) error {
	if err := s.For(&t.Contract); err != nil {
		return err
	}
	if s.Source().Kind != kind {
		return fmt.Errorf("%s %q is not allowed in this place of a turn", s.Source().Kind, s.Source().Name)
	}
	return nil
}

// again ends a turn that has an answer corrected.
const again = "\n\nAnswer again with one JSON value that matches the output schema, and with nothing else."

// A turnRenderer writes the messages of a turn, and the text that accounts for them.
type turnRenderer struct {
	turn     *brief.Turn
	calls    []Call
	messages []Message
	results  []result // parallel to messages, as starts and ends
	starts   []int    // where the texts of the messages start in the text
	ends     []int
	fencing
	writer
}

// render writes the message of the assistant, and those that answer it. It returns the text, of
// which the texts of the messages are parts.
func (r *turnRenderer) render() string {
	t := r.turn
	text := t.Said.Payload().Text()
	r.addBlocks()
	fences(t.Title+"\nturn "+strconv.Itoa(t.Number), text, nil, r.blocks)

	r.text = make([]byte, 0, r.room(text))
	r.said(text)
	for i := range t.Results {
		r.message(roleTool, r.calls[i].ID, func() { r.result(i) })
	}
	for i := range t.Messages {
		if s := &t.Messages[i]; !s.Withheld() {
			r.message(roleUser, "", func() {
				r.sender("Message from ", s)
				r.fenced(s)
			})
		}
	}
	if t.Problem != nil {
		r.message(roleUser, "", func() { r.problem(text) })
	}
	all := string(r.text)
	for i := range r.messages {
		r.messages[i].Text = all[r.starts[i]:r.ends[i]]
	}
	return all
}

// sender writes who sent a message.
func (r *turnRenderer) sender(opener string, s *gate.Sealed) {
	r.frame(opener)
	r.put(brief.PartHeading, r.source(s), s.Assignee())
	r.reference(r.source(s), s)
	r.frame(":\n")
}

// addBlocks adds a block for each text that stands between fences.
func (r *turnRenderer) addBlocks() {
	t := r.turn
	for i := range t.Results {
		if s := &t.Results[i]; !s.Withheld() {
			r.blocks = append(r.blocks, resultBlock(s))
		}
	}
	for i := range t.Messages {
		if s := &t.Messages[i]; !s.Withheld() {
			r.blocks = append(r.blocks, resultBlock(s))
		}
	}
	if t.Problem != nil {
		r.blocks = append(r.blocks, resultBlock(t.Problem))
	}
}

// said writes what the agent said, and its calls.
func (r *turnRenderer) said(text string) {
	said := r.source(&r.turn.Said)
	r.message(roleAssistant, "", func() { r.put(brief.PartPayload, said, text) })
	m := &r.messages[0]
	for _, c := range r.calls {
		r.frame(brief.CallHeading(c.ID))
		r.put(brief.PartPayload, said, c.Name) // the model's word
		r.frame("\n")
		r.put(brief.PartPayload, said, c.Arguments)
		m.Calls = append(m.Calls, c)
	}
}

// result writes the result of call i.
func (r *turnRenderer) result(i int) {
	t := r.turn
	s := &t.Results[i]
	if s.Withheld() {
		r.put(brief.PartWithheld, r.source(s), brief.WithheldOpen+": "+string(s.Decision().Reason)+"]")
		return
	}
	if s.Source().Kind == handoff.Message {
		r.sender("Reply from ", s)
	}
	r.fenced(s)
	switch {
	case !t.HasFiles || s.Decision().CutFrom == 0:
	case t.Unsaved != nil && t.Unsaved[i]:
		r.frame("\n[whole result not kept: the workspace is full]")
	default:
		r.frame("\n[whole result in " + brief.OutputFile(r.calls[i].ID) + "]")
	}
	r.results[i+1] = result{Source: r.sources[len(r.sources)-1], turn: t.Number - 1, payload: s.Payload().Size()}
}

// problem writes what is wrong with the answer, of which the text is above.
func (r *turnRenderer) problem(text string) {
	t := r.turn
	r.fenced(t.Problem)
	if d := t.Said.Decision(); d.CutFrom > 0 {
		r.frame("\n\nYour answer is above up to its first " + kib(len(text)) + " of " + kib(d.CutFrom) + " KiB.")
	}
	if len(t.Results) == 0 {
		r.frame(again)
	}
}

// room returns about how long the text will be.
func (r *turnRenderer) room(said string) int {
	n := len(said) + 256
	for _, c := range r.calls {
		n += len(c.Arguments) + 128
	}
	for i := range r.blocks {
		n += len(r.blocks[i].payload) + 256
	}
	return n
}

// message adds a message whose text the function writes, below a line with its role.
func (r *turnRenderer) message(role, call string, write func()) {
	r.heading("## " + role)
	if call != "" {
		r.frame(" " + call)
	}
	r.frame("\n")
	r.starts, r.results = append(r.starts, len(r.text)), append(r.results, result{})
	write()
	r.ends, r.messages = append(r.ends, len(r.text)), append(r.messages, Message{Role: role, CallID: call})
}

// resultBlock returns the block of a result or a problem.
func resultBlock(s *gate.Sealed) block {
	text, canonical := split(s)
	p := piece{Sealed: s}
	if text != "" && canonical != "" {
		text += "\n"
	}
	b := p.block(text + canonical)
	b.heading = s.Source().Name
	if s.Title() != "" && s.Source().Kind != handoff.Message {
		b.marks += ", " + s.Title()
	}
	return b
}

// fenced writes one payload between its fence lines.
func (r *turnRenderer) fenced(s *gate.Sealed) {
	b := r.nextBlock()
	r.openFence(b)
	r.put(brief.PartPayload, r.source(s), b.payload)
	r.closeFence(b)
}

// source adds a source of the receipt.
func (r *turnRenderer) source(s *gate.Sealed) int32 {
	r.sources = append(r.sources, sourceOf(s))
	return int32(len(r.sources) - 1)
}
