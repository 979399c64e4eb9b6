package inspector

import (
	"context"
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

	mu      sync.Mutex // guards streams
	streams map[holder]int
}

// New returns an inspector.
func New(o Options) *Handler {
	h := &Handler{o: o, mux: http.NewServeMux(), documents: make(chan struct{}, maxDocuments), streams: map[holder]int{}}
	if h.o.Escape == nil {
		h.o.Escape = func(w io.Writer) io.Writer { return w }
	}
	for i := range routes {
		r := &routes[i]
		if r.offered != nil && !r.offered(&h.o) {
			continue
		}
		h.mux.HandleFunc(r.Method+" "+r.Path, func(w http.ResponseWriter, req *http.Request) { h.answerWith(w, req, r.serve) })
	}
	if o.Page != nil {
		h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, req *http.Request) { h.answerWith(w, req, (*Handler).index) })
		h.mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, req *http.Request) { h.answerWith(w, req, (*Handler).asset) })
	}
	return h
}

// policy is the Content-Security-Policy of all answers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP checks the origin and the sender of a request, and answers it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	of, ok := h.o.Access.holderOf(r)
	isWithinLimit := !ok || authenticateConnection(r.Context())
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // not every connection supports deadlines
	if err := h.o.Access.check(r); err != nil {
		h.fail(w, err)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/login" {
		h.login(w, r)
		return
	}
	switch {
	case !isWithinLimit:
		w.Header().Set("Connection", "close")
		h.fail(w, &Error{Code: TooMany, Message: fmt.Sprintf("%d connections are open", maxAuthenticated), Hint: "close some of them first"})
		return
	case !ok && !strings.HasPrefix(r.URL.Path, API):
		h.notice(w, http.StatusUnauthorized, "This page needs a link", "Open the link that runteam printed. Each link works once; to get another one, press Enter where runteam serve runs. If it has no terminal, send it the signal USR1, with kill -USR1 PID, or start it again.")
		return
	case !ok:
		w.Header().Set("WWW-Authenticate", "Bearer")
		h.fail(w, &Error{Code: Unauthorized, Message: "the request has no valid token", Hint: "send Authorization: Bearer TOKEN, or open the link that runteam printed"})
		return
	}
	if err := h.mayWrite(r, of); err != nil {
		h.fail(w, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.fail(w, h.noRoute(w, r))
		return
	}
	h.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), holderKey{}, of)))
}

// holderKey is the key of the [holder] in the context of a request.
type holderKey struct{}

// holderIn returns the sender of the request with a context.
func holderIn(ctx context.Context) holder {
	of, _ := ctx.Value(holderKey{}).(holder)
	return of
}

// mayWrite refuses a request that changes something and is not allowed to.
func (h *Handler) mayWrite(r *http.Request, of holder) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); {
	case h.o.Viewer.ReadOnly:
		return &Error{Code: Forbidden, Message: "this server is read-only", Hint: "start runteam serve without --read-only"}
	case of.isBrowser && r.Header.Get("X-Runteam") != "1":
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
		if h.o.Viewer.ReadOnly {
			return &Error{Code: NotFound, Message: "this server is read-only and starts no runs", Hint: "start runteam serve SPEC without --read-only"}
		}
		return &Error{Code: NotFound, Message: "this server has no spec and starts no runs", Hint: "start runteam serve SPEC"}
	}
	if len(allowed) == 0 {
		return &Error{Code: NotFound, Message: "there is nothing at this path", Hint: "the API is under " + API}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return &Error{Code: methodNotAllowed, Message: "this path does not take " + r.Method, Hint: "use " + strings.Join(allowed, " or ")}
}

// answerWith writes the answer of a route or its error.
func (h *Handler) answerWith(w http.ResponseWriter, r *http.Request, serve func(*Handler, http.ResponseWriter, *http.Request) error) {
	if err := serve(h, w, r); err != nil && !errors.Is(err, errGone) && r.Context().Err() == nil {
		h.fail(w, err)
	}
}

// fail writes an error.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	e := errorOf(err)
	_ = h.write(w, e.Status(), map[string]*Error{"error": e}) // the client is gone
}

// write writes a document.
func (h *Handler) write(w http.ResponseWriter, status int, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, err = h.o.Escape(pieces{w}).Write(append(text, '\n'))
	return gone(err)
}

// maxPiece is the number of bytes that a client reads in [writeTime], or it is disconnected.
const maxPiece = 64 << 10

// pieces writes to a client, which has [writeTime] for each piece of [maxPiece].
type pieces struct{ w http.ResponseWriter }

func (p pieces) Write(text []byte) (n int, err error) {
	for n < len(text) && err == nil {
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
