package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Client calls one server. It is safe for concurrent use. Create one with [New].
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New returns a client of the server at baseURL, such as http://127.0.0.1:7337. It does not connect.
func New(baseURL, token string) (*Client, error) {
	token = strings.TrimSpace(token) // a token file ends with a line feed
	base, err := url.Parse(strings.TrimRight(baseURL, "/"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("inspect: base URL: %w; write http://HOST:PORT", err)
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("inspect: base URL %q: write http://HOST:PORT", base.Redacted())
	case token == "" || strings.ContainsAny(token, "\r\n"):
		return nil, errors.New("inspect: the token is empty or has more than one line; use the one that runteam serve wrote into --token-file")
	}
	return &Client{base: base, token: token, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server
	}}, nil
}

// An Error is the error response of a server.
type Error struct {
	Status   int       `json:"-"`    // of HTTP
	Code     string    `json:"code"` // such as not_found, conflict, stale or invalid
	Message  string    `json:"message"`
	Hint     string    `json:"hint"`     // what to do; may be empty
	Problems []Problem `json:"problems"` // all that is wrong with the body of the request
}

// A Problem is one thing that is wrong with the body of a request.
type Problem struct {
	Pointer string `json:"pointer"` // a JSON Pointer into the body
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Error returns the message with the hint and the problems.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("inspect: " + e.Message)
	if e.Hint != "" {
		text.WriteString("; " + e.Hint)
	}
	for _, p := range e.Problems {
		if p.Message != e.Message {
			text.WriteString("\n" + strings.TrimSpace(p.Pointer+" "+p.Message))
		}
		if p.Hint != "" && p.Hint != e.Hint {
			text.WriteString("; " + p.Hint)
		}
	}
	return text.String()
}

// maxDocument bounds an answer, in bytes.
const maxDocument = 1 << 30

// Get returns the JSON document at a path below /api/v1, such as /runs/ID/usage. Use it for documents
// that no other method returns.
func (c *Client) Get(ctx context.Context, path string) (json.RawMessage, error) {
	var document json.RawMessage
	_, err := c.do(ctx, http.MethodGet, path, nil, nil, &document)
	return document, err
}

// do sends a request with a JSON body, unless that is nil, and decodes the answer.
func (c *Client) do(ctx context.Context, method, path string, header http.Header, body, into any) (http.Header, error) {
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, header)
	res, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return nil, refusal(res)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxDocument)).Decode(into); err != nil {
		return nil, fmt.Errorf("inspect: %s %s: unexpected response: %w", method, path, err)
	}
	return res.Header, nil
}

// request returns a request for a path below /api/v1.
func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("inspect: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base.String()+"/api/v1"+path, reader)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// maxRefusal bounds the answer of a server that refuses a request, in bytes.
const maxRefusal = 4 << 20

// refusal returns the error in a response. The response of another kind of server has no code.
func refusal(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what can be read is enough
	e := errorIn(text)
	if e == nil {
		e = &Error{Message: "the server answered " + res.Status, Hint: "check that runteam serve listens there"}
	}
	e.Status = res.StatusCode
	return e
}

// errorIn returns the error of a JSON text that a server sent, or nil if it has none.
func errorIn(text []byte) *Error {
	var document struct{ Error *Error }
	if json.Unmarshal(text, &document) != nil {
		return nil
	}
	return document.Error
}

// runPath returns the path of a run or of something in it.
func runPath(run string, parts ...string) string {
	var path strings.Builder
	path.WriteString("/runs/" + url.PathEscape(run))
	for _, part := range parts {
		path.WriteString("/" + url.PathEscape(part))
	}
	return path.String()
}

// RunsOptions say which runs [Client.Runs] returns. The zero value means the first 100.
type RunsOptions struct {
	Limit  int    // at most 1,000; 0 means 100
	Before string // the ID of the last run of the previous page
}

// A RunList is a page of runs: first those that a process works on, then the others, newest first.
type RunList struct {
	Runs []RunItem `json:"runs"`
	More bool      `json:"more"` // there are more runs after these
}

// A RunItem is a run in a list.
type RunItem struct {
	Run     string         `json:"runId"`
	Name    string         `json:"name"`
	Spec    string         `json:"spec"`    // its name; empty of a run that a program began, or an earlier version
	Starter string         `json:"starter"` // who started it, as the server authenticated the person; empty without that
	Status  string         `json:"status"`  // such as running, paused, ok, error, suspended or cancelled
	Started time.Time      `json:"startedAt"`
	Ended   time.Time      `json:"endedAt"` // zero while it works
	TookMs  int64          `json:"tookMs"`  // milliseconds for which processes worked on it; zero while it works
	Tasks   map[string]int `json:"tasks"`   // number of tasks by status
	Live    bool           `json:"live"`    // a process works on it

	// Counted reports whether the fields below are known. A list counts for at most 300 ms, so they may be
	// zero in the first list of a long journal; the next list has more of them.
	Counted   bool   `json:"counted"`
	Cost      string `json:"cost"`      // US dollars; empty if a model has no price
	Withheld  int    `json:"withheld"`  // decisions that withheld something from an agent
	Questions int    `json:"questions"` // open ones
}

// Runs returns a page of the runs of the journal.
func (c *Client) Runs(ctx context.Context, o RunsOptions) (list RunList, err error) {
	query := url.Values{}
	if o.Limit > 0 {
		query.Set("limit", fmt.Sprint(o.Limit))
	}
	if o.Before != "" {
		query.Set("before", o.Before)
	}
	path := "/runs"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	_, err = c.do(ctx, http.MethodGet, path, nil, nil, &list)
	return list, err
}

// Run returns one run, as `runteam show RUN -o json` prints it. Here and in all other methods, run is the
// ID of a run or a unique prefix of it.
func (c *Client) Run(ctx context.Context, run string) (json.RawMessage, error) {
	return c.Get(ctx, runPath(run))
}

// A Start selects a served spec for [Client.Start] and gives its inputs and parameters.
type Start struct {
	Spec   string            `json:"spec"`             // the name of the spec
	Inputs map[string]string `json:"inputs,omitempty"` // texts by input; their labels are those of the spec
	Params map[string]string `json:"params,omitempty"`
	Goal   string            `json:"goal,omitempty"`   // empty means that of the spec
	Reason string            `json:"reason,omitempty"` // why; stored with the user of the server
}

// Start starts a run and returns its ID. If the spec or the request has problems, nothing is run, and an
// [*Error] with the code invalid lists all of them.
func (c *Client) Start(ctx context.Context, s Start) (run string, err error) {
	var started struct {
		Run string `json:"runId"`
	}
	_, err = c.do(ctx, http.MethodPost, "/runs", nil, s, &started)
	return started.Run, err
}

// A Submission is a run that a worker is to take, a runteam serve --work N of the same journal. The server needs no worker
// of its own.
type Submission struct {
	Start
	ID       string    // a second submission of it with the same token for the same spec is the first run; may be empty
	At       time.Time // when the run may begin; zero means at once
	Priority int       // of the runs that the token has submitted, those with the highest begin first
}

// Submit stores a run for a worker, and returns its ID. The sender of the token is its caller. added is false if the run
// was submitted before, with the same ID. If the spec or the request has problems, nothing is stored, and an [*Error] with
// the code invalid lists all of them; the code is too_many if as many runs of the caller wait as may.
func (c *Client) Submit(ctx context.Context, s Submission) (run string, added bool, err error) {
	type queue struct {
		ID       string    `json:"id,omitempty"`
		At       time.Time `json:"at,omitzero"`
		Priority int       `json:"priority,omitempty"`
	}
	body := struct {
		Start
		Queue queue `json:"queue"`
	}{s.Start, queue{s.ID, s.At, s.Priority}}
	var stored struct {
		Run   string `json:"runId"`
		Added bool   `json:"added"`
	}
	_, err = c.do(ctx, http.MethodPost, "/runs", nil, body, &stored)
	return stored.Run, stored.Added, err
}
