package journal

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/workspace"
)

// folderName is the name of a folder with a journal. What begins with it is no part of an
// input that is a folder.
const folderName = ".runteam"

// memoryDir is where workspaces are that must not be on disk.
const memoryDir = "/dev/shm"

// workspaces returns the folders that have the workspaces of all runs, on disk and in memory; none for a journal in
// memory. Other users cannot know the name of the one in memory.
func (j *Journal) workspaces() []string {
	id := j.store.db.ID()
	if id == "" || j.vault.digests == nil {
		return nil
	}
	named := func(of string) string {
		d := j.vault.digest(of, []byte(id))
		return hex.EncodeToString(d[:16])
	}
	return []string{workspaceDir(j.o.Workspaces, fileOf(j.Path()), named("shared workspaces")), filepath.Join(memoryDir, "runteam-"+named("workspaces"))}
}

// fileOf returns the file of a journal with an identity, as [Database] has it; empty if it is in no file.
func fileOf(identity string) string {
	if filepath.IsAbs(identity) {
		return identity
	}
	return ""
}

// workspaceDir returns the folder on disk with the workspaces of all runs of a journal: beside its file, or the one with
// this name in a folder that other journals share. Without a file, that folder is in the user's cache unless one is given.
func workspaceDir(folder, file, named string) string {
	if folder == "" && file != "" {
		name := filepath.Base(file) + ".workspaces"
		if filepath.Base(filepath.Dir(file)) != folderName {
			name = folderName + "-" + name
		}
		return filepath.Join(filepath.Dir(file), name)
	}
	if folder == "" {
		folder = os.TempDir()
		if cache, err := os.UserCacheDir(); err == nil {
			folder = filepath.Join(cache, "runteam", "workspaces")
		}
	}
	return filepath.Join(folder, folderName+"-"+named)
}

// Workspaces returns the folders for the workspaces of the run; see [record.WorkspaceKeeper].
func (r *Run) Workspaces() (w record.Workspaces) {
	if all := r.j.workspaces(); all != nil {
		name := workspace.FileName(r.row.id)
		w.Disk, w.Memory = filepath.Join(all[0], name), filepath.Join(all[1], name)
		w.Place = record.WorkspacePlace{Host: r.j.me.Host, Folder: cmp.Or(r.j.o.Workspaces, all[0])}
	}
	return w
}

// cleanWorkspaces removes the workspaces of runs that are not in the journal any more, and of
// those that have ended: a process that was killed cannot. A run that was interrupted, suspended or
// canceled has its workspaces until it is resumed or removed.
func (j *Journal) cleanWorkspaces(ctx context.Context) error {
	left := map[string][]string{} // paths by the name of the run
	for _, dir := range j.workspaces() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			left[e.Name()] = append(left[e.Name()], filepath.Join(dir, e.Name()))
		}
	}
	if len(left) == 0 {
		return nil
	}
	runs, err := j.store.runs(ctx, "", all, whole) // after the folders: a run begins before its workspaces
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range runs {
		name, end := workspace.FileName(r.id), record.RunEnd{Status: r.turn.status}
		if !j.live(r.held) && end.Status != "" && end.Status != canceled && !end.IsSuspended() {
			for _, path := range left[name] {
				errs = append(errs, workspace.RemoveRun(path))
			}
		}
		delete(left, name)
	}
	for _, paths := range left { // even what was kept
		for _, path := range paths {
			errs = append(errs, workspace.Remove(path))
			_ = os.Remove(filepath.Dir(path)) // unless another run has workspaces
		}
	}
	return errors.Join(errs...)
}

// canceled is the status of a run whose caller ended it.
const canceled = "cancelled"
