package inspector

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// The limits of connections.
const (
	maxAuthenticated   = 1024
	maxUnauthenticated = 256
	authenticationTime = 2 * time.Second // for an unauthenticated client to send a request, and to read the answer
)

// connections is a listener that limits what it accepts. A connection is unauthenticated until a request on it
// has a valid token or session. Those connections have a limit of their own, so that they cannot shut out clients
// with a token: a new one replaces the oldest.
type connections struct {
	net.Listener

	mu              sync.Mutex // guards the fields below, and those of each connection
	authenticated   int
	unauthenticated list.List // of *connection, the oldest first
}

// A connection has short deadlines while it is unauthenticated.
type connection struct {
	net.Conn
	of              *connections
	place           *list.Element // among the unauthenticated ones; nil once it is authenticated or closed
	isAuthenticated bool
	readDeadline    time.Time // as the server set it
}

// Accept returns the next connection.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, of: l}
	l.mu.Lock()
	var replaced *connection
	if l.unauthenticated.Len() >= maxUnauthenticated {
		replaced = l.unauthenticated.Front().Value.(*connection)
		replaced.leave()
	}
	c.place = l.unauthenticated.PushBack(c)
	l.mu.Unlock()
	if replaced != nil {
		_ = replaced.Conn.Close() // the server then closes it too
	}
	return c, nil
}

// leave takes the connection out of the counts. The caller holds the lock.
func (c *connection) leave() {
	if c.place != nil {
		c.of.unauthenticated.Remove(c.place)
		c.place = nil
	}
	if c.isAuthenticated {
		c.of.authenticated--
		c.isAuthenticated = false
	}
}

// authenticate moves the connection to the authenticated ones. It reports false if there are too many of them.
func (c *connection) authenticate() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	case c.place == nil:
		return c.isAuthenticated // else it was replaced
	case c.of.authenticated >= maxAuthenticated:
		return false
	}
	c.leave()
	c.of.authenticated++
	c.isAuthenticated = true
	_ = c.Conn.SetReadDeadline(c.readDeadline) // of the request, whose body may take longer
	return true
}

// SetReadDeadline sets the deadline of reads, which is sooner for an unauthenticated connection.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.readDeadline = t
	return c.Conn.SetReadDeadline(c.limited(t))
}

// SetWriteDeadline sets the deadline of writes, which is sooner for an unauthenticated connection.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.Conn.SetWriteDeadline(c.limited(t))
}

// limited returns a deadline, or the earlier one of an unauthenticated connection. The caller holds the lock.
func (c *connection) limited(t time.Time) time.Time {
	if latest := time.Now().Add(authenticationTime); !c.isAuthenticated && (t.IsZero() || t.After(latest)) {
		return latest
	}
	return t
}

// Close closes the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.leave()
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// connectionKey is the key of the [connection] in the context of a request.
type connectionKey struct{}

// withConnection returns the context of the requests on a connection.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, is := c.(*tls.Conn); is {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// authenticateConnection records that a request on its connection had a valid token or session. It reports false if
// there are too many such connections.
func authenticateConnection(ctx context.Context) bool {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	return !ok || c.authenticate() // a server of a program limits its connections itself
}
