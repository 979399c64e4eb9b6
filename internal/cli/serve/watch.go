package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// The times of a watch.
const (
	lookTime  = 150 * time.Millisecond // between two looks at the journal
	quietTime = 15 * time.Second       // after which a watcher says that nothing has happened
)

// A watcher yields the events of the runs of a site.
type watcher struct{ *site }

// Watch yields the events of a run; see [inspector.Watcher]. It reads the rows of
// any process from the journal. Followers of the same run share a feed.
func (w watcher) Watch(ctx context.Context, run string, after int, follow bool) iter.Seq2[[]inspector.Event, error] {
	return func(yield func([]inspector.Event, error) bool) {
		f := &follower{site: w.site, at: after, yield: yield}
		if err := f.watch(ctx, run, follow); err != nil {
			yield(nil, problem(journals.ReadError(ctx, err)))
		}
	}
}

// A follower passes on the events of a run.
type follower struct {
	*site
	at      int // the position up to which events were passed on
	said    time.Time
	yield   func([]inspector.Event, error) bool
	stopped bool // nothing more is wanted
}

// pass passes on events; without any, only if it has been quiet for long.
func (f *follower) pass(batch []inspector.Event) {
	if len(batch) == 0 && time.Since(f.said) < quietTime {
		return
	}
	if len(batch) > 0 {
		f.at = batch[len(batch)-1].Position
	}
	f.said = time.Now()
	f.stopped = !f.yield(batch, nil)
}

// watch passes on the events of a run, until it has ended if follow, else until there are no more.
func (f *follower) watch(ctx context.Context, run string, follow bool) error {
	if !follow {
		return f.catchUp(ctx, run, func(int) bool { return false })
	}
	feed, leave, err := f.feeds.join(ctx, f.site, run)
	if err != nil {
		return err
	}
	defer leave()
	for !f.stopped {
		r, err := feed.after(ctx, f.at)
		switch {
		case err != nil:
			return err
		case r.behind:
			if err := f.catchUp(ctx, run, feed.has); err != nil {
				return err
			}
			continue
		}
		f.pass(r.events)
		if r.more {
			continue
		}
		if r.ended || f.stopped || !pause(ctx, lookTime) {
			return nil
		}
	}
	return nil
}

// catchUp passes on the events in the journal until there are no more, or until enough reports true for the
// position.
func (f *follower) catchUp(ctx context.Context, run string, enough func(position int) bool) error {
	tail, err := f.j.Tail(ctx, run)
	if err != nil {
		return err
	}
	lines := newEventReader(tail.Run(), f.at)
	for !f.stopped {
		rows, _, err := tail.Next(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		batch, err := lines.read(rows)
		if err != nil {
			return err
		}
		f.pass(batch)
		if enough(f.at) {
			break
		}
	}
	return nil
}

// pause waits for a while, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// An eventReader reads the events in the lines of a run.
type eventReader struct {
	run    string
	after  int // the position after which events are wanted
	at     int // of the last event
	titles map[task.ID]string
	hidden trace.Hidden
}

// read returns the events of rows.
func (r *eventReader) read(rows [][]byte) (batch []inspector.Event, err error) {
	for _, row := range rows {
		for kind, line := range journal.LinesOf(row) {
			e, err := r.line(kind, line)
			if err != nil {
				return nil, err
			}
			if e != nil {
				batch = append(batch, *e)
			}
		}
	}
	return batch, nil
}

// line returns the event of a line; nil if it has none after the wanted position.
func (r *eventReader) line(kind string, line []byte) (*inspector.Event, error) {
	_, value := record.SplitLine(line)
	switch kind {
	case record.KindTrace:
		var head struct{ Tasks []trace.Task }
		err := json.Unmarshal(value, &head)
		for _, t := range head.Tasks {
			r.titles[t.ID] = t.Title
		}
		return nil, err
	case record.KindEvent:
		r.at++
		return r.event(value)
	case record.KindDecision:
		return r.decision(line)
	case record.KindCallStart, record.KindTurn: // which come before the inner calls of the task
		var of struct {
			Task    task.ID
			Partial bool
			Rounded bool // the name that Partial has in a turn
		}
		err := json.Unmarshal(value, &of)
		if of.Partial || of.Rounded {
			r.hidden[of.Task] = true
		}
		return nil, err
	}
	return nil, nil
}

// hiddenMark is in the line of an event with a message that only the journal can read.
var hiddenMark = []byte(`"hidden":`)

// event returns an event.
func (r *eventReader) event(value []byte) (*inspector.Event, error) {
	if kind := record.TypeOfEvent(value); kind != "" && kind != event.PlanReady {
		if r.at <= r.after {
			return nil, nil
		}
		if !bytes.Contains(value, hiddenMark) {
			return &inspector.Event{Position: r.at, Type: kind, Data: clean(bytes.TrimSpace(value))}, nil
		}
	}
	e, _, err := record.DecodeEvent(value)
	if err != nil {
		return nil, err
	}
	for i := range e.Plan {
		r.titles[e.Plan[i].Task] = e.Plan[i].Title
	}
	return r.made(e)
}

// decision returns the event of a decision. The journal stores no event line, and no number, for it.
func (r *eventReader) decision(line []byte) (*inspector.Event, error) {
	_, rest, found := bytes.Cut(line, handoffMark)
	if !found { // the first or last line of a chain has no decision
		return nil, nil
	}
	var h json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(rest)).Decode(&h); err != nil {
		return nil, err
	}
	var of event.Handoff // what an event repeats of it, and what says whether the caller may know of it
	if err := json.Unmarshal(h, &struct {
		Session *string    `json:"sessionId"`
		To      *string    `json:"toAgentId"`
		Task    *task.ID   `json:"taskId"`
		Time    *time.Time `json:"timestamp"`

		Coarse  *bool         `json:"coarse"`
		Verdict *gate.Verdict `json:"verdict"`
		Source  *gate.Source  `json:"source"`
	}{&of.Session, &of.To, &of.Task, &of.Time, &of.Coarse, &of.Verdict, &of.Source}); err != nil {
		return nil, err
	}
	if r.hidden.Learn(&of); !r.hidden.Knows(&of) {
		return nil, nil
	}
	made, err := r.made(r.decided(&of))
	if made != nil {
		made.Data = append(append(bytes.TrimSuffix(made.Data, []byte("}")), `,"handoff":`...), append(clean(h), '}')...)
	}
	return made, err
}

// handoffMark is before the decision in its line.
var handoffMark = []byte(`"handoff":`)

// decided returns the event of a decision without the decision.
func (r *eventReader) decided(h *event.Handoff) event.Event {
	r.at++
	e := event.Event{Type: event.Handed, Time: h.Time, Run: r.run, Task: h.Task, Agent: h.To}
	if h.To != handoff.User {
		e.Title = r.titles[h.Task]
	}
	rest, _ := strings.CutPrefix(h.Session, r.run+"/"+string(h.Task)+"/")
	number, _, _ := strings.Cut(rest, "/")
	e.Attempt, _ = strconv.Atoi(number) // none for the caller
	return e
}

// made returns an event if it is wanted.
func (r *eventReader) made(e event.Event) (*inspector.Event, error) {
	if r.at <= r.after {
		return nil, nil
	}
	data, err := json.Marshal(e)
	return &inspector.Event{Position: r.at, Type: e.Type, Data: clean(data)}, err
}

// clean escapes JSON as in all output of the command.
func clean(text []byte) []byte {
	var b bytes.Buffer
	_, _ = (&terminal.JSONWriter{W: &b}).Write(text) // to memory
	return b.Bytes()
}
