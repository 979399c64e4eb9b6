package serve

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
)

// maxFeed bounds the events of a feed, in bytes.
const maxFeed = 4 << 20

// feeds are the feeds of the runs that are watched. Followers of the same run share one reader of the
// journal. It is safe for concurrent use.
type feeds struct {
	mu  sync.Mutex // guards all, and the users of each
	all map[string]*feed
}

// A feed reads the events of one run once for all its followers, as fast as the fastest of them reads.
type feed struct {
	users int

	mu     sync.Mutex // guards the rest
	tail   *journal.Tail
	reader eventReader
	events []inspector.Event // the newest, without a gap
	size   int               // of their data
	looked time.Time         // when there was nothing new
	ended  bool              // no process worked on the run then
	err    error             // a line could not be read
}

// join returns the feed of a run. The caller calls the returned function when it has finished.
func (f *feeds) join(ctx context.Context, j *journal.Journal, run string) (*feed, func(), error) {
	tail, err := j.Tail(ctx, run)
	if err != nil {
		return nil, nil, journals.ReadError(ctx, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*feed{}
	}
	id := tail.Run()
	of := f.all[id]
	if of == nil {
		of = &feed{tail: tail}
		f.all[id] = of
	}
	of.users++
	return of, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(f.all, id)
		}
	}, nil
}

// A reading is what a feed returns to a follower.
type reading struct {
	events []inspector.Event
	behind bool // the feed has dropped events that the follower must read from the journal
	ended  bool // no process works on the run, and all is read
	more   bool // there may be more at once
}

// after returns the events after a position. If the feed has none, it reads the journal.
func (f *feed) after(ctx context.Context, position int) (r reading, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.events); n > 0 && position < f.events[n-1].Position {
		i := position + 1 - f.events[0].Position
		if i < 0 {
			return reading{behind: true}, nil
		}
		return reading{events: slices.Clone(f.events[i:]), more: true}, nil
	}
	if f.err != nil {
		return reading{}, f.err
	}
	if position < f.reader.at { // of lines that were dropped
		return reading{behind: true}, nil
	}
	if time.Since(f.looked) < lookTime {
		return reading{ended: f.ended}, nil
	}
	events, state, err := f.tail.Next(ctx)
	if err != nil {
		return reading{}, err
	}
	if state != journal.TailReads {
		f.looked, f.ended = time.Now(), state == journal.TailEnded
		return reading{ended: f.ended}, nil
	}
	batch, err := f.reader.read(events)
	if f.err = err; err != nil {
		return reading{}, err
	}
	f.add(batch)
	batch = slices.DeleteFunc(slices.Clone(batch), func(e inspector.Event) bool { return e.Position <= position })
	return reading{events: batch, more: true}, nil
}

// has reports whether the feed has all events after a position.
func (f *feed) has(position int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.events) > 0 && position+1 >= f.events[0].Position
}

// add adds events, and drops the oldest ones above maxFeed.
func (f *feed) add(batch []inspector.Event) {
	for i := range batch {
		f.size += len(batch[i].Data)
	}
	f.events = append(f.events, batch...)
	if f.size <= maxFeed {
		return
	}
	drop := 0
	for ; drop < len(f.events) && f.size > maxFeed/2; drop++ {
		f.size -= len(f.events[drop].Data)
	}
	f.events = slices.Clone(f.events[drop:])
}
