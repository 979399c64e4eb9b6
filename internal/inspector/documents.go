package inspector

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// The number of runs in a list.
const (
	defaultRuns = 100
	maxListed   = 1000
)

// document returns the function of a route that answers with the value of make.
func document(make func(context.Context, *Offer, *http.Request) (any, error)) func(*request) error {
	return func(q *request) error {
		release, err := q.h.turn(q.r.Context())
		if err != nil {
			return err
		}
		defer release()
		made, err := make(q.r.Context(), q.Offer, q.r)
		if err != nil {
			return err
		}
		return q.h.write(q.w, http.StatusOK, made)
	}
}

// turn waits until a document may be made: so many are made and written at once, and no more.
func (h *Handler) turn(ctx context.Context) (release func(), err error) {
	select {
	case h.documents <- struct{}{}:
		return func() { <-h.documents }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// viewer says who the sender is, and what they may see and do.
func (q *request) viewer() error {
	v := q.Viewer
	v.CanStopUnseen, v.CanSignOut = q.Unseen != nil && !q.h.o.ReadOnly, q.sender.isSession && q.sender.Token != ""
	return q.h.write(q.w, http.StatusOK, v)
}

func listOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	filters := o.Runs.Filters()
	query, err := queryOf(r, append(slices.Clip(filters), "limit", "before")...)
	if err != nil {
		return nil, err
	}
	p := Page{Limit: defaultRuns, Before: query.Get("before"), Filter: map[string]string{}}
	for _, name := range filters {
		p.Filter[name] = query.Get(name)
	}
	if text := query.Get("limit"); text != "" {
		if p.Limit, err = strconv.Atoi(text); err != nil || p.Limit < 1 || p.Limit > maxListed {
			return nil, &Error{Code: BadRequest, Message: "limit is " + strconv.Quote(text), Hint: "write a number from 1 to " + strconv.Itoa(maxListed)}
		}
	}
	return o.Runs.List(ctx, p)
}

func runOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Runs.Run(ctx, r.PathValue("run"))
}

func taskOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Runs.Task(ctx, r.PathValue("run"), r.PathValue("task"))
}

func blocksOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Runs.Blocks(ctx, r.PathValue("run"), r.PathValue("task"))
}

func usageOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Runs.Usage(ctx, r.PathValue("run"))
}

func artifactsOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Runs.Artifacts(ctx, r.PathValue("run"))
}

func sessionOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Runs.Session(ctx, r.PathValue("run"))
}

func receiptsOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	query, err := queryOf(r, "task", "contains")
	if err != nil {
		return nil, err
	}
	return o.Receipts.Receipts(ctx, r.PathValue("run"), query.Get("task"), query.Get("contains"))
}

func questionsOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Questions.Open(ctx, r.PathValue("run"))
}

func graphOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	if _, err := queryOf(r); err != nil {
		return nil, err
	}
	return o.Graph.Graph(ctx, r.PathValue("run"))
}

func flowOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	query, err := queryOf(r, "from", "to")
	if err != nil {
		return nil, err
	}
	return o.Flow.Flow(ctx, r.PathValue("run"), FlowQuery{query.Get("from"), query.Get("to")})
}

func handoffsOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	query, err := queryOf(r, "task", "from", "to")
	if err != nil {
		return nil, err
	}
	return o.Handoffs.Handoffs(ctx, r.PathValue("run"), HandoffQuery{query.Get("task"), query.Get("from"), query.Get("to")})
}

func comparisonOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Comparer.Compare(ctx, r.PathValue("run"), r.PathValue("other"))
}

func unseenOf(ctx context.Context, o *Offer, _ *http.Request) (any, error) {
	return o.Unseen.Unseen(ctx)
}

func specsOf(ctx context.Context, o *Offer, _ *http.Request) (any, error) {
	return o.Starter.Specs(ctx)
}

func pairOf(ctx context.Context, o *Offer, r *http.Request) (any, error) {
	return o.Governor.Pair(ctx, r.PathValue("run"), r.PathValue("from"), r.PathValue("to"))
}

func (q *request) openAPI() error {
	if len(q.h.o.OpenAPI) == 0 {
		return errNoPath
	}
	q.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, err := pieces{w: q.w}.Write(q.h.o.OpenAPI)
	return gone(err)
}

func (q *request) export() error {
	w, r := q.w, q.r
	release, err := q.h.turn(r.Context())
	if err != nil {
		return err
	}
	defer release()
	name, html, err := q.Exporter.Export(r.Context(), r.PathValue("run"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'") // the file must not run as a page of this server
	_, err = pieces{w: w}.Write(html)
	return gone(err)
}

// queryOf returns the parameters of a request, and refuses unknown ones.
func queryOf(r *http.Request, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &Error{Code: BadRequest, Message: "the parameters cannot be read: " + err.Error()}
	}
	for name := range values {
		if !slices.Contains(known, name) {
			return nil, &Error{Code: BadRequest, Message: "unknown parameter " + strconv.Quote(name)}
		}
	}
	return values, nil
}
