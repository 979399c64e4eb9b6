// Package progress shows the events of a run while it runs, as a table or as lines.
package progress

import (
	"cmp"
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

// Modes are the ways in which progress is shown.
var Modes = []string{"auto", "live", "plain", "none"}

// heartbeat is how long plain progress is silent at most.
const heartbeat = 30 * time.Second

// frameTime is how often the table is looked at: it is drawn when it has changed.
const frameTime = 100 * time.Millisecond

// CheckMode refuses a mode that does not exist, or cannot be shown.
func CheckMode(con *console.Console, mode string) error {
	switch {
	case !slices.Contains(Modes, mode):
		return exit.UnknownWord("--progress", mode, Modes)
	case mode == "live" && !con.CanRedraw():
		return exit.Usagef("--progress live needs a terminal on standard error: write plain or auto")
	}
	return nil
}

// Mode is how progress is shown: auto is live on a terminal, else plain.
func Mode(con *console.Console, asked string) string {
	switch {
	case asked != "auto":
		return asked
	case con.CanRedraw():
		return "live"
	}
	return "plain"
}

// withStopReason says of the tasks that were skipped because the run ended, and of the
// step of the coordinator that ended with it, why it ended: what runs in ctx can
// end early by ctx, by its budget, or by its own time limit.
func withStopReason(ctx context.Context, take func(event.Event)) func(event.Event) {
	spent := ""
	return func(e event.Event) {
		if e.Type == event.Budget && !e.OwnBudget {
			spent = cmp.Or(spent, budgetSpent(e.Code))
		}
		if e.Type == event.TaskSkipped && e.Root == "" {
			switch {
			case ctx.Err() != nil:
				e.Message = context.Cause(ctx).Error()
			case spent != "":
				e.Message = spent
			case e.Message == "Skipped: the journal failed.":
				e.Message = "the journal failed"
			default:
				e.Message = "timed out"
			}
		}
		if ofCoordinator(e) && e.Code == "CANCELED" && ctx.Err() != nil {
			e.Message = context.Cause(ctx).Error()
		}
		take(e)
	}
}

// Follow runs what start starts and shows its events while it goes on; the plan
// is nil if it is part of the run. An interruption is said at once, since what
// runs may take a moment to end.
func Follow(ctx context.Context, con *console.Console, mode string, plan *engine.Plan, start func(context.Context, []func(event.Event)) (*engine.Result, error)) (*engine.Result, error) {
	var watch []func(event.Event)
	stop := func() {}
	switch Mode(con, mode) {
	case "live":
		watch, stop = live(con, plan)
	case "plain":
		watch, stop = plain(con, plan)
	}
	for i, take := range watch {
		watch[i] = withStopReason(ctx, take)
	}
	said := make(chan struct{})
	unsaid := context.AfterFunc(ctx, func() {
		defer close(said)
		con.Say("runteam: %v: ending what runs, then printing what is done; once more to end at once", context.Cause(ctx))
	})
	res, err := start(ctx, watch)
	if !unsaid() {
		<-said
	}
	stop()
	return res, err
}

// live shows a table from the first event until stop, and leaves it as it then
// is. A run that cannot start has none.
func live(con *console.Console, plan *engine.Plan) (watch []func(event.Event), stop func()) {
	t := newTable(plan, con.Now())
	color, known := con.Colors(), knownWarnings(plan)
	show := sync.OnceFunc(func() {
		con.Screen.Show(func(width, height int) []terminal.Line { return t.lines(width, height, con.Now(), color) })
	})
	quiet := every(frameTime, con.Screen.Refresh)
	take := func(e event.Event) {
		t.take(e)
		show()
		if e.Type == event.Warning && e.Title == "" && !known[e.Message] { // of the run as a whole, which has no row
			con.Say("runteam: warning: %s", terminal.CleanLine(e.Message))
		}
	}
	return []func(event.Event){take}, func() {
		quiet()
		con.Screen.Finish()
	}
}

// plain prints a line for each event, and one when nothing happened for long.
func plain(con *console.Console, plan *engine.Plan) (watch []func(event.Event), stop func()) {
	p := newLineLog(plan, con.Screen, con.Now())
	stop = every(time.Second, func() { p.beat(con.Now()) })
	return []func(event.Event){p.take}, stop
}

// every calls f again and again, from one goroutine, until stop, which waits for it.
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
