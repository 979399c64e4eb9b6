package serve

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/roles"
)

// documents makes the documents of the stored runs that a guest may see.
type documents struct {
	*guest
	of     string // the key of the guest
	finder *history.RunFinder
}

// A runCache has the runs that were read last. Once the journal has new rows of a run, only these are read. Only one
// run is read, or made into a document, at a time.
type runCache struct {
	mu   sync.Mutex // guards the rest, and what is in the runs
	runs []*cachedRun
}

// The runs of a cache take at most so much memory, unless one alone takes more. A run takes two to three times the bytes of
// its lines.
const (
	maxCached     = 256 << 20
	memoryOfLines = 3
)

// A cachedRun is a run as it was read up to a row for a guest. Its short ID depends on what else the guest may see.
type cachedRun struct {
	of       string // the key of the guest
	last     int64
	status   string
	live     bool
	follower *journal.Follower
	run      *journals.StoredRun
}

// with calls make with a run.
func (d *documents) with(ctx context.Context, name string, make func(*journals.StoredRun) (any, error)) (any, error) {
	found, err := journals.Find(ctx, d.j, name)
	if err != nil {
		return nil, problem(err)
	}
	d.cache.mu.Lock()
	defer d.cache.mu.Unlock()
	k, err := d.load(ctx, &found)
	if err != nil {
		return nil, problem(err)
	}
	now := *k
	now.Now = d.con.Now() // cached runs are older, and results expire
	document, err := make(&now)
	return document, problem(err)
}

// load returns a run from the cache, or reads it. The caller holds the lock of the cache.
func (d *documents) load(ctx context.Context, s *journal.Summary) (*journals.StoredRun, error) {
	last, err := d.j.LastRow(ctx, s.Run)
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	c := d.cache
	i := slices.IndexFunc(c.runs, func(of *cachedRun) bool { return of.of == d.of && of.run.Run == s.Run })
	of := &cachedRun{of: d.of, last: -1}
	if i >= 0 {
		of = c.runs[i]
		c.runs = slices.Delete(c.runs, i, i+1)
	}
	if of.follower == nil || !of.run.Started.Equal(s.Started) { // or the run was removed meanwhile, and made again
		of.last = -1
		if of.follower, err = d.j.Follow(ctx, s.Run); err != nil {
			return nil, journals.ReadError(ctx, err)
		}
	}
	if of.last != last || of.status != s.Status || of.live != s.Live() {
		of.last, of.status, of.live = last, s.Status, s.Live()
		if of.run, err = journals.LoadNow(ctx, d.con, d.j, of.follower); err != nil {
			return nil, err
		}
	}
	c.keep(of)
	return of.run, nil
}

// keep adds a run to the cache, and drops those that were used least recently if all are too large.
func (c *runCache) keep(of *cachedRun) {
	c.runs = append(c.runs, of)
	size, first := of.follower.Size()*memoryOfLines, len(c.runs)-1
	for ; first > 0; first-- {
		if size += c.runs[first-1].follower.Size() * memoryOfLines; size > maxCached {
			break
		}
	}
	c.runs = slices.Delete(c.runs, 0, first)
}

// Run returns what show prints of a run; see [inspector.Runs].
func (d *documents) Run(ctx context.Context, name string) (any, error) {
	return d.with(ctx, name, func(k *journals.StoredRun) (any, error) {
		doc := view.Of(k)
		d.live.addStreams(k.Run, doc.All())
		return doc, nil
	})
}

// Task returns what show prints of a task; see [inspector.Runs].
func (d *documents) Task(ctx context.Context, name, task string) (any, error) {
	return d.withTask(ctx, name, task, func(k *journals.StoredRun) (any, error) {
		doc, err := view.TaskOf(k, task, false)
		if err == nil {
			d.live.addStreams(k.Run, []*view.Task{doc})
		}
		return doc, err
	})
}

// Blocks returns the blocks of each result in the answer of a run, or of the result of a task; see [inspector.Runs].
func (d *documents) Blocks(ctx context.Context, name, task string) (any, error) {
	if task == "" {
		return d.with(ctx, name, func(k *journals.StoredRun) (any, error) {
			r := view.Of(k)
			return view.AnswerOf(r, func(text string) string { return text }), nil
		})
	}
	return d.withTask(ctx, name, task, func(k *journals.StoredRun) (any, error) {
		t, err := view.TaskOf(k, task, false)
		if err != nil {
			return nil, err
		}
		return view.BlocksOf(t, t.Result), nil
	})
}

// withTask calls make with a run that has at least what is about one task. The next row of a
// run that has not ended would make the whole run stale, so only what is about the task is read of that.
func (d *documents) withTask(ctx context.Context, name, task string, make func(*journals.StoredRun) (any, error)) (any, error) {
	found, err := journals.Find(ctx, d.j, name)
	if err != nil {
		return nil, problem(err)
	}
	if !found.Ended.IsZero() {
		return d.with(ctx, found.Run, make)
	}
	k, err := journals.Load(ctx, d.con, d.j, found, task)
	if err != nil {
		return nil, problem(err)
	}
	document, err := make(k)
	return document, problem(err)
}

// Usage returns what show --usage prints of a run; see [inspector.Runs].
func (d *documents) Usage(ctx context.Context, name string) (any, error) {
	return d.with(ctx, name, func(k *journals.StoredRun) (any, error) { return view.Of(k).Usages(), nil })
}

// Artifacts returns what artifacts prints of a run; see [inspector.Runs].
func (d *documents) Artifacts(ctx context.Context, name string) (any, error) {
	return d.with(ctx, name, func(k *journals.StoredRun) (any, error) { return history.Artifacts(k, ""), nil })
}

// Receipts returns what explain prints of a run; see [inspector.Receipts].
func (d *documents) Receipts(ctx context.Context, name, task, contains string) (any, error) {
	q := explain.Query{Task: task, Contains: contains, HasContains: strings.TrimSpace(contains) != ""}
	explained := func(k *journals.StoredRun) (any, error) {
		if q.HasContains {
			q.Found = k.Trace.Contains(contains)
		}
		x, err := explain.NewDocument(k.Trace, q)
		if err == nil && k.IsPart() && slices.ContainsFunc(k.Trace.Handoffs, explain.IsOfFiles) {
			k, err = journals.Load(ctx, d.con, d.j, k.Summary, "") // the versions of other tasks too
		}
		if err == nil {
			x.AddFiles(k)
		}
		return x, err
	}
	if q.HasContains || task == "" {
		return d.with(ctx, name, explained)
	}
	return d.withTask(ctx, name, task, explained)
}

// questions are the open questions that a guest may see.
type questions struct{ *guest }

// Open returns what questions prints; see [inspector.Questions]. Whoever may answer a question may read it, even if they may not
// see the run.
func (q questions) Open(ctx context.Context, run string) (any, error) {
	docs, _, err := people.OpenQuestions(ctx, q.j, q.flags, run)
	if err == nil {
		err = answerer(q).deny(ctx, docs)
	}
	if err != nil || run != "" {
		return docs, problem(err)
	}
	all, err := q.outside(ctx)
	if err == nil {
		err = answerer(q).deny(ctx, all)
	}
	for i := range all {
		docs = append(docs, all[i].ForPerson())
	}
	slices.SortStableFunc(docs[len(docs)-len(all):], func(a, b people.QuestionDocument) int { return strings.Compare(a.ID, b.ID) })
	return docs, problem(err)
}

// outside returns the open questions that the guest may answer, of runs that are not there for them.
func (g *guest) outside(ctx context.Context) ([]people.QuestionDocument, error) {
	if !g.has(roles.Approver, nil) {
		return nil, nil
	}
	seen, err := g.j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	runs, err := g.whole.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	all, _, err := people.OpenQuestions(ctx, g.whole, g.flags, "")
	return slices.DeleteFunc(all, func(d people.QuestionDocument) bool {
		isOf := func(s journal.Summary) bool { return s.Run == d.Run }
		i := slices.IndexFunc(runs, isOf)
		if i < 0 || slices.ContainsFunc(seen, isOf) {
			return true
		}
		_, err := answerer{g}.answerAs(&runs[i], d.Agent, d.Label)
		return err != nil || len(d.Users) > 0 && !slices.Contains(d.Users, g.by)
	}), err
}

var _ inspector.Runs = (*documents)(nil)
