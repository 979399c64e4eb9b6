package team

import (
	"io/fs"

	"github.com/runteam/runteam/internal/filetree"
)

// A Folder is the texts of a folder, to be an [Input].
type Folder = filetree.Folder

// ReadFolder reads the texts of a folder. Files and folders that match one of the globs in
// exclude are left out, and so are .git and .runteam; a glob without a slash matches a name
// at any depth, and matches it in any letter case and composition of accents. Symbolic links, and
// files that are not UTF-8 text, are left out too, and listed by [Folder.Skipped]. More than 10,000 files or 32 MiB are an error.
func ReadFolder(fsys fs.FS, exclude ...string) (*Folder, error) {
	return filetree.ReadFolder(fsys, exclude...)
}
