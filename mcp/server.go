// Package mcp offers the tools of MCP servers (Model Context Protocol) to agents.
//
//	search := &mcp.Server{Name: "search", Command: "search-server", Allow: []string{"web_search"}}
//	tools, err := search.Tools(ctx)
//
// A server is a process that speaks over its standard input and output, or a URL that speaks
// streamable HTTP. Each task of a run has a session of its own with each server that it
// calls, which ends with the task.
//
// A server is not trusted. Its hints about what a tool changes are ignored: what holds is
// [Server].Options. The definitions of its tools are read once, before a run is checked; a
// session whose server offers others than those is ended. Sampling, elicitation and roots
// are refused.
package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/tool"
)

// A Server is an MCP server. Exactly one of Command and URL is set. It must not change while
// its tools are in use.
type Server struct {
	Name string // 1 to 32 letters, digits, _ or -; the names of its tools begin with it

	// Command is the program of a server on this machine. It runs with Args in Dir, in an
	// environment that has PATH, HOME, LANG and TMPDIR, and Env.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string // empty means the folder of this process

	URL     string // of a server that speaks streamable HTTP
	Headers map[string]string

	// Allow lists the tools that are offered to agents by the names that the server gives
	// them. Nil means all of them.
	Allow []string

	// Shared says that all tasks of the process have one session. The tools then keep state.
	Shared bool

	// Options hold for each tool. A server keeps state between sessions unless it is proven
	// otherwise, so its tools are stateful unless Stateless is set.
	tool.Options
	Stateless bool
}

// connectTimeout bounds the start of a session, from the start of the process to the
// definitions of the tools.
const connectTimeout = 30 * time.Second

// separator is between the name of a server and the name of a tool.
const separator = "__"

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	notInName   = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	errNoServer = errors.New("mcp: set Command or URL, and not both")
)

// Tools connects to the server, reads the definitions of its tools, and disconnects. Each
// later session must offer the same definitions.
func (s *Server) Tools(ctx context.Context) ([]*tool.Tool, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no answer within %v", connectTimeout))
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defined, err := s.definitions(ctx, c)
	if err != nil {
		return nil, err
	}
	pinned := &pinned{server: s, digest: digestOf(defined)}
	tools := make([]*tool.Tool, 0, len(defined))
	for _, d := range defined {
		t := &tool.Tool{
			Name: s.Name + separator + notInName.ReplaceAllString(d.Name, "_"), Description: d.Description, Parameters: d.Schema,
			Foreign: true, Options: s.Options,
		}
		t.Stateful = !s.Stateless || s.Shared || s.Stateful
		t.Run = func(ctx context.Context, call tool.Call) (tool.Result, error) { return pinned.call(ctx, d.Name, call) }
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("mcp server %q: %w", s.Name, err)
		}
		if slices.ContainsFunc(tools, func(o *tool.Tool) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("mcp server %q: two of its tools have the name %q", s.Name, t.Name)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// check returns an error if the server cannot be used as it is described.
func (s *Server) check() error {
	switch {
	case !nameForm.MatchString(s.Name):
		return fmt.Errorf("mcp server %q: a name has 1 to 32 letters, digits, _ or -", s.Name)
	case (s.Command == "") == (s.URL == ""):
		return fmt.Errorf("mcp server %q: %w", s.Name, errNoServer)
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		return fmt.Errorf("mcp server %q: Args, Env and Dir are for a Command", s.Name)
	case s.URL == "" && len(s.Headers) > 0:
		return fmt.Errorf("mcp server %q: Headers are for a URL", s.Name)
	case s.Stateless && (s.Shared || s.Stateful || s.URL != ""):
		return fmt.Errorf("mcp server %q: a session that tasks share, and a server elsewhere, keep state; remove Stateless", s.Name)
	}
	return nil
}

// A definition is what a server says about one of its tools.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"inputSchema"`
}

// Bounds on what a server may offer.
const (
	maxTools      = 256
	maxDefinition = 64 << 10 // bytes of one definition
)

// definitions returns the tools that the server offers and the caller allows, by name.
func (s *Server) definitions(ctx context.Context, c *connection) ([]definition, error) {
	var list []definition
	for t, err := range c.session.Tools(ctx, nil) {
		switch {
		case err != nil:
			return nil, s.failed(ctx, c, err)
		case len(list) == maxTools:
			return nil, fmt.Errorf("mcp server %q: offers more than %d tools", s.Name, maxTools)
		case s.Allow != nil && !slices.Contains(s.Allow, t.Name):
			continue
		}
		raw, err := json.Marshal(t.InputSchema)
		if err != nil || len(raw)+len(t.Description) > maxDefinition {
			return nil, fmt.Errorf("mcp server %q: the definition of tool %q has more than %d bytes", s.Name, t.Name, maxDefinition)
		}
		list = append(list, definition{t.Name, t.Description, raw})
	}
	slices.SortFunc(list, func(a, b definition) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range s.Allow {
		if !slices.ContainsFunc(list, func(d definition) bool { return d.Name == name }) {
			return nil, fmt.Errorf("mcp server %q: it has no tool %q", s.Name, name)
		}
	}
	return list, nil
}

// digestOf returns a digest of definitions.
func digestOf(list []definition) [sha256.Size]byte {
	raw, err := json.Marshal(list)
	if err != nil {
		panic(err) // the schemas were encoded before
	}
	return sha256.Sum256(raw)
}

// failed returns the error of a request, with the last words of the server's process.
func (s *Server) failed(ctx context.Context, c *connection, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if words := c.lastWords(); words != "" {
		return fmt.Errorf("mcp server %q: %w; it wrote: %s", s.Name, err, words)
	}
	return fmt.Errorf("mcp server %q: %w", s.Name, err)
}

// pinned is a server with the digest of the definitions that its tools were made from.
type pinned struct {
	server *Server
	digest [sha256.Size]byte
	shared tool.Shared // the session of a server whose tasks share one
}

// errChanged reports a server that offers other tools than those that the run was checked with.
var errChanged = errors.New("the definitions of its tools have changed since the run was checked; start the run again")

// call makes a call in the session of the task. A session that is lost is opened again, once.
func (p *pinned) call(ctx context.Context, name string, c tool.Call) (tool.Result, error) {
	holder := c.Shared
	if p.server.Shared || holder == nil {
		holder = &p.shared
	}
	v, err := holder.Get(p, func() (io.Closer, error) { return &sessions{pinned: p}, nil })
	if err != nil {
		return tool.Result{}, err
	}
	conn, err := v.(*sessions).get(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	res, err := conn.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: c.Arguments})
	if err != nil {
		return tool.Result{}, p.server.failed(ctx, conn, err)
	}
	return resultOf(res)
}
