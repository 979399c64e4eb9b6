package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/tool"
)

// pinned is a server with the digests of the definitions that its tools were made from.
type pinned struct {
	server  *Server
	digests map[string]digest // by the server's own names
}

// Why a tool is not called.
var (
	errChanged  = errors.New("its definition changed since Tools was called; call Tools again and start a new run")
	errVanished = errors.New("the server no longer offers it")
)

// call makes one call in the session of the attempt.
func (p *pinned) call(ctx context.Context, name string, c tool.Call) (tool.Result, error) {
	resources := c.Shared
	if p.server.SharedSession {
		resources = &p.server.shared
	}
	if resources == nil {
		return tool.Result{}, errors.New("tool.Call.Shared is nil; a team sets it")
	}
	v, err := resources.Get(p, func() (io.Closer, error) {
		return &sessions{pinned: p, turn: make(chan struct{}, 1)}, nil
	})
	if err != nil {
		return tool.Result{}, err
	}
	ctx, giveBack := membudget.Within(ctx, membudget.Attempt)
	defer giveBack()
	for again := false; ; again = true {
		conn, err := v.(*sessions).get(ctx, name)
		if err != nil {
			return tool.Result{}, err
		}
		res, err := await(ctx, func() (*sdk.CallToolResult, error) {
			return conn.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: c.Arguments})
		})
		conn.release()
		if err == nil || isAnswer(err) {
			conn.heard()
		}
		switch {
		case err == nil:
			return p.server.masked(resultOf(res))
		case again || !errors.Is(err, errSessionGone) || !p.server.mayRepeat():
			return tool.Result{}, p.server.callFailed(ctx, conn, err)
		}
	}
}

// callFailed returns the error of a call.
func (s *Server) callFailed(ctx context.Context, c *connection, err error) error {
	if full := membudget.Refused(ctx); full != nil {
		err = fmt.Errorf("the result: %w", full)
	}
	failed := s.failed(ctx, c, withoutRequest(err))
	switch {
	case !s.isExternal() || isAnswer(err) || ctx.Err() != nil: // who gave up knows that the call may have been made
		return failed
	case errors.Is(err, errSessionGone) && !s.Options.Repeatable:
		return fmt.Errorf("%w: %w", failed, tool.ErrUncertain)
	}
	return fmt.Errorf("%w; the call may have taken effect", failed)
}

// list returns what the server says now about the pinned tools.
func (p *pinned) list(ctx context.Context, c *connection) (map[string]digest, error) {
	now := map[string]digest{}
	return now, p.server.eachTool(ctx, c, func(t *sdk.Tool) error {
		if _, known := p.digests[t.Name]; !known {
			return nil
		}
		d, err := definitionOf(t)
		if err != nil {
			return nil // it has no digest, as if it were not offered
		}
		sum := d.digest()
		if other, twice := now[t.Name]; twice && other != sum {
			sum = digest{}
		}
		now[t.Name] = sum
		return nil
	})
}

// check returns an error if what the server says now about a tool is not what is pinned.
func (p *pinned) check(now map[string]digest, name string) error {
	sum, offered := now[name]
	switch {
	case !offered:
		return fmt.Errorf("mcp server %q: tool %q: %w", p.server.Name, name, errVanished)
	case sum != p.digests[name]:
		return fmt.Errorf("mcp server %q: tool %q: %w", p.server.Name, name, errChanged)
	}
	return nil
}

// sessions are the connections of one task to one server. Calls begin in the newest.
type sessions struct {
	pinned *pinned

	turn    chan struct{} // has a value while somebody uses the fields below; opening a session takes time
	current *connection
	now     map[string]digest // what the server said last about the pinned tools, in the current session
	older   []*connection     // whose calls may still run
	closed  bool
}

// get returns the connection for a call of a tool, which must release it. It opens one if there is
// none or it was lost, and makes sure that the server still offers the tool as it is pinned.
func (s *sessions) get(ctx context.Context, name string) (*connection, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.closed {
		return nil, tool.ErrClosed
	}
	ctx, cancel := s.pinned.server.untilTimeout(ctx)
	defer cancel()
	if s.current != nil && s.current.usable() {
		if err := s.renew(ctx); err != nil && s.current.usable() {
			return nil, err
		}
	}
	if s.current == nil || !s.current.usable() {
		if err := s.open(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.pinned.check(s.now, name); err != nil {
		return nil, err
	}
	s.current.acquire()
	return s.current, nil
}

// open opens a session in place of the current one.
func (s *sessions) open(ctx context.Context) error {
	if s.current != nil {
		s.older = append(slices.DeleteFunc(s.older, func(c *connection) bool { return c.isOver() }), s.current)
		s.current.retire()
		s.current = nil
	}
	c, err := s.pinned.server.connect(ctx)
	if err != nil {
		return err
	}
	if s.now, err = s.pinned.list(ctx, c); err != nil {
		c.Close()
		return err
	}
	s.current = c
	return nil
}

// renew lists the tools again if that may give something else, and pings an idle server before an
// external call.
func (s *sessions) renew(ctx context.Context) error {
	c, server := s.current, s.pinned.server
	idle := server.isExternal() && time.Since(time.Unix(0, c.last.Load())) >= idleTime
	// A person may have taken long to approve the call.
	if c.changed.Swap(false) || server.Options.Approve != "" || idle && c.deaf.Load() {
		now, err := s.pinned.list(ctx, c)
		if err != nil {
			c.changed.Store(true)
			return err
		}
		s.now = now
		return nil
	}
	if !idle || c.unpinged {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	_, err := await(limited, func() (any, error) { return nil, c.session.Ping(limited, nil) })
	switch {
	case err == nil || isAnswer(err):
		c.heard()
	case limited.Err() != nil: // it answers no ping, or the call was given up
		c.unpinged = ctx.Err() == nil
	case errors.Is(err, errSessionGone):
	default:
		return server.failed(ctx, c, withoutRequest(err))
	}
	return nil
}

// Times of a ping. Tests change them.
var (
	idleTime = time.Second     // after which a session without an answer is idle
	pingTime = 2 * time.Second // for an answer, after which the call is made without one
)

// Close ends the sessions, with the calls that run in them.
func (s *sessions) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.closed = true
	var err error
	if s.current != nil {
		err = s.current.Close()
	}
	for _, c := range s.older {
		c.Close() // the server does not know it any more
	}
	return err
}
