package run

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm/limit"
)

// A JournalWriter stores one run in a journal, as [record.Store]. A nil *JournalWriter
// stores nothing.
type JournalWriter struct {
	openJournal
	Info    journal.Info
	resumed *resumed // nil for a new run

	run       *journal.Run
	recording *connect.Recording // of --record; nil without it
}

// A recordedRun passes on the answers that other processes leave for a run.
type recordedRun struct {
	*journal.Run
	recording *connect.Recording
}

// Append records the answers among the entries; see [record.Log].
func (r recordedRun) Append(entries []record.Entry, done func(error)) {
	for i := range entries {
		if a := entries[i].Answer; a != nil {
			r.recording.Answered(a.Session, a.Text)
		}
	}
	r.Run.Append(entries, done)
}

// An openJournal is the journal that a run is stored in.
type openJournal struct {
	journal *journal.Journal
	at      journals.Location
	hasKey  bool // so that what is above confidential is stored too
	shared  bool // other runs use it too, so it stays open

	leave func() // ends the sharing of limits; nil if they are not shared
}

// close closes the journal, unless other runs use it.
func (o *openJournal) close() error {
	if o.leave != nil {
		o.leave()
	}
	if o.shared {
		return nil
	}
	return o.journal.Close()
}

// open opens the journal of a run.
func (j *Job) open(con *console.Console, why journals.Purpose) (o openJournal, err error) {
	key, err := journals.JournalKey(con, j.Journal.KeyFile)
	if err != nil {
		return o, err
	}
	opened, at, err := journals.Open(con, &j.Journal, why)
	return openJournal{journal: opened, at: at, hasKey: key != nil}, err
}

// shareLimits makes the limits of endpoints hold for all processes that use the journal, until it is closed.
func (o *openJournal) shareLimits(of *limit.Group) { o.leave = of.Share(o.journal) }

// NewJournalWriter opens the journal of a run, unless it is not to have one, and claims the stored run
// if it is resumed.
func NewJournalWriter(ctx context.Context, con *console.Console, j *Job, file *specfile.File) (w *JournalWriter, err error) {
	defer func() {
		if w != nil && !j.Offline {
			w.shareLimits(con.Limits)
		}
	}()
	if j.Journal.None {
		return nil, nil
	}
	info, err := j.infoOf(con, file)
	if err != nil {
		return nil, err
	}
	again := j.resumed
	if again == nil {
		j.Journal.Quiet = j.Progress == "none"
		opened, err := j.open(con, journals.ToStore)
		if err != nil {
			return nil, err
		}
		return &JournalWriter{openJournal: opened, Info: info}, nil
	}
	info.Time, info.Command = again.stored.Info.Time, again.stored.Info.Command
	info.SetTurn(again.stored.Info.Turn)
	w = &JournalWriter{openJournal: again.openJournal, Info: info, resumed: again, run: again.run}
	if w.run != nil { // it was claimed
		return w, nil
	}
	if w.run, again.stored, err = w.journal.Resume(ctx, info.Run); err != nil {
		return nil, resumeError(ctx, err)
	}
	return w, nil
}

// OpenRun begins the run, or returns the one that is resumed; see [record.Store].
func (c *JournalWriter) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	ctx = context.WithoutCancel(ctx) // it takes one commit, which must happen even if the run is ending
	var err error
	if c.resumed == nil {
		c.Info.SetTurn(o.Turn)
		c.run, err = c.journal.Begin(ctx, c.Info)
	} else if c.changed() {
		err = c.run.Update(ctx, c.Info)
	}
	if err != nil {
		return nil, c.at.OpenError(err, journals.ToStore)
	}
	if c.recording != nil {
		return recordedRun{c.run, c.recording}, nil
	}
	return c.run, nil
}

// Private returns the paths that no command of an agent may read; see [record.PrivateStore].
func (c *JournalWriter) Private() []string {
	if c == nil {
		return nil
	}
	return c.journal.Private()
}

// LoadRun returns what the journal has of a run; see [record.Store].
func (c *JournalWriter) LoadRun(ctx context.Context, run string) (*record.History, error) {
	return c.journal.LoadRun(ctx, run)
}

// changed reports whether a run is resumed with another spec or other flags. If copies of files
// cannot be read this is unknown, and the stored copies are kept.
func (c *JournalWriter) changed() bool {
	old := &c.resumed.stored.Info
	if len(c.resumed.invocation.Missing) > 0 {
		return false
	}
	return c.journal.Masked(c.Info.Fingerprint) != old.Fingerprint || !bytes.Equal(old.Invocation, c.Info.Invocation)
}

// Release closes the journal. It may be called at any time, and again.
func (c *JournalWriter) Release() {
	if c != nil {
		_ = c.close() // the run has reported failures of the journal
	}
}

// mayStoreDigestOnly reports whether the journal may store only a digest of some result or of
// standard input, since it is above confidential and there is no key.
func (c *JournalWriter) mayStoreDigestOnly(plan *engine.Plan, file *specfile.File) bool {
	if c.hasKey {
		return false
	}
	if slices.ContainsFunc(c.Info.Files, func(f journal.File) bool { return f.Path == "-" && f.Label > label.Confidential }) {
		return true
	}
	if file.Goal != nil && file.Goal.Classification > label.Confidential {
		return true
	}
	return plan != nil && slices.ContainsFunc(plan.Tasks, func(t engine.PlannedTask) bool { return t.Label > label.Confidential })
}

// digestOnly reports whether the journal stored only a digest of some result, since there is no key.
func (c *JournalWriter) digestOnly(res *engine.Result) bool {
	return !c.hasKey && slices.ContainsFunc(res.Tasks, func(t engine.TaskResult) bool {
		return t.Envelope != nil && t.Label > label.Confidential
	})
}

// otherKey is part of the error about a chain of decisions that has another key.
const otherKey = "of another run or key"

// resumeError describes why a run cannot be resumed.
func resumeError(ctx context.Context, err error) error {
	if ctx.Err() == nil && strings.Contains(err.Error(), otherKey) {
		err = fmt.Errorf("%w; resume the run with the key with which it began: --audit-key FILE or %s", err, journals.EnvAuditKey)
	}
	return journals.ReadError(ctx, err)
}

// A ReplayJournal returns the history of the replayed run, and stores the new run with Writer. A nil
// Writer does not store it.
type ReplayJournal struct {
	History *record.History
	Writer  *JournalWriter
}

// LoadRun returns the history; see [record.Store].
func (j ReplayJournal) LoadRun(context.Context, string) (*record.History, error) {
	return j.History, nil
}

// OpenRun begins the new run; see [record.Store].
func (j ReplayJournal) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	if j.Writer == nil {
		return nil, nil
	}
	return j.Writer.OpenRun(ctx, o)
}

// Private returns those of the journal of the new run; see [record.PrivateStore].
func (j ReplayJournal) Private() []string { return j.Writer.Private() }

// SetTasks sets the tasks or the goal with which a run is resumed or replayed.
func SetTasks(o *engine.RunOptions, file *specfile.File) {
	if o.Tasks = file.Tasks; file.Goal != nil {
		o.Tasks, o.Answer = nil, file.Goal
	}
}
