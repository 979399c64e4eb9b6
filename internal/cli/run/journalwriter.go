package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/team"
)

// A JournalWriter keeps one run in a journal, as [team.Journal]. The run is begun
// there with the first that is told of it, so that none stands in the journal
// that was refused before it began. A nil *chronicle keeps nothing.
type JournalWriter struct {
	journal *journal.Journal
	keyed   bool // what is above confidential is kept too
	Info    journal.Info
	again   *resumed // nil for a new run

	once   sync.Once
	run    *journal.Run
	failed error         // why the run could not be begun
	unused string        // why answers of the run are not used now that it is resumed; empty if they are
	last   chan struct{} // closed when the latest done that was given that error has returned

	mu      sync.Mutex // guards what follows
	earlier int        // tasks of which there was a result before the run was resumed
	calls   int        // agents that were asked
}

// NewJournalWriter opens the journal of a run, if it is to have one.
func NewJournalWriter(con *console.Console, j *Job, file *specfile.File) (*JournalWriter, error) {
	if j.Journal.None {
		return nil, nil
	}
	info, err := j.infoOf(con, file)
	if err != nil {
		return nil, err
	}
	if j.resumed != nil {
		info.Time, info.Command = j.resumed.stored.Info.Time, j.resumed.stored.Info.Command
		return &JournalWriter{journal: j.resumed.journal, keyed: j.resumed.keyed, Info: info, again: j.resumed}, nil
	}
	j.Journal.Quiet = j.Progress == "none"
	key, err := journals.JournalKey(con, j.Journal.KeyFile)
	if err != nil {
		return nil, err
	}
	opened, _, err := journals.Open(con, &j.Journal, journals.ToKeep)
	if err != nil {
		return nil, err
	}
	return &JournalWriter{journal: opened, keyed: key != nil, Info: info}, nil
}

// Apply has a run kept, and taken up where it is if it is resumed.
func (c *JournalWriter) Apply(ctx context.Context, o *team.RunOptions) error {
	if c == nil {
		return nil
	}
	o.Journal = c
	if c.again == nil {
		return nil
	}
	run, stored, err := c.journal.Resume(ctx, c.Info.Run)
	if err != nil {
		return unresumed(ctx, err)
	}
	c.run, c.again.stored = run, stored
	o.Past = &stored.History
	return nil
}

// Append keeps entries; see [team.Journal]. The first are those with which the
// run begins.
func (c *JournalWriter) Append(entries []record.Entry, done func(error)) {
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
func (c *JournalWriter) Recall(ctx context.Context, key record.Key) ([]record.AgentCall, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	return c.run.Recall(ctx, key)
}

// begin makes the run known to the journal, or what of it has changed.
func (c *JournalWriter) begin() {
	ctx := context.Background() // it is a matter of one commit, also if the run is to end already
	if c.again == nil {
		c.run, c.failed = c.journal.Begin(ctx, c.Info)
	} else if c.changed() {
		c.failed = c.run.Update(ctx, c.Info)
	}
}

// changed reports whether a run is resumed otherwise than it was asked for. Of
// files that cannot be read any more nobody knows, and what is kept of them stays.
func (c *JournalWriter) changed() bool {
	old := &c.again.stored.Info
	if len(c.again.memory.Missing) > 0 {
		return false
	}
	return c.journal.Masked(c.Info.Fingerprint) != old.Fingerprint || !bytes.Equal(old.Invocation, c.Info.Invocation)
}

// Subscribers returns subscribers who are told nothing of a run that could not be
// begun, and one that counts.
func (c *JournalWriter) Subscribers(watch []func(event.Event)) []func(event.Event) {
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
func (c *JournalWriter) count(e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Type == event.TaskComplete && e.Reused == e.Run:
		c.earlier++
	case e.Type == event.AgentStart:
		c.calls++
	}
}

// Close ends the keeping of a run that came to a result, and gives that the head
// of its chain of decisions if it has none of its own.
func (c *JournalWriter) Close(res *team.Result) {
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

// Release gives up what is open. It may be called at any time, and again.
func (c *JournalWriter) Release() {
	if c != nil {
		_ = c.journal.Close() // what of it matters, the run has said
	}
}

// BeginError returns why a run could not be begun in the journal, if so.
func (c *JournalWriter) BeginError() error {
	if c == nil || c.failed == nil {
		return nil
	}
	return journals.OpenError(c.failed, journals.ToKeep)
}

// mayStoreDigestOnly reports whether of something that may come of a run, or that came from
// standard input, only a digest would be kept, since there is no key. Of a goal
// that is not planned more may come.
func (c *JournalWriter) mayStoreDigestOnly(plan *team.Plan, file *specfile.File) bool {
	if c == nil || c.keyed {
		return false
	}
	for i := range c.Info.Files {
		if f := &c.Info.Files[i]; f.Path == "-" && f.Label > label.Confidential {
			return true
		}
	}
	if file.Goal != nil && file.Goal.Classification > label.Confidential {
		return true
	}
	return plan != nil && slices.ContainsFunc(plan.Tasks, func(t team.PlannedTask) bool { return t.Label > label.Confidential })
}

// digestOnly reports whether of a result only a digest was kept, since there is no key.
func (c *JournalWriter) digestOnly(res *team.Result) bool {
	return c != nil && !c.keyed && slices.ContainsFunc(res.Tasks, func(t team.TaskResult) bool {
		return t.Envelope != nil && t.Label > label.Confidential
	})
}

// otherKey stands in the error of a chain of decisions that is to go on under another key.
const otherKey = "of another run or key"

// unresumed words that a run cannot be taken up.
func unresumed(ctx context.Context, err error) error {
	if stop, ok := errors.AsType[*exit.Interrupted](context.Cause(ctx)); ok {
		return &exit.Error{Kind: exit.KindRuntime, Err: err, Status: stop.Status()}
	}
	if strings.Contains(err.Error(), otherKey) {
		err = fmt.Errorf("%w; a record goes on under the key with which it began, or without one: --audit-key FILE or %s", err, journals.EnvAuditKey)
	}
	return &exit.Error{Kind: exit.KindRuntime, Err: err}
}
