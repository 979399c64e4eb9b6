// Package progress shows the events of a run while it runs, as a table or as lines.
package progress

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
)

// Modes are the forms of progress.
var Modes = []string{"auto", "live", "plain", "none"}

// heartbeat is the longest silence of plain progress.
const heartbeat = 30 * time.Second

// frameTime is the time between two checks whether the table has changed and must be drawn.
const frameTime = 100 * time.Millisecond

// CheckMode refuses an unknown mode, and one that stderr cannot show.
func CheckMode(con *console.Console, mode string) error {
	switch {
	case !slices.Contains(Modes, mode):
		return exit.UnknownWord("--progress", mode, Modes)
	case mode == "live" && !con.CanRedraw():
		return exit.Usagef("--progress live needs a terminal on standard error: write plain or auto")
	}
	return nil
}

// Mode returns the form of progress: auto is live on a terminal, else plain.
func Mode(con *console.Console, mode string) string {
	switch {
	case mode != "auto":
		return mode
	case con.CanRedraw():
		return "live"
	}
	return "plain"
}

// An Observer is what takes the events of a run and what its models write.
type Observer struct {
	Events []func(event.Event)
	Stream func(event.Delta) // nil if it is not shown
}

// A View says how the events of a run are shown.
type View struct {
	Mode   string
	Plan   *engine.Plan            // nil if the run makes it
	Answer func(run string) string // the command that lists what waits for people; nil if no other process can answer
}

// Follow calls start and shows the events of the run meanwhile. An interruption is reported at once,
// since calls in progress may take a moment to end.
func Follow(ctx context.Context, con *console.Console, v View, start func(context.Context, Observer) (*engine.Result, error)) (*engine.Result, error) {
	t := newTracker(v.Plan, con.Now(), func() error { return context.Cause(ctx) })
	var observer Observer
	stop := func() {}
	switch Mode(con, v.Mode) {
	case "live":
		observer, stop = live(con, t)
	case "plain":
		p := &lineLog{tracker: t, w: con.Screen, last: t.start, answer: v.Answer}
		observer.Events, stop = []func(event.Event){p.take}, every(time.Second, func() { p.beat(con.Now()) })
	}
	reported := make(chan struct{})
	cancelReport := context.AfterFunc(ctx, func() {
		defer close(reported)
		con.Say("runteam: %v: ending running tasks, then printing completed results; repeat to end at once", context.Cause(ctx))
	})
	res, err := start(ctx, observer)
	if !cancelReport() {
		<-reported
	}
	stop()
	return res, err
}

// live shows a table from the first event until stop, which leaves it on the screen. A run that
// cannot start has no table.
func live(con *console.Console, t *tracker) (observer Observer, stop func()) {
	color := con.Colors()
	show := sync.OnceFunc(func() {
		con.Screen.Show(func(width, height int) []terminal.Line { return t.lines(width, height, con.Now(), color) })
	})
	stopRefresh := every(frameTime, con.Screen.Refresh)
	take := func(e event.Event) {
		t.mu.Lock()
		t.take(e)
		t.mu.Unlock()
		show()
		if e.Type == event.Warning && e.Title == "" && !t.known[e.Message] { // about the whole run, which has no row
			con.Say("runteam: warning: %s", terminal.CleanLine(e.Message))
		}
		if e.Type == event.Steered {
			con.Say("runteam: %s", steered(e))
		}
	}
	return Observer{Events: []func(event.Event){take}, Stream: t.stream}, func() {
		stopRefresh()
		con.Screen.Finish()
	}
}

// every calls f periodically from one goroutine. The stop function waits for it.
func every(d time.Duration, f func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
