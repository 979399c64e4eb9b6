package journal

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A Served is a spec that a worker serves in one version, as in a [Submission].
type Served struct{ Spec, Version string }

// A worker says every beat what it serves. Lists of runs say from that which runs no worker would take.

// serving is what a process serves as a worker.
type serving struct {
	id string // of the open journal, so that two in one process do not replace each other

	mu     sync.Mutex // guards the next one
	serves []Served   // nil before the first claim
}

func newServing() *serving { return &serving{id: uuid.NewString()} }

// set records what the process serves now, in masked versions, and reports whether that is new.
func (s *serving) set(serves []Served) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serves != nil && slices.Equal(s.serves, serves) {
		return false
	}
	s.serves = serves
	return true
}

func (s *serving) get() []Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serves
}

// store stores what the process serves now; nothing serves nothing any more. Rows of processes that ended without that are
// removed after a day.
func (s *serving) store(ctx context.Context, db Database, now time.Time, serves []Served) error {
	g := &Group{}
	g.add("delete from workers where id = $1 or seen < coalesce("+db.Now()+", $2) - $3", s.id, nanos(now), int64(24*time.Hour))
	for _, of := range serves {
		g.add("insert into workers (id, spec, version, seen) values ($1, $2, $3, coalesce("+db.Now()+", $4)) on conflict do nothing", s.id, of.Spec, of.Version, nanos(now))
	}
	return db.Commit(ctx, []*Group{g})
}

// servedSince returns what workers have said that they serve, since so long ago.
func servedSince(ctx context.Context, db Database, now time.Time, since time.Duration) ([]Served, error) {
	scan := func(rows *sql.Rows, of *Served) error { return rows.Scan(&of.Spec, &of.Version) }
	return readAll(ctx, db, scan, "select spec, version from workers where seen > coalesce("+db.Now()+", $1) - $2", nanos(now), int64(since))
}
