package serve

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
)

// A listDocument is a page of runs, in JSON.
type listDocument struct {
	Runs []listedRun `json:"runs"`
	More bool        `json:"more"`
	Next string      `json:"next,omitempty"` // the run behind which the list goes on, if there is more
}

// A listedRun is a run in a list, in JSON.
type listedRun struct {
	history.ListedRun
	*figures
	Live    bool `json:"live"`    // a process works on it
	Counted bool `json:"counted"` // the figures are known; if not, they are absent
}

// figures are counted from all lines of a run.
type figures struct {
	Tokens    tokens `json:"tokens"`
	Cost      string `json:"cost,omitempty"`    // none if a model has no price
	Partial   bool   `json:"partial,omitempty"` // the tokens and the cost leave out what the caller may not see
	Withheld  int    `json:"withheld"`          // values and parts of values that agents were not given
	Questions int    `json:"questions"`         // open ones
}

type tokens struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// A figureCache has the figures of runs, by their IDs. They are the same for everybody who may see the run. It is safe for
// concurrent use.
type figureCache struct {
	mu  sync.Mutex // guards all
	all map[string]*cachedFigures
}

// cachedFigures are the figures of a run up to a row.
type cachedFigures struct {
	figures
	last  int64
	until time.Time // figures that took long to count stay in use until then, even if the run has new rows
}

// The limits of the figures of a list.
const (
	figureTime = 300 * time.Millisecond // for counting in one list; further runs have no figures yet
	filterTime = 2 * time.Second        // for finding what fits a filter; the next page goes on from there
	maxFigures = 2 * 1000               // that are cached
)

// Filters returns the names of the terms of a filter; see [inspector.Runs].
func (d *documents) Filters() (names []string) {
	for _, term := range history.FilterTerms {
		names = append(names, term.Name)
	}
	return names
}

// List returns a page of runs: first the live ones, then the others, newest first; see [inspector.Runs].
func (d *documents) List(ctx context.Context, p inspector.Page) (any, error) {
	filter, err := history.ParseRunFilter(func(term string) string { return p.Filter[term] }, func(term string) string { return term }, d.con.Now())
	if err != nil {
		return nil, &inspector.Error{Code: inspector.BadRequest, Message: err.Error()}
	}
	all, err := d.j.Newest(ctx, "", 1<<31-1)
	if err != nil {
		return nil, problem(journals.ReadError(ctx, err))
	}
	slices.SortStableFunc(all, func(a, b journal.Summary) int { return rank(&a) - rank(&b) })
	if p.Before != "" {
		i := slices.IndexFunc(all, func(s journal.Summary) bool { return s.Run == p.Before })
		if i < 0 {
			return nil, &inspector.Error{Code: inspector.NotFound, Message: "before: the journal has no run " + p.Before, Hint: "read the list from its beginning"}
		}
		all = all[i+1:]
	}
	found, err := d.finder.Find(ctx, all, &filter, p.Limit, time.Now().Add(filterTime))
	if err != nil {
		return nil, problem(err)
	}
	out := listDocument{Runs: []listedRun{}, More: found.Next != "", Next: found.Next}
	until := time.Now().Add(figureTime)
	for _, s := range found.Runs {
		f, err := d.figuresOf(ctx, &s, time.Now().Before(until))
		if err != nil {
			return nil, problem(err)
		}
		out.Runs = append(out.Runs, listedRun{history.Listed(ctx, d.j, &s), f, s.Live(), f != nil})
	}
	return out, nil
}

// rank sorts live runs first.
func rank(s *journal.Summary) int {
	if s.Holder != nil {
		return 0
	}
	return 1
}

// figuresOf returns the figures of a run; nil if they are not cached and may not be counted now.
func (d *documents) figuresOf(ctx context.Context, s *journal.Summary, may bool) (*figures, error) {
	last, err := d.j.LastRow(ctx, s.Run)
	if err != nil {
		return nil, nil //nolint:nilerr // it was removed meanwhile
	}
	known := d.figures.of(s.Run)
	if known != nil && (known.last == last || time.Now().Before(known.until)) {
		f := known.figures
		return &f, nil
	}
	if !may {
		return nil, nil
	}
	began := time.Now()
	made, err := d.with(ctx, s.Run, func(k *journals.StoredRun) (any, error) { return countFigures(k), nil })
	if err != nil {
		return nil, err
	}
	f := made.(figures)
	d.figures.keep(s.Run, &cachedFigures{f, last, time.Now().Add(2 * time.Since(began))})
	return &f, nil
}

// of returns the figures of a run, or nil.
func (c *figureCache) of(run string) *cachedFigures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[run]
}

// keep keeps the figures of a run.
func (c *figureCache) keep(run string, f *cachedFigures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxFigures {
		c.all = map[string]*cachedFigures{}
	}
	c.all[run] = f
}

// countFigures counts the figures of a run.
func countFigures(k *journals.StoredRun) (f figures) {
	r := view.Of(k)
	total := r.Usages().Total
	f.Withheld, f.Partial = r.Withheld, total.Partial
	f.Tokens = tokens{total.Usage.InputTokens, total.Usage.OutputTokens}
	if !total.Unpriced {
		f.Cost = total.Money.String()
	}
	for _, t := range r.All() {
		f.Questions += t.Open
	}
	return f
}
