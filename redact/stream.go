package redact

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"unicode/utf8"
)

// A Stream redacts a text that arrives in pieces. It releases a part once nothing that can follow
// changes the redaction of it, so that what it releases is always the beginning of what
// [Redactor.TextRevealing] returns for the whole text.
//
// Prose and code are released up to about the last word. A number or the value of a name is
// released some characters later, a word without spaces when it ends, and a private key, a
// Kubernetes manifest or a run of base64 not before it is complete. A Stream keeps the whole text,
// so its caller bounds the length. It is not safe for concurrent use.
type Stream struct {
	redactor *Redactor
	reveal   reveal

	text     strings.Builder
	valid    int  // the text before this offset is valid UTF-8
	damaged  bool // the text is not valid UTF-8, or a detector failed: only Close may say more
	next     int  // the text is searched again when it has so many bytes
	released int  // the redacted text before this offset was released
	start    int  // the next search begins here
	known    []agedSpan

	work   int // bytes that were searched; tests bound it by a multiple of the text
	shown  int // bytes that were released
	digest maphash.Hash
	closed *closing
}

// A search whose work exceeds freeWork is repeated only after a byte for each workPerByte of the
// rest. That bounds the work for each piece and for each byte: what waits for long, such as a
// private key, is searched less often.
const (
	freeWork    = 16 << 10
	workPerByte = 64
)

// A closing is what [Stream.Close] returns again.
type closing struct {
	redacted, revealed Counts
	err                error
}

// errReleased reports a stream that released what is not the beginning of the redacted text: a
// detector that looks further than it says.
var errReleased = errors.New("released text is not the beginning of the redacted text")

// Stream returns a stream of a text for a reader that may see what reveal permits, as in
// [Redactor.TextRevealing].
func (r *Redactor) Stream(reveal func(kind Kind, path []string) bool) *Stream {
	return &Stream{redactor: r, reveal: reveal}
}

// Write adds a piece, which may end within a character, and returns what is released by it, which
// may be empty. It releases nothing more once the text cannot be redacted, and [Stream.Close] then
// says why. When ctx ends, the piece is kept and a later call searches it.
//
// What Write releases does not depend on what follows: if the text cannot be redacted in the end,
// it is still the beginning of the redaction of the text that had arrived.
func (s *Stream) Write(ctx context.Context, piece string) (released string) {
	if s.closed != nil {
		return ""
	}
	s.text.WriteString(piece)
	if s.damaged || s.text.Len() < s.next {
		return ""
	}
	err := s.redactor.guard(func() error {
		released = s.advance(ctx)
		return nil
	})
	if err != nil {
		s.damaged = true
		return ""
	}
	s.shown += len(released)
	_, _ = s.digest.WriteString(released)
	return released
}

// Close ends the text. It returns what was not yet released of the result of
// [Redactor.TextRevealing] for the whole text, and the counts or the error of it. Closing again
// returns the same without the text, and if ctx has ended, the stream stays open.
func (s *Stream) Close(ctx context.Context) (rest string, redacted, revealed Counts, err error) {
	if c := s.closed; c != nil {
		return "", c.redacted, c.revealed, c.err
	}
	out, redacted, revealed, err := s.redactor.TextRevealing(ctx, s.text.String(), s.reveal)
	if errors.Is(err, errStopped) {
		return "", nil, nil, err
	}
	if err == nil && (len(out) < s.shown || maphash.String(s.digest.Seed(), out[:s.shown]) != s.digest.Sum64()) {
		out, redacted, revealed, err = "", nil, nil, errReleased
	}
	s.closed = &closing{redacted, revealed, err}
	s.text, s.known = strings.Builder{}, nil
	if err != nil {
		return "", nil, nil, err
	}
	return out[s.shown:], redacted, revealed, nil
}

// advance searches what has arrived and returns what is released.
func (s *Stream) advance(ctx context.Context) string {
	text := s.text.String()
	text = text[:s.validEnd(text)]
	end := lastCut(text, len(text), s.start, nil)
	if s.damaged || end <= s.start {
		return ""
	}
	sc, work := newScan(ctx), 0
	for behind := lookBehind; ; behind *= 4 {
		from := s.context(text, behind)
		w := newWindow(text, from, end, s)
		w.settle(s.redactor, sc, location{reveal: s.reveal})
		work += w.work
		if w.shallow && from > 0 {
			continue
		}
		s.next = s.text.Len() + max(1, (work-freeWork)/workPerByte)
		s.work += work
		sc.frontier = frontier{}
		sc.free()
		return s.release(&w, from)
	}
}

// release takes over what was settled in the window from from on, and returns what of it is new.
func (s *Stream) release(w *window, from int) string {
	for _, k := range w.aged() {
		s.known = append(s.known, k.moved(from))
	}
	s.start = from + w.start
	if w.open <= w.released {
		return ""
	}
	var out []span
	for _, f := range w.found {
		if f.Start >= w.released && f.End <= w.open {
			out = append(out, span{f.Start - w.released, f.End - w.released, f.Kind})
		}
	}
	s.released = from + w.open
	return replace(w.text[w.released:w.open], out)
}

// validEnd returns the end of the last whole character. From the first byte that is not UTF-8 on,
// nothing is released.
func (s *Stream) validEnd(text string) int {
	for s.valid < len(text) && utf8.FullRuneInString(text[s.valid:]) {
		c, n := utf8.DecodeRuneInString(text[s.valid:])
		if c == utf8.RuneError && n == 1 {
			s.damaged = true
			break
		}
		s.valid += n
	}
	return s.valid
}

// context returns where the text begins that a search from s.start looks at: at a line, with behind
// bytes that are in no span between.
func (s *Stream) context(text string, behind int) int {
	at := s.start
	for i := len(s.known) - 1; i >= 0 && at > 0; i-- {
		k := s.known[i]
		if k.until < maxRounds {
			continue
		}
		if gap := at - k.End; gap >= behind {
			break
		} else {
			behind -= max(gap, 0)
		}
		at = min(at, k.Start)
	}
	if at -= behind; at <= lookBehind {
		return 0
	}
	if n := strings.LastIndexByte(text[at-lookBehind:at], '\n'); n >= 0 {
		at += n + 1
	}
	for at -= lookBehind; at > 0 && !utf8.RuneStart(text[at]); {
		at--
	}
	return at
}
