package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// A State is what a chain has come to, as far as whoever continues it has to
// know: the head, the counts for the closing line, and the digest of the other
// lines since the head. It is sealed with the digest of the chain, so that
// under a key only who has it can make one. The zero value is of no chain. It
// has one form, which MarshalBinary writes: some 80 bytes, 120 more if other
// lines stand after the head, and what the counts take.
type State struct {
	head   Head
	counts counts
	lines  int    // other lines since the head
	middle []byte // the digest of these, unfinished; nil if there are none
	closed bool
	seal   [sha256.Size]byte
}

// ErrState reports that a state is not one of the chain that is to go on.
var ErrState = errors.New("the state is not one of this chain: it was altered, or is of another run or key")

// Head returns the head of the chain.
func (s State) Head() Head { return s.head }

// Closed reports whether the chain has its closing line. Whoever goes on then
// opens another chain, of which [Options].Previous is the head of this one.
func (s State) Closed() bool { return s.closed }

// IsZero reports whether s is of no chain.
func (s State) IsZero() bool { return s.head == Head{} }

// State returns what [Continue] goes on from: a chain of which all lines up to
// here are written, and those beside it, too. Of a broken chain it is zero.
func (c *Chain) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return State{}
	}
	s := State{head: c.head, counts: c.counts, closed: c.closed}
	s.counts.Held = maps.Clone(c.counts.Held)
	if s.lines = c.beside.lines; s.lines > 0 {
		s.middle = c.beside.middle()
	}
	s.seal = c.hash.seal(c.run, s.body())
	return s
}

// Continue returns the chain that had come to a state, as another process may
// have left it: what follows reads as if that had written it. Nothing is
// written by it. What was written after the state was taken, of either kind,
// must have been cut off. Of the options Run and Key must be those with which
// the chain was opened; the others say what an opening line says, and are not
// looked at. Of a chain that is closed the error is [ErrClosed], and of
// one of another run or key [ErrState].
func Continue(w io.Writer, s State, o Options) (*Chain, error) {
	if s.IsZero() {
		return nil, errors.New("the state is of no chain: give one that a chain returned")
	}
	c := &Chain{w: w, hash: newDigester(o.Key), run: valid(o.Run), head: s.head, counts: s.counts, beside: newStretch()}
	c.counts.Held = maps.Clone(s.counts.Held)
	if !s.sealed(c.hash, c.run) {
		return nil, ErrState
	}
	if s.closed {
		return nil, ErrClosed
	}
	if err := c.beside.resume(s.lines, s.middle); err != nil {
		return nil, err
	}
	return c, nil
}

// middle returns the digest of a stretch that is not finished.
func (s *stretch) middle() []byte {
	text, _ := s.hash.(encoding.BinaryAppender).AppendBinary(nil) // a SHA-256 has no error
	return text
}

// resume goes on from there.
func (s *stretch) resume(lines int, middle []byte) error {
	if lines == 0 {
		return nil
	}
	s.lines = lines
	if err := s.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(middle); err != nil {
		return fmt.Errorf("the state's digest of the lines after its head cannot be read: %w", err)
	}
	return nil
}

// seal is the digest of a state of a run.
func (d *digester) seal(run string, body []byte) [sha256.Size]byte {
	return d.over([]byte(Version+" state"), []byte(run), body)
}

// sealed reports whether a state is of a chain of this run.
func (s *State) sealed(d *digester, run string) bool {
	want := d.seal(run, s.body())
	return hmac.Equal(want[:], s.seal[:])
}

// body is all of a state but its seal.
func (s *State) body() []byte {
	b := append(make([]byte, 0, 256), 0)
	if s.closed {
		b[0] = 1
	}
	b = append(b, s.head.Digest[:]...)
	for _, n := range [...]int{s.head.Lines, s.lines, s.counts.Decisions, s.counts.Passed} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if s.lines > 0 {
		b = text(b, s.middle)
	}
	for _, rule := range slices.Sorted(maps.Keys(s.counts.Held)) {
		b = binary.AppendUvarint(text(b, []byte(rule)), uint64(s.counts.Held[rule]))
	}
	return b
}

// text adds a text behind its length.
func text(b, t []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(t))), t...) }

// AppendBinary adds the form to b. The zero value is nothing.
func (s State) AppendBinary(b []byte) ([]byte, error) {
	if s.IsZero() {
		return b, nil
	}
	return append(append(b, s.seal[:]...), s.body()...), nil
}

// MarshalBinary returns the form of s. The zero value is empty.
func (s State) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary reads what MarshalBinary writes, and nothing else. Whether it
// is of a chain [Continue] says. After an error s is zero.
func (s *State) UnmarshalBinary(form []byte) error {
	*s = State{}
	if len(form) == 0 {
		return nil
	}
	var got State
	if !got.parse(form) {
		return fmt.Errorf("%d bytes are no state of a chain: they were cut off or altered", len(form))
	}
	*s = got
	return nil
}

// parse reads a form, and reports whether it is one.
func (s *State) parse(form []byte) bool {
	r := formReader{rest: form}
	copy(s.seal[:], r.take(sha256.Size))
	flag := r.take(1)
	copy(s.head.Digest[:], r.take(sha256.Size))
	s.head.Lines, s.lines, s.counts.Decisions, s.counts.Passed = r.number(), r.number(), r.number(), r.number()
	if s.lines > 0 {
		s.middle = slices.Clone(r.take(r.number()))
	}
	for !r.bad && len(r.rest) > 0 {
		rule := string(r.take(r.number()))
		if s.counts.Held == nil {
			s.counts.Held = map[string]int{}
		}
		s.counts.Held[rule] = r.number()
	}
	if r.bad || s.head.Lines < 1 {
		return false
	}
	s.closed = flag[0] == 1
	again, _ := s.MarshalBinary()
	return bytes.Equal(again, form)
}

// A formReader takes a form apart.
type formReader struct {
	rest []byte
	bad  bool // it ended too early, or a number is none
}

// take returns the next n bytes.
func (r *formReader) take(n int) []byte {
	if r.bad = r.bad || n > len(r.rest); r.bad {
		return nil
	}
	part := r.rest[:n]
	r.rest = r.rest[n:]
	return part
}

func (r *formReader) number() int {
	n, size := binary.Uvarint(r.rest)
	if r.bad = r.bad || size <= 0 || n > 1<<53; r.bad {
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}
