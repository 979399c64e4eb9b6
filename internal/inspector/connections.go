package inspector

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// The limits of connections.
const (
	maxConnections = 1024            // on which a token or a session was shown
	maxStrangers   = 256             // on which none was
	strangerTime   = 2 * time.Second // for a stranger to send a request, and to read the answer
)

// connections is a listener that limits what it accepts. A connection is a stranger until a request on it
// shows a valid token or session. Strangers have places of their own: if all are taken, a new one
// replaces the oldest.
type connections struct {
	net.Listener

	mu        sync.Mutex // guards the fields below, and the standing of each connection
	known     int
	strangers list.List // of *connection, the oldest first
}

// A connection is limited while it is a stranger.
type connection struct {
	net.Conn
	of        *connections
	place     *list.Element // among the strangers; nil once it is known or closed
	isKnown   bool
	readUntil time.Time // the deadline that the server wants
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
	if l.strangers.Len() >= maxStrangers {
		replaced = l.strangers.Front().Value.(*connection)
		replaced.leave()
	}
	c.place = l.strangers.PushBack(c)
	l.mu.Unlock()
	if replaced != nil {
		_ = replaced.Conn.Close() // the server then closes it too
	}
	return c, nil
}

// leave gives back the place of the connection. The caller holds the lock.
func (c *connection) leave() {
	if c.place != nil {
		c.of.strangers.Remove(c.place)
		c.place = nil
	}
	if c.isKnown {
		c.of.known--
		c.isKnown = false
	}
}

// admit makes a stranger known. It reports false if there is no place for it.
func (c *connection) admit() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	case c.place == nil:
		return c.isKnown // else it was replaced
	case c.of.known >= maxConnections:
		return false
	}
	c.leave()
	c.of.known++
	c.isKnown = true
	_ = c.Conn.SetReadDeadline(c.readUntil) // of the request, whose body may take longer
	return true
}

// SetReadDeadline sets the deadline of reads. That of a stranger is soon.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.readUntil = t
	return c.Conn.SetReadDeadline(c.soon(t))
}

// SetWriteDeadline sets the deadline of writes. That of a stranger is soon.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.Conn.SetWriteDeadline(c.soon(t))
}

// soon returns a deadline, or that of strangers if it is earlier. The caller holds the lock.
func (c *connection) soon(t time.Time) time.Time {
	if latest := time.Now().Add(strangerTime); !c.isKnown && (t.IsZero() || t.After(latest)) {
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
	return context.WithValue(ctx, connectionKey{}, c)
}

// admitConnection makes the connection of a request known. It reports false if there is no place for it.
func admitConnection(ctx context.Context) bool {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	return !ok || c.admit() // a server of a program limits its connections itself
}
