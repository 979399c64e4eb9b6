package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/label"
)

// errOtherTurn reports that a conversation of an earlier process takes another course than
// before, so that the workspace, which is as the last of its calls left it, does not fit.
var errOtherTurn = errors.New("the conversation is not the one that the workspace belongs to, so it starts over")

// isWithin reports whether a call of a tool belongs to an attempt or to a child of it.
func isWithin(session string, a *attempt) bool {
	return strings.HasPrefix(record.ChildOf(session)+"/", a.part+"/")
}

// resumeFiles finds the workspace that the conversation had in an earlier process. It reports
// whether the conversation can continue: the workspace, or a clean one in place of one that is
// gone, is as the last call left it.
func resumeFiles(ctx context.Context, a *attempt) bool {
	before := a.run.memo.Workspace(a.task.ID, a.part)
	if before == nil || before.Last == "" {
		return true // it had none, or no call that may have changed it has ended: it begins with a clean one
	}
	left, err := "", reopenFiles(a, before)
	if errors.Is(err, fs.ErrNotExist) {
		left = leftAt(a.place, before.Place)
	}
	if err != nil {
		_, err = a.files() // a clean one
	}
	if f, _ := a.current(); err == nil && isAsBefore(a.run.memo, before, f) {
		a.resumed = before.Last
		return true
	}
	a.filesLeft = left
	a.run.team.Log.Info("a conversation starts over: its workspace is not as its last call left it", "task", a.task.Title, "left", left)
	a.closeShared(ctx, errOtherTurn)
	return false
}

// leftAt says where an earlier process left a workspace that is not here; empty if that is not known, or was here.
func leftAt(here workspacePlace, there record.WorkspacePlace) string {
	inOther := !here.inMemory && there.Folder != "" && there.Folder != here.of.Folder
	switch host := "on host " + cmp.Or(there.Host, "without a name"); {
	case there == record.WorkspacePlace{}, there.Host == here.of.Host && !inOther:
		return ""
	case here.inMemory:
		return host + ", in memory"
	case there.Folder == "":
		return host
	default:
		return host + ", in " + there.Folder
	}
}

// warnLeft warns that a conversation starts over because its files were left elsewhere, unless the task fails for that.
// What it called counts only for a caller who may see all of it.
func warnLeft(a *attempt) {
	if a.filesLeft == "" || a.run.memo.Counted(a.task.ID).IsPartial() || checkEffects(a) != nil {
		return
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.run.warn(fmt.Sprintf("task %q: a conversation starts over, since its files were left %s", a.task.Title, a.filesLeft))
}

// reopenFiles makes the workspace of an earlier process that of the conversation. It removes one
// that is not as the last call left it, or that an interrupted call may still be changing.
func reopenFiles(a *attempt, before *memo.Workspace) error {
	if !a.place.lasts {
		return errOtherTurn
	}
	f, err := workspace.Open(a.place.parent, before.Folder)
	if err != nil {
		return err
	}
	if before.IsChanging() || !isAsBefore(a.run.memo, before, f) {
		return errors.Join(errOtherTurn, f.Remove())
	}
	if err := a.use(f); err != nil {
		return errors.Join(err, f.Remove())
	}
	_, err = a.shared.Get(workspaceKey{}, func() (io.Closer, error) { return attemptFolder{f, a.conversation}, nil })
	return err
}

// isAsBefore reports whether a folder has the files that were recorded last.
func isAsBefore(m *memo.Memo, before *memo.Workspace, f *workspace.Folder) bool {
	of, err := f.Measure(workspace.Unlimited, nil)
	if err != nil {
		return false
	}
	return m.Mask(filesKey(before.Folder, of)) == before.Files
}

// atFiles returns an error until the conversation has come to the call that left the workspace
// as it is: nothing new may happen before.
func (c *conversation) atFiles() error {
	if c == nil || c.resumed == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made[c.resumed] {
		return nil
	}
	return errOtherTurn
}

// removeFiles removes the workspace of an attempt that has ended, once that is durable.
func removeFiles(r *runScope, a *attempt) {
	if a.conversation == nil {
		return
	}
	a.mu.Lock()
	path := a.removable
	a.mu.Unlock()
	if path == "" {
		return
	}
	log, stored := r.team.Log, r.ledger.tail()
	r.removes.Go(func() {
		if stored != nil {
			if <-stored.done; stored.err != nil {
				return
			}
		}
		if err := workspace.Remove(path); err != nil {
			log.Warn("a workspace could not be removed", "error", err)
		}
	})
}

// removeAllFiles removes what is left of the workspaces of a run that has ended, unless it was
// interrupted or is left to a later process.
func removeAllFiles(ctx context.Context, r *run) {
	r.removes.Wait()
	k, ok := r.log.(record.WorkspaceKeeper)
	if !ok || ctx.Err() != nil || r.isLeft(ctx) || r.journalErr != nil || r.plan != nil && isSuspended(r.tasks) {
		return
	}
	of := k.Workspaces()
	for _, dir := range []string{of.Disk, of.Memory} {
		if dir == "" {
			continue
		}
		if err := workspace.RemoveRun(dir); err != nil {
			r.team.Log.Warn("workspaces could not be removed", "error", err)
		}
	}
}

// fateOfFiles says what happens to the workspace of an attempt that ends. ctx is that of the
// run.
func fateOfFiles(ctx context.Context, a *attempt, err error) fate {
	switch {
	case errors.Is(err, errOtherTurn):
		return removed
	case a.place.lasts && (ctx.Err() != nil || errors.Is(err, ErrJournal) || isContinuedLater(err)):
		return leftForResume
	case a.next != nil: // its last holder has the files of the task
		return removed
	case a.run.options.KeepWorkspaces && !a.isChild() && mayKeepFiles(a):
		return keptForUser
	}
	return removed
}

// keepFiles notes which workspace of a task was kept, in place of one of an earlier attempt, or
// why it was not.
func keepFiles(r *runScope, t *TaskResult, a *attempt) {
	if !r.options.KeepWorkspaces || a.conversation == nil || !a.hasFiles.Load() || a.fate == leftForResume {
		return
	}
	a.mu.Lock()
	kept := a.keptAt
	a.mu.Unlock()
	if kept == "" {
		r.warn(fmt.Sprintf("task %q: its workspace was removed: its data is %v, and only data that the caller may see, up to confidential, stays", t.Title, a.contract.MaxInput))
		return
	}
	if t.Workspace != "" && t.Workspace != kept {
		_ = workspace.Remove(t.Workspace) // of an earlier attempt
	}
	t.Workspace = kept
}

// mayKeepFiles reports whether the caller may have the workspace: all of its data is within
// the caller's clearance, and may be on disk.
func mayKeepFiles(a *attempt) bool {
	level := a.contract.MaxInput.Join(a.returned.level())
	for _, x := range a.earlier {
		level = level.Join(x.contract.MaxInput)
	}
	return level <= min(a.run.accepts, label.Confidential)
}
