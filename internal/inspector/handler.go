package inspector

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The limits of requests.
const (
	maxBody      = 1 << 20
	maxDocuments = 32               // made and written at the same time
	maxStreams   = 256              // open at the same time for one token
	writeTime    = 20 * time.Second // for a client to read what was written
	heartbeat    = 15 * time.Second
)

// A Handler is an inspector. [New] returns one.
type Handler struct {
	o         Options
	mux       *http.ServeMux
	documents chan struct{} // holds a value for each document that is made or written
	ready     readiness

	mu      sync.Mutex                // guards streams
	streams map[[sha256.Size]byte]int // by the digest of the credential of their senders
}

// A request is a request with its sender, and what the sender is offered.
type request struct {
	h *Handler
	*Offer
	sender Sender
	w      http.ResponseWriter
	r      *http.Request
}

// New returns an inspector.
func New(o Options) *Handler {
	h := &Handler{o: o, mux: http.NewServeMux(), documents: make(chan struct{}, maxDocuments), streams: map[[sha256.Size]byte]int{}, ready: readiness{look: o.Ready, drain: o.Drain}}
	if h.o.Escape == nil {
		h.o.Escape = func(w io.Writer) io.Writer { return w }
	}
	for i := range routes {
		r := &routes[i]
		if r.offered == nil || r.offered(&h.o.Offer) {
			h.handle(r.Route, r.offered, r.serve)
		}
	}
	if o.Page != nil {
		h.handle(Route{http.MethodGet, "/{$}"}, nil, (*request).index)
		h.handle(Route{http.MethodGet, "/assets/{name}"}, nil, (*request).asset)
	}
	return h
}

// ServeHTTP checks the origin and the sender of a request, and answers it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	if h.ready.answer(w, r) {
		return
	}
	sender, denied := h.o.Access.senderOf(r)
	isWithinLimit := denied != nil || authenticateConnection(r.Context())
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // not every connection supports deadlines
	if err := h.o.Access.check(r, &sender); err != nil {
		h.fail(w, err)
		return
	}
	if r.URL.Path == loginPath && h.o.Access.Proxy == nil {
		h.o.Access.login(w, r)
		return
	}
	var offer *Offer
	if denied == nil {
		offer, denied = h.offer(sender)
	}
	switch {
	case !isWithinLimit:
		w.Header().Set("Connection", "close")
		h.fail(w, &Error{Code: TooMany, Message: fmt.Sprintf("%d connections are open", maxAuthenticated), Hint: "close some of them first"})
		return
	case denied != nil && !strings.HasPrefix(r.URL.Path, API+"/"):
		h.o.Access.denyPage(w, errorOf(denied))
		return
	case denied != nil:
		w.Header().Set("WWW-Authenticate", "Bearer")
		h.fail(w, denied)
		return
	}
	if err := h.mayWrite(r, &sender); err != nil {
		h.fail(w, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.fail(w, h.noRoute(w, r))
		return
	}
	h.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, &request{Offer: offer, sender: sender})))
}

// requestKey is the key of what is known of a [request] in its context.
type requestKey struct{}

// handle adds a route, for senders to whom it is offered.
func (h *Handler) handle(of Route, offered func(*Offer) bool, serve func(*request) error) {
	h.mux.HandleFunc(of.Method+" "+of.Path, func(w http.ResponseWriter, r *http.Request) {
		q := *r.Context().Value(requestKey{}).(*request)
		q.h, q.w, q.r = h, w, r
		err := errNotOffered
		if offered == nil || offered(q.Offer) {
			err = serve(&q)
		}
		if err != nil && !errors.Is(err, errGone) && r.Context().Err() == nil {
			h.fail(w, err)
		}
	})
}

// errNotOffered reports a request for what others are offered.
var errNotOffered error = &Error{Code: Forbidden, Message: "none of your roles allows this", Hint: "ask whoever runs the server for a role that does"}

// offer returns what a sender is offered now.
func (h *Handler) offer(to Sender) (*Offer, error) {
	if h.o.For == nil {
		return &h.o.Offer, nil
	}
	return h.o.For(to)
}

// mayWrite refuses a request that changes something and is not allowed to.
func (h *Handler) mayWrite(r *http.Request, by *Sender) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); {
	case h.o.ReadOnly && r.URL.Path != API+signOutPath:
		return &Error{Code: Forbidden, Message: "this server is read-only", Hint: "start runteam serve without --read-only"}
	case by.isAmbient && r.Header.Get("X-Runteam") != "1":
		return &Error{Code: Forbidden, Message: "a request that changes something needs the header X-Runteam: 1"}
	case r.ContentLength != 0 && strings.TrimSpace(kind) != "application/json":
		return &Error{Code: BadRequest, Message: "the body is not JSON: Content-Type is " + kind, Hint: "send Content-Type: application/json"}
	}
	return nil
}

// noRoute returns the error for a request that matches no route.
func (h *Handler) noRoute(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 && r.URL.Path == API+"/specs" {
		if h.o.ReadOnly {
			return &Error{Code: NotFound, Message: "this server is read-only and starts no runs", Hint: "start runteam serve SPEC without --read-only"}
		}
		return &Error{Code: NotFound, Message: "this server has no spec and starts no runs", Hint: "start runteam serve SPEC"}
	}
	if len(allowed) == 0 {
		return errNoPath
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return &Error{Code: methodNotAllowed, Message: "this path does not take " + r.Method, Hint: "use " + strings.Join(allowed, " or ")}
}

// fail writes an error.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	e := errorOf(err)
	_ = h.write(w, e.Status(), map[string]*Error{"error": e}) // the client is gone
}

// errNoPath reports a path without a route.
var errNoPath error = &Error{Code: NotFound, Message: "there is nothing at this path", Hint: "the API is under " + API}

// write writes a document.
func (h *Handler) write(w http.ResponseWriter, status int, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, err = h.o.Escape(pieces{w: w}).Write(append(text, '\n'))
	return gone(err)
}

// maxPiece is the number of bytes that a client reads in [writeTime], or it is disconnected.
const maxPiece = 64 << 10

// pieces writes to a client, which has [writeTime] for each piece of [maxPiece], and gets none once until is closed.
type pieces struct {
	w     http.ResponseWriter
	until <-chan struct{} // nil never is
}

func (p pieces) Write(text []byte) (n int, err error) {
	for n < len(text) && err == nil {
		select {
		case <-p.until:
			return n, errGone
		default:
		}
		var written int
		_ = http.NewResponseController(p.w).SetWriteDeadline(time.Now().Add(writeTime))
		written, err = p.w.Write(text[n:min(len(text), n+maxPiece)])
		n += written
	}
	return n, err
}

// errGone reports that the client does not read the response.
var errGone = errors.New("the client is gone")

// gone returns errGone for the error of a write, and nil for nil.
func gone(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

// decode reads a JSON body. An empty body leaves into unchanged.
func decode(r *http.Request, into any) error {
	text, err := io.ReadAll(r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{Code: TooLarge, Message: "the body is larger than 1 MiB", Hint: "put large texts into files, and name them in the spec", Problems: []Problem{{Message: tooLarge.Error()}}}
	}
	if err != nil {
		return &Error{Code: BadRequest, Message: "the body could not be read: " + err.Error()}
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil
	}
	return strictly(text, into)
}
