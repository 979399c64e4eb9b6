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
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// The times of a watch.
const (
	lookTime  = 150 * time.Millisecond // between two looks at the journal
	quietTime = 15 * time.Second       // after which a watcher says that nothing has happened
)

// A watcher has the events of the runs of a site.
type watcher struct{ *site }

// Watch yields the events of a run; see [inspector.Watcher]. It reads each row of the run once, whichever
// process writes it.
func (w watcher) Watch(ctx context.Context, run string, after int, follow bool) iter.Seq2[[]inspector.Event, error] {
	return func(yield func([]inspector.Event, error) bool) {
		tail, err := w.j.Tail(ctx, run)
		if err != nil {
			yield(nil, problem(journals.ReadError(ctx, err)))
			return
		}
		lines := &eventReader{viewer: journals.NewViewer(w.accepts, label.Secret), run: tail.Run(), after: after, titles: map[task.ID]string{}}
		for said := (time.Time{}); ; {
			rows, ended, err := tail.Next(ctx)
			if err != nil {
				yield(nil, problem(journals.ReadError(ctx, err)))
				return
			}
			batch, err := lines.read(rows)
			if err != nil {
				yield(nil, problem(err))
				return
			}
			quiet := time.Since(said) >= quietTime && (follow || len(rows) > 0)
			if len(batch) > 0 || quiet {
				if said = time.Now(); !yield(batch, nil) {
					return
				}
			}
			switch {
			case len(rows) > 0: // there may be more
			case ended || !follow:
				return
			case !pause(ctx, lookTime):
				return
			}
		}
	}
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

// An eventReader reads the events in the lines of a run, in the form for a viewer.
type eventReader struct {
	viewer *journals.Viewer
	run    string
	after  int // the position after which events are wanted
	at     int // of the last event
	begun  bool
	titles map[task.ID]string
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

// line returns the event of a line; nil if it has none that is wanted.
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
	case record.KindRunStart:
		var start record.RunStart
		if err := json.Unmarshal(value, &start); err != nil {
			return nil, err
		}
		r.viewer.Caller(start.Accepts, !r.begun)
		r.begun = true
	case record.KindPrompt:
		return nil, r.prompt(value)
	case record.KindEvent:
		r.at++
		return r.event(value)
	case record.KindDecision:
		return r.decision(line)
	}
	return nil, nil
}

// prompt learns the labels in a prompt.
func (r *eventReader) prompt(value []byte) error {
	if !r.viewer.Narrows() {
		return nil
	}
	var p struct{ Receipt *prompt.Receipt }
	if err := json.Unmarshal(value, &p); err != nil || p.Receipt == nil {
		return err
	}
	r.viewer.LearnReceipt(p.Receipt)
	return nil
}

// typeMark is before the type of an event in its line, whose second member it is.
var typeMark = []byte(`"type":"`)

// event returns an event.
func (r *eventReader) event(value []byte) (*inspector.Event, error) {
	if _, rest, ok := bytes.Cut(value[:min(len(value), 64)], typeMark); ok && !r.viewer.Narrows() && !bytes.HasPrefix(rest, []byte(event.PlanReady)) {
		kind, _, ok := bytes.Cut(rest, []byte(`"`))
		if ok && r.at <= r.after {
			return nil, nil
		}
		if ok {
			return &inspector.Event{Position: r.at, Type: event.Type(kind), Data: bytes.TrimSpace(value)}, nil
		}
	}
	e, err := record.DecodeEvent(value)
	if err != nil {
		return nil, err
	}
	for i := range e.Plan {
		r.titles[e.Plan[i].Task] = e.Plan[i].Title
	}
	return r.made(r.viewer.Event(&e))
}

// decision returns the event of a decision, of which the journal has no other line. It has no number.
func (r *eventReader) decision(line []byte) (*inspector.Event, error) {
	var l struct {
		Audit struct{ Handoff *event.Handoff }
	}
	if err := json.Unmarshal(line, &l); err != nil || l.Audit.Handoff == nil {
		return nil, err
	}
	r.at++
	h := l.Audit.Handoff
	r.viewer.LearnHandoff(h)
	e := event.Event{Type: event.Handed, Time: h.Time, Run: r.run, Task: h.Task, Agent: h.To, Handoff: h}
	if h.To != handoff.User {
		e.Title = r.titles[h.Task]
	}
	rest, _ := strings.CutPrefix(h.Session, r.run+"/"+string(h.Task)+"/")
	number, _, _ := strings.Cut(rest, "/")
	e.Attempt, _ = strconv.Atoi(number) // none for the caller
	return r.made(r.viewer.Event(&e))
}

// made returns an event if it is wanted.
func (r *eventReader) made(e event.Event) (*inspector.Event, error) {
	if r.at <= r.after {
		return nil, nil
	}
	data, err := json.Marshal(e)
	return &inspector.Event{Position: r.at, Type: e.Type, Data: data}, err
}
