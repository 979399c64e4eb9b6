package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/runteam/runteam/label"
)

// A workspace is the folder of one attempt, in which its tools work. It holds only what
// passed the gate to a tool. It is made for the first call that asks for it and removed when the
// attempt ends, so that a new attempt begins with a clean one.
type workspace struct{ *os.Root }

// Close removes the workspace.
func (w workspace) Close() error {
	dir := w.Name()
	err := w.Root.Close()
	if os.RemoveAll(dir) == nil {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error { // a tool may have taken its own rights away
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
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
			err = replaceFile(root, fmt.Sprintf("%s/step_%03d.json", historyDir, a.written+1), append(raw, '\n'))
		}
	}
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	return nil
}

// replaceFile writes a file, in place of whatever a tool has put there: opening a named pipe
// would wait for its reader.
func replaceFile(root *os.Root, name string, text []byte) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
