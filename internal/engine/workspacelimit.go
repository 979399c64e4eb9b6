package engine

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// ErrWorkspaceLimit reports a workspace that stayed above its limits.
var ErrWorkspaceLimit = errors.New("the workspace is above its limits")

// Defaults of [task.WorkspaceLimits].
const (
	defaultBytes       = 256 << 20
	defaultFiles       = 20_000
	defaultOutputs     = 10
	defaultOutputBytes = 1 << 20
	defaultTotalOutput = 10 << 20
)

// workspaceLimits returns the limits on the workspace of a task.
func workspaceLimits(t *task.Task) workspace.Limits {
	l := cmp.Or(t.Workspace, &task.WorkspaceLimits{})
	return workspace.Limits{
		Bytes: cmp.Or(l.MaxBytes, defaultBytes), Files: cmp.Or(l.MaxFiles, defaultFiles),
		Outputs: cmp.Or(l.MaxOutputs, defaultOutputs), OutputBytes: cmp.Or(l.MaxOutputBytes, defaultOutputBytes),
		TotalOutputBytes: cmp.Or(l.MaxTotalOutputBytes, defaultTotalOutput),
	}
}

// measuredFiles is what is recorded of a workspace after a call.
type measuredFiles struct {
	folder string     // its name
	key    record.Key // of its files; zero if the call changed none
}

// measureFiles measures the workspace after a call that may have changed it. Above its limits,
// the agent is told so, and the attempt ends if the next call does not correct that.
func (c *toolCall) measureFiles(a *attempt, result *tool.Result) (m measuredFiles, err error) {
	if c.effect() == tool.None || !a.hasFiles.Load() {
		return m, nil
	}
	f, sizes := a.current()
	of, err := f.Measure(a.place.limits, sizes)
	m.folder = f.Base()
	if m.key = filesKey(m.folder, of); err != nil {
		rand.Read(m.key[:]) //nolint:errcheck // it never returns an error; no workspace has this key
	}
	limit, isAbove := errors.AsType[*workspace.LimitError](err)
	if isAbove && a.above {
		return m, fmt.Errorf("%w, also after another call: %s", ErrWorkspaceLimit, limit.Problem)
	}
	if a.above = isAbove; isAbove {
		result.Text = fmt.Sprintf("The workspace is above its limits: %s. Correct that with the next call that changes files, or the task fails.\n\n%s", limit.Problem, result.Text)
		result.IsError = true
	}
	return m, nil
}

// checkCommandFiles returns an error if an agent that is a command has left its workspace above
// the limits. It has no further call to correct that.
func checkCommandFiles(a *attempt) error {
	if !a.run.team.Find(a.caps.Agent).UsesWorkspace() {
		return nil
	}
	f, sizes := a.current()
	_, err := f.Measure(a.place.limits, sizes)
	if limit, isAbove := errors.AsType[*workspace.LimitError](err); isAbove {
		return fmt.Errorf("%w: %s", ErrWorkspaceLimit, limit.Problem)
	}
	return nil
}

// current returns the workspace, and the sizes of the files that the runtime wrote.
func (c *conversation) current() (*workspace.Folder, map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.folder, maps.Clone(c.sizes)
}

// filesKey returns the key of the files in a workspace. Equal files in another workspace have
// another key.
func filesKey(folder string, of workspace.Digest) record.Key {
	return sha256.Sum256(append([]byte("runteam/workspace/1 "+folder+" "), of[:]...))
}

// checkGiven returns an error if the files that a task is given exceed the limits of its
// workspace.
func checkGiven(a *attempt) error {
	l := workspaceLimits(a.task)
	given := a.given.files()
	if n, bytes := len(given), given.Bytes(); n > l.Files || bytes > l.Bytes {
		return fmt.Errorf("%w from the start: the task is given %d files with %d bytes, and may have %d files with %d bytes", ErrWorkspaceLimit, n, bytes, l.Files, l.Bytes)
	}
	return nil
}
