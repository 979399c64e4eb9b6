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
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A decoder decodes lines to a history.
type decoder struct {
	vault  *vault
	run    string
	stored *Stored
	state  *runstate.State // if not nil, the entries are applied to it, and the log of the history stays empty
	only   []task.ID       // the tasks whose lines are read; nil means all
	lean   bool            // with only: the lists of tasks have no others, but for the first of a list

	startOnly bool // only the lines of an Info and of the start of a process are read

	planned func([]event.Planned)  // if not nil, gets all tasks of each process
	listed  map[task.ID]trace.Task // the tasks of the last Info; nil in files from version 10 on
}

// A historyLine is a line of a history that is decoded.
type historyLine struct {
	record.Entry
	info   *infoLine
	sealed *openedPrompt
}

// row decodes the lines of a row; see [decoder.decode].
func (d *decoder) row(l *batchRow) (lines []historyLine, err error) {
	for kind, value := range record.SplitLines(l.text) {
		x, err := d.decode(kind, value)
		if err != nil {
			return nil, fmt.Errorf("its line of kind %q cannot be read: %w", kind, err)
		}
		lines = append(lines, x)
	}
	return lines, nil
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

// decode decodes a line of the history; of another line, and of one that is not to be read, the result is empty. It does
// not change the decoder, so that lines may be decoded at the same time.
func (d *decoder) decode(kind string, value []byte) (l historyLine, err error) {
	if d.startOnly && kind != record.KindInfo && kind != record.KindRunStart || d.only != nil && taskKinds[kind] && !containsID(value, d.only) {
		return l, nil
	}
	switch kind {
	case record.KindInfo:
		l.info, err = d.info(value)
	case record.KindRunStart:
		l.Begin, err = d.start(value)
	case record.KindCallStart:
		l.Asked, err = decodeStart(value)
	case record.KindPrefetchStart:
		l.Begun = new(record.PrefetchStart)
		err = json.Unmarshal(value, l.Begun)
	case record.KindAgentCall, record.KindRejected, record.KindTurn, record.KindToolEnd, record.KindFiles:
		var x *record.AgentCall
		x, err = d.exchange(value)
		l.Entry = entryOf(kind, x)
	case record.KindMessage:
		l.Sent, err = d.message(value)
	case record.KindToolStart:
		l.ToolCall, err = decodeStart(value)
	case record.KindQuestion:
		l.Question, err = d.question(value)
	case record.KindAnswer:
		l.Answer, err = d.answer(value)
	case record.KindCommand:
		l.Command, err = d.command(value)
	case record.KindRunEnd:
		l.End, err = d.end(value)
	case record.KindEvent:
		l.Change, err = d.event(value)
	case record.KindSealed:
		l.sealed, err = d.sealed(value)
	}
	return l, err
}

// add adds a line to the history.
func (d *decoder) add(l *historyLine) {
	h := &d.stored.History
	switch {
	case l.info != nil:
		d.stored.Info = l.info.Info
		for _, t := range l.info.Tasks {
			if d.listed == nil {
				d.listed = make(map[task.ID]trace.Task, len(l.info.Tasks))
			}
			d.listed[t.ID] = t
		}
	case l.Begin != nil:
		d.begin(l.Begin)
	case l.End != nil:
		d.keep(l.Entry)
		h.End = l.End
	case l.Entry != record.Entry{}:
		d.keep(l.Entry)
	}
}

// keep adds an entry to the state, or else to the log of the history; an End is not in a log.
func (d *decoder) keep(e record.Entry) {
	switch {
	case d.state != nil:
		d.state.Apply(&e)
	case e.End == nil:
		d.stored.History.Log = append(d.stored.History.Log, e)
	}
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
		m.Bytes = 0 // it was a class
		text, missing := d.vault.show(x.Hidden, record.KindMessage, d.run, m.ID)
		if missing == "" {
			if err := json.Unmarshal(text, &x.Message.words); err != nil {
				missing = err.Error()
			}
		}
		if m.Missing = missing; missing != "" {
			return m, nil
		}
		if of := &x.Message.words; m.Shown {
			m.Bytes = cmp.Or(len(of.Text), len(of.Raw), len(of.JSON))
		}
	}
	m.Message = d.genuine(&x.Message, "message", func(of record.Digest) []byte { return x.digestInput(d.run, of) })
	return m, nil
}

func (d *decoder) info(value []byte) (*infoLine, error) {
	x := new(infoLine)
	if err := json.Unmarshal(value, x); err != nil {
		return nil, err
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
	if x.Args != nil {
		var text []byte
		text, x.Info.Unreadable = d.vault.show(x.Args, record.KindInfo, d.run, "", "invocation")
		x.Info.Invocation = text
	}
	x.Info.Fingerprint = d.vault.masked(x.Info.Fingerprint)
	x.Info.takeTurn()
	return x, nil
}

// begin adds the start of a process to the history. In files before version 10, an Info before it has a part of what it
// says of the tasks.
func (d *decoder) begin(b *record.RunStart) {
	for i := range b.Tasks {
		p := &b.Tasks[i]
		if t, ok := d.listed[p.Task]; ok && b.Version < withTaskList {
			p.Key, p.Line, p.Rounds = t.Key, t.Line, t.Rounds
		}
	}
	if d.planned != nil {
		d.planned(b.Tasks)
	}
	b.Tasks = kept(d, b.Tasks, func(p *event.Planned) task.ID { return p.Task })
	d.keep(record.Entry{Begin: b})
	h := &d.stored.History
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
	if (x.Hidden == nil || d.reveal(&x)) && x.Result != nil {
		e.Result = d.record(&x)
	}
	call := *e // without the rest of the line
	return &call, nil
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
		if of := (sizes{e.Spent, e.SavedTokens, e.Context}); of.areClasses() {
			e.SizeClasses, e.Context = true, event.Context{Prompts: e.Context.Prompts}
		}
		if x.Result != nil {
			e.Missing, e.MissingLabel = missing, x.Result.Classification
			e.Shown = &record.ShownResult{Text: x.Hidden.withheld()}
		}
		if e.Code != "" {
			e.Error = x.Hidden.withheld()
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

func (d *decoder) end(value []byte) (*record.RunEnd, error) {
	var x endLine
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, err
	}
	if x.Hidden != nil {
		if text, missing := d.vault.show(x.Hidden, record.KindRunEnd, d.run); missing == "" {
			x = endLine{}
			if err := json.Unmarshal(text, &x); err != nil {
				return nil, err
			}
		}
	}
	x.RunEnd.Tasks = kept(d, x.Tasks, func(t *record.TaskEnd) task.ID { return t.Task })
	return &x.RunEnd, nil
}
