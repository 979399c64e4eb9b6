package journal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/event"
)

// Stored is what a journal has of a run.
type Stored struct {
	Info    Info          // the newest
	History event.History // with masked keys; the payloads as far as the key of the journal opens them
	Newest  time.Time     // when the last of it became durable
}

// Load returns what the journal has of a run, which is named as for
// [Journal.Find]. A payload that is not what its digest says makes an envelope
// that is not genuine.
func (j *Journal) Load(ctx context.Context, run string) (*Stored, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return j.load(ctx, r.n, r.id)
}

func (j *Journal) load(ctx context.Context, number int64, run string) (*Stored, error) {
	at, _, err := j.store.last(ctx, number)
	if err != nil {
		return nil, j.fail("read", err)
	}
	d := &decoder{vault: j.vault, run: run, stored: &Stored{Newest: at, History: event.History{Mask: j.vault.mask}}}
	if err := j.each(ctx, number, false, d.rows); err != nil {
		return nil, j.fail("read", fmt.Errorf("run %s: %w", run, err))
	}
	return d.stored, nil
}

// each calls f with the lines of each row of a run, in order: all of them, or
// those of its history.
func (j *Journal) each(ctx context.Context, number int64, whole bool, f func(lines []byte) error) error {
	var after int64
	for {
		leaves, err := j.store.page(ctx, number, after, whole)
		if err != nil {
			return err
		}
		for i, err := range unpacked(leaves, whole) {
			if err == nil {
				err = f(leaves[i].text)
			}
			if err != nil {
				return err
			}
			after = leaves[i].n
		}
		if len(leaves) < pageSize {
			return nil
		}
	}
}

// unpacked unpacks the rows of a page, at the same time, and returns how each
// of them came out.
func unpacked(leaves []leaf, whole bool) []error {
	errs := make([]error, len(leaves))
	var all sync.WaitGroup
	for i := range leaves {
		all.Go(func() { leaves[i].text, errs[i] = leaves[i].read(whole) })
	}
	all.Wait()
	return errs
}

// read returns the lines of a row, or those of its history.
func (l *leaf) read(whole bool) ([]byte, error) {
	if whole {
		return l.lines.unpack()
	}
	return decompress(l.lines.kept)
}

// Lines returns the lines of a run as they became durable, in the form of a
// trace with more kinds of lines. They can be verified with package audit.
func (j *Journal) Lines(ctx context.Context, run string) (io.ReadCloser, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return &lineReader{ctx: ctx, j: j, run: r.n}, nil //nolint:containedctx // of a reader, for as long as it reads
}

// A lineReader reads the rows of a run as it goes on.
type lineReader struct {
	ctx    context.Context
	j      *Journal
	run    int64
	after  int64
	leaves []leaf
	text   []byte
	end    bool
	closed bool
}

// Read reads lines.
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.text) == 0 {
		if r.closed {
			return 0, r.j.fail("read", ErrClosed)
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// next unpacks the next row.
func (r *lineReader) next() (err error) {
	if len(r.leaves) == 0 {
		if r.end {
			return io.EOF
		}
		if r.leaves, err = r.j.store.page(r.ctx, r.run, r.after, true); err != nil {
			return r.j.fail("read", err)
		}
		if r.end = len(r.leaves) < pageSize; len(r.leaves) == 0 {
			return io.EOF
		}
	}
	r.text, err = r.leaves[0].read(true)
	r.after, r.leaves = r.leaves[0].n, r.leaves[1:]
	return r.j.fail("read", err)
}

// Close ends the reading.
func (r *lineReader) Close() error {
	r.closed, r.text, r.leaves = true, nil, nil
	return nil
}

// A decoder makes the history of lines.
type decoder struct {
	vault  *vault
	run    string
	stored *Stored
}

// rows takes the lines of a row.
func (d *decoder) rows(lines []byte) error {
	for line := range bytes.Lines(lines) {
		kind, value := split(line)
		if err := d.line(kind, value); err != nil {
			return fmt.Errorf("its line of kind %q cannot be read: %w", kind, err)
		}
	}
	return nil
}

// split returns the kind and the value of a line of one member, as an encoder
// wrote it. Of another line the kind is empty.
func split(line []byte) (kind string, value []byte) {
	line = bytes.TrimRight(line, "\n")
	rest, ok := bytes.CutPrefix(line, []byte(`{"`))
	name, rest, found := bytes.Cut(rest, []byte(`":`))
	value, whole := bytes.CutSuffix(rest, []byte("}"))
	if !ok || !found || !whole {
		return "", nil
	}
	return string(name), value
}

// line takes a line that tells of the history; others are not looked at.
func (d *decoder) line(kind string, value []byte) error {
	h := &d.stored.History
	switch kind {
	case kindInfo:
		return d.info(value)
	case kindBegin:
		return d.begin(value)
	case kindAsked:
		a := new(event.Asked)
		h.Log = append(h.Log, event.Entry{Asked: a})
		return json.Unmarshal(value, a)
	case kindBegun:
		b := new(event.Begun)
		h.Log = append(h.Log, event.Entry{Begun: b})
		return json.Unmarshal(value, b)
	case kindExchange:
		x, err := d.exchange(value)
		h.Log = append(h.Log, event.Entry{Exchange: x})
		return err
	case kindEnd:
		return d.end(value)
	}
	return nil
}

func (d *decoder) info(value []byte) error {
	var x infoLine
	if err := json.Unmarshal(value, &x); err != nil {
		return err
	}
	for _, f := range x.Files {
		if d.vault.digests != nil && d.vault.digest("file", f.standing(d.run)) != f.Digest {
			f.Text, f.Hidden, f.Missing = "", nil, ErrAltered.Error()
		}
		if f.Hidden != nil {
			var text []byte
			text, f.Missing = d.vault.show(f.Hidden, kindInfo, d.run, f.Path)
			f.Text = string(text)
		}
		x.Info.Files = append(x.Info.Files, f.File)
	}
	x.Info.Fingerprint = d.vault.masked(x.Info.Fingerprint)
	d.stored.Info = x.Info
	return nil
}

func (d *decoder) begin(value []byte) error {
	var x beginLine
	if err := json.Unmarshal(value, &x); err != nil {
		return err
	}
	for _, in := range x.Inputs {
		in.GivenInput.Key = keyOf(in.Key)
		x.Begin.Inputs = append(x.Begin.Inputs, in.GivenInput)
	}
	h := &d.stored.History
	h.Begins, h.End = append(h.Begins, x.Begin), nil
	return nil
}

// keyOf returns a masked key as it was kept.
func keyOf(k *envelope.Digest) event.Key {
	if k == nil {
		return event.Key{}
	}
	return event.Key(*k)
}

func (d *decoder) exchange(value []byte) (*event.Exchange, error) {
	var x exchangeLine
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, err
	}
	e := &x.Exchange
	e.Key, e.Core = keyOf(x.Key), keyOf(x.Core)
	if x.Hidden != nil && !d.reveal(&x) {
		return e, nil
	}
	if x.Result != nil {
		e.Result = d.record(&x)
	}
	return e, nil
}

// reveal puts back what was hidden of an exchange, or says why it cannot be had.
func (d *decoder) reveal(x *exchangeLine) bool {
	e := &x.Exchange
	text, missing := d.vault.show(x.Hidden, kindExchange, d.run, e.Session, e.Part)
	var s secrets
	if missing == "" {
		if err := json.Unmarshal(text, &s); err != nil {
			missing = err.Error()
		}
	}
	if missing != "" {
		if x.Result != nil {
			e.Missing, e.Shown = missing, &event.ShownResult{Text: withheld}
		}
		if e.Code != "" {
			e.Error = withheld
		}
		return false
	}
	if e.Shown, e.Error = s.Shown, s.Error; x.Result != nil {
		x.Result.words = s.words
	}
	return true
}

// record returns the envelope that a line keeps. If header and payload are not
// what the digest says, it has another digest than they have.
func (d *decoder) record(x *exchangeLine) *envelope.Record {
	l := x.Result
	r := &envelope.Record{Header: l.Header, Text: cmp.Or(l.Text, string(l.Raw)), JSON: l.JSON}
	made, err := r.Envelope()
	if err != nil {
		return r
	}
	e, err := envelope.New(made.Header(), payloadOf(r))
	if err != nil {
		return r
	}
	if of := e.Digest(); d.vault.digest("envelope", x.standing(d.run, of)) == l.Digest {
		r.Digest = of
	}
	return r
}

// payloadOf returns the payload of a record that an envelope could be made of.
func payloadOf(r *envelope.Record) envelope.Payload {
	p := envelope.Text(r.Text)
	if r.JSON == nil {
		return p
	}
	v, err := envelope.ParseJSON(string(r.JSON))
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
	e := &x.End
	if x.Hidden != nil {
		text, missing := d.vault.show(x.Hidden, kindEnd, d.run)
		if missing == "" {
			e = new(event.End)
			if err := json.Unmarshal(text, e); err != nil {
				return err
			}
		}
	}
	d.stored.History.End = e
	return nil
}

// answersIn returns what a row has that was answered to a prompt.
func (j *Journal) answersIn(l leaf, masked event.Key) (list []event.Exchange, err error) {
	lines, err := l.read(false)
	if err != nil {
		return nil, err
	}
	d := &decoder{vault: j.vault, run: l.id}
	key := hex.AppendEncode(nil, masked[:])
	for line := range bytes.Lines(lines) {
		kind, value := split(line)
		if kind != kindExchange || !bytes.Contains(value, key) {
			continue
		}
		x, err := d.exchange(value)
		if err != nil {
			return nil, err
		}
		if x.Key == masked && x.Reusable && x.Completed() {
			list = append(list, *x)
		}
	}
	return list, nil
}

// fresh reports whether the answer of an exchange can be had and may be read now.
func fresh(x *event.Exchange, now time.Time) bool {
	if x.Result == nil || x.Missing != "" {
		return false
	}
	e, err := x.Result.Envelope()
	return err == nil && e.Genuine() == nil && e.Fresh(now) == nil
}
