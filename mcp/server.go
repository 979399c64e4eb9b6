// Package mcp lets agents use the tools of MCP (Model Context Protocol) servers.
//
//	search := &mcp.Server{Name: "search", Command: "search-server", Allow: []string{"web_search"}}
//	tools, err := search.Tools(ctx)
//
// A server is a local process (stdio) or a URL (streamable HTTP). Each attempt at a task opens
// its own session with a server on its first call, and ends it.
//
// Servers are not trusted: their annotations about effects are ignored; set [Server].Options.
// [Server.Tools] pins the definitions; if a later session offers different ones, its calls
// fail. Sampling and elicitation are refused, and a server gets no roots.
package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/mask"
	"github.com/runteam/runteam/tool"
)

// A Server is an MCP server. Exactly one of Command and URL is set. It must not change while
// its tools are in use.
type Server struct {
	// Name has 1 to 32 letters, digits, _ or -, but no __ and no _ at its end. The names of its
	// tools begin with it.
	Name string

	// Command is a program to start, with Args, in Dir. Its environment is PATH, HOME, LANG,
	// TMPDIR and SystemRoot of this process, and Env; nothing else. Values of Env and Headers
	// with at least 4 bytes are replaced by ${NAME} in everything that the server writes.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string // empty means the folder of this process

	URL     string            // of a server that speaks streamable HTTP
	Headers map[string]string // sent to the origin of URL only, so they may hold credentials

	// Allow lists the tools to offer: by the server's own names, or by what follows SERVER__ in
	// the name of the [tool.Tool]. Nil means all, empty none.
	Allow []string

	// SharedSession makes all tasks of this process use one session, until [Server.Close]. It
	// implies Stateful.
	SharedSession bool

	// Options apply to every tool. MCP carries no ID of a call: set Repeatable only if
	// repeating a call is harmless.
	Options tool.Options

	// Stateless says that sessions of the server share nothing. Without it, the tools are
	// Stateful. Not allowed with URL or SharedSession.
	Stateless bool

	shared tool.Shared // the session of SharedSession
}

// connectTimeout bounds the start of a session, from the start of the process to the
// definitions of the tools.
const connectTimeout = 30 * time.Second

// separator is between the name of a server and the name of a tool.
const separator = "__"

var (
	nameForm     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`) })
	notInName    = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	errTransport = errors.New("set either Command or URL")
)

// Tools connects to the server, reads the definitions of its tools, and disconnects. It gives
// up after 30 seconds. The tools are named SERVER__TOOL, with characters other than letters,
// digits, _ and - replaced by _.
func (s *Server) Tools(ctx context.Context) ([]*tool.Tool, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no response within %v", connectTimeout))
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
	return s.toolsOf(defined, pinned.call)
}

// Declared returns the tools of Allow without connecting to the server, for the check of a
// plan: they have no descriptions, accept any object, and their calls fail.
func (s *Server) Declared() ([]*tool.Tool, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	defined := make([]definition, len(s.Allow))
	for i, name := range s.Allow {
		defined[i] = definition{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}
	}
	return s.toolsOf(defined, func(context.Context, string, tool.Call) (tool.Result, error) {
		return tool.Result{}, fmt.Errorf("mcp server %q: %w", s.Name, errNotConnected)
	})
}

// errNotConnected reports a call of a tool that is only declared.
var errNotConnected = errors.New("not connected; this tool is only declared")

// toolsOf returns tools with these definitions, whose calls call makes.
func (s *Server) toolsOf(defined []definition, call func(ctx context.Context, name string, c tool.Call) (tool.Result, error)) ([]*tool.Tool, error) {
	tools := make([]*tool.Tool, 0, len(defined))
	for _, d := range defined {
		t := &tool.Tool{
			Name: s.Name + separator + nameOf(d.Name), Description: s.masks().Text(d.Description), Parameters: parametersOf(s.masks().JSON(d.Schema)),
			Foreign: true, Options: s.Options,
		}
		t.State = cmp.Or(s.Options.State, "mcp "+cmp.Or(s.URL, s.Name))
		t.Stateful = !s.Stateless || s.SharedSession || s.Options.Stateful
		t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) { return call(ctx, d.Name, c) }
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("mcp server %q: %w; to leave this tool out, list the others in Allow", s.Name, err)
		}
		if slices.ContainsFunc(tools, func(o *tool.Tool) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("mcp server %q: two of its tools have the name %q", s.Name, t.Name)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// nameOf returns a server's name of a tool with only characters that names may have.
func nameOf(name string) string { return notInName.ReplaceAllString(name, "_") }

// allows reports whether an entry of Allow means a tool.
func allows(entry, name string) bool { return entry == name || entry == nameOf(name) }

// check returns an error if the server cannot be used as it is described.
func (s *Server) check() error {
	switch {
	case !nameForm().MatchString(s.Name):
		return fmt.Errorf("mcp server %q: invalid name; use 1 to 32 letters, digits, _ or -", s.Name)
	case strings.Contains(s.Name+"_", separator): // it must be the first in the names of tools
		return fmt.Errorf("mcp server %q: invalid name; leave out %s, which stands before the name of a tool, and _ at its end", s.Name, separator)
	case (s.Command == "") == (s.URL == ""):
		return fmt.Errorf("mcp server %q: %w", s.Name, errTransport)
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		return fmt.Errorf("mcp server %q: Args, Env and Dir require Command", s.Name)
	case s.URL == "" && len(s.Headers) > 0:
		return fmt.Errorf("mcp server %q: Headers require URL", s.Name)
	case s.Stateless && (s.SharedSession || s.Options.Stateful || s.URL != ""):
		return fmt.Errorf("mcp server %q: Stateless cannot be combined with SharedSession, Stateful or URL; remove Stateless", s.Name)
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
	var offered []string
	for t, err := range c.session.Tools(ctx, nil) {
		switch {
		case err != nil:
			return nil, s.failed(ctx, c, err)
		case len(offered) == maxTools:
			return nil, fmt.Errorf("mcp server %q: offers more than %d tools", s.Name, maxTools)
		}
		offered = append(offered, t.Name)
		if s.Allow != nil && !slices.ContainsFunc(s.Allow, func(entry string) bool { return allows(entry, t.Name) }) {
			continue
		}
		raw, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("mcp server %q: tool %q: %w", s.Name, t.Name, err)
		}
		if len(raw)+len(t.Description) > maxDefinition {
			return nil, fmt.Errorf("mcp server %q: tool %q: the definition is larger than %d bytes; leave it out of Allow", s.Name, t.Name, maxDefinition)
		}
		list = append(list, definition{t.Name, t.Description, raw})
	}
	slices.SortFunc(list, func(a, b definition) int { return cmp.Compare(a.Name, b.Name) })
	var missing []string
	for _, name := range s.Allow {
		if !slices.ContainsFunc(list, func(d definition) bool { return allows(name, d.Name) }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(offered)
		return nil, &MissingToolsError{Server: s.Name, Missing: missing, Offered: offered}
	}
	return list, nil
}

// A MissingToolsError reports tools of [Server].Allow that the server does not have.
type MissingToolsError struct {
	Server  string
	Missing []string // in the order of Allow
	Offered []string // what the server has, sorted
}

// Error names the tools that are missing.
func (e *MissingToolsError) Error() string {
	names := fmt.Sprintf("%q", e.Missing)
	return fmt.Sprintf("mcp server %q: Allow: the server has no tool %s", e.Server, names[1:len(names)-1])
}

// digestOf returns a digest of definitions.
func digestOf(list []definition) [sha256.Size]byte {
	raw, err := json.Marshal(list)
	if err != nil {
		panic(err) // the schemas were encoded before
	}
	return sha256.Sum256(raw)
}

// masks returns the values that are replaced in what the server writes.
func (s *Server) masks() *mask.Values {
	credentials := map[string]string{}
	for name, value := range s.Headers {
		_, credentials[name], _ = strings.Cut(value, " ") // behind a scheme such as Bearer
	}
	return mask.New(s.Env, s.Headers, credentials)
}

// failed returns the error of a request, with the end of what the server's process wrote to its
// standard error.
func (s *Server) failed(ctx context.Context, c *connection, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	err = s.masks().Error(err)
	if tail := c.stderrTail(); tail != "" {
		return fmt.Errorf("mcp server %q: %w; stderr: %s", s.Name, err, tail)
	}
	return fmt.Errorf("mcp server %q: %w", s.Name, err)
}

// pinned is a server with the digest of the definitions that its tools were made from.
type pinned struct {
	server *Server
	digest [sha256.Size]byte
}

// errChanged reports a server that offers other tools than those that the run was checked with.
var errChanged = errors.New("tool definitions changed since Tools was called; call Tools again and start a new run")

// call makes one call in the session of the attempt. It first opens a new session if the last
// one was lost.
func (p *pinned) call(ctx context.Context, name string, c tool.Call) (tool.Result, error) {
	resources := c.Shared
	if p.server.SharedSession {
		resources = &p.server.shared
	}
	if resources == nil {
		return tool.Result{}, errors.New("tool.Call.Shared is nil; a team sets it")
	}
	v, err := resources.Get(p, func() (io.Closer, error) { return &sessions{pinned: p}, nil })
	if err != nil {
		return tool.Result{}, err
	}
	conn, err := v.(*sessions).get(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	type reply struct {
		res *sdk.CallToolResult
		err error
	}
	done := make(chan reply, 1)
	go func() { // it may hang in a write to a server that does not read, until the session is closed
		res, err := conn.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: c.Arguments})
		done <- reply{res, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return tool.Result{}, p.server.failed(ctx, conn, r.err)
		}
		return p.server.masked(resultOf(r.res))
	case <-ctx.Done():
		return tool.Result{}, p.server.failed(ctx, conn, context.Cause(ctx))
	}
}

// masked returns the result of a call with the secrets of the server replaced.
func (s *Server) masked(r tool.Result, err error) (tool.Result, error) {
	masks := s.masks()
	if r.Text = masks.Text(r.Text); len(r.JSON) > 0 {
		if r.JSON = masks.JSON(r.JSON); !json.Valid(r.JSON) {
			return tool.Result{}, errors.New("structured content: a secret of the server is part of a number")
		}
	}
	return r, masks.Error(err)
}

// Close ends the session of a server with SharedSession. Calls after it fail.
func (s *Server) Close() error { return s.shared.Close() }

// Format writes the name of the server and where it is, so that no verb prints credentials.
func (s *Server) Format(f fmt.State, _ rune) {
	at := s.Command
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		at = u.Scheme + "://" + u.Host
	}
	fmt.Fprintf(f, "mcp server %q at %s", s.Name, at)
}
