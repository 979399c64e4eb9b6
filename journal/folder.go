package journal

import (
	"os"
	"syscall"
)

// errReadOnlyVolume is what a system returns for a file on a volume that is
// mounted to be read.
var errReadOnlyVolume error = syscall.EROFS

// writableFolder reports whether files can be made in a folder.
func writableFolder(path string) bool {
	f, err := os.CreateTemp(path, ".runteam-*")
	if err != nil {
		return false
	}
	name := f.Name()
	return f.Close() == nil && os.Remove(name) == nil
}
