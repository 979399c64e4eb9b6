package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/tool"
)

// sessions are the connections of one task to one server: one at a time.
type sessions struct {
	pinned *pinned

	mu      sync.Mutex // guards the fields below
	current *connection
	err     error // final: no other session is opened
}

// get returns the connection, and opens one if there is none or it was lost.
func (s *sessions) get(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.current != nil && s.current.usable() {
		return s.current, nil
	}
	if s.current != nil {
		s.current.Close()
		s.current = nil
	}
	server := s.pinned.server
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no response within %v", connectTimeout))
	defer cancel()
	c, err := server.connect(ctx)
	if err != nil {
		return nil, err
	}
	defined, err := server.definitions(ctx, c)
	if err == nil && digestOf(defined) != s.pinned.digest {
		err = fmt.Errorf("mcp server %q: %w", server.Name, errChanged)
		s.err = err
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	s.current = c
	return c, nil
}

// Close ends the session.
func (s *sessions) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = tool.ErrClosed
	if s.current == nil {
		return nil
	}
	return s.current.Close()
}

// A connection is one session with a server, and its process if it has one.
type connection struct {
	session *sdk.ClientSession
	process *process.Process // nil for a server with a URL
	changed atomic.Bool
	ended   chan struct{} // closed when the session has ended
}

// usable reports whether the session still works and offers what it did.
func (c *connection) usable() bool {
	select {
	case <-c.ended:
		return false
	default:
		return !c.changed.Load()
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
		return err
	}
	c.process.Stop()      // first, since the session waits for a server that does not read
	_ = c.session.Close() // its pipes are closed
	<-c.ended
	return nil
}

// connect starts a session.
func (s *Server) connect(ctx context.Context) (*connection, error) {
	c := &connection{ended: make(chan struct{})}
	client := sdk.NewClient(&sdk.Implementation{Name: "runteam", Version: "1"}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{}, // neither roots, sampling nor elicitation
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.changed.Store(true) },
	})
	var transport sdk.Transport
	if s.URL != "" {
		transport = &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: s.client(), MaxRetries: 2}
	} else {
		p, err := process.Start(&process.Command{Path: s.Command, Args: s.Args, Dir: s.Dir, Env: process.Environment(s.Env), Mask: s.masks()})
		if err != nil {
			return nil, fmt.Errorf("mcp server %q: %w", s.Name, err)
		}
		c.process = p
		transport = &sdk.IOTransport{Reader: p.Stdout, Writer: p.Stdin}
	}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		if c.process != nil {
			c.process.Stop()
		}
		return nil, s.failed(ctx, c, fmt.Errorf("it does not answer as an MCP server: %w", err))
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

// maxRedirects bounds the redirects of one request. All of them stay at the origin of the URL.
const maxRedirects = 3

// client returns an HTTP client that sends the headers, to the server's origin only.
func (s *Server) client() *http.Client {
	return &http.Client{
		Transport: headerTransport(s.Headers),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
				return fmt.Errorf("redirect to another origin, %s://%s", r.URL.Scheme, r.URL.Host)
			}
			if len(via) >= maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// A headerTransport adds headers to each request.
type headerTransport map[string]string

// RoundTrip sends one request.
func (h headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// resultOf returns the result of a call. Contents other than text are named, and not passed on.
func resultOf(res *sdk.CallToolResult) (tool.Result, error) {
	out := tool.Result{IsError: res.IsError}
	var text []string
	for _, content := range res.Content {
		switch c := content.(type) {
		case *sdk.TextContent:
			text = append(text, c.Text)
		case *sdk.ImageContent:
			text = append(text, fmt.Sprintf("[image %s, %d bytes: not shown]", oneline.Of(c.MIMEType), len(c.Data)))
		case *sdk.AudioContent:
			text = append(text, fmt.Sprintf("[audio %s, %d bytes: not shown]", oneline.Of(c.MIMEType), len(c.Data)))
		case *sdk.ResourceLink:
			text = append(text, "[link "+oneline.Of(c.URI)+"]")
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				text = append(text, c.Resource.Text)
			} else if c.Resource != nil {
				text = append(text, fmt.Sprintf("[resource %s, %d bytes: not shown]", oneline.Of(c.Resource.URI), len(c.Resource.Blob)))
			}
		}
	}
	out.Text = strings.Join(text, "\n")
	if res.StructuredContent == nil {
		return out, nil
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return tool.Result{}, fmt.Errorf("structured content: %w", err)
	}
	if out.JSON = raw; sameJSON(out.Text, raw) {
		out.Text = "" // servers repeat the structured content as a text for older clients
	}
	return out, nil
}

// sameJSON reports whether a text is the JSON value.
func sameJSON(text string, raw json.RawMessage) bool {
	var a, b any
	if json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal(raw, &b) != nil {
		return false
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
