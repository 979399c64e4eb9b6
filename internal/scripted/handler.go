package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/runteam/runteam/llm"
)

// MaxRequest bounds the body of a request, in bytes.
const MaxRequest = 16 << 20

// A Handler is the endpoint. It serves POST /v1/chat/completions, with and without streaming,
// and GET /v1/models. It is safe for concurrent use.
type Handler struct {
	models []string
	keep   bool
	mux    *http.ServeMux

	mu       sync.Mutex // guards what follows
	answers  []*answer
	requests []Request
	calls    int
}

// An answer is a compiled reply.
type answer struct {
	Reply
	text  *template.Template
	calls []compiledCall
	left  int // calls that it may still answer, if Times is not zero
}

// A Request is one call that the endpoint received.
type Request struct {
	Model    string
	System   string
	Messages []llm.Message // without system messages
	Tools    []llm.Tool
	Stream   bool
	Headers  []string // names only, sorted
}

// New returns the endpoint of a script, which it does not change. If keep is true, it stores
// every request for Requests.
func New(s *Script, keep bool) (*Handler, error) {
	if s == nil {
		s = &Script{}
	}
	answers, err := s.compileAll()
	if err != nil {
		return nil, err
	}
	h := &Handler{models: slices.Clone(s.Models), keep: keep, mux: http.NewServeMux(), answers: answers}
	if len(h.models) == 0 {
		h.models = []string{"scripted"}
	}
	h.mux.HandleFunc("POST /v1/chat/completions", h.complete)
	h.mux.HandleFunc("GET /v1/models", h.list)
	h.mux.HandleFunc("/v1/chat/completions", refuseMethod)
	h.mux.HandleFunc("/v1/models", refuseMethod)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "not_found", "no such path: the base URL ends in /v1")
	})
	return h, nil
}

// ServeHTTP answers one request. It refuses cross-origin requests of web pages.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		refuse(w, http.StatusForbidden, "cross_origin", err.Error())
		return
	}
	h.mux.ServeHTTP(w, r)
}

// Requests returns the calls received so far, oldest first, if the endpoint stores them.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

func (h *Handler) list(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, m := range h.models {
		list.Data = append(list.Data, model{ID: m, Object: "model", OwnedBy: "scripted"})
	}
	send(w, http.StatusOK, list)
}

func (h *Handler) complete(w http.ResponseWriter, r *http.Request) {
	req, c, err := readCall(w, r)
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		refuse(w, status, "invalid_request_error", err.Error())
		return
	}
	got := receive(req.System, req.Messages)
	a, number := h.choose(req, got)
	out := &output{w: w, call: c, number: number, input: requestBytes(req)}
	if a == nil {
		out.send(llm.Response{Text: got.offline()}, false, nil)
		return
	}
	if !wait(r, a.Delay) {
		panic(http.ErrAbortHandler) // not the empty reply that a return would send
	}
	if a.Status != 0 || a.Body != "" || a.Ended != "" {
		if err = a.checkMessages(got); err == nil {
			a.fail(w)
			return
		}
	}
	var res llm.Response
	if err == nil {
		res, err = a.answer(got, req.Tools)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "script_error", "the script cannot answer: "+a.named()+err.Error())
		return
	}
	out.send(res, a.Cut, a.Usage)
}

// answer returns the text and the tool calls of a reply for a prompt.
func (a *answer) answer(got *received, offered []llm.Tool) (res llm.Response, err error) {
	if err := a.checkMessages(got); err != nil {
		return res, err
	}
	if res.Text, err = got.render(a.text); err == nil {
		res.ToolCalls, err = got.toolCalls(a.calls, offered)
	}
	return res, err
}

// choose records a request and returns the reply for it, or nil, and its number.
func (h *Handler) choose(req Request, got *received) (*answer, int) {
	step, part := got.step(), got.part()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.keep {
		h.requests = append(h.requests, req)
	}
	for _, a := range h.answers {
		if !a.matches(got, step, part) || a.Times > 0 && a.left == 0 {
			continue
		}
		a.left--
		return a, h.calls
	}
	return nil, h.calls
}

func (a *answer) matches(got *received, step Step, part int) bool {
	return (a.Task == "" || strings.EqualFold(strings.TrimSpace(a.Task), got.Task)) &&
		(a.Coordinator == "" || a.Coordinator == step) && (a.Part == 0 || a.Part == part) &&
		(a.Turn == 0 || a.Turn == got.Turn) && (a.Goal == "" || containsFold(got.child, strings.TrimSpace(a.Goal))) &&
		containsFold(got.System, a.System)
}

// containsFold reports whether a text has a piece, ignoring case.
func containsFold(text, piece string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(piece))
}

// named names the reply in an error of its template.
func (a *answer) named() string {
	if at := a.At.String(); at != "" {
		return "the reply at " + at + ": "
	}
	switch {
	case a.Task != "":
		return fmt.Sprintf("the reply for task %q: ", a.Task)
	case a.Goal != "":
		return fmt.Sprintf("the reply for the goal %q: ", a.Goal)
	case a.Coordinator != "":
		return fmt.Sprintf("the reply for the coordinator's %s: ", a.Coordinator)
	}
	return ""
}

// fail answers with a status or a body instead of a text.
func (a *answer) fail(w http.ResponseWriter) {
	if a.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((a.RetryAfter+time.Second-1)/time.Second)))
	}
	if a.Ended != "" {
		refuse(w, endedStatus, "ended", endedPrefix+a.Ended)
		return
	}
	status := max(a.Status, http.StatusOK)
	if a.Body == "" && status >= 400 {
		refuse(w, status, "scripted", fmt.Sprintf("the script says %d", status))
		return
	}
	kind := http.DetectContentType([]byte(a.Body))
	if json.Valid([]byte(a.Body)) {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, a.Body)
}

// wait waits for d. It returns false if the client or the server closes first.
func wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
