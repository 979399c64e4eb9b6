package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An Event is one event of a run.
type Event struct {
	Position int             // among all events of the run, from 1
	Type     string          // such as task_start; package event has the types
	Data     json.RawMessage // as `runteam run --events` writes it
}

// Events yields the events of a run after a position (0 for all) and waits for new ones until the run
// has ended. If the connection ends before, it connects again and continues after the last event. It gives up
// after eight attempts in which the server sent nothing. An error, including that of ctx, is the last value.
func (c *Client) Events(ctx context.Context, run string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		path := runPath(run, "events")
		err := c.follow(ctx, path, &after, func(m message) bool {
			return yield(Event{Position: m.id, Type: m.kind, Data: m.data}, nil)
		})
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// A Delta is a piece of what the model of a task writes.
type Delta struct {
	Task    string `json:"task"`
	Title   string `json:"title"`
	Agent   string `json:"agent"`
	Attempt int    `json:"attempt"`
	Reset   bool   `json:"reset"` // the text begins again: discard the previous deltas of the task
	Text    string `json:"text"`  // follows the text of the previous delta
	Done    bool   `json:"done"`  // the text is complete: it is the result of the task
}

// Stream yields what the models of a run write, until the run has ended. The first delta of each task has
// Reset and the text so far. If the connection ends before, it connects again, as [Client.Events] does. If no process works
// on the run, there are no deltas. If another process does, the error is an [*Error] with the code not_found.
func (c *Client) Stream(ctx context.Context, run string) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		err := c.follow(ctx, runPath(run, "stream"), nil, func(m message) bool {
			var d Delta
			if err := json.Unmarshal(m.data, &d); m.kind != "delta" || err != nil {
				return true // ignore what a newer server may send
			}
			return yield(d, nil)
		})
		if err != nil {
			yield(Delta{}, err)
		}
	}
}

// The limits of a stream.
const (
	maxAttempts = 8               // to connect without a line of the server
	firstWait   = time.Second / 4 // before the second attempt; it doubles
	longestWait = 5 * time.Second // between attempts
	silence     = time.Minute     // after which a connection counts as broken: a server writes every 15 seconds
	maxLine     = 64 << 20        // bytes
)

// A message is a server-sent event.
type message struct {
	id   int
	kind string
	data json.RawMessage
}

// errStopped reports that the caller has stopped the iteration.
var errStopped = errors.New("stopped")

// follow reads a stream to its end, and connects again if the connection ends before. after, if not nil, is the
// ID of the last message.
func (c *Client) follow(ctx context.Context, path string, after *int, take func(message) bool) error {
	wait := firstWait
	for attempt := 1; ; attempt++ {
		err := c.connect(ctx, path, after, take, func() { attempt, wait = 0, firstWait })
		refused, isRefusal := errors.AsType[*Error](err)
		switch {
		case err == nil, errors.Is(err, errStopped):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("inspect: %w", context.Cause(ctx))
		case isRefusal && refused.Status/100 != 5 && refused.Status != http.StatusTooManyRequests, attempt >= maxAttempts:
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("inspect: %w", context.Cause(ctx))
		}
		wait = min(2*wait, longestWait)
	}
}

// errSilent is why a connection is closed that has sent nothing for a while.
var errSilent = errors.New("the server has sent nothing for a minute")

// connect reads a stream until its end, which is no error, or until it breaks. It calls alive for each line.
func (c *Client) connect(ctx context.Context, path string, after *int, take func(message) bool, alive func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer timer.Stop()
	r, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	if after != nil && *after > 0 {
		r.Header.Set("Last-Event-ID", strconv.Itoa(*after))
	}
	res, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return refusal(res)
	}
	if kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); kind != "text/event-stream" {
		return &Error{Status: res.StatusCode, Message: fmt.Sprintf("the server sent %q and not an event stream", kind), Hint: "check that runteam serve listens there"}
	}
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		m, err := readMessage(lines, func() {
			timer.Reset(silence)
			alive()
		})
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("inspect: the stream broke: %w", err)
		}
		switch m.kind {
		case "end":
			return nil
		case "failed":
			if e := errorIn(m.data); e != nil {
				return e
			}
			return &Error{Message: "the server ended the stream"}
		}
		if after != nil && m.id > 0 {
			*after = m.id
		}
		if !take(m) {
			return errStopped
		}
	}
}

// readMessage reads the next message of a stream, and calls alive for each line.
func readMessage(lines *bufio.Reader, alive func()) (m message, err error) {
	for {
		line, err := readLine(lines)
		if err != nil {
			return m, err
		}
		alive()
		if len(line) == 0 {
			if m.kind != "" {
				return m, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			if m.id, err = strconv.Atoi(string(value)); err != nil {
				return m, fmt.Errorf("event ID %q is not a number", value)
			}
		case "event":
			m.kind = string(value)
		case "data":
			if m.data != nil {
				m.data = append(m.data, '\n')
			}
			m.data = append(m.data, value...)
		}
	}
}

// readLine reads a line without its end.
func readLine(lines *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := lines.ReadSlice('\n')
		whole = append(whole, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(whole, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		case len(whole) > maxLine:
			return nil, fmt.Errorf("a line has more than %d bytes", maxLine)
		}
	}
}
