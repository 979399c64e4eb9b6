package filetree

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
)

// A Folder is a folder of texts that was read, to be the input of a run. It is immutable and
// safe for concurrent use.
type Folder struct {
	tree    Tree
	skipped []string
	text    string
}

// ReadFolder reads the texts of a folder. Files and folders that match one of the globs in
// exclude are left out, and so are .git and .runteam. A glob without a slash matches a name
// at any depth. Symbolic links, and files that are not UTF-8 text, are left out too: see
// [Folder.Skipped]. It is an error if there are more than 10,000 files or 32 MiB.
func ReadFolder(fsys fs.FS, exclude ...string) (*Folder, error) {
	t, skipped, err := Read(context.Background(), fsys, exclude)
	if err != nil {
		return nil, err
	}
	return FolderOf(t, skipped), nil
}

// FolderOf returns a tree as a folder.
func FolderOf(t Tree, skipped []string) *Folder {
	return &Folder{t, skipped, t.JSON()}
}

// Skipped returns the paths of links and of files that are not texts, which the folder lacks.
func (f *Folder) Skipped() []string { return slices.Clone(f.skipped) }

// TextOf returns the files of a folder as nested objects, see [Tree.JSON].
func TextOf(f *Folder) string { return f.text }

// TreeOf returns the files of a folder, which must not be changed.
func TreeOf(f *Folder) Tree { return f.tree }

// Format writes the number of files for every verb, so that no verb prints a text.
func (f *Folder) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "folder of %d files", len(f.tree)) }
