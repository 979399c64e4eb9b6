package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A part is what an entry adds to the lines of its run: decisions or one line.
type part struct {
	line      []byte
	decisions audit.Decisions
}

// An encoder encodes entries as lines. It is safe for concurrent use.
type encoder struct {
	run   string
	lines *trace.Encoder
	vault *vault
	above *sensitiveTasks
}

// entry encodes an entry.
func (e *encoder) entry(of *record.Entry) ([]part, error) {
	switch {
	case of.Begin != nil:
		x, err := e.begin(of.Begin)
		if err != nil {
			return nil, err
		}
		return e.one(record.KindRunStart, x)
	case of.Event != nil:
		line, err := e.lines.Event(e.event(*of.Event))
		return []part{{line: line}}, err
	case of.Record != nil:
		return e.record(of.Record)
	case of.Asked != nil:
		asked := *of.Asked
		if e.above.isExact(asked.Task) {
			asked.Bytes = bytesize.Class(asked.Bytes)
		}
		return e.one(record.KindCallStart, asked)
	case of.Begun != nil:
		return e.one(record.KindPrefetchStart, of.Begun)
	case of.Exchange != nil:
		x, err := e.exchange(of.Exchange)
		if err != nil {
			return nil, err
		}
		return e.one(record.KindAgentCall, x)
	case of.Sent != nil:
		x, err := e.message(of.Sent)
		if err != nil {
			return nil, err
		}
		return e.one(record.KindMessage, x)
	case of.Rejected != nil:
		x, err := e.exchange(of.Rejected)
		if err != nil {
			return nil, err
		}
		return e.one(record.KindRejected, x)
	case of.End != nil:
		x, err := e.end(of.End)
		if err != nil {
			return nil, err
		}
		return e.one(record.KindRunEnd, x)
	}
	return nil, fmt.Errorf("an empty entry cannot be stored: set one of its fields")
}

// one encodes a line.
func (e *encoder) one(kind string, value any) ([]part, error) {
	line, err := e.lines.Line(kind, value)
	return []part{{line: line}}, err
}

// begin returns a RunStart with masked keys, and without exact sizes of values above the
// plaintext limit.
func (e *encoder) begin(b *record.RunStart) (*beginLine, error) {
	if b.Run != e.run {
		return nil, fmt.Errorf("an entry of run %q was appended to run %q of the journal: give both the same ID", b.Run, e.run)
	}
	x := &beginLine{RunStart: *b}
	for _, in := range b.Inputs {
		in.Bytes = sizeAt(in.Classification, in.Bytes)
		x.Inputs = append(x.Inputs, inputLine{Input: in, Key: e.key(in.Key)})
	}
	return x, nil
}

// sizeAt returns the stored size of a value with this label.
func sizeAt(level label.Classification, bytes int) int {
	if level > plainLimit {
		return bytesize.Class(bytes)
	}
	return bytes
}

// key returns the stored form of a key; nil for the zero key.
func (e *encoder) key(k record.Key) *record.Digest {
	if k == (record.Key{}) {
		return nil
	}
	return new(record.Digest(e.vault.mask(k)))
}

// event returns an event without a message or exact sizes above the plaintext limit. The
// line of the agent call has the message; for a warning of the run, the line of its end.
func (e *encoder) event(ev event.Event) event.Event {
	if e.above.isExact(ev.Task) {
		ev.Rounded = ev.Rounded || ev.Input+ev.Output > 0
		ev.CachedTokens, ev.ReasoningTokens = 0, 0
		ev.Input, ev.Output, ev.Bytes = gate.TokenClass(ev.Input), gate.TokenClass(ev.Output), bytesize.Class(ev.Bytes)
	}
	ev.Call = nil                                      // the line of the agent call has it
	ofRun := ev.Task == "" && ev.Type == event.Warning // it may quote the context of any task
	if ev.Message != "" && (e.above.has(ev.Task) || e.above.has(ev.Root) || ofRun && e.above.any()) {
		ev.Message = withheld
	}
	return ev
}

// record returns the decisions and the prompt, and in a separate line the pieces of the
// prompt above the plaintext limit.
func (e *encoder) record(r *record.Prompt) ([]part, error) {
	var parts []part
	if len(r.Handoffs) > 0 {
		low := make([]event.Handoff, len(r.Handoffs))
		for i := range r.Handoffs {
			low[i] = record.LowerHandoff(&r.Handoffs[i], plainLimit)
		}
		list, err := e.lines.Decisions(low...)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{decisions: list})
	}
	if r.Prompt == nil {
		return parts, nil
	}
	shown, cut := r.Prompt.Lower(plainLimit)
	line, err := e.lines.Prompt(shown)
	if err != nil {
		return nil, err
	}
	if parts = append(parts, part{line: line}); !cut {
		return parts, nil
	}
	session := r.Prompt.Receipt.Session
	text, err := json.Marshal([2][]promptview.Piece{r.Prompt.System, r.Prompt.Text})
	if err != nil {
		return nil, err
	}
	h, err := e.vault.hide(text, record.KindSealed, e.run, session)
	if err != nil {
		return nil, err
	}
	more, err := e.one(record.KindSealed, sealedLine{session, *h})
	return append(parts, more...), err
}

func (e *encoder) exchange(x *record.AgentCall) (*exchangeLine, error) {
	out := &exchangeLine{AgentCall: *x, Key: e.key(x.Key), Core: e.key(x.Core), Reuse: e.key(x.Reuse)}
	s := secrets{Shown: x.Shown, Error: x.Error}
	if e.above.isExact(x.Task) {
		own := sizesOf(x)
		own.classes().set(&out.AgentCall)
		s.Sizes = &own
	}
	if x.Result != nil {
		s.words = wordsOf(x.Result)
		out.Result = &resultLine{Header: x.Result.Header, Digest: e.vault.digest("envelope", out.digestInput(e.run, record.DigestOf(x.Result.Digest)))}
	}
	if s.Sizes == nil && !e.above.has(x.Task) && (x.Result == nil || x.Result.Classification <= plainLimit) && !aboveCeiling(x.Refused, x.Reasoning) {
		if out.Result != nil {
			out.Result.words = s.words
		}
		return out, nil
	}
	out.Shown, out.Error = nil, ""
	s.Refused, s.Reasoning, out.Refused, out.Reasoning = x.Refused, x.Reasoning, nil, nil
	s.Call, s.Corrected, s.Warnings = x.Call, x.Corrected, x.Warnings
	out.Call, out.Warnings = callinfo.Outline(x.Call), nil
	if x.Corrected != nil {
		out.Corrected = new(callinfo.Outline(*x.Corrected))
	}
	if out.Result != nil { // a tag may name a member of the result
		s.Tags, out.Result.Tags = out.Result.Tags, nil
	}
	text, err := record.EncodeText(s)
	if err == nil {
		out.Hidden, err = e.vault.hide(text, record.KindAgentCall, e.run, x.Session, x.Part)
	}
	return out, err
}

// aboveCeiling reports whether a side text is above the plaintext limit. Nil is not.
func aboveCeiling(list ...*record.SideText) bool {
	return slices.ContainsFunc(list, func(a *record.SideText) bool { return a != nil && a.Label > plainLimit })
}

// message returns the stored form of a message. Above the plaintext limit its payload is hidden.
func (e *encoder) message(m *record.SentMessage) (*messageLine, error) {
	r := m.Message
	if r == nil {
		return nil, fmt.Errorf("message %q has no envelope and cannot be stored", m.ID)
	}
	out := &messageLine{SentMessage: *m, Message: resultLine{Header: r.Header}}
	out.Message.Digest = e.vault.digest("message", out.digestInput(e.run, record.DigestOf(r.Digest)))
	if out.Bytes = sizeAt(r.Classification, m.Bytes); r.Classification <= plainLimit {
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
	low.Tasks = slices.Clone(of.Tasks)
	hides := false
	hide := func(words *string, above bool) {
		if above && *words != "" {
			*words, hides = withheld, true
		}
	}
	for i := range low.Tasks {
		t := &low.Tasks[i]
		hide(&t.Reason, e.above.has(t.Task) || e.above.has(t.Root))
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
	for _, f := range of.Files {
		line := fileLine{File: f}
		if f.Label > plainLimit {
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

// isCoordinatorStep reports whether a task is a step of the coordinator.
func isCoordinatorStep(id task.ID) bool {
	return strings.HasPrefix(string(id), handoff.Coordinator+"/")
}
