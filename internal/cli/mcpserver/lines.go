package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/bytesize"
)

// maxRefusals bounds the answers to unreadable lines that wait for the client to read. Further ones are
// dropped, so that a client that reads nothing does not stop the server from reading.
const maxRefusals = 1024

// A lineTransport is [sdk.IOTransport] with one difference: a line that is no JSON-RPC message gets an
// error response, and the connection continues. There, it ends the connection.
type lineTransport struct {
	in  io.ReadCloser
	out io.WriteCloser
}

// Connect connects the transport; see [sdk.Transport].
func (t *lineTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	out := &lockedWriter{WriteCloser: t.out}
	r := &refuser{waiting: make(chan []byte, maxRefusals)}
	in := &lineReader{in: bufio.NewReaderSize(t.in, 64<<10), closer: t.in, refuse: r.refuse}
	c, err := (&sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: -1}).Connect(ctx) // lineReader bounds lines
	if err != nil {
		return nil, err
	}
	ended, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		r.write(out, ended)
	}()
	return &lineConn{Connection: c, refuse: r.refuse, end: sync.OnceFunc(func() {
		close(ended)
		<-written
	})}, nil
}

// A lineConn refuses messages that the connection cannot decode, and continues with the next one.
type lineConn struct {
	sdk.Connection
	refuse func(code int, text string)
	end    func() // waits until the error responses are written
}

// Read returns the next message that can be decoded, or [io.EOF] at the end of the stream.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
			return m, err
		}
		c.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("Invalid request: %v; send one JSON-RPC 2.0 message in each line", err))
	}
}

// Close closes the connection once the error responses are written.
func (c *lineConn) Close() error {
	c.end()
	return c.Connection.Close()
}

// A lineReader yields the lines of a stream that are JSON, without spaces around them, and refuses the
// others.
type lineReader struct {
	in     *bufio.Reader
	closer io.Closer
	refuse func(code int, text string)
	line   []byte // that was not read yet
	ended  bool   // after line
}

// Read reads from the next line that is JSON.
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.line) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		r.next()
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// Close closes the stream.
func (r *lineReader) Close() error { return r.closer.Close() }

// next reads a line, and keeps it if it is JSON. The last line may have no line feed.
func (r *lineReader) next() {
	line, tooLong, err := r.readLine()
	r.ended = err != nil // an error of the stream is its end too
	switch line = bytes.TrimSpace(line); {
	case tooLong:
		r.refuse(jsonrpc.CodeParseError, "Parse error: the line is longer than "+bytesize.Text(maxMessage)+"; send shorter texts, or name files in the spec")
	case len(line) == 0:
	case !json.Valid(line):
		r.refuse(jsonrpc.CodeParseError, "Parse error: the line is not JSON; send one JSON-RPC 2.0 message in each line")
	default:
		r.line = append(line, '\n')
	}
}

// readLine returns the next line. If it is longer than [maxMessage], it returns none of it, and continues
// after its end.
func (r *lineReader) readLine() (line []byte, tooLong bool, err error) {
	for {
		part, err := r.in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxMessage; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// A refuser answers what cannot be read. The answers have no ID, since the message may have none.
type refuser struct{ waiting chan []byte }

// refuse sends an error response, unless [maxRefusals] wait.
func (r *refuser) refuse(code int, text string) {
	type wireError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	line, err := json.Marshal(struct {
		Version string    `json:"jsonrpc"`
		ID      *string   `json:"id"` // null
		Error   wireError `json:"error"`
	}{"2.0", nil, wireError{code, text}})
	if err != nil {
		return // it has only a number and a text
	}
	select {
	case r.waiting <- append(line, '\n'):
	default:
	}
}

// write writes the error responses until the connection ends, and then those that wait.
func (r *refuser) write(out io.Writer, ended <-chan struct{}) {
	for {
		select {
		case line := <-r.waiting:
			_, _ = out.Write(line) // the connection reports that the client is gone
			continue
		default:
		}
		select {
		case line := <-r.waiting:
			_, _ = out.Write(line)
		case <-ended:
			return
		}
	}
}

// A lockedWriter writes one message at a time.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex // guards writes
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
