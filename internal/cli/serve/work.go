package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/llm"
)

const (
	// idleTime is for how long a worker that finds no run waits until it looks again, for a run whose process was lost.
	idleTime = time.Second

	// maxWork is how many runs one worker takes at a time, at most.
	maxWork = 1000
)

// A worker takes submitted runs of the served specs, so many at a time.
type worker struct {
	*starter
	most int

	read     time.Time // when the versions of the specs were read
	versions map[journal.Served]*servedSpec
	unread   map[string]bool // paths of specs that cannot be read now, which was said
}

// claimTime is for how long a claim under way goes on once the server is drained.
const claimTime = time.Second

// work takes runs until ctx ends or the server is drained.
func (w *worker) work(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.flags.drain:
			time.AfterFunc(claimTime, cancel)
		case <-ctx.Done():
		}
	}()
	slots := make(chan struct{}, w.most)
	for {
		select {
		case slots <- struct{}{}:
		case <-w.flags.drain:
			return
		case <-ctx.Done():
			return
		}
		begun, err := w.takeOne(ctx, func() { <-slots })
		if begun {
			continue
		}
		<-slots
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, journal.ErrNoneQueued):
			_ = w.queue.Journal().Await(ctx, idleTime) // the claim reports errors
			continue
		case !errors.Is(err, journal.ErrAway): // the journal says that, once
			w.con.Say("runteam: no run can be taken: %s", terminal.Clean(err.Error()))
		}
		select {
		case <-time.After(idleTime):
		case <-ctx.Done():
		}
	}
}

// takeOne takes a run and begins to work on it, unless there is none or the server is ending. It calls ended once it has
// let go of the run.
func (w *worker) takeOne(ctx context.Context, ended func()) (begun bool, err error) {
	leave := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.leave()
	}
	w.mu.Lock()
	working, err := w.enter()
	w.mu.Unlock()
	if err != nil {
		return false, journal.ErrNoneQueued
	}
	c, of, err := w.claim(ctx)
	if err != nil {
		leave()
		return false, err
	}
	go func() {
		defer leave()
		defer ended()
		w.perform(working, c, of)
	}()
	return true, nil
}

// claim takes a run, and returns the spec that it is of.
func (w *worker) claim(ctx context.Context) (*journal.Claim, *servedSpec, error) {
	if w.con.Now().Sub(w.read) >= idleTime {
		w.readVersions(ctx)
	}
	takes := journal.Worker{MaxRunning: w.flags.maxRunning, MaxCostPerDay: llm.Dollars(w.flags.maxCost)}
	for of := range w.versions {
		takes.Serves = append(takes.Serves, of)
	}
	c, err := w.queue.Journal().Claim(ctx, takes)
	if err != nil {
		return nil, nil, err
	}
	for of, spec := range w.versions {
		if of.Spec == c.Queue.Spec && w.queue.Journal().Masked(of.Version) == c.Queue.Version {
			return c, spec, nil
		}
	}
	return nil, nil, errors.Join(errors.New("a run of another spec was taken"), w.queue.Journal().Refuse(ctx, c, "a worker took it that does not serve its spec"))
}

// readVersions reads the specs again, which may have changed. One that cannot be read now is not served.
func (w *worker) readVersions(ctx context.Context) {
	w.versions, w.read = map[journal.Served]*servedSpec{}, w.con.Now()
	for i := range w.specs {
		of := &w.specs[i]
		d, err := w.flags.declare(ctx, w.con, of.path)
		if err != nil {
			if ctx.Err() == nil && !w.unread[of.path] {
				w.unread[of.path] = true
				w.con.Say("runteam: no runs of %s are taken: %s", terminal.CleanLine(of.path), terminal.Clean(err.Error()))
			}
			continue
		}
		delete(w.unread, of.path)
		w.versions[journal.Served{Spec: run.SpecName(d), Version: d.File.Fingerprint()}] = of
	}
}

// perform works on a run that was taken. One that cannot begin is set aside, with the reason.
func (w *worker) perform(ctx context.Context, c *journal.Claim, of *servedSpec) {
	l := w.flags.launch(w.accepts)
	l.Spec, l.Claim, l.Queue = *w.flags.spec(of.path), c, w.queue
	l.Attend = func(_ context.Context, id string, _ *journals.Flags) (*run.Attendant, error) {
		return w.live.attend(id), nil // without answers: a run that waits for a person needs no worker
	}
	p, err := l.Prepare(ctx, w.con)
	if err == nil {
		_, err = p.Run(ctx, progress.Observer{})
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	id := journals.ShortRun(c.Stored.Info.Run)
	w.con.Say("runteam: run %s could not begin: %s", id, terminal.Clean(err.Error()))
	host, _ := os.Hostname()
	why := fmt.Sprintf("it could not begin; the worker on host %s has said why", terminal.CleanLine(host)) // the error may quote the spec or an input
	if err := w.queue.Journal().Refuse(context.WithoutCancel(ctx), c, why); err != nil {
		w.con.Say("runteam: run %s could not be set aside: %s", id, terminal.Clean(err.Error()))
		select { // or it is taken again at once
		case <-time.After(idleTime):
		case <-ctx.Done():
		}
	}
}
