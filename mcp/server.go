// Package mcp lets agents use the tools of MCP (Model Context Protocol) servers.
//
//	search := &mcp.Server{Name: "search", Command: "search-server", Allow: []string{"web_search"}}
//	tools, err := search.Tools(ctx)
//
// A server is a local process (stdio) or a URL (streamable HTTP). Each attempt at a task opens
// its own session with a server on its first call, and ends it.
//
// Servers are not trusted: their annotations about effects are ignored; set [Server].Options.
// [Server.Tools] pins the definitions. If a server later offers another definition of a tool, or
// no longer offers it, calls of that tool fail, and its other tools work. The order of members,
// and of the entries of required, enum and type, makes no difference. Sampling and elicitation are
// refused, and a server gets no roots.
//
// A call whose session is lost may have taken effect. If its effect is [tool.External], the error
// says so. If an HTTP server no longer knows the session, a new one is opened. The call is made
// again only if its effect is none or it is repeatable; any other error wraps [tool.ErrUncertain].
// Before an external call in a session that was idle for a second, the server is pinged.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/mask"
	"github.com/runteam/runteam/internal/membudget"
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
	Dir     string // empty means the folder of this process, or that of a confined program

	// Confine says whether the program is confined. Each session then has an empty folder of its own,
	// which is its Dir, HOME and TMPDIR and is removed when the session ends. The program has no network,
	// no other files than the programs of the system and Readable of Options, and sees no other program.
	// True is an error on systems that cannot do that. Nil means false, and a team in which a person
	// approves something refuses it: a program with the rights of the user could answer in place of the
	// person.
	Confine *bool

	// Reason says why a program with Confine false may run where a person approves something; plans show
	// it. Such a team refuses false without one. Only with Confine false.
	Reason string

	URL     string            // of a server that speaks streamable HTTP
	Headers map[string]string // sent to the origin of URL only, so they may hold credentials

	// Secrets are further values, by name, that are replaced as those of Env are.
	Secrets map[string]string

	// Logger gets one warning for the first line of standard output that is no JSON-RPC message,
	// with these values replaced. Such lines are skipped. Nil discards the warning.
	Logger *slog.Logger

	// Allow lists the tools to offer. An entry is the server's own name of a tool, or what follows
	// SERVER__ in the name of a [tool.Tool]; a tool with exactly that name comes first. Nil means
	// all, empty none. [Server.Tools] says how the tools are named.
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

	shared  tool.Shared // the session of SharedSession
	skipped sync.Once   // Logger gets its warning
}

// connectTimeout bounds the start of a session, from the start of the process to the
// definitions of the tools, if Options has no Timeout.
const connectTimeout = 30 * time.Second

var (
	nameForm     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`) })
	errTransport = errors.New("set either Command or URL")
)

// untilTimeout bounds the time and the memory of the start of a session, and of a later list of tools.
func (s *Server) untilTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := cmp.Or(s.Options.Timeout, connectTimeout)
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response within %v", limit))
	scoped, giveBack := membudget.Within(limited, membudget.Attempt)
	return scoped, func() { giveBack(); cancel() }
}

// isExternal reports whether calls reach anything outside the task.
func (s *Server) isExternal() bool {
	return s.Options.Effect == "" || s.Options.Effect == tool.External
}

// mayRepeat reports whether a call that may have been made can be made again.
func (s *Server) mayRepeat() bool { return !s.isExternal() || s.Options.Repeatable }

// check returns an error if the server cannot be used as it is described.
func (s *Server) check() error {
	switch {
	case !nameForm().MatchString(s.Name):
		return fmt.Errorf("mcp server %q: invalid name; use 1 to 32 letters, digits, _ or -", s.Name)
	case strings.Contains(s.Name+"_", separator): // it must be the first in the names of tools
		return fmt.Errorf("mcp server %q: invalid name; leave out %s, which stands before the name of a tool, and _ at its end", s.Name, separator)
	case (s.Command == "") == (s.URL == ""):
		return fmt.Errorf("mcp server %q: %w", s.Name, errTransport)
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != "" || s.Confine != nil || s.Reason != "" || len(s.Options.Readable) > 0):
		return fmt.Errorf("mcp server %q: Args, Env, Dir, Confine, Reason and Options.Readable require Command", s.Name)
	case s.URL == "" && len(s.Headers) > 0:
		return fmt.Errorf("mcp server %q: Headers require URL", s.Name)
	case s.Stateless && (s.SharedSession || s.Options.Stateful || s.URL != ""):
		return fmt.Errorf("mcp server %q: Stateless cannot be combined with SharedSession, Stateful or URL; remove Stateless", s.Name)
	}
	if err := s.checkConfinement(); err != nil {
		return fmt.Errorf("mcp server %q: %w", s.Name, err)
	}
	return nil
}

// masks returns the values that are replaced in what the server writes.
func (s *Server) masks() *mask.Values {
	credentials := map[string]string{}
	for name, value := range s.Headers {
		_, credentials[name], _ = strings.Cut(value, " ") // behind a scheme such as Bearer
	}
	return mask.New(s.Env, s.Headers, credentials, s.Secrets)
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
