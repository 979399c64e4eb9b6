package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
)

// The times of a watch.
const (
	lookTime  = 150 * time.Millisecond // between two looks at the journal
	quietTime = 15 * time.Second       // after which a watcher says that nothing has happened
	seenTime  = 10 * time.Second       // between two checks that the run is still there for its viewer
)

// A watcher yields the events of the runs that a guest may see.
type watcher struct{ *guest }

// Watch yields the events of a run; see [inspector.Watcher]. It reads the rows of
// any process from the journal. Followers of the same run share a feed.
func (w watcher) Watch(ctx context.Context, run string, after int, follow bool) iter.Seq2[[]inspector.Event, error] {
	return func(yield func([]inspector.Event, error) bool) {
		f := &follower{guest: w.guest, at: after, yield: yield}
		if err := f.watch(ctx, run, follow); err != nil {
			yield(nil, problem(journals.ReadError(ctx, err)))
		}
	}
}

// A follower passes on the events of a run.
type follower struct {
	*guest
	seen    time.Time // when the guest was last known to see the run
	at      int       // the position up to which events were passed on
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
	found, err := journals.Find(ctx, f.j, run)
	if err != nil {
		return err
	}
	run, f.seen = found.Run, time.Now()
	feed, leave, err := f.feeds.join(ctx, f.whole, run)
	if err != nil {
		return err
	}
	defer leave()
	for !f.stopped {
		r, err := feed.after(ctx, f.at)
		if err == nil && (begins(r.events) || time.Since(f.seen) > seenTime) { // a process that resumes the run may raise its label
			_, err = f.j.Find(ctx, run)
			f.seen = time.Now()
		}
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

// begins reports whether a process begins or resumes the run with one of the events.
func begins(events []inspector.Event) bool {
	return slices.ContainsFunc(events, func(e inspector.Event) bool { return e.Type == event.RunStart })
}

// catchUp passes on the events in the journal until there are no more, or until enough reports true for the
// position.
func (f *follower) catchUp(ctx context.Context, run string, enough func(position int) bool) error {
	tail, err := f.j.Tail(ctx, run)
	if err != nil {
		return err
	}
	reader := eventReader{after: f.at}
	for !f.stopped {
		events, state, err := tail.Next(ctx)
		if err != nil || state != journal.TailReads {
			return err
		}
		batch, err := reader.read(events)
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

// An eventReader numbers the events of a run for its watchers.
type eventReader struct {
	after int // the position after which events are wanted
	at    int // of the last event
}

// read returns the events that are wanted, as watchers get them.
func (r *eventReader) read(events []event.Event) (batch []inspector.Event, err error) {
	for i := range events {
		e := &events[i]
		if r.at++; r.at <= r.after {
			continue
		}
		e.Receipt, e.Call = nil, nil // which other documents have
		data, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		batch = append(batch, inspector.Event{Position: r.at, Type: e.Type, Data: clean(data)})
	}
	return batch, nil
}

// clean escapes JSON as in all output of the command.
func clean(text []byte) []byte {
	var b bytes.Buffer
	_, _ = (&terminal.JSONWriter{W: &b}).Write(text) // to memory
	return b.Bytes()
}
