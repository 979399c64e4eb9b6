package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options tune [Start]. The zero value is a good default.
type Options struct {
	// Addr is where to listen, "host:port". Empty means a free port on
	// loopback; an address without a host means loopback too, so that only an
	// explicit host opens the endpoint to other machines.
	Addr string
	Keep bool // keep the requests in memory, for Requests
}

// A Server is a running endpoint.
type Server struct {
	*Handler
	url    string
	server *http.Server
	end    context.CancelFunc // of every request
	served chan error
	calls  sync.WaitGroup // requests being answered
	once   sync.Once
	err    error
}

// Start serves a script until Close; nil is a script without replies.
func Start(s *Script, o Options) (*Server, error) {
	h, err := New(s, o.Keep)
	if err != nil {
		return nil, err
	}
	addr, err := listenAt(o.Addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("scripted endpoint: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	srv := &Server{Handler: h, url: "http://" + l.Addr().String() + "/v1", end: end, served: make(chan error, 1)}
	srv.server = &http.Server{
		Handler:           http.HandlerFunc(srv.serve),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that disconnect are not errors
	}
	go func() { srv.served <- srv.server.Serve(l) }()
	return srv, nil
}

// serve answers one request that Close waits for.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	defer s.calls.Done()
	s.ServeHTTP(w, r)
}

// listenAt returns the address to listen at: loopback unless addr has a host.
func listenAt(addr string) (string, error) {
	if addr == "" {
		addr = ":0"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: write host:port, such as 127.0.0.1:8080", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// URL returns the base URL, "http://127.0.0.1:port/v1", as OPENAI_BASE_URL takes it.
func (s *Server) URL() string { return s.url }

// Close ends delays and connections and waits until nothing of the server
// runs. It may be called twice.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.end()
		grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if s.server.Shutdown(grace) != nil { // a client does not read its answer
			s.err = s.server.Close()
		}
		s.calls.Wait()
		if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
			s.err = errors.Join(s.err, err)
		}
	})
	return s.err
}
