package inspector

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// The limits of connections.
const (
	maxConnections = 1024
	headTime       = 10 * time.Second // for a client to send the header of a request
	bodyTime       = 30 * time.Second // for a client to send the whole request
	idleTime       = 2 * time.Minute
	maxHead        = 16 << 10
	closeTime      = 5 * time.Second // for requests to end after ctx
)

// Serve serves a handler until ctx ends. Then it ends all streams, waits for other requests, closes the
// listener, and returns when all its goroutines have ended.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(&limitedListener{Listener: l}) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		_ = server.Close() // ends the requests that are left
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A limitedListener closes new connections while maxConnections are open.
type limitedListener struct {
	net.Listener
	mu   sync.Mutex // guards open
	open int
}

// Accept returns the next connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		if l.open < maxConnections {
			l.open++
			l.mu.Unlock()
			return &limitedConn{Conn: c, of: l}, nil
		}
		l.mu.Unlock()
		_ = c.Close() // nothing was read from it yet
	}
}

// A limitedConn counts as open until it is closed.
type limitedConn struct {
	net.Conn
	of     *limitedListener
	closed sync.Once
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	c.closed.Do(func() {
		c.of.mu.Lock()
		c.of.open--
		c.of.mu.Unlock()
	})
	return c.Conn.Close()
}
