package journal

import (
	"errors"
	"fmt"
	"time"
)

const (
	beatEvery = 5 * time.Second  // between two beats of a lease
	leaseTime = 15 * time.Second // without a beat, after which a lease is free
	lookEvery = time.Second      // between two reads of a lease that is watched
)

// ErrLeased reports that another process works on a run. A [*LeaseError] wraps it.
var ErrLeased = errors.New("the run is being worked on")

// A LeaseError names the process that works on a run.
type LeaseError struct {
	Run    string
	Holder Holder
	Me     Holder    // the process that asked
	Since  time.Time // when the holder took the run, by its clock; zero if that is not known
}

func (e *LeaseError) Error() string {
	since := ""
	if !e.Since.IsZero() {
		since = " since " + e.Since.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("run %s is being worked on by %s%s: %s", e.Run, e.who(), since, e.advice())
}

func (e *LeaseError) who() string {
	switch {
	case e.Holder == e.Me:
		return "this process"
	case e.Me.sees(e.Holder) && e.Me.Boot == e.Holder.Boot:
		return fmt.Sprintf("process %d on this host (%s)", e.Holder.PID, e.Holder.Host)
	case e.Holder.Host == e.Me.Host:
		return e.Holder.String() + " (in another container)"
	}
	return e.Holder.String()
}

func (e *LeaseError) advice() string {
	switch {
	case e.Holder == e.Me:
		return "wait until that ends"
	case e.Me.sees(e.Holder) && e.Me.Boot == e.Holder.Boot:
		return "wait until it ends, or stop it; the run can be resumed as soon as it is gone"
	}
	return fmt.Sprintf("wait until it ends, or stop it there; the run can be resumed %d s after it is gone", leaseTime/time.Second)
}

func (e *LeaseError) Unwrap() error { return ErrLeased }

// A lease names the process that works on a run. It is taken, renewed and released by
// transactions that compare Holder and Beat with those seen before, so that only one of two
// processes that find it free gets it.
type lease struct {
	Holder  Holder
	Beat    int64     // increases with each renewal and each change of the holder
	Taken   time.Time // by the holder's clock
	Renewed time.Time // the same

	// These are not stored so.
	holder string         // as it was read; empty if it was not
	idle   *time.Duration // since it was renewed, by the clock of the database; nil if the clocks of the holders count
	before time.Time      // when the lease that it replaced was renewed, by its holder's clock; zero if there was none
}

// ofServer reports whether the lease is in a database of several hosts, whose clock alone counts.
func (l *lease) ofServer() bool { return l.idle != nil }

// next returns the lease that h writes to take or renew l. A nil lease means that there is
// none yet.
func (l *lease) next(h Holder, now time.Time) lease {
	switch {
	case l == nil:
		return lease{Holder: h, Beat: 1, Taken: now, Renewed: now}
	case l.Holder == h:
		return lease{Holder: h, Beat: l.Beat + 1, Taken: l.Taken, Renewed: now, before: l.Renewed}
	}
	return lease{Holder: h, Beat: l.Beat + 1, Taken: now, Renewed: now, before: l.Renewed}
}

// A tenure is the time in which one process has the lease of a run.
type tenure struct {
	Holder Holder `json:"holder"`
	Taken  int64  `json:"taken"` // as it is stored
}

func (l *lease) tenure() tenure { return tenure{l.Holder, nanos(l.Taken)} }

// same reports whether two reads of the lease found it unchanged.
func (l *lease) same(m *lease) bool {
	return l == m || l != nil && m != nil && l.Beat == m.Beat && l.Holder == m.Holder
}

// liveness returns whether the holder of the lease runs, as me sees it. Hosts that share a database may have the same name,
// so there a host is its kernel.
func (l *lease) liveness(me Holder) liveness {
	if l.ofServer() && l.Holder.Boot != me.Boot {
		return unknown
	}
	return me.liveness(l.Holder, findProcess)
}

// age returns for how long the lease has not been renewed: at now, if both clocks are right, or by the clock of the database.
func (l *lease) age(now time.Time) time.Duration {
	if l.ofServer() {
		return *l.idle
	}
	return now.Sub(l.Renewed)
}

// recent reports whether the lease was renewed within its time before now.
func (l *lease) recent(now time.Time) bool {
	age := l.age(now)
	return age >= 0 && age < leaseTime
}

// stale reports whether the time of the lease was over at now.
func (l *lease) stale(now time.Time) bool { return l.age(now) >= leaseTime }

// live reports, after one read, whether a process may work on the run.
func (l *lease) live(now time.Time, of liveness) bool {
	return l != nil && of != dead && (of == alive && !l.ofServer() || !l.stale(now))
}

// A leaseVerdict is whether a lease can be taken.
type leaseVerdict int

const (
	taken   leaseVerdict = iota
	free                 // for the first process that replaces it
	watched              // read it again
)

// A watch is what a process that wants a run has read of its lease.
type watch struct {
	self  Holder
	first *lease    // of the first read; nil if there was none
	at    time.Time // of the first read, by the clock of self
}

// rule decides what to do after a read of the lease, and for [watched] how long to wait for
// the next read. since is the time since the first read, by a monotonic clock; of is the
// liveness of the holder.
//
// A holder that is alive keeps its lease, and one that is dead loses it, whatever the clocks
// say. If that is unknown, the beat decides: a new beat within the time of a lease means
// that a process works on the run. The clock of the holder counts only if it says that the
// lease is old. The clock of a database decides alone: also a holder that is alive loses a lease
// that it does not renew.
func (w watch) rule(l *lease, of liveness, since time.Duration) (leaseVerdict, time.Duration) {
	switch {
	case l == nil || of == dead || l.ofServer() && l.stale(w.at):
		return free, 0
	case l.Holder == w.self && w.first != nil && w.first.recent(w.at): // another run of this process
		return taken, 0
	case l.Holder != w.self && of == alive:
		return taken, 0
	case w.first == nil || !l.same(w.first):
		return taken, 0
	case l.Holder != w.self && w.first.stale(w.at), since >= leaseTime && !l.ofServer():
		return free, 0
	}
	if l.ofServer() {
		since = l.age(w.at)
	}
	return watched, min(lookEvery, leaseTime-since)
}
