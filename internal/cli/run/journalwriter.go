package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

// A JournalWriter stores one run in a journal, as [engine.Journal]. A nil *JournalWriter
// stores nothing.
type JournalWriter struct {
	journal *journal.Journal
	folder  string // that the journal is in, as people know it
	keyed   bool   // what is above confidential is kept too
	Info    journal.Info
	again   *resumed // nil for a new run

	run    *journal.Run
	unused string // why answers of the run are not used now that it is resumed; empty if they are

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
		return &JournalWriter{journal: j.resumed.journal, folder: j.resumed.folder, keyed: j.resumed.keyed, Info: info, again: j.resumed}, nil
	}
	j.Journal.Quiet = j.Progress == "none"
	key, err := journals.JournalKey(con, j.Journal.KeyFile)
	if err != nil {
		return nil, err
	}
	opened, path, err := journals.Open(con, &j.Journal, journals.ToKeep)
	if err != nil {
		return nil, err
	}
	return &JournalWriter{journal: opened, folder: filepath.Dir(path), keyed: key != nil, Info: info}, nil
}

// Apply has a run kept, and taken up where it is if it is resumed.
func (c *JournalWriter) Apply(ctx context.Context, o *engine.RunOptions) error {
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
	return nil
}

// OpenRun begins the run, or returns the one that Apply has claimed; see [engine.Journal].
func (c *JournalWriter) OpenRun(ctx context.Context, _ record.Opening) (record.Log, error) {
	ctx = context.WithoutCancel(ctx) // it is a matter of one commit, also if the run is to end already
	if c.again == nil {
		run, err := c.journal.Begin(ctx, c.Info)
		if err != nil {
			return nil, journals.OpenError(err, journals.ToKeep)
		}
		c.run = run
	} else if c.changed() {
		if err := c.run.Update(ctx, c.Info); err != nil {
			return nil, journals.OpenError(err, journals.ToKeep)
		}
	}
	return c.run, nil
}

// LoadRun returns what the journal has of a run; see [engine.Journal].
func (c *JournalWriter) LoadRun(ctx context.Context, run string) (*record.History, error) {
	return c.journal.LoadRun(ctx, run)
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

// Subscribers returns subscribers and one that counts.
func (c *JournalWriter) Subscribers(watch []func(event.Event)) []func(event.Event) {
	if c == nil {
		return watch
	}
	return append(slices.Clip(watch), c.count)
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

// Release gives up what is open. It may be called at any time, and again.
func (c *JournalWriter) Release() {
	if c != nil {
		_ = c.journal.Close() // what of it matters, the run has said
	}
}

// mayStoreDigestOnly reports whether of something that may come of a run, or that came from
// standard input, only a digest would be kept, since there is no key. Of a goal
// that is not planned more may come.
func (c *JournalWriter) mayStoreDigestOnly(plan *engine.Plan, file *specfile.File) bool {
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
	return plan != nil && slices.ContainsFunc(plan.Tasks, func(t engine.PlannedTask) bool { return t.Label > label.Confidential })
}

// digestOnly reports whether of a result only a digest was kept, since there is no key.
func (c *JournalWriter) digestOnly(res *engine.Result) bool {
	return c != nil && !c.keyed && slices.ContainsFunc(res.Tasks, func(t engine.TaskResult) bool {
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

// A ReplayJournal has the history of the run that is replayed, and stores the new run
// where Writer says; nil stores it nowhere.
type ReplayJournal struct {
	History *record.History
	Writer  *JournalWriter
}

// LoadRun returns the history; see [engine.Journal].
func (j ReplayJournal) LoadRun(context.Context, string) (*record.History, error) {
	return j.History, nil
}

// OpenRun begins the new run; see [engine.Journal].
func (j ReplayJournal) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	if j.Writer == nil {
		return nil, nil
	}
	return j.Writer.OpenRun(ctx, o)
}

// SetTasks sets what a run is resumed or replayed with: the tasks of a spec, or its goal.
func SetTasks(o *engine.RunOptions, file *specfile.File) {
	if o.Tasks = file.Tasks; file.Goal != nil {
		o.Tasks, o.Answer = nil, file.Goal
	}
}
