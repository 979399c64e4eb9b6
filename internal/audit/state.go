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

// A State is what [Continue] needs of a chain: the head, the counts for the closing line, and
// the digest of the other lines since the head. A keyed digest seals it, so that only the
// owner of the key can make one. The zero value is of no chain. MarshalBinary writes its only
// form: some 80 bytes, 120 more if other lines follow the head, and the counts.
type State struct {
	head    Head
	counts  counts
	lines   int    // other lines since the head
	partial []byte // the unfinished digest of these; nil if there are none
	closed  bool
	seal    [sha256.Size]byte
}

// ErrState reports a state of another chain.
var ErrState = errors.New("the state is not one of this chain: it was altered, or is of another run or key")

// Head returns the head of the chain.
func (s State) Head() Head { return s.head }

// Closed reports whether the chain has its closing line. To continue the record, open another
// chain whose [Options].Previous is the head of this one.
func (s State) Closed() bool { return s.closed }

// IsZero reports whether s is of no chain.
func (s State) IsZero() bool { return s.head == Head{} }

// State returns the state from which [Continue] continues the chain, once all its lines and
// those next to it are written. For a broken chain it is zero.
func (c *Chain) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return State{}
	}
	s := State{head: c.head, counts: c.counts, closed: c.closed}
	s.counts.Withheld = maps.Clone(c.counts.Withheld)
	if s.lines = c.beside.lines; s.lines > 0 {
		s.partial = c.beside.partial()
	}
	s.seal = c.hash.seal(c.run, s.body())
	return s
}

// Continue returns the chain of a state, as another process may have left it. It writes
// nothing. Lines that were written after the state was taken must have been cut off. Run and
// Key of the options must be those of the chain; the others are ignored. The error is
// [ErrClosed] for a closed chain, and [ErrState] for one of another run or key.
func Continue(w io.Writer, s State, o Options) (*Chain, error) {
	if s.IsZero() {
		return nil, errors.New("the state is of no chain: give one that a chain returned")
	}
	c := &Chain{w: w, hash: newDigester(o.Key), run: valid(o.Run), head: s.head, counts: s.counts, beside: newStretch()}
	c.counts.Withheld = maps.Clone(s.counts.Withheld)
	if !s.sealed(c.hash, c.run) {
		return nil, ErrState
	}
	if s.closed {
		return nil, ErrClosed
	}
	if err := c.beside.resume(s.lines, s.partial); err != nil {
		return nil, err
	}
	return c, nil
}

// partial returns the unfinished digest of a stretch.
func (s *stretch) partial() []byte {
	text, _ := s.hash.(encoding.BinaryAppender).AppendBinary(nil) // a SHA-256 has no error
	return text
}

// resume restores a stretch from its partial digest.
func (s *stretch) resume(lines int, partial []byte) error {
	if lines == 0 {
		return nil
	}
	s.lines = lines
	if err := s.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(partial); err != nil {
		return fmt.Errorf("the state's digest of the lines after its head cannot be read: %w", err)
	}
	return nil
}

// seal returns the digest of a state of a run.
func (d *digester) seal(run string, body []byte) [sha256.Size]byte {
	return d.over([]byte(Version+" state"), []byte(run), body)
}

// sealed reports whether the seal of a state is valid for this run.
func (s *State) sealed(d *digester, run string) bool {
	want := d.seal(run, s.body())
	return hmac.Equal(want[:], s.seal[:])
}

// body returns the form of a state without its seal.
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
		b = text(b, s.partial)
	}
	for _, rule := range slices.Sorted(maps.Keys(s.counts.Withheld)) {
		b = binary.AppendUvarint(text(b, []byte(rule)), uint64(s.counts.Withheld[rule]))
	}
	return b
}

// text appends a text behind its length.
func text(b, t []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(t))), t...) }

// AppendBinary appends the form to b. The form of the zero value is empty.
func (s State) AppendBinary(b []byte) ([]byte, error) {
	if s.IsZero() {
		return b, nil
	}
	return append(append(b, s.seal[:]...), s.body()...), nil
}

// MarshalBinary returns the form of s. That of the zero value is empty.
func (s State) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary parses only what MarshalBinary returns. It does not check the seal. After
// an error s is zero.
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

// parse parses a form, and reports whether it is valid.
func (s *State) parse(form []byte) bool {
	r := formReader{rest: form}
	copy(s.seal[:], r.take(sha256.Size))
	flag := r.take(1)
	copy(s.head.Digest[:], r.take(sha256.Size))
	s.head.Lines, s.lines, s.counts.Decisions, s.counts.Passed = r.number(), r.number(), r.number(), r.number()
	if s.lines > 0 {
		s.partial = slices.Clone(r.take(r.number()))
	}
	for !r.bad && len(r.rest) > 0 {
		rule := string(r.take(r.number()))
		if s.counts.Withheld == nil {
			s.counts.Withheld = map[string]int{}
		}
		s.counts.Withheld[rule] = r.number()
	}
	if r.bad || s.head.Lines < 1 {
		return false
	}
	s.closed = flag[0] == 1
	again, _ := s.MarshalBinary()
	return bytes.Equal(again, form)
}

// A formReader parses the parts of a form.
type formReader struct {
	rest []byte
	bad  bool // it ended too early, or a number is invalid
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
