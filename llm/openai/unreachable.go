package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// unreachable returns the error of a failed connection, sanitized, because servers, proxies
// and name servers write parts of it.
func (m *Model) unreachable(req llm.Request, err error) error {
	if redirect, ok := errors.AsType[*redirectError](err); ok {
		return m.fault(callfault.NotFound, "it redirects to "+newSanitizer(m, &req).sanitize(redirect.to)+", which is not followed")
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL
	}
	e := m.fault(callfault.Unreachable, newSanitizer(m, &req).sanitize(reason(err)))
	e.Err = cause(err)
	return e
}

// cause returns the known condition behind an error of a connection, or nil. The
// error itself may quote a server, such as a GOAWAY frame.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	for _, known := range [...]error{io.ErrUnexpectedEOF, io.EOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// reason says in few words why a connection failed.
func reason(err error) string {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection without an answer"
	case isDNS && dns.IsNotFound:
		return fmt.Sprintf("no such host %q", dns.Name)
	case isNet && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return "connecting timed out"
	}
	return err.Error()
}
