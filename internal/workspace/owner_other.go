//go:build !unix

package workspace

import "io/fs"

// isOwn reports true: this system does not say who owns a file.
func isOwn(fs.FileInfo) bool { return true }
