package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A Submission is a run that is stored without a process. Workers that serve its spec in its version may claim it.
type Submission struct {
	Info     Info      // with the inputs, which a worker reads back
	Spec     string    // its name, also in place of that of Info
	Version  string    // of the spec and its agents; stored in the form of [Journal.Masked]
	By       string    // who submits it, its caller
	Request  string    // names it among what By submits for Spec, so that it is stored once; empty if it has no name
	Due      time.Time // when it may begin; zero means at once
	Priority int       // of the runs of one caller, those with the highest begin first
	Most     int       // how many runs of the caller may wait; 0 means any number

	// Label is the label of the run until a worker begins it, the clearance of By. Nil means confidential.
	Label *label.Classification

	digest record.Digest
}

// submissionDigest returns the digest of what was submitted: for whom, by whom, as which run and up to which label, and which texts were given. Each of
// these texts has a digest with its run, but not the list of them: without this, one could be left out.
func submissionDigest(v *vault, info *Info, spec, version, by, starter string) record.Digest {
	var names []string
	for i := range info.Files {
		if info.Files[i].isGiven() {
			names = append(names, info.Files[i].Path)
		}
	}
	slices.Sort(names)
	accepts := ""
	if info.Accepts != nil {
		accepts = info.Accepts.String()
	}
	return v.digest("submission", joinLengths(append([]string{info.Run, spec, version, by, starter, accepts}, names...)...))
}

// ErrQueueFull reports a submission of a caller for whom enough runs wait.
var ErrQueueFull = errors.New("as many of your runs wait as may: submit more when some of them have begun")

// The states of a submitted run in the queue. It has none while it needs no worker: it has ended, is paused or waits for a
// person.
const (
	isQueued = "queued"
	isTaken  = "taken" // a process works on it, or was lost
	isAside  = "aside" // nobody takes it, since it lost its owner too often
	isNone   = ""
)

// A QueuePlace says where a submitted run is in the queue.
type QueuePlace struct {
	Spec     string    `json:"spec"`
	Version  string    `json:"version"` // masked
	By       string    `json:"by"`
	Due      time.Time `json:"due"`
	Priority int       `json:"priority"`
	Aside    string    `json:"aside,omitempty"`    // why nobody takes it
	Unserved bool      `json:"unserved,omitempty"` // no worker serves this version of the spec now; known while the run is queued

	state string
}

// NeedsWorker reports whether a worker works on the run, or is to take it.
func (q *QueuePlace) NeedsWorker() bool { return q != nil && q.state != isAside }

// waits reports whether the run is for the next worker, or set aside.
func (q *QueuePlace) waits() bool { return q != nil && q.state != isTaken }

// Submit stores a run that no process has begun, and returns its ID. If By submitted the same request for the spec before,
// added is false, and the ID is that of the first run.
func (j *Journal) Submit(ctx context.Context, s Submission) (run string, added bool, err error) {
	if due := s.Due; !due.IsZero() && !fromNanos(nanos(due)).Equal(due) {
		return "", false, fmt.Errorf("the run would begin at %s: give a time before the year 2262", due.Format(time.RFC3339))
	}
	leave, err := j.enter()
	if err != nil {
		return "", false, err
	}
	defer leave()
	s.Info.Spec = s.Spec
	r, b, err := j.prepare(ctx, s.Info)
	if err == nil {
		if s.Due.IsZero() {
			s.Due = b.at
		}
		s.Version = j.Masked(s.Version)
		s.digest = submissionDigest(j.vault, &s.Info, s.Spec, s.Version, s.By, s.Info.Starter)
		run, err = j.store.begin(ctx, &r.row, b, &s)
	}
	if err != nil {
		return "", false, j.beginError(s.Info.Run, err)
	}
	return run, run == s.Info.Run, nil
}

// execute executes one statement that does the same if it is repeated, and returns how many rows it changed; if its answer
// was lost, the second time.
func (s *store) execute(ctx context.Context, query string, args ...any) (changed int64, err error) {
	g := &Group{Statements: []Statement{{Query: query, Args: args}}}
	if err = s.db.Commit(ctx, []*Group{g}); errors.Is(err, ErrUncertain) {
		err = s.db.Commit(ctx, []*Group{g})
	}
	return g.Statements[0].Changed, err
}

// Requeue gives a submitted run that has no process back to the workers, such as one that was paused, set aside, or whose
// question was answered. It reports whether the run was submitted and needed that: one that succeeded does not.
func (j *Journal) Requeue(ctx context.Context, run string) (bool, error) {
	if err := j.writable(); err != nil {
		return false, j.fail("write", err)
	}
	r, err := j.find(ctx, run)
	if err != nil {
		return false, err
	}
	if !j.store.commands.has(withQueue) || j.live(r.held) {
		return false, nil
	}
	changed, err := j.store.execute(ctx, "update submissions set state = $1, losses = 0, reason = '', due = coalesce("+j.store.db.Now()+`, $2) where run = $3 and state not in ($1, $4)
and not exists (select 1 from turns t where t.n = (select max(n) from turns where run = $3) and t.status = 'ok')`,
		isQueued, nanos(j.o.Now()), r.n, isTaken)
	return err == nil && changed > 0, j.fail("write", err)
}

// errTakenMeanwhile reports that another process has taken a run since it was looked at.
var errTakenMeanwhile = errors.New("another process has taken the run")

// steerQueued pauses or cancels a run that waits for a worker, or whose worker was lost, as the process that works on it for
// that moment. If a worker takes it meanwhile, the command is for that one.
func (j *Journal) steerQueued(ctx context.Context, r row, c steer.Command) error {
	own, s, err := j.reopen(ctx, r.id, func(ctx context.Context, n int64, l *lease) error {
		if now, err := j.find(ctx, r.id); err != nil || now.queue == nil {
			return cmp.Or(err, errTakenMeanwhile)
		}
		return j.recordTurn(ctx, n, l)
	})
	if errors.Is(err, ErrLeased) || errors.Is(err, errTakenMeanwhile) {
		return j.Steer(ctx, r.id, c)
	}
	if err != nil {
		return err
	}
	now := j.o.Now()
	entries := []record.Entry{{Command: &record.Command{Kind: c.Kind, By: c.By, Reason: c.Reason, Time: now, Taken: now}}}
	if c.Kind == steer.Cancel {
		end := &record.RunEnd{Time: now, Status: canceled, Errors: []record.Failure{}}
		st := runstate.Of(&s.History)
		for _, t := range st.Tasks() {
			if status := st.Status(t); !t.Step && status.Terminal() {
				end.Tasks = append(end.Tasks, record.TaskEnd{Task: t.ID, Title: t.Title, Agent: t.Agent, Status: status})
			} else if !t.Step {
				end.Tasks = append(end.Tasks, record.TaskEnd{Task: t.ID, Title: t.Title, Agent: t.Agent, Status: task.Skipped})
			}
		}
		entries = append(entries, record.Entry{End: end})
	}
	stored := make(chan error, 1)
	own.Append(entries, func(err error) { stored <- err })
	err = <-stored
	_, ended := own.End(context.WithoutCancel(ctx))
	return errors.Join(err, ended)
}

// Await waits until a run may have been submitted or given back, but no longer than this.
func (j *Journal) Await(ctx context.Context, most time.Duration) error {
	return j.fail("read", j.store.db.Await(ctx, most))
}

// queueState returns the state in the queue of a run that its process gives up.
func (r *Run) queueState() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.aside:
		return isAside
	case r.failed != nil: // so it is not known to have ended
		return isQueued
	case r.ended || r.paused:
		return isNone
	}
	return isQueued
}

// A queueRow is the part of a row of submissions that lists of runs have; null if the run was not submitted.
type queueRow struct {
	state, spec, version, submitter, reason sql.NullString
	due, priority                           sql.NullInt64
}

func (q *queueRow) columns() []any {
	return []any{&q.state, &q.spec, &q.version, &q.submitter, &q.due, &q.priority, &q.reason}
}

// place returns where the run is in the queue.
func (q *queueRow) place() *QueuePlace {
	if q.state.String == isNone {
		return nil
	}
	if state := q.state.String; state != isQueued && state != isTaken && state != isAside {
		q.state.String, q.reason.String = isAside, "its state in the queue is unknown"
	}
	return &QueuePlace{Spec: q.spec.String, Version: q.version.String, By: q.submitter.String, Due: fromNanos(q.due.Int64), Priority: int(q.priority.Int64), Aside: q.reason.String, state: q.state.String}
}
