package mcpserver

import (
	"cmp"
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
)

// A notifier tells a client about the progress of its call: each task counts one step when it starts
// and one when it ends. A client that reads slowly gets the newest state only, and slows nothing.
type notifier struct {
	session *sdk.ServerSession
	token   any
	total   int // steps; 0 if it is not known

	started map[string]bool // tasks
	steps   int
	newest  chan *sdk.ProgressNotificationParams // of capacity 1; nil if the client wants no progress
	done    chan struct{}
}

// newNotifier starts a notifier if the client wants to hear of progress. Stop it before the result is
// sent.
func newNotifier(req *sdk.CallToolRequest) *notifier {
	n := &notifier{session: req.Session, token: req.Params.GetProgressToken(), started: map[string]bool{}}
	if n.token == nil {
		return n
	}
	n.newest, n.done = make(chan *sdk.ProgressNotificationParams, 1), make(chan struct{})
	go n.send()
	return n
}

// send sends the newest state, until there is no more.
func (n *notifier) send() {
	defer close(n.done)
	for p := range n.newest {
		_ = n.session.NotifyProgress(context.Background(), p) // a client that is gone needs no progress
	}
}

// take counts an event. Events come one after the other.
func (n *notifier) take(e event.Event) {
	if n.newest == nil {
		return
	}
	verb, before := "", n.steps
	switch e.Type {
	case event.RunStart, event.PlanReady:
		n.total = 2 * e.Tasks
		return
	case event.TaskStart:
		verb = "started"
		n.step(e, false)
	case event.TaskComplete:
		verb = "completed"
		n.step(e, true)
	case event.Error:
		if verb = format.Failed; e.Accepted {
			verb += format.Accepted
		}
		n.step(e, true)
	case event.TaskSkipped, event.TaskNotNeeded:
		verb = "skipped"
		n.step(e, true)
	}
	if n.steps == before {
		return
	}
	n.replace(&sdk.ProgressNotificationParams{
		ProgressToken: n.token, Progress: float64(n.steps), Total: float64(n.total),
		Message: fmt.Sprintf("%s %s", verb, terminal.CleanLine(cmp.Or(e.Name, e.Title))),
	})
}

// step counts that a task started, or that it ended, which implies that it started.
func (n *notifier) step(e event.Event, ended bool) {
	id := string(e.Task)
	if !n.started[id] {
		n.started[id] = true
		n.steps++
	}
	if ended && !n.started[id+" ended"] {
		n.started[id+" ended"] = true
		n.steps++
	}
}

// replace leaves p for send in place of what it has not sent yet.
func (n *notifier) replace(p *sdk.ProgressNotificationParams) {
	for {
		select {
		case n.newest <- p:
			return
		default:
		}
		select {
		case <-n.newest:
		default:
		}
	}
}

// stop sends what is left and ends the notifier. If ctx ends it does not wait for a client that reads
// nothing.
func (n *notifier) stop(ctx context.Context) {
	if n.newest == nil {
		return
	}
	close(n.newest)
	select {
	case <-n.done:
	case <-ctx.Done():
	}
}
