package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/mask"
	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/internal/oneline"
)

// maxMessage bounds a message, and a line of the standard output of a server, in bytes.
const maxMessage = 16 << 20

// Errors of the output of a server. None of the standard output is about a single request.
var (
	errLarge     = fmt.Errorf("it wrote a message of more than %d MiB", maxMessage>>20)
	errLong      = fmt.Errorf("it wrote more than %d MiB without a newline to its standard output, where each message is a line", maxMessage>>20)
	errOutputEnd = fmt.Errorf("it closed its standard output: %w", io.EOF)
)

// pipes are a connection over the standard input and output of a process, with one message on each
// line: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio. Whatever else
// is on a line is skipped.
type pipes struct {
	server   *Server
	conn     *connection
	process  *program
	lines    *bufio.Reader
	queue    []jsonrpc.Message // of a line with several messages
	requests requests
	writing  sync.Mutex // held during a write
	giveBack func()     // the memory for the request that was read last
}

func newPipes(s *Server, c *connection) *pipes {
	return &pipes{server: s, conn: c, process: c.process, lines: bufio.NewReaderSize(c.process.Stdout, 64<<10), giveBack: func() {}}
}

// Connect returns p.
func (p *pipes) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID returns "": a process has one session.
func (p *pipes) SessionID() string { return "" }

// Close closes both pipes.
func (p *pipes) Close() error {
	return errors.Join(p.process.Stdin.Close(), p.process.Stdout.Close())
}

// Write sends a message.
func (p *pipes) Write(ctx context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(p.requests.sent(ctx, m))
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err = p.process.Stdin.Write(append(raw, '\n'))
	return err
}

// Read returns the next message.
func (p *pipes) Read(context.Context) (jsonrpc.Message, error) {
	p.giveBack()
	for {
		for len(p.queue) == 0 {
			line, err := p.line()
			if err != nil {
				return nil, err
			}
			messages, other := messagesIn(line)
			if len(messages) == 0 {
				messages, other = p.requests.responsesIn(line)
			}
			if len(other) > 0 {
				p.server.warnSkipped(other)
			}
			p.queue = messages
		}
		m := p.queue[0]
		p.queue = p.queue[1:]
		switch m := m.(type) {
		case *jsonrpc.Response:
			if !p.requests.answer(m) {
				continue
			}
		case *jsonrpc.Request:
			// The handler of the SDK runs later than the response that follows the notification.
			if m.Method == "notifications/tools/list_changed" && p.conn.changed.Swap(true) {
				continue // a flood of them says no more than one
			}
			var scoped context.Context
			scoped, p.giveBack = membudget.Within(context.Background(), membudget.Attempt) // that of the call which began the session may have ended
			if membudget.Take(scoped, membudget.Decoded(m.Params)) != nil {
				continue // no request of a server needs that much
			}
		}
		return m, nil
	}
}

// line returns the next line that is not empty, without the space around it.
func (p *pipes) line() ([]byte, error) {
	for {
		line, err := p.lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = p.longLine(line)
		}
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\uFEFF"))) // a byte order mark
		switch {
		case len(line) > 0 && (err == nil || errors.Is(err, io.EOF)):
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, errOutputEnd
		case err != nil:
			return nil, err
		}
	}
}

// longLine returns the line that begins with a full buffer.
func (p *pipes) longLine(start []byte) ([]byte, error) {
	line := bytes.Clone(start)
	for {
		more, err := p.lines.ReadSlice('\n')
		line = append(line, more...)
		switch {
		case len(line) > maxMessage:
			return nil, errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// messagesIn returns the messages of a line, which may be an array of them, and what else it has.
func messagesIn(line []byte) (messages []jsonrpc.Message, other []byte) {
	add := func(part []byte) {
		if m, err := jsonrpc.DecodeMessage(part); err == nil {
			messages = append(messages, m)
		} else {
			other = append(other, part...)
		}
	}
	if line[0] != '[' || !json.Valid(line) {
		add(line)
		return messages, other
	}
	parts := json.NewDecoder(bytes.NewReader(line)) // one after the other, since millions of them would take much memory
	_, _ = parts.Token()                            // the bracket
	for parts.More() {
		var part json.RawMessage
		_ = parts.Decode(&part) // the line is valid
		add(part)
	}
	return messages, other
}

// warnSkipped logs what is no message on a line, unless another was logged before.
func (s *Server) warnSkipped(other []byte) {
	s.skipped.Do(func() {
		if s.Logger != nil {
			s.Logger.Warn("an MCP server writes other text than JSON-RPC messages to its standard output; it is skipped", "server", s.Name, "line", oneline.Of(s.lineMasks().Text(s.masks().Text(string(other)))))
		}
	})
}

// lineMasks returns the lines of values that have several.
func (s *Server) lineMasks() *mask.Values {
	var lines []map[string]string
	for _, values := range []map[string]string{s.Env, s.Secrets} {
		for name, value := range values {
			for line := range strings.Lines(value) {
				lines = append(lines, map[string]string{name: line})
			}
		}
	}
	return mask.New(lines...)
}
