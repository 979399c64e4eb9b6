package inspector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/event"
)

// A sender sends events of a text/event-stream to one client.
type sender struct {
	h    *Handler
	to   pieces
	buf  bytes.Buffer
	open bool // the head was sent
}

// openStream reserves one of the streams of a token. The context that it returns is that of whileOffered. The caller releases it.
func (q *request) openStream() (ctx context.Context, s *sender, release func(), err error) {
	h, of := q.h, q.sender.credential
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams[of] >= maxStreams {
		return nil, nil, nil, &Error{Code: TooMany, Message: fmt.Sprintf("%d streams are open", maxStreams), Hint: "close some of them first"}
	}
	h.streams[of]++
	ctx, stop := q.whileOffered(q.sender)
	return ctx, &sender{h: h, to: pieces{q.w, ctx.Done()}}, func() {
		stop()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.streams[of]--; h.streams[of] == 0 {
			delete(h.streams, of)
		}
	}, nil
}

// grantsTime is how often a stream checks that its sender may still read it.
const grantsTime = 10 * time.Second

// whileOffered returns a context that ends with the request, or once the sender has ended or is offered something else than when
// it began. The caller calls stop.
func (q *request) whileOffered(by Sender) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(q.r.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer cancel()
		ticker := time.NewTicker(grantsTime)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				offer, err := q.h.offer(by)
				if err != nil || offer.Grants != q.Grants || q.h.o.Access.Logins.hasEnded(&by, now) {
					return
				}
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-watched
	}
}

// escaped escapes JSON as Options.Escape does.
func (h *Handler) escaped(text []byte) []byte {
	var b bytes.Buffer
	_, _ = h.o.Escape(&b).Write(text) // to memory
	return b.Bytes()
}

// add adds an event to what flush sends.
func (s *sender) add(id int, kind string, data []byte) {
	if id > 0 {
		_, _ = fmt.Fprintf(&s.buf, "id: %d\n", id)
	}
	_, _ = fmt.Fprintf(&s.buf, "event: %s\ndata: ", kind)
	_, _ = s.buf.Write(data)
	_, _ = s.buf.WriteString("\n\n")
}

// flush sends the added events, or a comment if there are none. It returns an error if the client does not
// read them in time.
func (s *sender) flush() error {
	if !s.open {
		s.open = true
		s.to.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s.to.w.Header().Set("X-Accel-Buffering", "no")
		s.to.w.WriteHeader(http.StatusOK)
	}
	if s.buf.Len() == 0 {
		_, _ = s.buf.WriteString(": \n\n")
	}
	_, err := s.to.Write(s.buf.Bytes())
	if s.buf.Cap() > maxBody {
		s.buf = bytes.Buffer{}
	}
	s.buf.Reset()
	return errors.Join(err, http.NewResponseController(s.to.w).Flush())
}

// fail ends a stream with an error. If nothing was sent yet, it returns the error as the answer.
func (s *sender) fail(err error) error {
	if !s.open {
		return err
	}
	data, _ := json.Marshal(map[string]*Error{"error": errorOf(err)}) // strings always marshal
	s.add(0, "failed", s.h.escaped(data))
	return gone(s.flush())
}

// events sends the events of a run.
func (q *request) events() error {
	r := q.r
	query, err := queryOf(r, "after")
	if err != nil {
		return err
	}
	after := 0
	for _, text := range []string{query.Get("after"), r.Header.Get("Last-Event-ID")} { // a browser that connects again has the latter
		if text == "" {
			continue
		}
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return &Error{Code: BadRequest, Message: "the position " + strconv.Quote(text) + " is not a number", Hint: "send the id of an event"}
		}
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return q.allEvents(after)
	}
	ctx, s, release, err := q.openStream()
	if err != nil {
		return err
	}
	defer release()
	for batch, err := range q.Watcher.Watch(ctx, r.PathValue("run"), after, true) {
		if err != nil {
			return s.fail(err)
		}
		for i := range batch {
			s.add(batch[i].Position, string(batch[i].Type), batch[i].Data)
		}
		if err := s.flush(); err != nil || isHead(r) {
			return gone(err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	s.add(0, "end", []byte("{}"))
	return gone(s.flush())
}

// isHead reports whether a client wants the head of an answer alone. A stream would keep the connection from
// its next request.
func isHead(r *http.Request) bool { return r.Method == http.MethodHead }

// allEvents sends the events so far as one document, without holding it in memory.
func (q *request) allEvents(after int) error {
	by := q.sender
	by.Until = time.Time{} // a client cannot go on with a document where it ended
	ctx, stop := q.whileOffered(by)
	defer stop()
	to, begun := pieces{q.w, ctx.Done()}, false
	write := func(text []byte) {
		if _, err := to.Write(text); err != nil {
			panic(http.ErrAbortHandler) // the client must not take a truncated document for a complete one
		}
	}
	for batch, err := range q.Watcher.Watch(ctx, q.r.PathValue("run"), after, false) {
		if err != nil && !begun {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for i := range batch {
			before := ","
			if !begun {
				q.w.Header().Set("Content-Type", "application/json; charset=utf-8")
				before, begun = `{"events":[`, true
			}
			write(append([]byte(before), batch[i].Data...))
		}
	}
	if !begun {
		return q.h.write(q.w, http.StatusOK, map[string][]Event{"events": {}})
	}
	write([]byte("]}\n"))
	return nil
}

// A deltaDocument is a piece of what a model writes, in JSON.
type deltaDocument struct {
	Task    string `json:"task"`
	Title   string `json:"title"`
	Agent   string `json:"agent"`
	Attempt int    `json:"attempt"`
	Reset   bool   `json:"reset"`
	Text    string `json:"text"`
	Done    bool   `json:"done"`
}

func documentOf(d event.Delta) deltaDocument {
	return deltaDocument{string(d.Task), d.Title, d.Agent, d.Attempt, d.Reset, d.Text, d.Done}
}

// stream sends what models write in a run.
func (q *request) stream() error {
	r := q.r
	if _, err := queryOf(r); err != nil {
		return err
	}
	ctx, s, release, err := q.openStream()
	if err != nil {
		return err
	}
	defer release()
	from, err := q.Streams.Subscribe(ctx, r.PathValue("run"))
	if err != nil {
		return err
	}
	defer from.Close()
	if err := s.flush(); err != nil || isHead(r) {
		return gone(err)
	}
	for {
		waiting, cancel := context.WithTimeout(ctx, heartbeat)
		list, err := from.Next(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded): // only the connection is kept alive
		case err != nil:
			return s.fail(err)
		case len(list) == 0:
			s.add(0, "end", []byte("{}"))
			return gone(s.flush())
		}
		for _, d := range list {
			data, err := json.Marshal(documentOf(d))
			if err != nil {
				return s.fail(err)
			}
			s.add(0, "delta", q.h.escaped(data))
		}
		if err := s.flush(); err != nil {
			return gone(err)
		}
	}
}
