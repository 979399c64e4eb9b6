// Package mcpserver offers specs as MCP (Model Context Protocol) tools, so that other agents can call
// a team.
//
// [Serve] speaks MCP over two streams until the client closes its end. Each call of a tool is a run,
// which the journal stores like any other. The client is the user of the run: it gets the answer in
// the form that the user may see. What it brings is labeled as the spec says.
package mcpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
)

// maxRuns bounds the calls that run at the same time. Further calls wait.
const maxRuns = 8

// maxMessage bounds a message of the client, in bytes.
const maxMessage = 16 << 20

// errClosed is why the runs end if the client goes away.
var errClosed = errors.New("the MCP client closed the connection")

// Serve offers each of the specs as a tool to the client that writes to in and reads from out, until
// the client closes in or ctx ends. Then it cancels the runs and waits for them. A line that is no
// message gets an error response. What base sets holds
// for all runs. An error before that says why the specs cannot be offered. Nothing but MCP is written
// to out.
func Serve(ctx context.Context, con *console.Console, specs []string, base run.Launch, version string, in io.Reader, out io.Writer) error {
	if len(specs) == 0 {
		return exit.Usagef("--mcp offers specs as tools: name at least one SPEC")
	}
	base.Journal.Program = con.Program
	tools, err := loadTools(ctx, con, specs, &base)
	if err != nil {
		return err
	}
	if err := openJournal(con, &base.Journal); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &server{con: con, base: base, done: ctx, slots: make(chan struct{}, maxRuns)}
	err = s.speak(s.protocol(tools, version), io.NopCloser(&endReader{in, func() { cancel(errClosed) }}), nopWriteCloser{out})
	cancel(errClosed)
	s.end()
	if cause := context.Cause(ctx); !errors.Is(cause, errClosed) {
		return cause
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return exit.Errorf(exit.KindRuntime, "the connection to the MCP client failed: %w", err)
	}
	return nil
}

// protocol returns the MCP server with the tools.
func (s *server) protocol(tools []*tool, version string) *sdk.Server {
	p := sdk.NewServer(&sdk.Implementation{Name: "runteam", Version: version}, &sdk.ServerOptions{
		Instructions: "Each tool runs a team of agents and returns its answer. A run can take minutes.",
		Logger:       slog.New(slog.DiscardHandler), // the protocol's own log has texts of the client
		Capabilities: &sdk.ServerCapabilities{},
	})
	for _, t := range tools {
		p.AddTool(t.definition(), s.handler(t))
	}
	return p
}

// speak speaks the protocol until its end, or until done ends and the runs have ended. A client that
// reads nothing then loses the last results: a write to it may never return, and it must not keep the
// process.
func (s *server) speak(p *sdk.Server, in io.ReadCloser, out io.WriteCloser) error {
	ended := make(chan error, 1)
	go func() { ended <- p.Run(s.done, &lineTransport{in, out}) }()
	select {
	case err := <-ended:
		return err
	case <-s.done.Done():
	}
	s.end()
	timer := time.NewTimer(lastWrites)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return nil
	}
}

// lastWrites is how long the results of the last runs may take to write.
const lastWrites = 2 * time.Second

// openJournal creates the journal if there is none, and returns an error if no run could be stored.
func openJournal(con *console.Console, g *journals.Flags) error {
	j, _, err := journals.Open(con, g, journals.ToServe)
	if err != nil {
		return err
	}
	return j.Close()
}

// A server runs the specs that the tools stand for.
type server struct {
	con   *console.Console
	base  run.Launch
	done  context.Context // ends all runs: the contexts of the protocol outlive the connection
	slots chan struct{}

	mu    sync.Mutex // guards ended, and the start of runs
	ended bool
	runs  sync.WaitGroup
}

// begin reports whether a run may begin, which then calls runs.Done.
func (s *server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.runs.Add(1)
	}
	return !s.ended
}

// end waits for all runs. No other begins.
func (s *server) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.runs.Wait()
}

// An endReader reports the end of a stream.
type endReader struct {
	io.Reader
	ended func()
}

func (r *endReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.ended()
	}
	return n, err
}

// A nopWriteCloser leaves its stream open.
type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
