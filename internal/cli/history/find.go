package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/internal/username"
	"github.com/runteam/runteam/llm"
)

// RunStatuses are the statuses that a run in a list can have.
var RunStatuses = []string{
	string(engine.StatusOK), string(engine.StatusError), journal.Running, journal.Paused, journal.Interrupted, string(engine.StatusSuspended),
	journal.Queued, journal.SetAside, string(engine.StatusCanceled), string(engine.StatusTimeout), string(engine.StatusBudget),
}

// A FilterTerm is a part of a filter of runs: a flag of the command, and a parameter of the API with the same name.
type FilterTerm struct{ Name, Usage string }

// FilterTerms are all parts of a filter.
var FilterTerms = []FilterTerm{
	{"search", "only runs with all of these `WORDS` in their name, ID, session or path of the spec"},
	{"status", "only runs with this `STATUS`, or one of several with commas: " + strings.Join(RunStatuses, ", ")},
	{"spec", "only runs of this `SPEC`: a name, or the end of a path"},
	{"starter", "only runs that this `PERSON` started, as a server authenticated them"},
	{"since", "only runs that began at this `TIME` or later: 2026-11-30, 2026-11-30T08:00:00Z, or 7d or 12h ago"},
	{"until", "only runs that began before this `TIME`"},
	{"min-cost", "only runs that cost this `AMOUNT` of US dollars or more"},
	{"max-cost", "only runs that cost this `AMOUNT` of US dollars or less"},
}

// A RunFilter selects runs of a list. The zero value selects all.
type RunFilter struct {
	words            []string
	statuses         []string
	spec, starter    string
	since, until     time.Time
	minCost, maxCost *llm.Money
}

// ParseRunFilter reads a filter. given returns the value of a term, empty if there is none; name says how an error names
// a term.
func ParseRunFilter(given func(term string) string, name func(term string) string, now time.Time) (f RunFilter, err error) {
	f.words, f.spec = strings.Fields(strings.ToLower(given("search"))), strings.ToLower(given("spec"))
	for word := range strings.SplitSeq(given("status"), ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if !slices.Contains(RunStatuses, word) {
			return f, exit.UnknownWord(name("status"), word, RunStatuses)
		}
		f.statuses = append(f.statuses, word)
	}
	if text := given("starter"); text != "" {
		if f.starter, err = username.Parse(text); err != nil {
			return f, exit.Usagef("%s %q: %w", name("starter"), text, err)
		}
	}
	for term, at := range map[string]*time.Time{"since": &f.since, "until": &f.until} {
		if text := given(term); text != "" {
			if *at, err = parseTime(text, now); err != nil {
				return f, exit.Usagef("%s %q: write a day such as 2026-11-30, a time such as 2026-11-30T08:00:00Z, or how long ago, such as 7d or 12h", name(term), text)
			}
		}
	}
	for term, cost := range map[string]**llm.Money{"min-cost": &f.minCost, "max-cost": &f.maxCost} {
		if text := given(term); text != "" {
			dollars, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
			if err != nil || dollars < 0 || math.IsNaN(dollars) {
				return f, exit.Usagef("%s %q: write an amount of US dollars, such as 0.25", name(term), text)
			}
			*cost = new(llm.Dollars(dollars))
		}
	}
	return f, nil
}

// parseTime reads a day or a time, or how long ago it was.
func parseTime(text string, now time.Time) (at time.Time, err error) {
	if age, err := parseAge(text); err == nil {
		return now.Add(-age), nil
	}
	if at, err = time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, text)
}

// IsEmpty reports whether the filter selects all runs.
func (f *RunFilter) IsEmpty() bool {
	return len(f.words)+len(f.statuses) == 0 && f.spec == "" && f.starter == "" && f.since.IsZero() && f.until.IsZero() && f.minCost == nil && f.maxCost == nil
}

// A RunFinder finds the runs of a journal that a filter selects. It reads what lists do not have of a run once, and is safe
// for concurrent use. For a viewer it reads what documents show to that viewer, so a filter tells no more than these.
type RunFinder struct {
	Journal *journal.Journal
	Now     func() time.Time

	mu    sync.Mutex // guards the rest
	paths map[string]string
	costs map[string]runCost
}

// A runCost is what a run has cost up to a row.
type runCost struct {
	row   int64
	money llm.Money
	known bool // not if a model has no price, or the caller may not see what all calls took
}

// maxFacts is the number of runs of which facts are kept.
const maxFacts = 50_000

// Found is a part of a list of runs.
type Found struct {
	Runs []journal.Summary
	Next string // the ID of the run behind which the list goes on; empty if it does not
}

// Find returns the first of some runs that a filter selects, at most so many. After a time it returns what it has found, and
// where to go on.
func (d *RunFinder) Find(ctx context.Context, list []journal.Summary, f *RunFilter, most int, until time.Time) (out Found, err error) {
	for i := range list {
		s := list[i]
		fits := f.fitsRow(&s)
		if fits && s.Ended.IsZero() { // its status and its tasks are not known yet
			if s, err = d.Journal.Find(ctx, s.Run); errors.Is(err, journal.ErrUnknownRun) {
				continue // it was removed meanwhile
			} else if err != nil {
				return Found{}, journals.ReadError(ctx, err)
			}
		}
		if fits && !f.IsEmpty() {
			if fits, err = d.fits(ctx, &s, f); err != nil {
				return Found{}, err
			}
		}
		if fits && len(out.Runs) == most {
			out.Next = out.Runs[most-1].Run
			return out, nil
		}
		if fits {
			out.Runs = append(out.Runs, s)
		}
		if !f.IsEmpty() && i+1 < len(list) && !until.IsZero() && time.Now().After(until) {
			out.Next = s.Run
			return out, nil
		}
	}
	return out, nil
}

// fitsRow reports whether a run can be selected, by what its row in the journal says.
func (f *RunFilter) fitsRow(s *journal.Summary) bool {
	return !s.Started.Before(f.since) && (f.until.IsZero() || s.Started.Before(f.until)) &&
		(f.starter == "" || s.Starter == f.starter) && (len(f.statuses) == 0 || s.Ended.IsZero() || slices.Contains(f.statuses, s.Status))
}

// fits reports whether a filter selects a run that fits by its row.
func (d *RunFinder) fits(ctx context.Context, s *journal.Summary, f *RunFilter) (bool, error) {
	if len(f.statuses) > 0 && !slices.Contains(f.statuses, s.Status) {
		return false, nil
	}
	if f.spec != "" && strings.ToLower(s.Name) != f.spec {
		if path, err := d.specOf(ctx, s); err != nil || !endsWithPath(strings.ToLower(path), f.spec) {
			return false, err
		}
	}
	text := strings.ToLower(strings.Join([]string{s.Name, s.Run, s.Session}, "\n"))
	isIn := func(word string) bool { return strings.Contains(text, word) }
	if !all(f.words, isIn) {
		path, err := d.specOf(ctx, s)
		if text += "\n" + strings.ToLower(path); err != nil || !all(f.words, isIn) {
			return false, err
		}
	}
	if f.minCost == nil && f.maxCost == nil {
		return true, nil
	}
	c, err := d.costOf(ctx, s)
	return c.known && (f.minCost == nil || c.money >= *f.minCost) && (f.maxCost == nil || c.money <= *f.maxCost), err
}

func all(words []string, is func(string) bool) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !is(word) })
}

// endsWithPath reports whether a path ends with whole parts, with or without the extension of the file.
func endsWithPath(path, end string) bool {
	path = "/" + strings.ReplaceAll(path, `\`, "/")
	end = "/" + strings.TrimPrefix(strings.TrimPrefix(strings.ReplaceAll(end, `\`, "/"), "./"), "/")
	return strings.HasSuffix(path, end) || strings.HasSuffix(strings.TrimSuffix(path, filepath.Ext(path)), end)
}

// specOf returns the path of the spec of a run, or nothing if another program began it or it was removed meanwhile.
func (d *RunFinder) specOf(ctx context.Context, s *journal.Summary) (path string, err error) {
	d.mu.Lock()
	path, known := d.paths[s.Run]
	d.mu.Unlock()
	if known {
		return path, nil
	}
	stored, err := d.Journal.LoadStart(ctx, s.Run)
	if errors.Is(err, journal.ErrUnknownRun) {
		return "", nil
	} else if err != nil {
		return "", journals.ReadError(ctx, fmt.Errorf("run %s: %w", s.Run, err))
	}
	path = journals.InvocationOf(&stored.Info).Found
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paths = kept(d.paths)
	d.paths[s.Run] = path
	return path, nil
}

// kept returns a map that can take one more entry.
func kept[V any](facts map[string]V) map[string]V {
	if facts == nil || len(facts) >= maxFacts {
		return map[string]V{}
	}
	return facts
}

// costOf returns what a run has cost, as its document says.
func (d *RunFinder) costOf(ctx context.Context, s *journal.Summary) (c runCost, err error) {
	row, err := d.Journal.LastRow(ctx, s.Run)
	if errors.Is(err, journal.ErrUnknownRun) {
		return c, nil // it was removed meanwhile
	} else if err != nil {
		return c, journals.ReadError(ctx, fmt.Errorf("run %s: %w", s.Run, err))
	}
	d.mu.Lock()
	c, known := d.costs[s.Run]
	d.mu.Unlock()
	if known && c.row == row {
		return c, nil
	}
	loaded, err := d.Journal.Load(ctx, s.Run)
	if err != nil {
		return c, journals.ReadError(ctx, fmt.Errorf("run %s: %w", s.Run, err))
	}
	total := view.Of(journals.NewStoredRun(*s, new(trace.Trace), loaded, d.Now())).Usages().Total
	c = runCost{row, total.Money, !total.Unpriced && !total.Partial}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.costs = kept(d.costs)
	d.costs[s.Run] = c
	return c, nil
}
