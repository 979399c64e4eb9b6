package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
)

// byteOrderMark begins the texts of some servers. RFC 8259, section 8.1, lets a
// reader ignore it before JSON; the HTML standard, section 9.2.6, before a stream of events.
const byteOrderMark = "\ufeff"

// isEvents reports whether a reply is a stream of events. The start of the reply decides,
// because servers label streams as JSON and JSON as streams; if the start is neither, the
// content type decides. isEvents skips a byte order mark and whitespace.
func isEvents(h http.Header, in *bufio.Reader) bool {
	for range envelope {
		start, err := in.Peek(1)
		if err != nil {
			break
		}
		switch b := start[0]; {
		case b <= ' ':
			_, _ = in.Discard(1)
			continue
		case b == byteOrderMark[0]:
			if start, _ = in.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
				_, _ = in.Discard(len(byteOrderMark))
				continue
			}
		case b == '{', b == '[', b == '<':
			return false
		case b == ':':
			return true
		case b == 'd', b == 'e':
			start, _ = in.Peek(len("data:"))
			if string(start) == "data:" || string(start) == "event" {
				return true
			}
		}
		return isEventType(h)
	}
	return isEventType(h)
}

// isEventType reports whether the type of a reply is that of a stream of events.
func isEventType(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// events reads the data of a stream of events. Comments, other fields and empty
// lines are skipped.
type events struct {
	report *reporter
	in     *bufio.Reader
	left   int64  // how many bytes the stream may still have
	line   []byte // the current line
	failed bool   // the current event is of the type "error"
	done   bool   // [DONE] was seen
	err    error  // what ended the stream after the current line
}

// next returns the data of the next event, which is valid until the next call.
// At the end of the stream it returns io.EOF.
func (s *events) next() ([]byte, error) {
	s.failed = false
	for s.err == nil {
		s.err = s.read()
		if s.err != nil && !errors.Is(s.err, io.EOF) {
			break
		}
		line := bytes.TrimSpace(s.line)
		if name, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			s.failed = string(bytes.TrimSpace(name)) == "error"
			continue
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		switch {
		case !ok || len(data) == 0:
		case string(data) == "[DONE]":
			s.done, s.err = true, io.EOF
		default:
			return data, nil
		}
	}
	return nil, s.err
}

// read reads the next line, or as much of it as there is.
func (s *events) read() error {
	s.line = s.line[:0]
	for {
		piece, err := s.in.ReadSlice('\n')
		s.line = append(s.line, piece...)
		s.left -= int64(len(piece))
		switch {
		case len(s.line) > s.report.model.maxReply+envelope, s.left < 0:
			return s.report.tooLarge()
		case err == nil, errors.Is(err, io.EOF):
			return err
		case !errors.Is(err, bufio.ErrBufferFull):
			return s.report.unread(err)
		}
	}
}
