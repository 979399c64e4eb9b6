// Package membudget bounds the memory that text of models, servers and files may take while a process works on it.
//
// Who reads or decodes such a text takes what it will need before it allocates it. What is taken counts for the scope of
// its context, such as a call of a tool, for those around it, such as an attempt at a task, and for the process, until
// the scope ends.
package membudget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/runteam/runteam/internal/bytesize"
)

// Attempt is what the texts of one attempt at a task may take, in bytes.
const Attempt = 256 << 20

// ErrFull reports that a text needs more memory than is left for it.
var ErrFull = errors.New("too much memory")

// errEnded is the error of what goes on after its scope has ended.
var errEnded = fmt.Errorf("%w: the call has ended", ErrFull)

// A scope is a part of what the process may take, and the context of what works within it.
type scope struct {
	context.Context
	around *scope // nil for that of the process
	limit  int64
	taken  int64
	ended  bool
	full   error // why something was not given, the last time
}

// mu guards all scopes.
var mu sync.Mutex

type scopeKey struct{}

// of returns the scope of a context.
func of(ctx context.Context) *scope {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s
	}
	return process()
}

// Within returns a context with a scope of its own within that of ctx. End gives back what was taken in it; later,
// nothing can be taken in it.
func Within(ctx context.Context, limit int64) (scoped context.Context, end func()) {
	s := &scope{Context: ctx, around: of(ctx), limit: limit}
	return s, s.end
}

// Value returns the scope itself for the key of scopes.
func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

func (s *scope) end() {
	mu.Lock()
	defer mu.Unlock()
	s.ended = true
	for at := s.around; at != nil && !at.ended; at = at.around {
		at.taken -= s.taken
	}
	s.taken = 0
}

// Take takes n bytes for the scope of ctx. Without one it only says whether the process has as much left, since nobody
// would give that back. Its error wraps [ErrFull] and says which limit is reached. It is safe for concurrent use.
func Take(ctx context.Context, n int64) error {
	mu.Lock()
	defer mu.Unlock()
	own := of(ctx)
	for at := own; at != nil; at = at.around {
		if at.ended {
			return errEnded
		}
		if n > at.limit-at.taken {
			own.full = at.errorFor(n)
			return own.full
		}
	}
	if own.around == nil {
		return nil
	}
	for at := own; at != nil; at = at.around {
		at.taken += n
	}
	return nil
}

// Refused returns the last error of [Take] in the scope of ctx itself, for who got an error that does not wrap it; nil
// if there was none, or if ctx has no scope of its own.
func Refused(ctx context.Context) error {
	mu.Lock()
	defer mu.Unlock()
	if s := of(ctx); s.around != nil {
		return s.full
	}
	return nil
}

// errorFor returns the error of a scope that has no room for n more bytes.
func (s *scope) errorFor(n int64) error {
	if s.around == nil {
		return fmt.Errorf("%w: %s more, and this process may take %s for the texts that it works on, half of its memory; run fewer tasks at once, or give it more", ErrFull, bytesize.Text(int(n)), bytesize.Text(int(s.limit)))
	}
	return fmt.Errorf("%w: %s more, of %s; ask for less at once", ErrFull, bytesize.Text(int(n)), bytesize.Text(int(s.limit)))
}

// value is what a JSON value takes while it is decoded, checked and written again, in bytes. Small values take most: an
// empty array in an array took 270.
const value = 256

// Decoded returns what decoding a JSON text takes, in bytes, from its length and the number of its values. It counts
// separators in strings too.
func Decoded[Text ~string | ~[]byte](text Text) int64 {
	values := int64(0)
	for i := range len(text) {
		if c := text[i]; c == ',' || c == '[' || c == '{' {
			values++
		}
	}
	return int64(len(text)) + values*value
}

// Reader returns a reader that takes what decoding the JSON text that it reads needs, for the scope of ctx.
func Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx: ctx, from: r} }

// Events is [Reader] for a stream of server-sent events without an end: after each of them, what was taken for it is
// given back. The end of the scope of ctx, which there must be, gives back the rest.
func Events(ctx context.Context, r io.Reader) io.Reader {
	return &reader{ctx: ctx, from: r, end: func() {}, line: 1}
}

type reader struct {
	ctx  context.Context
	from io.Reader

	scoped context.Context // of an event
	end    func()          // nil for one text
	line   int             // bytes of the line that was not ended, of events
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	scoped := r.ctx
	if r.end != nil {
		scoped = r.event(p[:n])
	}
	if full := Take(scoped, Decoded(p[:n])); full != nil {
		return 0, full
	}
	if err != nil && r.end != nil {
		r.end()
	}
	return n, err
}

// event returns the context of the event that begins last in a piece of a stream.
func (r *reader) event(piece []byte) context.Context {
	ended := r.scoped == nil
	for _, c := range piece {
		switch {
		case c == '\r':
		case c != '\n':
			r.line++
		case r.line == 0:
			ended = true
		default:
			r.line = 0
		}
	}
	if ended {
		r.end()
		r.scoped, r.end = Within(r.ctx, Attempt)
	}
	return r.scoped
}
