package inspector

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// The limits of requests on a connection.
const (
	headTime  = 10 * time.Second // for a client to send the header of a request
	bodyTime  = 30 * time.Second // for a client to send the whole request
	idleTime  = 2 * time.Minute
	maxHead   = 16 << 10
	closeTime = 5 * time.Second // for requests to end after ctx
)

// Serve serves a handler until ctx ends, over TLS if secure is not nil. Then it ends all streams, waits for other requests,
// closes the listener, and returns when all its goroutines have ended.
func Serve(ctx context.Context, l net.Listener, secure *tls.Config, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
		ConnContext: withConnection, TLSConfig: secure,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan error, 1)
	go func() {
		if limited := (&connections{Listener: l}); secure == nil {
			done <- server.Serve(limited)
		} else {
			done <- server.ServeTLS(limited, "", "")
		}
	}()
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
