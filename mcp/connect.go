package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrNoSession reports a server that does not begin a session. The error says why.
var ErrNoSession = errors.New("it does not answer as an MCP server")

// handshake is the protocol version that a session begins with. All versions before the next one
// begin with the request initialize, and servers may ignore any other.
const handshake = "2025-11-25"

// discoverTime is how long a server that refused initialize may take to answer server/discover, in addition
// to twice the time that it took to start and to refuse. A server of earlier versions may never answer that
// request. Tests change it.
var discoverTime = 5 * time.Second

// connect starts a session.
func (s *Server) connect(ctx context.Context) (*connection, error) {
	began := time.Now()
	c, err := s.begin(ctx, &sdk.ClientSessionOptions{ProtocolVersion: handshake})
	if refused, ok := errors.AsType[*statusError](err); isAnswer(err) || ok && refused.status < 500 && !refused.isDenial() {
		ctx, cancel := context.WithTimeout(ctx, discoverTime+2*time.Since(began))
		defer cancel()
		if newer, err := s.begin(ctx, nil); err == nil { // a server of newer versions only
			return newer, nil
		}
	}
	return c, err
}

// begin starts a session with a version of the protocol; nil means the newest.
func (s *Server) begin(ctx context.Context, o *sdk.ClientSessionOptions) (*connection, error) {
	c := &connection{ended: make(chan struct{})}
	c.heard()
	client := sdk.NewClient(&sdk.Implementation{Name: "runteam", Version: "1"}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{}, // neither roots, sampling nor elicitation
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.changed.Store(true) },
	})
	client.AddReceivingMiddleware(refuseRoots)
	var transport sdk.Transport
	if s.URL != "" {
		transport = &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: s.client(c), MaxRetries: 2}
	} else {
		p, err := s.start()
		if err != nil {
			return nil, fmt.Errorf("mcp server %q: %w", s.Name, err)
		}
		c.process = p
		transport = newPipes(s, c)
	}
	session, err := client.Connect(ctx, transport, o)
	if err != nil {
		if c.process != nil {
			c.process.Stop()
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, s.failed(ctx, c, fmt.Errorf("%w: %w", ErrNoSession, withoutRequest(err)))
	}
	c.session = session
	go func() {
		defer close(c.ended)
		_ = session.Wait()
		if c.process != nil {
			c.process.Stop()
		}
	}()
	return c, nil
}

// refuseRoots refuses to list the roots of the client. The SDK would answer with an empty list.
func refuseRoots(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method == "roots/list" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client has no roots"}
		}
		return next(ctx, method, r)
	}
}
