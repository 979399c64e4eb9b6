package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/team"
)

// A chronicle keeps one run in a journal, as [team.Journal]. The run is begun
// there with the first that is told of it, so that none stands in the journal
// that was refused before it began. A nil *chronicle keeps nothing.
type chronicle struct {
	journal *journal.Journal
	keyed   bool // what is above confidential is kept too
	info    journal.Info
	again   *resumption // nil for a new run

	once   sync.Once
	run    *journal.Run
	failed error         // why the run could not be begun
	unused string        // why answers of the run are not used now that it is resumed; empty if they are
	last   chan struct{} // closed when the latest done that was given that error has returned

	mu    sync.Mutex // guards what follows
	kept  int        // tasks of which there was a result before the run was resumed
	calls int        // agents that were asked
}

// chronicle opens the journal of a run, if it is to have one.
func (a *app) chronicle(j *job, file *specfile.File) (*chronicle, error) {
	if j.journal.none {
		return nil, nil
	}
	info, err := j.infoOf(a, file)
	if err != nil {
		return nil, err
	}
	if j.again != nil {
		info.Time, info.Command = j.again.stored.Info.Time, j.again.stored.Info.Command
		return &chronicle{journal: j.again.journal, keyed: j.again.keyed, info: info, again: j.again}, nil
	}
	j.journal.quiet = j.progress == "none"
	key, err := a.journalKey(j.journal.keyFile)
	if err != nil {
		return nil, err
	}
	opened, _, err := a.openJournal(&j.journal, toKeep)
	if err != nil {
		return nil, err
	}
	return &chronicle{journal: opened, keyed: key != nil, info: info}, nil
}

// options has a run kept, and taken up where it is if it is resumed.
func (c *chronicle) options(ctx context.Context, o *team.RunOptions) error {
	if c == nil {
		return nil
	}
	o.Journal = c
	if c.again == nil {
		return nil
	}
	run, stored, err := c.journal.Resume(ctx, c.info.Run)
	if err != nil {
		return unresumed(ctx, err)
	}
	c.run, c.again.stored = run, stored
	o.Past = &stored.History
	return nil
}

// Append keeps entries; see [team.Journal]. The first are those with which the
// run begins.
func (c *chronicle) Append(entries []record.Entry, done func(error)) {
	c.once.Do(c.begin)
	if c.failed == nil {
		c.run.Append(entries, done)
		return
	}
	before, now := c.last, make(chan struct{})
	c.last = now
	go func() {
		defer close(now)
		if before != nil {
			<-before
		}
		done(c.failed)
	}()
}

// Recall returns answers of other runs; see [team.Journal].
func (c *chronicle) Recall(ctx context.Context, key record.Key) ([]record.AgentCall, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	return c.run.Recall(ctx, key)
}

// begin makes the run known to the journal, or what of it has changed.
func (c *chronicle) begin() {
	ctx := context.Background() // it is a matter of one commit, also if the run is to end already
	if c.again == nil {
		c.run, c.failed = c.journal.Begin(ctx, c.info)
	} else if c.changed() {
		c.failed = c.run.Update(ctx, c.info)
	}
}

// changed reports whether a run is resumed otherwise than it was asked for. Of
// files that cannot be read any more nobody knows, and what is kept of them stays.
func (c *chronicle) changed() bool {
	old := &c.again.stored.Info
	if len(c.again.memory.missing) > 0 {
		return false
	}
	return c.journal.Masked(c.info.Fingerprint) != old.Fingerprint || !bytes.Equal(old.Invocation, c.info.Invocation)
}

// watched returns subscribers who are told nothing of a run that could not be
// begun, and one that counts.
func (c *chronicle) watched(watch []func(event.Event)) []func(event.Event) {
	if c == nil {
		return watch
	}
	out := make([]func(event.Event), 0, len(watch)+1)
	for _, take := range append(watch, c.count) {
		out = append(out, func(e event.Event) {
			if c.failed == nil {
				take(e)
			}
		})
	}
	return out
}

// count counts what is worth a word in the summary.
func (c *chronicle) count(e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Type == event.TaskComplete && e.Reused == e.Run:
		c.kept++
	case e.Type == event.AgentStart:
		c.calls++
	}
}

// end ends the keeping of a run that came to a result, and gives that the head
// of its chain of decisions if it has none of its own.
func (c *chronicle) end(res *team.Result) {
	if c == nil || c.run == nil {
		return
	}
	head, err := c.run.Close(context.Background())
	if err == nil && res.Audit == "" {
		res.Audit = head.String()
	}
	if err != nil && res.Unkept == nil {
		res.Unkept = err
	}
}

// close gives up what is open. It may be called at any time, and again.
func (c *chronicle) close() {
	if c != nil {
		_ = c.journal.Close() // what of it matters, the run has said
	}
}

// unbegun returns why a run could not be begun in the journal, if so.
func (c *chronicle) unbegun() error {
	if c == nil || c.failed == nil {
		return nil
	}
	return unopened(c.failed, toKeep)
}

// unkeyed reports whether of something that may come of a run, or that came from
// standard input, only a digest would be kept, since there is no key. Of a goal
// that is not planned more may come.
func (c *chronicle) unkeyed(plan *team.Plan, file *specfile.File) bool {
	if c == nil || c.keyed {
		return false
	}
	for i := range c.info.Files {
		if f := &c.info.Files[i]; f.Path == "-" && f.Label > label.Confidential {
			return true
		}
	}
	if file.Goal != nil && file.Goal.Classification > label.Confidential {
		return true
	}
	return plan != nil && slices.ContainsFunc(plan.Tasks, func(t team.PlannedTask) bool { return t.Label > label.Confidential })
}

// lost reports whether of a result only a digest was kept, since there is no key.
func (c *chronicle) lost(res *team.Result) bool {
	return c != nil && !c.keyed && slices.ContainsFunc(res.Tasks, func(t team.TaskResult) bool {
		return t.Envelope != nil && t.Label > label.Confidential
	})
}

// otherKey stands in the error of a chain of decisions that is to go on under another key.
const otherKey = "of another run or key"

// unresumed words that a run cannot be taken up.
func unresumed(ctx context.Context, err error) error {
	if stop, ok := errors.AsType[*interrupted](context.Cause(ctx)); ok {
		return &fault{kind: kindRuntime, err: err, exit: stop.status()}
	}
	if strings.Contains(err.Error(), otherKey) {
		err = fmt.Errorf("%w; a record goes on under the key with which it began, or without one: --audit-key FILE or %s", err, envAuditKey)
	}
	return &fault{kind: kindRuntime, err: err}
}
