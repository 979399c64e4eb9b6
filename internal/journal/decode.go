package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A decoder decodes lines to a history.
type decoder struct {
	vault  *vault
	run    string
	stored *Stored
	only   []task.ID // the tasks whose lines are read; nil means all
	lean   bool      // with only: the lists of tasks have no others, but for the first of a list

	startOnly bool // only the lines of an Info and of the start of a process are read
	traceOnly bool // only the trace is wanted

	listed map[task.ID]trace.Task // the tasks of the last Info; nil in files from version 10 on
}

// lines decodes the lines of a row.
func (d *decoder) lines(text []byte) error {
	for kind, value := range record.SplitLines(text) {
		if err := d.line(kind, value); err != nil {
			return fmt.Errorf("its line of kind %q cannot be read: %w", kind, err)
		}
	}
	return nil
}

// taskKinds are the kinds of lines that are about one task.
var taskKinds = map[string]bool{record.KindCallStart: true, record.KindPrefetchStart: true, record.KindAgentCall: true, record.KindRejected: true, record.KindMessage: true, record.KindTurn: true, record.KindToolStart: true, record.KindToolEnd: true, record.KindFiles: true, record.KindQuestion: true, record.KindAnswer: true, record.KindCommand: true}

// containsID reports whether a line contains one of these IDs.
func containsID(line []byte, ids []task.ID) bool {
	return slices.ContainsFunc(ids, func(id task.ID) bool { return bytes.Contains(line, []byte(id)) })
}

// kept returns the tasks of a list that are kept. A lean one has the first and those that are read, since of a run whose
// list is empty the tasks are not known.
func kept[T any](d *decoder, list []T, id func(*T) task.ID) []T {
	if !d.lean {
		return list
	}
	var out []T
	for i := range list {
		if i == 0 || slices.Contains(d.only, id(&list[i])) {
			out = append(out, list[i])
		}
	}
	return out
}

// line decodes a line of the history. It ignores other lines.
func (d *decoder) line(kind string, value []byte) error {
	if d.startOnly && kind != record.KindInfo && kind != record.KindRunStart || d.only != nil && taskKinds[kind] && !containsID(value, d.only) {
		return nil
	}
	h := &d.stored.History
	switch kind {
	case record.KindInfo:
		return d.info(value)
	case record.KindRunStart:
		b, err := d.decodeBegin(value)
		if err == nil {
			d.begin(b)
		}
		return err
	case record.KindCallStart:
		a, err := decodeStart(value)
		h.Log = append(h.Log, record.Entry{Asked: a})
		return err
	case record.KindPrefetchStart:
		b := new(record.PrefetchStart)
		h.Log = append(h.Log, record.Entry{Begun: b})
		return json.Unmarshal(value, b)
	case record.KindAgentCall, record.KindRejected, record.KindTurn, record.KindToolEnd, record.KindFiles:
		x, err := d.exchange(value)
		h.Log = append(h.Log, entryOf(kind, x))
		return err
	case record.KindMessage:
		m, err := d.message(value)
		h.Log = append(h.Log, record.Entry{Sent: m})
		return err
	case record.KindToolStart:
		a, err := decodeStart(value)
		h.Log = append(h.Log, record.Entry{ToolCall: a})
		return err
	case record.KindQuestion:
		q, err := d.question(value)
		h.Log = append(h.Log, record.Entry{Question: q})
		return err
	case record.KindAnswer:
		a, err := d.answer(value)
		h.Log = append(h.Log, record.Entry{Answer: a})
		return err
	case record.KindCommand:
		c, err := d.command(value)
		if c != nil {
			h.Log = append(h.Log, record.Entry{Command: c})
		}
		return err
	case record.KindRunEnd:
		return d.end(value)
	case record.KindEvent:
		return d.event(value)
	}
	return nil
}

// entryOf returns the entry of a line that stores a model call or a call of a tool.
func entryOf(kind string, x *record.AgentCall) record.Entry {
	switch kind {
	case record.KindRejected:
		return record.Entry{Rejected: x}
	case record.KindTurn:
		return record.Entry{Turn: x}
	case record.KindToolEnd:
		return record.Entry{ToolResult: x}
	case record.KindFiles:
		return record.Entry{Files: x}
	}
	return record.Entry{Exchange: x}
}

// message decodes a message, with its envelope or the reason why that is missing.
func (d *decoder) message(value []byte) (*record.SentMessage, error) {
	var x messageLine
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, err
	}
	m := &x.SentMessage
	m.Key = keyOf(x.Key)
	if x.Hidden != nil {
		text, missing := d.vault.show(x.Hidden, record.KindMessage, d.run, m.ID)
		if missing == "" {
			if err := json.Unmarshal(text, &x.Message.words); err != nil {
				missing = err.Error()
			}
		}
		if m.Missing = missing; missing != "" {
			return m, nil
		}
	}
	m.Message = d.genuine(&x.Message, "message", func(of record.Digest) []byte { return x.digestInput(d.run, of) })
	return m, nil
}

func (d *decoder) info(value []byte) error {
	var x infoLine
	if err := json.Unmarshal(value, &x); err != nil {
		return err
	}
	for _, f := range x.Files {
		if d.vault.digests != nil && d.vault.digest("file", f.digestInput(d.run)) != f.Digest {
			f.Text, f.Hidden, f.Missing = "", nil, ErrAltered.Error()
		}
		if f.Hidden != nil {
			var text []byte
			text, f.Missing = d.vault.show(f.Hidden, record.KindInfo, d.run, f.Path)
			f.Text = string(text)
		}
		x.Info.Files = append(x.Info.Files, f.File)
	}
	x.Info.Fingerprint = d.vault.masked(x.Info.Fingerprint)
	x.Info.takeTurn()
	d.stored.Info = x.Info
	for _, t := range x.Tasks {
		if d.listed == nil {
			d.listed = make(map[task.ID]trace.Task, len(x.Tasks))
		}
		d.listed[t.ID] = t
	}
	return nil
}

// decodeBegin decodes the start of a process. In files before version 10, an Info before it has a part of what it says
// of the tasks.
func (d *decoder) decodeBegin(value []byte) (*record.RunStart, error) {
	b, err := decodeBegin(value)
	if err != nil {
		return nil, err
	}
	for i := range b.Tasks {
		p := &b.Tasks[i]
		if t, ok := d.listed[p.Task]; ok && b.Version < withTaskList {
			p.Key, p.Line, p.Rounds = t.Key, t.Line, t.Rounds
		}
	}
	return b, nil
}

// begin adds the start of a process to the history.
func (d *decoder) begin(b *record.RunStart) {
	b.Tasks = kept(d, b.Tasks, func(p *event.Planned) task.ID { return p.Task })
	h := &d.stored.History
	h.Log = append(h.Log, record.Entry{Begin: b})
	h.Begins, h.End = append(h.Begins, *b), nil
}

// keyOf returns a masked key of its stored form.
func keyOf(k *record.Digest) record.Key {
	if k == nil {
		return record.Key{}
	}
	return record.Key(*k)
}

func decodeStart(value []byte) (*record.CallStart, error) {
	var x startLine
	err := json.Unmarshal(value, &x)
	x.CallStart.Key = keyOf(x.Key)
	return &x.CallStart, err
}

func (d *decoder) exchange(value []byte) (*record.AgentCall, error) {
	var x exchangeLine
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, err
	}
	e := &x.AgentCall
	e.Key, e.Core, e.Reuse, e.Files = keyOf(x.Key), keyOf(x.Core), keyOf(x.Reuse), keyOf(x.Files)
	e.Provider = d.vault.showProvider(x.Provider, d.run, e.Session, e.Part)
	if x.Hidden != nil && !d.reveal(&x) {
		return e, nil
	}
	if x.Result != nil {
		e.Result = d.record(&x)
	}
	return e, nil
}

// reveal restores the hidden texts of an agent call, or sets why they are missing.
func (d *decoder) reveal(x *exchangeLine) bool {
	e := &x.AgentCall
	text, missing := d.vault.show(x.Hidden, record.KindAgentCall, d.run, e.Session, e.Part)
	var s secrets
	if missing == "" {
		if err := json.Unmarshal(text, &s); err != nil {
			missing = err.Error()
		}
	}
	if missing != "" {
		if x.Result != nil {
			e.Missing, e.Shown = missing, &record.ShownResult{Text: withheld}
		}
		if e.Code != "" {
			e.Error = withheld
		}
		return false
	}
	if s.Sizes != nil {
		s.Sizes.set(e)
	}
	if s.Call != (llm.CallInfo{}) {
		e.Call = s.Call
	}
	e.Refused, e.Reasoning, e.Warnings = s.Refused, s.Reasoning, s.Warnings
	if e.Shown, e.Error, e.EventError = s.Shown, s.Error, s.EventError; x.Result != nil {
		if x.Result.words = s.words; len(s.Tags) > 0 {
			x.Result.Tags = s.Tags
		}
	}
	return true
}

// record returns the envelope of a result.
func (d *decoder) record(x *exchangeLine) *envelope.Record {
	return d.genuine(x.Result, "envelope", func(of record.Digest) []byte { return x.digestInput(d.run, of) })
}

// genuine returns the envelope of a line. If header and payload do not match the digest of
// the line, the envelope has no valid digest.
func (d *decoder) genuine(l *resultLine, kind string, digestInput func(record.Digest) []byte) *envelope.Record {
	r := &envelope.Record{Header: l.Header, Text: cmp.Or(l.Text, string(l.Raw)), JSON: l.JSON}
	made, err := r.Envelope()
	if err != nil {
		return r
	}
	e, err := envelope.New(made.Header(), payloadOf(r))
	if err != nil {
		return r
	}
	if of := e.Digest(); d.vault.digest(kind, digestInput(record.DigestOf(of))) == l.Digest {
		r.Digest = of
	}
	return r
}

// payloadOf returns the payload of a recorded envelope.
func payloadOf(r *envelope.Record) envelope.Payload {
	p := envelope.Text(r.Text)
	if r.JSON == nil {
		return p
	}
	v, err := jsonvalue.Parse(string(r.JSON))
	if err != nil {
		return p
	}
	return p.WithStructured(v)
}

func (d *decoder) end(value []byte) error {
	var x endLine
	if err := json.Unmarshal(value, &x); err != nil {
		return err
	}
	if x.Hidden != nil {
		if text, missing := d.vault.show(x.Hidden, record.KindRunEnd, d.run); missing == "" {
			x = endLine{}
			if err := json.Unmarshal(text, &x); err != nil {
				return err
			}
		}
	}
	x.RunEnd.Tasks = kept(d, x.Tasks, func(t *record.TaskEnd) task.ID { return t.Task })
	d.stored.History.End = &x.RunEnd
	return nil
}
