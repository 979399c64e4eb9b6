package journal

import (
	"errors"
	"fmt"
	"time"
)

const (
	beatEvery = 5 * time.Second  // between two beats of a lease
	leaseTime = 15 * time.Second // without a beat, after which a lease is free
	lookEvery = time.Second      // between two looks at a lease that is watched
)

// ErrLeased reports that another process works on a run. A [*LeaseError] wraps it.
var ErrLeased = errors.New("the run is being worked on")

// A LeaseError says who works on a run.
type LeaseError struct {
	Run    string
	Holder Holder
	Me     Holder    // who asked
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
	case e.Me.near(e.Holder):
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
	case e.Me.near(e.Holder):
		return "wait until it ends, or stop it; the run can be resumed as soon as it is gone"
	}
	return fmt.Sprintf("wait until it ends, or stop it there; the run can be resumed %d s after it is gone", leaseTime/time.Second)
}

func (e *LeaseError) Unwrap() error { return ErrLeased }

// A lease says who works on a run. It is taken, renewed and given up by a
// transaction that finds the same Holder and Beat as were seen before, so that
// of two who find it free one gets it.
type lease struct {
	Holder  Holder
	Beat    int64     // one more with each renewal and each change of hands
	Taken   time.Time // by the holder's clock
	Renewed time.Time // the same
}

// next returns the lease as h writes it, whether it takes or renews it. A nil
// lease is one of which there is none yet.
func (l *lease) next(h Holder, now time.Time) lease {
	switch {
	case l == nil:
		return lease{Holder: h, Beat: 1, Taken: now, Renewed: now}
	case l.Holder == h:
		return lease{Holder: h, Beat: l.Beat + 1, Taken: l.Taken, Renewed: now}
	}
	return lease{Holder: h, Beat: l.Beat + 1, Taken: now, Renewed: now}
}

// same reports whether nothing was done with the lease between two looks.
func (l *lease) same(m *lease) bool { return l.Beat == m.Beat && l.Holder == m.Holder }

// recent reports whether the lease was renewed within its time before now, if
// both clocks are right.
func (l *lease) recent(now time.Time) bool {
	age := now.Sub(l.Renewed)
	return age >= 0 && age < leaseTime
}

// stale reports whether the time of the lease was over at now, if both clocks are right.
func (l *lease) stale(now time.Time) bool { return now.Sub(l.Renewed) >= leaseTime }

// live says, after one look, whether to treat the run as one that is being
// worked on. Where that cannot be known it is.
func (l *lease) live(now time.Time, of life) bool {
	return l != nil && of != dead && (of == alive || !l.stale(now))
}

// A leaseVerdict is whether a lease can be had.
type leaseVerdict int

const (
	taken   leaseVerdict = iota
	free                 // for whoever replaces it before anybody else does
	watched              // look again
)

// A watch is what somebody who wants a run has seen of its lease.
type watch struct {
	me    Holder
	first *lease    // at the first look; nil if there was none
	at    time.Time // of the first look, by the clock of me
}

// rule says what to do after a look at the lease, and for [watched] how long
// until the next look. since is how long after the first look that was,
// measured so that nobody can set it; of is what me knows of its holder.
//
// A holder that is seen to run keeps its lease, and one that is seen not to run
// loses it, whatever the clocks say. Of others the beat decides: a new one
// within the time of a lease means that somebody works there. The holder's
// clock is believed in one thing only, that it wrote long ago.
func (w watch) rule(l *lease, of life, since time.Duration) (leaseVerdict, time.Duration) {
	switch {
	case l == nil || of == dead:
		return free, 0
	case l.Holder == w.me && w.first.recent(w.at): // another run of this process
		return taken, 0
	case l.Holder != w.me && of == alive:
		return taken, 0
	case w.first == nil || !l.same(w.first):
		return taken, 0
	case l.Holder != w.me && w.first.stale(w.at), since >= leaseTime:
		return free, 0
	}
	return watched, min(lookEvery, leaseTime-since)
}
