package cli

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/team"
)

var progressModes = []string{"auto", "live", "plain", "none"}

// heartbeat is how long plain progress is silent at most.
const heartbeat = 30 * time.Second

// frameTime is how often the table is looked at: it is drawn when it has changed.
const frameTime = 100 * time.Millisecond

// checkProgress refuses a mode that does not exist, or cannot be shown.
func (a *app) checkProgress(mode string) error {
	switch {
	case !slices.Contains(progressModes, mode):
		return unknownWord("--progress", mode, progressModes)
	case mode == "live" && !a.canMove():
		return usageError("--progress live needs a terminal on standard error: write plain or auto")
	}
	return nil
}

// mode is how progress is shown: auto is live on a terminal, else plain.
func (a *app) mode(asked string) string {
	switch {
	case asked != "auto":
		return asked
	case a.canMove():
		return "live"
	}
	return "plain"
}

// named says of the tasks that were skipped because the run ended, and of the
// step of the coordinator that ended with it, why it ended: what runs in ctx can
// end early by ctx, by its budget, or by its own time limit.
func named(ctx context.Context, take func(event.Event)) func(event.Event) {
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

// follow runs what start starts and shows its events while it goes on; the plan
// is nil if it is part of the run. An interruption is said at once, since what
// runs may take a moment to end.
func (a *app) follow(ctx context.Context, mode string, plan *team.Plan, start func(context.Context, []func(event.Event)) (*team.Result, error)) (*team.Result, error) {
	var watch []func(event.Event)
	stop := func() {}
	switch a.mode(mode) {
	case "live":
		watch, stop = a.live(plan)
	case "plain":
		watch, stop = a.plain(plan)
	}
	for i, take := range watch {
		watch[i] = named(ctx, take)
	}
	said := make(chan struct{})
	unsaid := context.AfterFunc(ctx, func() {
		defer close(said)
		a.say("runteam: %v: ending what runs, then printing what is done; once more to end at once", context.Cause(ctx))
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
func (a *app) live(plan *team.Plan) (watch []func(event.Event), stop func()) {
	t := newTable(plan, a.now())
	color, known := a.colors(), knownWarnings(plan)
	show := sync.OnceFunc(func() {
		a.screen.show(func(width, height int) []line { return t.lines(width, height, a.now(), color) })
	})
	quiet := every(frameTime, a.screen.refresh)
	take := func(e event.Event) {
		t.take(e)
		show()
		if e.Type == event.Warning && e.Title == "" && !known[e.Message] { // of the run as a whole, which has no row
			a.say("runteam: warning: %s", cleanLine(e.Message))
		}
	}
	return []func(event.Event){take}, func() {
		quiet()
		a.screen.leave()
	}
}

// plain prints a line for each event, and one when nothing happened for long.
func (a *app) plain(plan *team.Plan) (watch []func(event.Event), stop func()) {
	p := newPlain(plan, a.screen, a.now())
	stop = every(time.Second, func() { p.beat(a.now()) })
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
