package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/oneline"
)

// A connection is one session with a server, and its process if it has one.
type connection struct {
	session   *sdk.ClientSession
	process   *program       // nil for a server with a URL
	listening sync.WaitGroup // the stream of notifications of a server with a URL
	ended     chan struct{}  // closed when the session has ended

	changed  atomic.Bool  // the server announced other tools since they were listed
	gone     atomic.Bool  // the server does not know the session any more
	deaf     atomic.Bool  // the stream of notifications has ended
	last     atomic.Int64 // when the server answered last, in Unix nanoseconds
	unpinged bool         // the server answers no ping; guarded by the turn of sessions

	mu      sync.Mutex // guards the fields below
	calls   int        // that run
	retired bool       // closed after the last of them
}

// heard notes that the server answered.
func (c *connection) heard() { c.last.Store(time.Now().UnixNano()) }

// isOver reports whether the session has ended.
func (c *connection) isOver() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// usable reports whether calls can begin in the session.
func (c *connection) usable() bool { return !c.isOver() && !c.gone.Load() }

// acquire notes that a call begins.
func (c *connection) acquire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
}

// release notes that a call has ended.
func (c *connection) release() {
	c.mu.Lock()
	c.calls--
	last := c.retired && c.calls == 0
	c.mu.Unlock()
	if last {
		c.Close()
	}
}

// retire closes the connection as soon as none of its calls runs.
func (c *connection) retire() {
	c.mu.Lock()
	c.retired = true
	idle := c.calls == 0
	c.mu.Unlock()
	if idle {
		c.Close()
	}
}

// stderrTail returns the end of what the server's process wrote to its standard error.
func (c *connection) stderrTail() string {
	if c.process == nil {
		return ""
	}
	return oneline.Of(c.process.Stderr())
}

// Close ends the session and the process. It may be called twice.
func (c *connection) Close() error {
	if c.process == nil {
		err := c.session.Close()
		<-c.ended
		c.listening.Wait()
		if c.gone.Load() {
			return nil // the server knows of no session to close
		}
		return err
	}
	c.process.Stop()      // first, since the session waits for a server that does not read
	_ = c.session.Close() // its pipes are closed
	<-c.ended
	return nil
}

// failed returns the error of a request, with the end of what the server's process wrote to its
// standard error.
func (s *Server) failed(ctx context.Context, c *connection, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = cause
	}
	if c.process != nil && errors.Is(err, io.EOF) {
		c.process.Stop() // which waits for the rest of its standard error
	}
	err = s.masks().Error(err)
	if c.process != nil && c.process.Exceeded() != "" {
		err = fmt.Errorf("%w: its program was stopped: %s", err, c.process.Exceeded())
	}
	if tail := c.stderrTail(); tail != "" {
		return fmt.Errorf("mcp server %q: %w; stderr: %s", s.Name, err, tail)
	}
	return fmt.Errorf("mcp server %q: %w", s.Name, err)
}

// isAnswer reports whether an error of a request is what the server answered.
func isAnswer(err error) bool {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (answer.Code < codeRejected || answer.Code > codeClosing) && !errors.Is(err, sdk.ErrConnectionClosed)
}

// The SDK uses the codes from codeRejected to codeClosing for requests that it could not send.
const (
	codeRejected = -32005
	codeClosing  = -32003
)

// await runs a request. It may hang in a write to a server that does not read, until the session
// is closed; await ends with ctx.
func await[T any](ctx context.Context, request func() (T, error)) (T, error) {
	type response struct {
		value T
		err   error
	}
	done := make(chan response, 1)
	go func() {
		value, err := request()
		done <- response{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
