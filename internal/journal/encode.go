package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// An encoder encodes entries as lines. It is safe for concurrent use.
type encoder struct {
	run   string
	lines *trace.Encoder
	vault *vault
	above *sensitiveTasks
}

// add adds an entry to a batch.
func (e *encoder) add(b *trace.Batch, of *record.Entry) error {
	switch {
	case of.Event != nil:
		ev, h, err := e.event(*of.Event)
		if err != nil {
			return err
		}
		return e.lines.Event(b, ev, h)
	case of.Record != nil:
		return e.record(b, of.Record)
	}
	kind, value, err := e.line(of)
	if err != nil {
		return err
	}
	return e.lines.Line(b, kind, value)
}

// line returns the kind and the stored form of an entry that only a journal has.
func (e *encoder) line(of *record.Entry) (kind string, value any, err error) {
	switch {
	case of.Begin != nil:
		value, err = e.begin(of.Begin)
		return record.KindRunStart, value, err
	case of.Asked != nil:
		return record.KindCallStart, e.start(of.Asked), nil
	case of.Begun != nil:
		return record.KindPrefetchStart, of.Begun, nil
	case of.Exchange != nil:
		value, err = e.exchange(of.Exchange)
		return record.KindAgentCall, value, err
	case of.Sent != nil:
		value, err = e.message(of.Sent)
		return record.KindMessage, value, err
	case of.Rejected != nil:
		value, err = e.exchange(of.Rejected)
		return record.KindRejected, value, err
	case of.Turn != nil:
		value, err = e.exchange(of.Turn)
		return record.KindTurn, value, err
	case of.ToolResult != nil:
		value, err = e.exchange(of.ToolResult)
		return record.KindToolEnd, value, err
	case of.Files != nil:
		value, err = e.exchange(of.Files)
		return record.KindFiles, value, err
	case of.ToolCall != nil:
		return record.KindToolStart, e.start(of.ToolCall), nil
	case of.Question != nil:
		value, err = e.question(of.Question)
		return record.KindQuestion, value, err
	case of.Answer != nil:
		value, err = e.answer(of.Answer)
		return record.KindAnswer, value, err
	case of.Command != nil:
		value, err = e.command(of.Command)
		return record.KindCommand, value, err
	case of.End != nil:
		value, err = e.end(of.End)
		return record.KindRunEnd, value, err
	}
	return "", nil, errors.New("an empty entry cannot be stored: set one of its fields")
}

// start returns a CallStart with a masked key, and without the exact size of a prompt above
// the plaintext limit.
func (e *encoder) start(of *record.CallStart) *startLine {
	x := &startLine{CallStart: *of, Key: e.key(of.Key)}
	if e.above.isExact(x.Task) || x.Partial && e.above.has(x.Task) {
		if x.Bytes = bytesize.Class(x.Bytes); x.Child != "" {
			x.Bytes = 0 // the event of it would have a class as the size of the goal
		}
	}
	return x
}

// key returns the stored form of a key; nil for the zero key.
func (e *encoder) key(k record.Key) *record.Digest {
	if k == (record.Key{}) {
		return nil
	}
	return new(record.Digest(e.vault.mask(k)))
}

// event returns an event without a message or exact sizes above the plaintext limit. The message of one that belongs to
// the history is hidden; the line of the agent call has that of another, and the line of the end that of a warning of the
// run.
func (e *encoder) event(ev event.Event) (low event.Event, hiddenText json.RawMessage, err error) {
	if e.above.isExact(ev.Task) {
		ev.Partial, ev.Bytes = ev.Partial || ev.Input+ev.Output > 0, 0
		ev.SetUsage(llm.Usage{})
	}
	ev.Call = nil                                      // the line of the agent call has it
	ofRun := ev.Task == "" && ev.Type == event.Warning // it may quote the context of any task
	sensitive := func(id task.ID) bool { return id != "" && e.above.has(id) }
	if !sensitive(ev.Task) && !sensitive(ev.Root) && !(ofRun && e.above.any()) {
		return ev, nil, nil
	}
	var h hiddenEvent
	c := record.ChangeOf(&ev)
	if ev.Message != "" {
		if c != nil {
			of, err := e.vault.hide([]byte(ev.Message), changePlace(e.run, ev.Seq, c)...)
			if err != nil {
				return ev, nil, err
			}
			h.hidden = *of
		}
		ev.Message = e.vault.withheld()
	}
	if e.vault.hides(maxKey) {
		if c != nil && ev.Name != "" {
			if h.Name, err = e.vault.hide([]byte(ev.Name), append(changePlace(e.run, ev.Seq, c), "name")...); err != nil {
				return ev, nil, err
			}
		}
		ev.Name, ev.Because = "", ""
	}
	if h != (hiddenEvent{}) {
		hiddenText, err = json.Marshal(h)
	}
	return ev, hiddenText, err
}

// maxKey is the highest label of the keys of items, by which instances are named.
const maxKey = label.Confidential

// hiddenEvent is the stored form of the texts of an event above the plaintext limit: its message, and the name of the
// instance that it is about.
type hiddenEvent struct {
	hidden
	Name *hidden `json:"name,omitempty"`
}

// changePlace is the place of the hidden message of an event, by its number.
func changePlace(run string, seq int, c *record.TaskChange) []string {
	return []string{record.KindEvent, run, string(c.Type), string(c.Task), strconv.Itoa(seq)}
}

// record adds the decisions and the prompt, and in a separate line the pieces of the prompt
// above the plaintext limit.
func (e *encoder) record(b *trace.Batch, r *record.Prompt) error {
	low := record.Prompt{Handoffs: make([]event.Handoff, len(r.Handoffs))}
	for i := range r.Handoffs {
		low.Handoffs[i] = record.LowerHandoff(&r.Handoffs[i], e.vault.plainLimit())
	}
	cut := false
	if r.Prompt != nil {
		low.Prompt, cut = r.Prompt.Lower(e.vault.plainLimit())
	}
	if err := e.lines.Record(b, low); err != nil || !cut {
		return err
	}
	session := r.Prompt.Receipt.Session
	text, err := json.Marshal([2][]promptview.Piece{r.Prompt.System, r.Prompt.Text})
	if err != nil {
		return err
	}
	h, err := e.vault.hide(text, record.KindSealed, e.run, session)
	if err != nil {
		return err
	}
	return e.lines.Line(b, record.KindSealed, sealedLine{session, *h})
}

func (e *encoder) exchange(x *record.AgentCall) (*exchangeLine, error) {
	out := &exchangeLine{AgentCall: *x, Key: e.key(x.Key), Core: e.key(x.Core), Reuse: e.key(x.Reuse), Files: e.key(x.Files)}
	var err error
	if out.Provider, err = e.vault.hideProvider(x.Provider, e.run, x.Session, x.Part); err != nil {
		return nil, err
	}
	s := secrets{Shown: x.Shown, Error: x.Error, EventError: x.EventError}
	hides := e.hides(x)
	if e.hidesSizes(x) {
		s.Sizes = &sizes{x.Spent, x.SavedTokens, x.Context}
		s.Sizes.classes().set(&out.AgentCall)
	}
	if x.Result != nil {
		s.words = wordsOf(x.Result)
		out.Result = &resultLine{Header: x.Result.Header, Digest: e.vault.digest("envelope", out.digestInput(e.run, record.DigestOf(x.Result.Digest)))}
	}
	if s.Sizes == nil && !hides && !e.hidesAny(x.Refused, x.Reasoning) {
		if out.Result != nil {
			out.Result.words = s.words
		}
		return out, nil
	}
	out.Shown, out.Error, out.EventError = nil, "", ""
	s.Refused, s.Reasoning, out.Refused, out.Reasoning = x.Refused, x.Reasoning, nil, nil
	s.Call, s.Warnings = x.Call, x.Warnings
	out.Call, out.Warnings = callinfo.Outline(x.Call), nil
	if out.Result != nil { // a tag may name a member of the result
		s.Tags, out.Result.Tags = out.Result.Tags, nil
	}
	text, err := record.EncodeText(s)
	if err == nil {
		out.Hidden, err = e.vault.hide(text, record.KindAgentCall, e.run, x.Session, x.Part)
	}
	return out, err
}

// hides reports whether texts of an agent call are above the plaintext limit.
func (e *encoder) hides(x *record.AgentCall) bool {
	return e.above.has(x.Task) || x.Result != nil && e.vault.hides(x.Result.Classification)
}

// hidesSizes reports whether the line of an agent call has size classes in place of what it took.
func (e *encoder) hidesSizes(x *record.AgentCall) bool {
	return e.above.isExact(x.Task) || x.Partial && e.hides(x)
}

// spent returns what an agent call cost, in millionths of a US dollar, rounded up. All who can read the database
// can read it, so it is a size class if what the call took is stored in size classes.
func (e *encoder) spent(x *record.AgentCall) int64 {
	cost := x.Cost
	if e.hidesSizes(x) {
		cost = llm.Money(bytesize.Class(int(cost)))
	}
	return millionths(cost)
}

// millionths returns an amount in millionths of a US dollar, rounded up.
func millionths(amount llm.Money) int64 {
	const millionth = 1_000_000 // of a US dollar, in picodollars
	return int64(amount/millionth + min(amount%millionth, 1))
}

// hidesAny reports whether a labeled text is above the plaintext limit. Nil is not.
func (e *encoder) hidesAny(list ...*record.LabeledText) bool {
	return slices.ContainsFunc(list, func(a *record.LabeledText) bool { return a != nil && e.vault.hides(a.Label) })
}

// message returns the stored form of a message. Above the plaintext limit its payload is hidden.
func (e *encoder) message(m *record.SentMessage) (*messageLine, error) {
	r := m.Message
	if r == nil {
		return nil, fmt.Errorf("message %q has no envelope and cannot be stored", m.ID)
	}
	out := &messageLine{SentMessage: *m, Key: e.key(m.Key), Message: resultLine{Header: r.Header}}
	out.Message.Digest = e.vault.digest("message", out.digestInput(e.run, record.DigestOf(r.Digest)))
	if out.Bytes = e.vault.sizeAt(r.Classification, m.Bytes); !e.vault.hides(r.Classification) {
		out.Message.words = wordsOf(r)
		return out, nil
	}
	text, err := record.EncodeText(wordsOf(r))
	if err == nil {
		out.Hidden, err = e.vault.hide(text, record.KindMessage, e.run, m.ID)
	}
	return out, err
}

// digestInput returns what the digest of a result covers: the envelope, the run and the
// prompt that it answers.
func (l *exchangeLine) digestInput(run string, d record.Digest) []byte {
	hex := func(k *record.Digest) string {
		if k == nil {
			return ""
		}
		return string(k[:])
	}
	parts := []string{run, l.Session, l.Part, string(l.Task), l.Agent, l.From, hex(l.Key), hex(l.Core), fmt.Sprint(l.Reusable), string(d[:])}
	if l.Reuse != nil { // lines of earlier versions have none
		parts = append(parts, hex(l.Reuse))
	}
	if l.Files != nil {
		parts = append(parts, "files", hex(l.Files), l.Folder)
	}
	for _, m := range l.Mounts {
		parts = append(parts, "mount", m.Input, m.At)
	}
	return joinLengths(parts...)
}

// wordsOf returns the payload of a record in its stored form.
func wordsOf(r *envelope.Record) words {
	w := words{Text: r.Text, JSON: r.JSON}
	if !utf8.ValidString(r.Text) {
		w.Text, w.Raw = "", []byte(r.Text)
	}
	return w
}

// end returns a RunEnd without texts that may be above the plaintext limit, and these in
// hidden form.
func (e *encoder) end(of *record.RunEnd) (*endLine, error) {
	low := *of
	hides := false
	hide := func(words *string, above bool) {
		if above && *words != "" {
			*words, hides = e.vault.withheld(), true
		}
	}
	coordinated := e.above.coordinator()
	hide(&low.Answer, coordinated)
	low.Errors, low.Warnings = slices.Clone(of.Errors), slices.Clone(of.Warnings)
	for i := range low.Errors {
		hide(&low.Errors[i].Message, coordinated)
	}
	for i := range low.Warnings {
		hide(&low.Warnings[i], e.above.any())
	}
	if e.above.isExact("") && of.Usage != (llm.Usage{}) {
		low.Usage, low.Partial, hides = llm.Usage{}, true, true
	}
	if !hides {
		return &endLine{RunEnd: *of}, nil
	}
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	h, err := e.vault.hide(text, record.KindRunEnd, e.run)
	return &endLine{RunEnd: low, Hidden: h}, err
}

// info returns the stored form of an Info.
func (e *encoder) info(of *Info) (*infoLine, error) {
	x := &infoLine{Info: *of}
	if of.Invocation != nil && e.vault.hides(unlabeled) {
		var err error
		if x.Args, err = e.vault.hide(of.Invocation, record.KindInfo, e.run, "", "invocation"); err != nil {
			return nil, err
		}
		x.Invocation = nil
	}
	for _, f := range of.Files {
		line := fileLine{File: f}
		if e.vault.hides(f.Label) {
			h, err := e.vault.hide([]byte(f.Text), record.KindInfo, e.run, f.Path)
			if err != nil {
				return nil, err
			}
			line.Text, line.Hidden = "", h
		}
		line.Digest = e.vault.digest("file", line.digestInput(e.run))
		x.Files = append(x.Files, line)
	}
	return x, nil
}
