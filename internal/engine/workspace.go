package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/runteam/runteam/label"
)

// A workspace is the folder of one attempt, in which its tools work. It holds only what
// passed the gate to a tool. It is made for the first call that asks for it and removed when the
// attempt ends, so that a new attempt begins with a clean one.
type workspace struct{ *os.Root }

// Close removes the workspace.
func (w workspace) Close() error {
	return errors.Join(w.Root.Close(), os.RemoveAll(w.Name()))
}

// workspaceKey is the key of the workspace among what the calls of an attempt share.
type workspaceKey struct{}

// memoryDir is a tmpfs, for data that must not be written to disk.
const memoryDir = "/dev/shm"

// files returns the workspace of the attempt.
func (a *attempt) files() (*os.Root, error) {
	w, err := a.shared.Get(workspaceKey{}, func() (io.Closer, error) {
		parent := ""
		if a.contract.MaxInput > label.Confidential {
			if parent = memoryDir; runtime.GOOS != "linux" {
				return nil, fmt.Errorf("%v data must not be written to disk, and this system has no in-memory folder", a.contract.MaxInput)
			}
		}
		dir, err := os.MkdirTemp(parent, "runteam-")
		if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(dir)
		if err == nil {
			err = errors.Join(root.Mkdir(historyDir, 0o755), root.Mkdir("outputs", 0o755))
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		a.hasFiles.Store(true)
		return workspace{root}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return w.(workspace).Root, nil
}

// historyDir is the folder of a workspace with what was said in the turns so far.
const historyDir = "history"

// writeHistory writes what the turns so far added to the conversation into the workspace, if
// there is one, in the form that the agent was given.
func (a *attempt) writeHistory() error {
	if !a.hasFiles.Load() {
		return nil
	}
	root, err := a.files()
	for ; err == nil && a.written < len(a.steps); a.written++ {
		var raw []byte
		if raw, err = json.MarshalIndent(a.steps[a.written], "", "  "); err == nil {
			err = root.WriteFile(fmt.Sprintf("%s/step_%03d.json", historyDir, a.written+1), append(raw, '\n'), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	return nil
}
