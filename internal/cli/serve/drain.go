package serve

import (
	"context"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/engine"
)

// isDraining reports whether no run may start any more. The lock is held.
func (s *starter) isDraining() bool {
	select {
	case <-s.flags.drain:
		return true
	default:
		return false
	}
}

// drain has the runs begin no further call, and returns once this process has let go of all of them. After the time of
// --drain, or a second signal, it interrupts the calls that are still under way.
func (s *starter) drain(ctx context.Context) {
	s.mu.Lock()
	close(s.flags.drain)
	working := s.working
	s.mu.Unlock()
	if working == 0 {
		return
	}
	runs, calls := s.live.underWay()
	s.con.Say("runteam: stopping: waiting up to %v for %s of %s; a second signal interrupts them", s.flags.drainTime, format.Plural(calls, "call"), format.Plural(working, "run"))
	waiting, stop := s.con.AfterSignal(ctx)
	defer stop()
	waiting, cancel := context.WithTimeout(waiting, s.flags.drainTime)
	defer cancel()
	cut := 0
	select {
	case <-s.idle:
	case <-waiting.Done():
		_, cut = s.live.underWay()
		s.flags.hurry()
		s.stop(engine.ErrReleased)
		<-s.idle
	}
	text := "stopped: " + format.Plural(max(calls-cut, 0), "call") + " ended"
	if cut > 0 {
		text += ", " + format.Number(cut) + " interrupted"
	}
	if left := s.left(ctx, runs); len(left) == 1 {
		text += "; to continue the run: " + s.site.flags.Command("resume", journals.ShortRun(left[0]))
	} else if len(left) > 1 {
		text += "; " + format.Plural(len(left), "run") + " can be continued: " + s.site.flags.Command("runs")
	}
	s.con.Say("runteam: %s", text)
}

// left returns those of the runs that have no end. A journal that cannot be read names none.
func (s *starter) left(ctx context.Context, runs []string) (left []string) {
	for _, id := range runs {
		if found, err := s.whole.Find(ctx, id); err == nil && found.Ended.IsZero() {
			left = append(left, id)
		}
	}
	return left
}
